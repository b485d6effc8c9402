# tests/cusparselt on the software library alone, without the stack: build/tests/sparselt/NAME.

.PHONY: test-softsparselt

SPARSELT_TESTS := $(patsubst tests/cusparselt/%.c,$(BUILD)/tests/sparselt/%,\
	$(filter-out %/steady.c,$(wildcard tests/cusparselt/*.c)))

$(SPARSELT_TESTS): $(BUILD)/tests/sparselt/%: tests/cusparselt/%.c tests/cusparselt/check.h tests/cusparse/check.h tests/device.h tests/check.h tests/die.h \
		$(SPARSELT_LIB) $(SOFTGPU_LIB) | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -g $(WARNINGS) -Wno-conversion -Wno-pedantic -D_GNU_SOURCE -I. \
		-isystem $(CACHE)/cusparselt-cu13 -isystem $(CACHE)/cusparse-12.9 \
		-isystem $(CUDA13)/include $(SANFLAGS) -o $@ $< $(SPARSELT_LIB) $(SOFTGPU_LIB) \
		-Wl,-rpath,$(abspath $(LIB)) -lm

all-tests: test-softsparselt
test-softsparselt: $(SPARSELT_TESTS:$(BUILD)/tests/sparselt/%=run-softsparselt_%) ## the software cuSPARSELt alone
$(foreach test,$(SPARSELT_TESTS),$(call add_test,softsparselt_$(notdir $(test)), \
	tests/cusparselt/$(notdir $(test)).c,$(test),timeout 300 $(test)))
