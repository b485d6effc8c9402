# Fuzz targets of coded payloads (codec) and of what brings them on a stripe (pieces).  `make test` replays the
# corpora with a plain driver; `make fuzz-codec`, `make fuzz-pieces` run libFuzzer for FUZZ_SECONDS.

CODEC_FUZZ := codec pieces
CODEC_FUZZ_SRCS := $(wildcard transport/codec/*.c transport/*.c common/*.c)

$(CODEC_FUZZ:%=$(BUILD)/tests/fuzz/%-replay): $(BUILD)/tests/fuzz/%-replay: $(OBJ)/tests/fuzz/%.o \
		$(call objects,$(CODEC_FUZZ_SRCS) tests/fuzz/agent_replay.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lzstd -lm

$(CODEC_FUZZ:%=$(BUILD)/tests/fuzz/%-libfuzzer): $(BUILD)/tests/fuzz/%-libfuzzer: $(FUZZ_OBJ)/tests/fuzz/%.o \
		$(call fuzz_objects,$(CODEC_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ -lyaml -lzstd -lm

all-tests: $(CODEC_FUZZ:%=run-replay_%)
$(foreach t,$(CODEC_FUZZ),$(call add_test,replay_$(t),tests/fuzz/$(t).c,$(BUILD)/tests/fuzz/$(t)-replay, \
	timeout 180 $$< tests/fuzz/corpus/$(t)))

$(foreach t,$(CODEC_FUZZ),$(call add_fuzz,$(t),$(BUILD)/tests/fuzz/$(t)-libfuzzer,tests/fuzz/corpus/$(t), \
	-max_len=8192 -timeout=10))
