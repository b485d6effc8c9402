# tests/images: what the images hold, that every tool builds the same ones, and how docker runs them.
# Root, as `make images` is; not part of `make test`.
.PHONY: test-images
test-images: images ## the images: contents, SBOM, the same by every tool, docker run (tests/images/engine.sh run make test-images)
	$(Q)cd tests/images && BUILD=$(abspath $(BUILD)) timeout 1500 $(PYTHON) -B -m unittest -v \
		test_archives test_docker test_variants

TEST_LIST += $(patsubst %,images-*=%,$(wildcard tests/images/test_*.py))
run-images-%: images
	$(Q)cd tests/images && BUILD=$(abspath $(BUILD)) timeout 900 $(PYTHON) -B -m unittest -v $*
