# tests/stack, tests/processes: the whole stack in real processes on the software GPU.

STACK_APP := $(BUILD)/stack/app

$(STACK_APP): tests/stack/app.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart shared -Xcompiler -pthread $< -o $@ \
		-L$(CUDA13)/lib

.PHONY: test-stack
test: test-stack
test-stack: all $(STACK_APP) $(BUILD)/programs/13/processes $(STATIC_PROGRAMS) ## kills, bad input, ways in, faults: real processes
	$(Q)BUILD=$(BUILD) timeout 300 tests/stack/run.py
