# Every kind of test brings its own rules: tests/KIND/KIND.mk.
include $(wildcard tests/*/*.mk)
# Names what those define.
include tests/sanitize.mk
