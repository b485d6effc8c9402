# Tests of gpu-agent/store/registry/registry*: what needs no Redis.
UNIT_PREFIXES += registry
UNIT_OBJS_registry = $(call objects,gpu-agent/store/registry/registry_names.c)
