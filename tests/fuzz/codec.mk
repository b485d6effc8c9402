# The fuzz target of coded payloads.  `make test` replays the corpus with a plain driver;
# `make fuzz-codec` runs libFuzzer for FUZZ_SECONDS.

CODEC_FUZZ_SRCS := tests/fuzz/codec.c $(wildcard transport/codec/*.c transport/*.c common/*.c)

$(BUILD)/tests/fuzz/codec-replay: $(call objects,$(CODEC_FUZZ_SRCS) tests/fuzz/agent_replay.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lzstd -lm

$(BUILD)/tests/fuzz/codec-libfuzzer: $(call fuzz_objects,$(CODEC_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ -lyaml -lzstd -lm

all-tests: run-replay_codec
$(call add_test,replay_codec,tests/fuzz/codec.c,$(BUILD)/tests/fuzz/codec-replay, \
	timeout 180 $$< tests/fuzz/corpus/codec)

$(call add_fuzz,codec,$(BUILD)/tests/fuzz/codec-libfuzzer,tests/fuzz/corpus/codec,-max_len=8192 -timeout=10)
