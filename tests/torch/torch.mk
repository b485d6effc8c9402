# tests/torch: two unmodified builds of PyTorch through the whole stack. Not part of `make test`:
# it fetches 1.4 GB the first time, into CACHE.
TORCH_VERSIONS ?= 2.11.0 2.3.1
TORCH_PYTHON = $(CACHE)/torch-$(1)/bin/python

.PHONY: test-torch
test-torch: all ## PyTorch 2.11 and 2.3.1 through the whole stack (fetches 1.4 GB once)
	$(Q)tests/torch/install.sh $(CACHE) $(TORCH_VERSIONS)
	$(Q)$(call TORCH_PYTHON,$(firstword $(TORCH_VERSIONS))) bench/torch/run.py --dist $(BUILD) \
		--driver software --native-device cpu --native-libraries $(abspath $(LIB)) --small \
		--only product --pairs 2 --rtt 0,200
	$(Q)tests/torch/run.py --dist $(BUILD) $(TORCH_PYTHONS)

TORCH_PYTHONS := $(foreach version,$(TORCH_VERSIONS),--python $(call TORCH_PYTHON,$(version)))
$(foreach file,$(wildcard tests/torch/cases/*.py),$(call \
	add_test,torch_$(basename $(notdir $(file))),$(file),all, \
	tests/torch/install.sh $(CACHE) $(TORCH_VERSIONS) && \
	tests/torch/run.py --dist $(BUILD) $(TORCH_PYTHONS) --only $(basename $(notdir $(file)))))
$(call add_test,torch_under_cuts,tests/gpu/train_under_cuts.py,all, \
	tests/torch/install.sh $(CACHE) $(firstword $(TORCH_VERSIONS)) && timeout 600 \
	tests/gpu/train_under_cuts.py --dist $(BUILD) --driver software \
	--python $(call TORCH_PYTHON,$(firstword $(TORCH_VERSIONS))))
