# The fuzz targets of the shim.  Its fat binary walker, whose corpus is what nvcc makes for the unit
# tests of the software GPU; and all of it as the victim of a hostile sidecar.
.PHONY: fuzz-shim replay-shim

$(BUILD)/tests/fuzz/shim-fatbin-replay: $(call objects,tests/fuzz/shim_fatbin.c \
		tests/fuzz/agent_replay.c shim/driver/module/fatbin.c)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^

$(BUILD)/tests/fuzz/shim-fatbin-libfuzzer: tests/fuzz/shim_fatbin.c shim/driver/module/fatbin.c
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu17 -O1 -g $(CPPFLAGS) -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=undefined -o $@ $^

all-tests: replay-shim
replay-shim: run-replay_shim_fatbin run-replay_victim
$(call add_test,replay_shim_fatbin,tests/fuzz/shim_fatbin.c, \
	$(BUILD)/tests/fuzz/shim-fatbin-replay $(SOFTGPU_IMAGES),timeout 180 $$< $(BUILD)/tests/images)

fuzz-shim: fuzz-shim-fatbin fuzz-victim
$(call add_fuzz,shim-fatbin,$(BUILD)/tests/fuzz/shim-fatbin-libfuzzer $(SOFTGPU_IMAGES),$(BUILD)/tests/images, \
	-max_len=20000 -timeout=10)

VICTIM_SRCS := tests/fuzz/shim_victim.c $(addprefix tests/fuzz/,conversation.c forked.c records.c) \
	common/descriptors.c $(SHIM_TEST_SRCS)
VICTIM_SEEDS := $(BUILD)/tests/fuzz/seeds-victim

$(VICTIM_SEEDS)/.made: $(wildcard tests/fuzz/seed*.py)
	$(Q)rm -rf $(@D)
	$(Q)$(PYTHON) tests/fuzz/seeds.py victim $(@D)
	$(Q)touch $@

$(BUILD)/tests/fuzz/shim-victim-replay: $(call objects,$(VICTIM_SRCS) tests/fuzz/agent_replay.c) \
		$(LOCK_ORDER_OBJ)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $(LOCK_ORDER_LD) -Wl,--wrap=_exit -o $@ $^ -ldl

$(BUILD)/tests/fuzz/shim-victim-libfuzzer: $(call fuzz_objects,$(VICTIM_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -Wl,--wrap=_exit -o $@ $^ -ldl

$(call add_test,replay_victim,tests/fuzz/shim_victim.c, \
	$(BUILD)/tests/fuzz/shim-victim-replay $(VICTIM_SEEDS)/.made, \
	for folder in $(VICTIM_SEEDS) tests/fuzz/corpus/victim; do \
	FUZZ_CUTS=0 timeout 300 $$< $$$$folder || exit 1; done)

$(call add_fuzz,victim,$(BUILD)/tests/fuzz/shim-victim-libfuzzer $(VICTIM_SEEDS)/.made, \
	tests/fuzz/corpus/victim $(VICTIM_SEEDS),-max_len=8192 -timeout=100,ASAN_OPTIONS=detect_leaks=0)
