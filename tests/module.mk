# Each kind of test brings its rules in tests/KIND/*.mk.
include $(wildcard tests/*/*.mk)
