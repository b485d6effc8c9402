# The registry of tensors over a real redis-server: `make test-registry`.
.PHONY: test-registry

REGISTRY_SRCS := $(wildcard gpu-agent/store/registry*.c gpu-agent/store/commands*.c)
REGISTRY_LIBS := -lhiredis -lcjson -lcrypto -lyaml
REGISTRY_STORE := $(BUILD)/tests/registry_store

# Their bytes come by .incbin, which the compiler's list of dependencies does not know.
$(OBJ)/gpu-agent/store/registry_scripts.o $(FUZZ_OBJ)/gpu-agent/store/registry_scripts.o: \
	$(wildcard gpu-agent/store/*.lua)

$(REGISTRY_STORE): $(call objects,tests/store/registry_store.c $(REGISTRY_SRCS) \
		$(wildcard common/*.c transport/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(REGISTRY_LIBS)

test: test-registry
test-registry: run-registry ## the registry of tensors, over a real Redis
$(call add_test,registry,tests/store/registry.py,$(REGISTRY_STORE), \
	BUILD=$(BUILD) timeout 600 $(PYTHON) tests/store/registry.py)
