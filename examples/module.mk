# Examples: ordinary CUDA programs, built as their READMEs say.
EXAMPLES := $(BUILD)/examples/vectorAdd $(BUILD)/examples/memset_async

$(BUILD)/examples/vectorAdd: examples/vectorAdd/vectorAdd.cu | $(CACHE)/.complete
$(BUILD)/examples/memset_async: examples/cricket/memset_async.cu | $(CACHE)/.complete
$(EXAMPLES):
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -O2 -cudart shared $< -o $@ -L$(CUDA13)/lib

.PHONY: examples
examples: $(EXAMPLES) ## the programs of examples/

demo: all examples ## an unmodified CUDA program on the software GPU, through shim, sidecar and agent
	$(Q)VCUDA_STATS=1 $(BIN)/vcuda run --software -- $(BUILD)/examples/vectorAdd
