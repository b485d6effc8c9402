# The fuzz target of the PTX interpreter: any text as a module.
test-ptx: run-replay_ptx

$(BUILD)/tests/fuzz/ptx-replay: $(OBJ)/tests/fuzz/ptx.o $(OBJ)/tests/fuzz/agent_replay.o $(PTX_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $^ $(ALL_LDFLAGS) -lm -o $@

$(call add_test,replay_ptx,tests/fuzz/ptx.c,$(BUILD)/tests/fuzz/ptx-replay, \
	timeout 180 $$< tests/fuzz/corpus/ptx)

# With the handlers, as what loads is run.
PTX_FUZZ_OBJS := $(call fuzz_objects,tests/fuzz/ptx.c tests/fuzz/ptx_mutate.c $(PTX_PLAIN)) \
	$(patsubst %.c,$(FUZZ_OBJ)/%.base.o,$(PTX_TWICE))
$(PTX_FUZZ_OBJS): FUZZ_CFLAGS += -fwrapv -fno-strict-aliasing -ffp-contract=off -Wno-pass-failed \
	-fno-sanitize=alignment,float-cast-overflow -DBUDGET_ALONE=300 $(PTX_CHECKED)

$(FUZZ_OBJ)/%.base.o: %.c | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -DPTX_ISA=base $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/tests/fuzz/ptx-libfuzzer: $(PTX_FUZZ_OBJS)
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined -pthread -o $@ $^ -lm

# Real texts to begin with: what NVIDIA's compiler makes of the test programs, but for the one that has no
# text.  In a few seconds all of them would not be read.
PTX_SEED_PROGRAMS := $(if $(filter 1 2 3 4 5,$(FUZZ_SECONDS)), \
	$(addprefix tests/programs/,instructions.cu textures.cu warp.cu wmma.cu), \
	$(filter-out tests/programs/machine-code.cu,$(wildcard tests/programs/*.cu)))
PTX_SEEDS := $(PTX_SEED_PROGRAMS:tests/programs/%.cu=$(BUILD)/tests/fuzz/ptx-seeds/%.ptx)
$(BUILD)/tests/fuzz/ptx-seeds/%.ptx: tests/programs/%.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(filter-out -gencode%,$(NVCCFLAGS)) $(PROGRAM_FLAGS13_$*) -arch=compute_90 --ptx $< -o $@

$(call add_fuzz,ptx,$(BUILD)/tests/fuzz/ptx-libfuzzer $(PTX_SEEDS), \
	tests/fuzz/corpus/ptx $(BUILD)/tests/fuzz/ptx-seeds,-max_len=20000 -timeout=10)
