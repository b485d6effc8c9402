# The fuzz target of the shim's fat binary walker; its corpus is what nvcc makes for the unit tests
# of the software GPU.
.PHONY: fuzz-shim replay-shim
FUZZ_SECONDS ?= 30

$(BUILD)/tests/fuzz/shim-fatbin-replay: $(call objects,tests/fuzz/shim_fatbin.c \
		tests/fuzz/agent_replay.c shim/fatbin.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^

$(BUILD)/tests/fuzz/shim-fatbin-libfuzzer: tests/fuzz/shim_fatbin.c shim/fatbin.c
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu17 -O1 -g $(CPPFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^

test: replay-shim
replay-shim: $(BUILD)/tests/fuzz/shim-fatbin-replay $(SOFTGPU_IMAGES)
	$(Q)timeout 60 $< $(BUILD)/tests/images

fuzz: fuzz-shim
fuzz-shim: $(BUILD)/tests/fuzz/shim-fatbin-libfuzzer $(SOFTGPU_IMAGES)
	$(Q)mkdir -p $(BUILD)/tests/fuzz/found-shim-fatbin
	$(Q)$< -max_total_time=$(FUZZ_SECONDS) -max_len=20000 -timeout=10 -verbosity=0 \
		-print_final_stats=1 -artifact_prefix=$(BUILD)/tests/fuzz/ \
		$(BUILD)/tests/fuzz/found-shim-fatbin $(BUILD)/tests/images
