.PHONY: test-preload
test: test-preload
test-preload: all ## what is preloaded loads on old systems and keeps still
	$(Q)timeout 120 tests/shim/preload.sh $(LIB)

# Not with a sanitizer, whose runtime would have to be preloaded first.
.PHONY: test-names
test: test-names
test-names: all ## whatever way a program names a library of NVIDIA's, it gets ours, once
ifeq ($(SAN),)
	$(Q)timeout 120 $(PYTHON) tests/shim/names.py $(LIB)
endif

SHIM_PROGRAMS := $(patsubst tests/shim/%.c,$(BUILD)/tests/shim/%,$(wildcard tests/shim/*.c))
$(BUILD)/tests/shim/%: tests/shim/%.c $(CUDA_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -o $@ $< $(CUDA_LIB)

.PHONY: test-shim-programs
test: test-shim-programs
test-shim-programs: all $(SHIM_PROGRAMS) ## order and crowds, straight on the driver front
	$(Q)for program in $(SHIM_PROGRAMS); do \
		timeout 60 $(BIN)/vcuda run --software -- $$program || exit 1; done
