# tests/cusparselt: programs with cuSPARSELt and the driver API.  build/cusparselt/12/NAME and 13/NAME need
# libcuda.so.1 and libcusparseLt.so.0, natively NVIDIA's: they differ in the headers that they were made with.

.PHONY: test-cusparselt cusparselt-programs

CUSPARSELT_TEST_NAMES := $(patsubst tests/cusparselt/%.c,%,$(wildcard tests/cusparselt/*.c))
CUSPARSELT_TESTS := $(foreach abi,12 13,$(addprefix $(BUILD)/cusparselt/$(abi)/,$(CUSPARSELT_TEST_NAMES)))
CUSPARSELT_INCLUDE.12 = -isystem $(CACHE)/cusparselt-cu12 -isystem $(CACHE)/cusparse-12.5 -isystem $(CUDA12)/include
CUSPARSELT_INCLUDE.13 = -isystem $(CACHE)/cusparselt-cu13 -isystem $(CACHE)/cusparse-12.9 -isystem $(CUDA13)/include

define cusparselt_test
$$(BUILD)/cusparselt/$(1)/%: tests/cusparselt/%.c tests/cusparselt/check.h tests/cusparse/check.h tests/device.h tests/check.h tests/die.h \
		$$(OBJ)/link/libcusparseLt.so.0 $$(OBJ)/link/libcuda.so.1
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $$(WARNINGS) -Wno-conversion -Wno-pedantic -D_GNU_SOURCE -I. \
		$$(CUSPARSELT_INCLUDE.$(1)) -o $$@ $$< \
		$$(OBJ)/link/libcusparseLt.so.0 $$(OBJ)/link/libcuda.so.1 -Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,12 13,$(eval $(call cusparselt_test,$(abi))))

cusparselt-programs: $(CUSPARSELT_TESTS)
all-tests: test-cusparselt
test-cusparselt: all $(CUSPARSELT_TESTS) ## cuSPARSELt through the whole stack, on the software GPU
	$(Q)timeout 600 tests/cublas/run.py --build $(BUILD) --family cusparselt
$(call library_tests,cusparselt)
