# tests/differential: calls drawn from a seed, answered natively and through vcuda.
DIFFERENTIAL_TRACE := $(BUILD)/differential/trace

$(BUILD)/differential/calls.inc: tests/differential/calls.py tests/differential/drawn.py tests/differential/functions.txt \
		$(wildcard protocol/api/*.api protocol/generator/*.py) | $(CACHE)/.complete
	$(Q)mkdir -p $(@D)
	$(Q)CUDA13=$(CUDA13) tests/differential/calls.py $@

$(DIFFERENTIAL_TRACE): tests/differential/trace.cu $(BUILD)/differential/calls.inc \
		$(addprefix tests/differential/,names.h call.h structs.inc nodes.inc families.inc)
	$(call say,NVCC,$@)
	$(Q)$(NVCC) -std=c++17 -O1 -cudart shared -Xcompiler -pthread -arch=compute_75 -I$(BUILD)/differential \
		-Itests/differential 		$< -o $@ -L$(CUDA13)/lib

.PHONY: test-differential
all-tests: test-differential
test-differential: run-differential ## 101,044 calls against what NVIDIA's driver answered
$(call add_test,differential,tests/differential/run.py,all $(DIFFERENTIAL_TRACE), \
	tests/differential/run.py --dist $(BUILD))

.PHONY: test-differential-switches
test-differential-switches: run-differential-switches ## the same with each optimisation off; not part of make test
$(call add_test,differential-switches,tests/differential/switches.py,all $(DIFFERENTIAL_TRACE), \
	tests/differential/switches.py --dist $(BUILD))
