# tests/store: tensors with names, through the whole stack on the software GPU.

STORE_PROGRAM := $(BUILD)/store/tensor

$(STORE_PROGRAM): tests/store/tensor.c include/vcuda/tensor.h $(OBJ)/link/libcuda.so.1 $(LIB)/libvcuda-tensor.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(LIB)/libvcuda-tensor.so $(OBJ)/link/libcuda.so.1 \
		-Wl,-rpath,$(abspath $(LIB))

.PHONY: test-store
test: test-store
build-tests: $(STORE_PROGRAM)
test-store: all $(STORE_PROGRAM) ## tensors with names: create, get, seal, life, limits; processes that are killed
	$(Q)BUILD=$(BUILD) timeout 600 tests/stack/run.py --in store

TEST_LIST += $(patsubst %,store-*=%,$(wildcard tests/store/test_*.py))
run-store-%: all $(STORE_PROGRAM)
	$(Q)BUILD=$(BUILD) timeout 90 tests/stack/run.py --in store --exact $*
