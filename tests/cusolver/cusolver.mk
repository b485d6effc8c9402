# tests/cusolver: programs with cuSOLVER and the driver API.  build/cusolver/12/NAME needs
# libcuda.so.1 and libcusolver.so.12, natively NVIDIA's; build/tests/solver/NAME is the same on the
# software libraries.

.PHONY: test-cusolver test-softsolver cusolver-programs

CUSOLVER_TEST_NAMES := $(patsubst tests/cusolver/%.c,%,$(wildcard tests/cusolver/*.c))
CUSOLVER_TESTS := $(foreach abi,11 12,$(addprefix $(BUILD)/cusolver/$(abi)/,$(CUSOLVER_TEST_NAMES)))
CUSOLVER_TEST_HEADERS := tests/cusolver/check.h tests/cusolver/sparse.h tests/device.h tests/check.h tests/die.h
CUSOLVER_TEST_CC = $(CC) -std=gnu17 -O2 -g $(WARNINGS) -Wno-conversion -D_GNU_SOURCE -DDISABLE_CUSOLVER_DEPRECATED -I.
CUSOLVER_INCLUDE.11 = -isystem $(CACHE)/cusolver-11 -isystem $(CACHE)/cublas-12 -isystem $(CUDA12)/include -isystem $(CACHE)/cusparse-12.5
CUSOLVER_INCLUDE.12 = -isystem $(CACHE)/cusolver-12 -isystem $(CACHE)/cublas-13 -isystem $(CUDA13)/include -isystem $(CACHE)/cusparse-12.9

define cusolver_test
$$(BUILD)/cusolver/$(1)/%: tests/cusolver/%.c $$(CUSOLVER_TEST_HEADERS) $$(OBJ)/link/libcusolver.so.$(1) \
		$$(OBJ)/link/libcusparse.so.12 $$(OBJ)/link/libcuda.so.1
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CUSOLVER_TEST_CC) $$(CUSOLVER_INCLUDE.$(1)) -o $$@ $$< $$(OBJ)/link/libcusolver.so.$(1) \
		-Wl,--as-needed $$(OBJ)/link/libcusparse.so.12 $$(OBJ)/link/libcuda.so.1 -Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,11 12,$(eval $(call cusolver_test,$(abi))))

cusolver-programs: $(CUSOLVER_TESTS)
all-tests: test-cusolver
test-cusolver: all $(CUSOLVER_TESTS) ## cuSOLVER through the whole stack, on the software GPU
	$(Q)timeout 600 tests/cublas/run.py --build $(BUILD) --family cusolver
$(call library_tests,cusolver)

# Without the stack: the software library alone, which works with memory of the device only.
SOLVER_TESTS := $(addprefix $(BUILD)/tests/solver/,$(filter-out steady refactor sparse_host sparse_lu,$(CUSOLVER_TEST_NAMES)))
$(SOLVER_TESTS): $(BUILD)/tests/solver/%: tests/cusolver/%.c $(CUSOLVER_TEST_HEADERS) $(SOLVER_LIB) $(SOFTGPU_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUSOLVER_TEST_CC) $(CUSOLVER_INCLUDE.12) $(SANFLAGS) -o $@ $< $(SOLVER_LIB) \
		$(SOFTGPU_LIB) -Wl,-rpath,$(abspath $(LIB)) -lm

all-tests: test-softsolver
test-softsolver: $(SOLVER_TESTS:$(BUILD)/tests/solver/%=run-softsolver_%) ## the software cuSOLVER alone
$(foreach test,$(SOLVER_TESTS),$(call add_test,softsolver_$(notdir $(test)), \
	tests/cusolver/$(notdir $(test)).c,$(test),timeout 300 $(test)))
