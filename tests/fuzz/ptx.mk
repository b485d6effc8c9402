# The fuzz target of the PTX interpreter: any text as a module.
.PHONY: fuzz-ptx
test-ptx: run-replay_ptx

$(BUILD)/tests/fuzz/ptx-replay: $(OBJ)/tests/fuzz/ptx.o $(OBJ)/tests/fuzz/agent_replay.o $(PTX_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $^ $(ALL_LDFLAGS) -lm -o $@

$(call add_test,replay_ptx,tests/fuzz/ptx.c,$(BUILD)/tests/fuzz/ptx-replay, \
	timeout 60 $$< tests/fuzz/corpus/ptx)

# Only the reader: handlers are not run.
$(BUILD)/tests/fuzz/ptx-libfuzzer: tests/fuzz/ptx.c $(PTX_PLAIN) \
		$(patsubst %.c,$(OBJ)/%.base.o,$(PTX_TWICE)) \
		$(patsubst %.c,$(OBJ)/%.v3.o,$(PTX_TWICE))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu17 -O1 -g $(CPPFLAGS) -fwrapv -fsanitize=fuzzer,address,undefined \
		-fno-sanitize=function,vptr -fno-sanitize-recover=undefined -Wno-pass-failed -pthread \
		-o $@ $^ -lm

fuzz: fuzz-ptx
fuzz-ptx: $(BUILD)/tests/fuzz/ptx-libfuzzer
	$(Q)mkdir -p $(BUILD)/tests/fuzz/found-ptx
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -max_len=20000 -timeout=10 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix=$(BUILD)/tests/fuzz/ \
		$(BUILD)/tests/fuzz/found-ptx tests/fuzz/corpus/ptx
