.PHONY: test-preload
test: test-preload
test-preload: $(LIB)/libvcuda.so ## what is preloaded loads on old systems and keeps still
	$(Q)timeout 120 tests/shim/preload.sh $(LIB)
