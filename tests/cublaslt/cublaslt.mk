# tests/cublaslt: programs with cuBLASLt, for both ABIs, through the whole stack on the software
# GPU.  build/cublaslt/13/NAME needs libcudart.so.13, libcublas.so.13 and libcublasLt.so.13,
# natively NVIDIA's.

CUBLASLT_TEST_NAMES := $(patsubst tests/cublaslt/%.c,%,$(wildcard tests/cublaslt/*.c))
CUBLASLT_TESTS := $(foreach abi,12 13,$(addprefix $(BUILD)/cublaslt/$(abi)/,$(CUBLASLT_TEST_NAMES)))

define cublaslt_test
$$(BUILD)/cublaslt/$(1)/%: tests/cublaslt/%.c tests/cublaslt/check.h tests/cublas/check.h tests/die.h \
		protocol/libraries/cublaslt.h protocol/generated/cublaslt_api.h \
		$$(OBJ)/link/libcublas.so.$(1) $$(OBJ)/link/libcublasLt.so.$(1)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $$(WARNINGS) -Wno-conversion -D_GNU_SOURCE -DCUBLASLT_ABI=$(1) -I. \
		-isystem $$(CUDA$(1))/include -o $$@ $$< -L$$(CUDA$(1))/lib \
		-l:libcudart.so.$(1) $$(OBJ)/link/libcublas.so.$(1) \
		$$(OBJ)/link/libcublasLt.so.$(1) -Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,12 13,$(eval $(call cublaslt_test,$(abi))))

.PHONY: test-cublaslt cublaslt-programs
cublaslt-programs: $(CUBLASLT_TESTS)
all-tests: test-cublaslt
test-cublaslt: all $(CUBLASLT_TESTS) ## cuBLASLt through the whole stack, on the software GPU
	$(Q)timeout 300 tests/cublas/run.py --build $(BUILD) --family cublaslt
$(call library_tests,cublaslt)
