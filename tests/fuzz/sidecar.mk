# Fuzz targets of the sidecar and of `vcuda`: ring, frame, yaml, elf, network.  `make test` replays the
# corpus with a plain driver; `make fuzz-sidecar` runs libFuzzer for FUZZ_SECONDS each.
.PHONY: fuzz-sidecar replay-sidecar

SIDECAR_FUZZ := ring frame yaml elf socket network
SIDECAR_FUZZ_SRCS := tests/fuzz/records.c command/elf.c $(filter-out sidecar/main.c,$(SIDECAR_SRCS)) \
	$(wildcard common/*.c transport/*.c)
SIDECAR_REPLAYS := $(foreach t,$(SIDECAR_FUZZ),$(BUILD)/tests/fuzz/sidecar-$(t)-replay)

$(SIDECAR_REPLAYS): $(BUILD)/tests/fuzz/sidecar-%-replay: $(OBJ)/tests/fuzz/%.o \
		$(OBJ)/tests/fuzz/agent_replay.o $(call objects,$(SIDECAR_FUZZ_SRCS))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lcjson -lzstd -lm

$(BUILD)/tests/fuzz/sidecar-%-libfuzzer: $(FUZZ_OBJ)/tests/fuzz/%.o $(call fuzz_objects,$(SIDECAR_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ -lyaml -lcjson -lzstd -lm

# A conversation, unlike the others.
$(BUILD)/tests/fuzz/sidecar-socket-replay: $(OBJ)/tests/fuzz/conversation.o
$(BUILD)/tests/fuzz/sidecar-socket-libfuzzer: $(FUZZ_OBJ)/tests/fuzz/conversation.o

# What the description makes (seeds.py); a target without has its corpus alone.
SIDECAR_SEEDS := $(BUILD)/tests/fuzz/seeds-socket
$(SIDECAR_SEEDS)/.made: $(wildcard tests/fuzz/seed*.py)
	$(Q)rm -rf $(@D)
	$(Q)$(PYTHON) tests/fuzz/seeds.py socket $(@D)
	$(Q)touch $@

all-tests: replay-sidecar
replay-sidecar: run-replay_socket_seeds $(SIDECAR_FUZZ:%=run-replay_%)
$(foreach t,$(SIDECAR_FUZZ),$(call add_test,replay_$(t),tests/fuzz/$(t).c, \
	$(BUILD)/tests/fuzz/sidecar-$(t)-replay,timeout 180 $$< tests/fuzz/corpus/$(t)))
$(call add_test,replay_socket_seeds,tests/fuzz/socket.c, \
	$(BUILD)/tests/fuzz/sidecar-socket-replay $(SIDECAR_SEEDS)/.made, \
	FUZZ_CUTS=0 timeout 180 $$< $(SIDECAR_SEEDS))

fuzz-sidecar: $(SIDECAR_FUZZ:%=fuzz-%)
$(foreach t,$(filter-out socket,$(SIDECAR_FUZZ)),$(call add_fuzz,$(t),$(BUILD)/tests/fuzz/sidecar-$(t)-libfuzzer, \
	tests/fuzz/corpus/$(t),-max_len=8192 -timeout=10))
$(call add_fuzz,socket,$(BUILD)/tests/fuzz/sidecar-socket-libfuzzer $(SIDECAR_SEEDS)/.made, \
	tests/fuzz/corpus/socket $(SIDECAR_SEEDS),-max_len=8192 -timeout=10)
