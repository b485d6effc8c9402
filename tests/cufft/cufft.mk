# tests/cufft: programs with cuFFT and the runtime, for both ABIs.  build/cufft/13/NAME needs
# libcudart.so.13 and libcufft.so.12, natively NVIDIA's.

CUFFT_TEST_NAMES := $(patsubst tests/cufft/%.c,%,$(wildcard tests/cufft/*.c))
CUFFT_TESTS := $(foreach abi,12 13,$(addprefix $(BUILD)/cufft/$(abi)/,$(CUFFT_TEST_NAMES)))

# cufft_test(CUDA,CUFFT)
define cufft_test
$$(BUILD)/cufft/$(1)/%: tests/cufft/%.c tests/cufft/check.h tests/cufft/several.h tests/die.h \
		$$(OBJ)/link/libcufft.so.$(2) | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $$(WARNINGS) -Wno-conversion -D_GNU_SOURCE -I. \
		-isystem $$(CUDA$(1))/include -isystem $$(CACHE)/cufft-$(2) -o $$@ $$< \
		-L$$(CUDA$(1))/lib -l:libcudart.so.$(1) $$(OBJ)/link/libcufft.so.$(2) \
		-Wl,--allow-shlib-undefined -lm -pthread
endef
$(eval $(call cufft_test,12,11))
$(eval $(call cufft_test,13,12))

.PHONY: test-cufft cufft-programs
cufft-programs: $(CUFFT_TESTS)
all-tests: test-cufft
test-cufft: all $(CUFFT_TESTS) ## cuFFT through the whole stack, on the software GPU
	$(Q)timeout 600 tests/cublas/run.py --build $(BUILD) --family cufft
$(call library_tests,cufft)
