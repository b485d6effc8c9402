# The fuzz target of the fat binary reader.  Its corpus is what nvcc makes for the unit tests.
.PHONY: fuzz-softgpu

$(BUILD)/tests/fuzz/fatbin-replay: $(call objects,tests/fuzz/fatbin.c tests/fuzz/agent_replay.c \
		softgpu/driver/module/fatbin.c softgpu/driver/module/archive.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lzstd -llz4

$(BUILD)/tests/fuzz/fatbin-libfuzzer: tests/fuzz/fatbin.c softgpu/driver/module/fatbin.c \
		softgpu/driver/module/archive.c
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu17 -O1 -g $(CPPFLAGS) -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $^ -lzstd -llz4

test-softgpu: run-replay_fatbin
$(call add_test,replay_fatbin,tests/fuzz/fatbin.c,$(BUILD)/tests/fuzz/fatbin-replay \
	$(SOFTGPU_IMAGES),for folder in $(BUILD)/tests/images tests/fuzz/corpus/fatbin; do \
	timeout 180 $$< $$$$folder || exit 1; done)

fuzz-softgpu: fuzz-fatbin
$(call add_fuzz,fatbin,$(BUILD)/tests/fuzz/fatbin-libfuzzer $(SOFTGPU_IMAGES), \
	$(BUILD)/tests/images tests/fuzz/corpus/fatbin,-max_len=20000 -timeout=10)
