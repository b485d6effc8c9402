# The registry of tensors over a real redis-server: `make test-registry`.
.PHONY: test-registry

REGISTRY_SRCS := $(wildcard gpu-agent/store/registry/registry*.c gpu-agent/store/registry/commands*.c)
REGISTRY_LIBS := -lhiredis -lcjson -lcrypto -lyaml
REGISTRY_STORE := $(BUILD)/tests/registry_store

$(REGISTRY_STORE): $(call objects,tests/store/registry_store.c $(REGISTRY_SRCS) \
		$(wildcard common/*.c transport/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REGISTRY_LIBS)

all-tests: test-registry
test-registry: run-registry run-registry_replicas run-registry_commands ## the registry of tensors, over a real Redis
$(foreach test,registry registry_replicas registry_commands,$(call add_test,$(test),tests/store/$(test).py, \
	$(REGISTRY_STORE),BUILD=$$(BUILD) timeout 600 $$(PYTHON) tests/store/$(test).py))

# Fuzz target: commands, answers, conversations.
REGISTRY_FUZZ_SRCS := tests/fuzz/registry.c tests/fuzz/wire.c $(REGISTRY_SRCS) $(wildcard common/*.c transport/*.c)

$(BUILD)/tests/fuzz/registry-replay: $(call objects,$(REGISTRY_FUZZ_SRCS) tests/fuzz/agent_replay.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REGISTRY_LIBS)

$(BUILD)/tests/fuzz/registry-libfuzzer: $(call fuzz_objects,$(REGISTRY_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(REGISTRY_LIBS)

test-registry: run-replay_registry
$(call add_test,replay_registry,tests/fuzz/registry.c,$(BUILD)/tests/fuzz/registry-replay, \
	timeout 180 $$< tests/fuzz/corpus/registry)

$(call add_fuzz,registry,$(BUILD)/tests/fuzz/registry-libfuzzer,tests/fuzz/corpus/registry,-max_len=8192 -timeout=10, \
	ASAN_OPTIONS=quarantine_size_mb=4:malloc_context_size=8)
