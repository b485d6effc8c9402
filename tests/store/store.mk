# tests/store: tensors with names, through the whole stack on the software GPU.

.PHONY: test-store
test: test-store
test-store: all ## tensors with names: create, get, seal, life, limits; processes that are killed
	$(Q)BUILD=$(BUILD) timeout 600 tests/stack/run.py --in store

TEST_LIST += $(patsubst %,store-*=%,$(wildcard tests/store/test_*.py))
run-store-%: all
	$(Q)BUILD=$(BUILD) timeout 90 tests/stack/run.py --in store --exact $*
