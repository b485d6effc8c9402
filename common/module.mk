# Linked into the daemons and the command; the shim uses the headers only.
COMMON_SRCS := $(wildcard common/*.c)
COMMON_OBJS := $(call objects,$(COMMON_SRCS))
# config.o needs it.
COMMON_LIBS := -lyaml
