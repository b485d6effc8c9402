# tests/curand: programs with cuRAND and the runtime, for both ABIs.  build/curand/13/NAME needs
# libcudart.so.13 and libcurand.so.10, natively NVIDIA's.

CURAND_TEST_NAMES := $(patsubst tests/curand/%.c,%,$(wildcard tests/curand/*.c))
CURAND_TESTS := $(foreach abi,12 13,$(addprefix $(BUILD)/curand/$(abi)/,$(CURAND_TEST_NAMES)))
CURAND_INCLUDE := $(CACHE)/pip-12.9/nvidia/curand/include

define curand_test
$$(BUILD)/curand/$(1)/%: tests/curand/%.c tests/curand/check.h tests/die.h $$(OBJ)/link/libcurand.so.10
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $$(WARNINGS) -Wno-conversion -D_GNU_SOURCE -I. \
		-isystem $$(CUDA$(1))/include -isystem $$(CURAND_INCLUDE) -o $$@ $$< \
		-L$$(CUDA$(1))/lib -l:libcudart.so.$(1) $$(OBJ)/link/libcurand.so.10 \
		-Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,12 13,$(eval $(call curand_test,$(abi))))

.PHONY: test-curand curand-programs
curand-programs: $(CURAND_TESTS)
all-tests: test-curand
test-curand: all $(CURAND_TESTS) ## cuRAND through the whole stack, on the software GPU
	$(Q)timeout 600 tests/curand/run.py --build $(BUILD)
	$(Q)timeout 300 tests/cublas/run.py --build $(BUILD) --family curand
TEST_LIST += curand-*=tests/curand/run.py,--list
run-curand-12-% run-curand-13-%: all curand-programs
run-curand-12-device run-curand-12-host run-curand-13-device run-curand-13-host: run-curand-%:
	$(Q)timeout 300 tests/curand/run.py --build $(BUILD) --only $*
$(call library_tests,curand)
