# What PyTorch 2.15 and 2.11 (CUDA 13) and 2.3.1 (CUDA 12.1) import, against what we export and serve.
.PHONY: test-imports
all-tests: test-imports
test-imports: run-imports ## every name that PyTorch imports is there and served
$(call add_test,imports,tests/imports/imports.py,all, \
	timeout 180 $(PYTHON) tests/imports/imports.py $(LIB))
