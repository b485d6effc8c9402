# The descriptions and what is generated from them (committed, so that a build needs no Python).
.PHONY: generate check

GENERATED := protocol/generated shim/generated gpu-agent/generated

generate: ## make the generated folders and docs/COVERAGE.md out of protocol/api/*.api
	$(Q)$(PYTHON) protocol/generate.py

check: ## fail where what is generated is not what protocol/api/*.api says
	$(Q)rm -rf $(BUILD)/check && mkdir -p $(BUILD)/check
	$(Q)$(PYTHON) protocol/generate.py --output $(BUILD)/check
	$(Q)for path in $(GENERATED) docs/COVERAGE.md; do \
		diff -rux README.md $$path $(BUILD)/check/$$path || exit 1; done
	@echo 'generated files: as described'
