# tests/numba: Numba's own CUDA suite through the whole stack. Not part of `make test`: it fetches
# 240 MB the first time, into CACHE, and takes 5 minutes.
NUMBA_PYTHON = $(CACHE)/numba-0.61.2/bin/python

.PHONY: test-numba
test-numba: all ## the CUDA tests of Numba 0.61.2, unmodified (fetches 240 MB once)
	$(Q)tests/numba/install.sh $(CACHE)
	$(Q)tests/numba/run.py --dist $(BUILD) --python $(NUMBA_PYTHON)

$(call add_test,numba,tests/numba/run.py,all,tests/numba/install.sh $(CACHE) && \
	tests/numba/run.py --dist $(BUILD) --python $(NUMBA_PYTHON))

.PHONY: generate-compatibility check-compatibility
generate: generate-compatibility
generate-compatibility:
	$(Q)tests/numba/document.py >docs/COMPATIBILITY.md
check: check-compatibility
check-compatibility:
	$(Q)tests/numba/document.py | diff -u docs/COMPATIBILITY.md -
