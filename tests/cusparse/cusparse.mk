# tests/cusparse: programs with cuSPARSE and the driver API.  build/cusparse/12/NAME and 13/NAME need
# libcuda.so.1 and libcusparse.so.12, natively NVIDIA's: they differ in the headers that they were made with.

.PHONY: test-cusparse cusparse-programs

CUSPARSE_TEST_NAMES := $(patsubst tests/cusparse/%.c,%,$(wildcard tests/cusparse/*.c))
CUSPARSE_TESTS := $(foreach abi,12 13,$(addprefix $(BUILD)/cusparse/$(abi)/,$(CUSPARSE_TEST_NAMES)))
CUSPARSE_INCLUDE.12 = -isystem $(CACHE)/cusparse-12.5 -isystem $(CUDA12)/include
CUSPARSE_INCLUDE.13 = -isystem $(CACHE)/cusparse-12.9 -isystem $(CUDA13)/include

define cusparse_test
$$(BUILD)/cusparse/$(1)/%: tests/cusparse/%.c tests/cusparse/check.h tests/device.h tests/check.h tests/die.h \
		$$(OBJ)/link/libcusparse.so.12 $$(OBJ)/link/libcuda.so.1
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $$(WARNINGS) -Wno-conversion -Wno-pedantic -D_GNU_SOURCE -I. \
		-DDISABLE_CUSPARSE_DEPRECATED $$(CUSPARSE_INCLUDE.$(1)) -o $$@ $$< \
		$$(OBJ)/link/libcusparse.so.12 $$(OBJ)/link/libcuda.so.1 -Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,12 13,$(eval $(call cusparse_test,$(abi))))

cusparse-programs: $(CUSPARSE_TESTS)
all-tests: test-cusparse
test-cusparse: all $(CUSPARSE_TESTS) ## cuSPARSE through the whole stack, on the software GPU
	$(Q)timeout 600 tests/cublas/run.py --build $(BUILD) --family cusparse
$(call library_tests,cusparse)
