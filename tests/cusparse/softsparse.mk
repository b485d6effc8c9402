# tests/cusparse on the software library alone, without the stack: build/tests/sparse/NAME. Results on the host
# are captured by the front, not by that library.

.PHONY: test-softsparse

SPARSE_TESTS := $(patsubst tests/cusparse/%.c,$(BUILD)/tests/sparse/%,\
	$(filter-out %/steady.c %/captured-results.c,$(wildcard tests/cusparse/*.c)))

$(SPARSE_TESTS): $(BUILD)/tests/sparse/%: tests/cusparse/%.c tests/cusparse/check.h tests/die.h \
		$(SPARSE_LIB) $(SOFTGPU_LIB) | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -g $(WARNINGS) -Wno-conversion -Wno-pedantic -D_GNU_SOURCE -I. \
		-DDISABLE_CUSPARSE_DEPRECATED -isystem $(CACHE)/cusparse-12.9 -isystem $(CUDA13)/include \
		$(SANFLAGS) -o $@ $< $(SPARSE_LIB) $(SOFTGPU_LIB) -Wl,-rpath,$(abspath $(LIB)) -lm

all-tests: test-softsparse
test-softsparse: $(SPARSE_TESTS:$(BUILD)/tests/sparse/%=run-softsparse_%) ## the software cuSPARSE alone
$(foreach test,$(SPARSE_TESTS),$(call add_test,softsparse_$(notdir $(test)), \
	tests/cusparse/$(notdir $(test)).c,$(test),timeout 300 $(test)))
