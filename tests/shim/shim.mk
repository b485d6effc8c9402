.PHONY: test-preload
test: test-preload
test-preload: $(LIB)/libvcuda.so ## what is preloaded loads on old systems and keeps still
	$(Q)timeout 120 tests/shim/preload.sh $(LIB)

SHIM_PROGRAMS := $(patsubst tests/shim/%.c,$(BUILD)/tests/shim/%,$(wildcard tests/shim/*.c))
$(BUILD)/tests/shim/%: tests/shim/%.c $(LIB)/libcuda.so.1
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -o $@ $< $(LIB)/libcuda.so.1

.PHONY: test-shim-programs
test: test-shim-programs
test-shim-programs: all $(SHIM_PROGRAMS) ## order and crowds, straight on the driver front
	$(Q)for program in $(SHIM_PROGRAMS); do \
		timeout 60 $(BIN)/vcuda run --software -- $$program || exit 1; done
