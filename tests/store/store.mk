# tests/store: tensors with names, through the whole stack on the software GPU.

STORE_PROGRAM := $(BUILD)/store/tensor

$(STORE_PROGRAM): tests/store/tensor.c include/vcuda/tensor.h $(OBJ)/link/libcuda.so.1 $(LIB)/libvcuda-tensor.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(LIB)/libvcuda-tensor.so $(OBJ)/link/libcuda.so.1 \
		-Wl,-rpath,$(abspath $(LIB))

# One that knows Redis and CUDA's runtime alone.
STORE_READER := $(BUILD)/store/redis_reader

$(STORE_READER): tests/store/redis_reader.c | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -isystem $(CUDA13)/include -o $@ $< -L$(CUDA13)/lib -l:libcudart.so.13 \
		-lhiredis

STORE_PROGRAMS := $(STORE_PROGRAM) $(STORE_READER)

.PHONY: test-store
test: test-store
build-tests: $(STORE_PROGRAMS)
test-store: all $(STORE_PROGRAMS) ## tensors with names: create, get, seal, life, limits; processes that are killed
	$(Q)BUILD=$(BUILD) timeout 600 tests/stack/run.py --in store

TEST_LIST += $(patsubst %,store-*=%,$(wildcard tests/store/test_*.py))
run-store-%: all $(STORE_PROGRAMS)
	$(Q)BUILD=$(BUILD) timeout 90 tests/stack/run.py --in store --exact $*
