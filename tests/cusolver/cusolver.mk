# tests/cusolver: programs with cuSOLVER and the driver API.  build/tests/solver/NAME is one on the
# software libraries alone.

CUSOLVER_TEST_NAMES := $(patsubst tests/cusolver/%.c,%,$(wildcard tests/cusolver/*.c))
CUSOLVER_TEST_CC = $(CC) -std=gnu17 -O2 -g $(WARNINGS) -Wno-conversion -D_GNU_SOURCE -I. \
	-isystem $(CACHE)/cusolver-12 -isystem $(CACHE)/cublas-13 -isystem $(CUDA13)/include

SOLVER_TESTS := $(addprefix $(BUILD)/tests/solver/,$(CUSOLVER_TEST_NAMES))
$(SOLVER_TESTS): $(BUILD)/tests/solver/%: tests/cusolver/%.c tests/cusolver/check.h tests/die.h \
		$(SOLVER_LIB) $(SOFTGPU_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUSOLVER_TEST_CC) $(SANFLAGS) -o $@ $< $(SOLVER_LIB) $(SOFTGPU_LIB) \
		-Wl,-rpath,$(abspath $(LIB)) -lm

.PHONY: test-softsolver
test: test-softsolver
test-softsolver: $(SOLVER_TESTS:$(BUILD)/tests/solver/%=run-softsolver_%) ## the software cuSOLVER alone
$(foreach test,$(SOLVER_TESTS),$(call add_test,softsolver_$(notdir $(test)), \
	tests/cusolver/$(notdir $(test)).c,$(test),timeout 120 $(test)))
