# tests/torch: two unmodified builds of PyTorch through the whole stack. Not part of `make test`:
# it fetches 1.4 GB the first time, into CACHE.
TORCH_VERSIONS ?= 2.11.0 2.3.1

.PHONY: test-torch
test-torch: all ## PyTorch 2.11 and 2.3.1 through the whole stack (fetches 1.4 GB once)
	$(Q)tests/torch/install.sh $(CACHE) $(TORCH_VERSIONS)
	$(Q)tests/torch/run.py --dist $(BUILD) \
		$(TORCH_VERSIONS:%=--python $(CACHE)/torch-%/bin/python)
