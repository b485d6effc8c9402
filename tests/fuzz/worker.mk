# The fuzz target of a whole worker on the software GPU: the decoder, every operation, stripes, and
# what the front says.  Its seeds are made from the description (seeds.py).  `make test` replays them
# with a plain driver; `make fuzz-worker` runs libFuzzer for FUZZ_SECONDS, both sides with the address
# sanitizer.

WORKER_FUZZ_SRCS := tests/fuzz/worker.c $(addprefix tests/fuzz/,conversation.c forked.c records.c) \
	$(AGENT_WORKER_SRCS) \
	$(filter-out gpu-agent/main.c,$(AGENT_FRONT_SRCS)) $(wildcard common/*.c transport/*.c)
WORKER_SEEDS := $(BUILD)/tests/fuzz/seeds-worker

# The software GPU beside it has the address sanitizer alone.
FUZZ_GPU := $(BUILD)/fuzz/softgpu

$(WORKER_SEEDS)/.made: $(wildcard tests/fuzz/seed*.py) $(wildcard protocol/generated/*.h protocol/generated/*_list.inc gpu-agent/generated/*_serve.c)
	$(Q)rm -rf $(@D)
	$(Q)$(PYTHON) tests/fuzz/seeds.py worker $(@D)
	$(Q)touch $@

$(BUILD)/tests/fuzz/worker-replay: $(call objects,$(WORKER_FUZZ_SRCS) tests/fuzz/agent_replay.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--wrap=_exit -o $@ $^ $(AGENT_LIBS)

$(BUILD)/tests/fuzz/worker-libfuzzer: $(call fuzz_objects,$(WORKER_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -Wl,--wrap=_exit -o $@ $^ $(AGENT_LIBS)

.PHONY: fuzz-softgpu-libraries
fuzz-softgpu-libraries:
	$(Q)$(MAKE) --no-print-directory SAN=address CC='$(CLANG)' BUILD=$(FUZZ_GPU) \
		PTX_CFLAGS='-O1 -ffp-contract=off -fno-strict-aliasing -fwrapv' \
		$(patsubst $(BUILD)/%,$(FUZZ_GPU)/%,$(SOFTGPU_LIB) $(BLAS_LIB) $(DNN_LIB) $(FFT_LIB) $(SPARSE_LIB) $(SPARSELT_LIB) $(NCCL_LIB) $(CUPTI_LIB))

all-tests: run-replay_worker
$(call add_test,replay_worker,tests/fuzz/worker.c, \
	$(BUILD)/tests/fuzz/worker-replay $(WORKER_SEEDS)/.made $(SOFTGPU_LIB) $(BLAS_LIB) $(DNN_LIB) $(FFT_LIB) $(SPARSE_LIB) $(SPARSELT_LIB) $(CUPTI_LIB), \
	for folder in $(WORKER_SEEDS) tests/fuzz/corpus/worker; do \
	SOFTGPU=$(abspath $(SOFTGPU_LIB)) FUZZ_CUTS=0 timeout 300 $$< $$$$folder || exit 1; done)

$(call add_fuzz,worker, \
	$(BUILD)/tests/fuzz/worker-libfuzzer $(WORKER_SEEDS)/.made fuzz-softgpu-libraries, \
	tests/fuzz/corpus/worker $(WORKER_SEEDS),-max_len=65536 -len_control=0 -timeout=100, \
	SOFTGPU=$(abspath $(FUZZ_GPU)/lib/libvcuda-softgpu.so) \
	ASAN_OPTIONS=detect_leaks=0:allow_user_segv_handler=1:allocator_may_return_null=1)
