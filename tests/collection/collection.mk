# tests/collection: programs that others wrote.  The collections are not here; what sorts their programs
# is tested on scripts.
.PHONY: test-collection
all-tests: test-collection
test-collection: run-collection_classes ## how programs of a collection end, natively and remotely
$(call add_test,collection_classes,tests/collection/classes.py,all,timeout 400 tests/collection/classes.py $(BUILD))
