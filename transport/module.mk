# Linked into the sidecar and the agent.
TRANSPORT_SRCS := $(wildcard transport/*.c)
TRANSPORT_OBJS := $(call objects,$(TRANSPORT_SRCS))
