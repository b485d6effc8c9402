# Every kind of test brings its own rules: tests/KIND/KIND.mk.
include $(wildcard tests/*/*.mk)
