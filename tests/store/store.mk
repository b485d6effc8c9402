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

# One that asks for what is another namespace's.
STORE_FOREIGN := $(BUILD)/store/foreign

$(STORE_FOREIGN): tests/store/foreign.c include/vcuda/tensor.h $(OBJ)/link/libcuda.so.1 $(LIB)/libvcuda-tensor.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(LIB)/libvcuda-tensor.so $(OBJ)/link/libcuda.so.1 \
		-Wl,-rpath,$(abspath $(LIB))

STORE_PROGRAMS := $(STORE_PROGRAM) $(STORE_READER) $(STORE_FOREIGN)

.PHONY: test-store
all-tests: test-store
build-tests: $(STORE_PROGRAMS)
test-store: all $(STORE_PROGRAMS) ## tensors with names: create, get, seal, life, limits; processes that are killed
	$(Q)BUILD=$(BUILD) timeout 600 tests/stack/run.py --in store

TEST_LIST += $(patsubst %,store-*=%,$(wildcard tests/store/test_*.py))
run-store-%: all $(STORE_PROGRAMS)
	$(Q)BUILD=$(BUILD) timeout 90 tests/stack/run.py --in store --exact $*

# 200 rounds of processes that are killed while a replica is made: minutes, and no part of `make test`.
.PHONY: test-replica-kills
test-replica-kills: run-replica_kills ## replicas: programs and agents' processes killed at random points
$(call add_test,replica_kills,tests/store/replica_kills.py,all $(REGISTRY_STORE), \
	BUILD=$(BUILD) timeout 3600 $(PYTHON) tests/store/replica_kills.py $(ROUNDS))

# Fuzz target: handles and questions.
TENSORS_FUZZ_SRCS := tests/fuzz/tensors.c $(addprefix gpu-agent/store/,tensor_table.c calls.c calls_take.c handle.c pieces.c) $(wildcard common/*.c)

$(BUILD)/tests/fuzz/tensors-replay: $(call objects,$(TENSORS_FUZZ_SRCS) tests/fuzz/agent_replay.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lyaml

$(BUILD)/tests/fuzz/tensors-libfuzzer: $(call fuzz_objects,$(TENSORS_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ -lyaml

test-store: run-replay_tensors
$(call add_test,replay_tensors,tests/fuzz/tensors.c,$(BUILD)/tests/fuzz/tensors-replay, \
	timeout 60 $$< tests/fuzz/corpus/tensors)

$(call add_fuzz,tensors,$(BUILD)/tests/fuzz/tensors-libfuzzer,tests/fuzz/corpus/tensors,-max_len=4096 -timeout=10)
