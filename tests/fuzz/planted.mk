# Do the fuzz targets find bugs?  planted.bugs has one a stanza; each is planted in a copy of the checkout.
.PHONY: fuzz-planted
PLANTED_SECONDS ?= 600
fuzz-planted: ## bugs planted one by one, which the fuzz targets must find within PLANTED_SECONDS: BUGS='ring-end …'
	$(Q)BUILD=$(BUILD) $(PYTHON) tests/fuzz/planted.py --seconds $(PLANTED_SECONDS) $(BUGS)

all-tests: run-planted_bugs
$(call add_test,planted_bugs,tests/fuzz/planted.py,,$(PYTHON) tests/fuzz/planted.py --check)
