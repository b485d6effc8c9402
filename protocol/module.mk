# The descriptions and what is generated from them (committed, so that a build needs no Python).
.PHONY: generate check

generate: ## make protocol/generated/ and docs/COVERAGE.md out of protocol/api/*.api
	$(Q)$(PYTHON) protocol/generate.py

check: ## fail where protocol/generated/ or docs/COVERAGE.md is not what protocol/api/*.api says
	$(Q)rm -rf $(BUILD)/check && mkdir -p $(BUILD)/check
	$(Q)$(PYTHON) protocol/generate.py --output $(BUILD)/check/generated \
		--coverage $(BUILD)/check/COVERAGE.md
	$(Q)diff -ru protocol/generated $(BUILD)/check/generated
	$(Q)diff -u docs/COVERAGE.md $(BUILD)/check/COVERAGE.md
	@echo 'generated files: as described'
