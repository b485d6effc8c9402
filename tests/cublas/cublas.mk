# tests/cublas: programs with cuBLAS, for both ABIs, through the whole stack on the software GPU.
# build/cublas/13/NAME needs libcudart.so.13 and libcublas.so.13, natively NVIDIA's.

CUBLAS_TEST_NAMES := $(patsubst tests/cublas/%.c,%,$(wildcard tests/cublas/*.c))
CUBLAS_TESTS := $(foreach abi,12 13,$(addprefix $(BUILD)/cublas/$(abi)/,$(CUBLAS_TEST_NAMES)))

define cublas_test
$$(BUILD)/cublas/$(1)/%: tests/cublas/%.c tests/cublas/check.h tests/cublas/forms.h tests/cublas/loops.h tests/die.h protocol/libraries/cublas.h \
		protocol/generated/cublas_api.h $$(OBJ)/link/libcublas.so.$(1)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $$(WARNINGS) -Wno-conversion -D_GNU_SOURCE -DCUBLAS_ABI=$(1) -I. \
		-isystem $$(CUDA$(1))/include -o $$@ $$< -L$$(CUDA$(1))/lib \
		-l:libcudart.so.$(1) $$(OBJ)/link/libcublas.so.$(1) \
		-Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,12 13,$(eval $(call cublas_test,$(abi))))

.PHONY: test-cublas cublas-programs
cublas-programs: $(CUBLAS_TESTS)
all-tests: test-cublas
test-cublas: all $(CUBLAS_TESTS) ## cuBLAS through the whole stack, on the software GPU
	$(Q)timeout 300 tests/cublas/run.py --build $(BUILD)

# library_tests(FAMILY): each of its tests alone, for the other libraries' .mk too.
define library_rules
TEST_LIST += $(1)-*=tests/cublas/run.py,--family,$(1),--list
build-tests: $(1)-programs
run-$(1)-%: all $(1)-programs
	$$(Q)timeout 300 tests/cublas/run.py --build $$(BUILD) --family $(1) --only $$*
endef
library_tests = $(eval $(call library_rules,$(1)))
$(call library_tests,cublas)
