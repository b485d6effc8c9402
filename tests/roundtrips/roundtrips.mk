# tests/roundtrips: what calls cost in round trips, counted.

$(BUILD)/roundtrips/steady: tests/roundtrips/steady.cu tests/programs/check.h tests/programs/driver.h | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart shared $< -o $@ -L$(CUDA13)/lib

.PHONY: test-roundtrips
all-tests: test-roundtrips
test-roundtrips: ## what calls cost in round trips, counted
test-roundtrips: all $(BUILD)/roundtrips/steady $(BUILD)/programs/13/many-kernels \
		$(BUILD)/programs/13/mapped-flags
	$(Q)tests/roundtrips/roundtrips.py --build $(BUILD)

TEST_LIST += roundtrips-*=tests/roundtrips/roundtrips.py,--list
run-roundtrips-%: all $(BUILD)/roundtrips/steady $(BUILD)/programs/13/many-kernels \
		$(BUILD)/programs/13/mapped-flags
	$(Q)timeout 400 tests/roundtrips/roundtrips.py --build $(BUILD) $*
