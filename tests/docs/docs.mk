# The documents: what they name is there.
.PHONY: test-docs
all-tests: test-docs
test-docs: run-docs_checks run-docs_names ## files, links and anchors that the documents name
$(call add_test,docs_checks,tests/docs/docs.py,,timeout 180 tests/docs/docs.py --self)
$(call add_test,docs_names,tests/docs/docs.py,,timeout 180 tests/docs/docs.py)
