# Fuzz targets of the agent's front.  `make test-agent` replays the corpus with a plain driver;
# `make fuzz-agent` runs libFuzzer for FUZZ_SECONDS each (clang, address sanitizer).
.PHONY: fuzz-agent

AGENT_FUZZ := hello http handoff jwt tls
AGENT_FUZZ_SRCS := tests/fuzz/agent_target.c tests/fuzz/records.c tests/agent/toy_worker.c \
	$(filter-out gpu-agent/main.c,$(AGENT_FRONT_SRCS)) $(wildcard common/*.c transport/*.c)

$(BUILD)/tests/fuzz/agent-%-replay: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/agent_replay.o \
		$(call objects,$(AGENT_FUZZ_SRCS))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS)

$(BUILD)/tests/fuzz/agent-%-libfuzzer: $(FUZZ_OBJ)/tests/fuzz/%.o $(call fuzz_objects,$(AGENT_FUZZ_SRCS))
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $^ $(AGENT_LIBS)

# A conversation, unlike the others.
$(BUILD)/tests/fuzz/agent-handoff-replay: $(OBJ)/tests/fuzz/conversation.o
$(BUILD)/tests/fuzz/agent-handoff-libfuzzer: $(FUZZ_OBJ)/tests/fuzz/conversation.o

# With the folder that the others do without.
$(BUILD)/tests/fuzz/agent-tls-replay: $(call objects,$(wildcard transport/tls/*.c))
$(BUILD)/tests/fuzz/agent-tls-libfuzzer: $(call fuzz_objects,$(wildcard transport/tls/*.c))

# What the description makes (seeds.py); a target without has its corpus alone.
AGENT_SEEDS := $(BUILD)/tests/fuzz/seeds-handoff
$(AGENT_SEEDS)/.made: $(wildcard tests/fuzz/seed*.py)
	$(Q)rm -rf $(@D)
	$(Q)$(PYTHON) tests/fuzz/seeds.py handoff $(@D)
	$(Q)touch $@

test-agent: $(AGENT_FUZZ:%=run-replay_%) run-replay_handoff_seeds
$(foreach t,$(AGENT_FUZZ),$(call add_test,replay_$(t),tests/fuzz/$(t).c, \
	$(BUILD)/tests/fuzz/agent-$(t)-replay,timeout 180 $$< tests/fuzz/corpus/$(t)))
$(call add_test,replay_handoff_seeds,tests/fuzz/handoff.c, \
	$(BUILD)/tests/fuzz/agent-handoff-replay $(AGENT_SEEDS)/.made, \
	FUZZ_CUTS=0 timeout 180 $$< $(AGENT_SEEDS))

fuzz-agent: $(AGENT_FUZZ:%=fuzz-%)
$(foreach t,$(filter-out handoff,$(AGENT_FUZZ)),$(call add_fuzz,$(t),$(BUILD)/tests/fuzz/agent-$(t)-libfuzzer, \
	tests/fuzz/corpus/$(t),-max_len=12000 -timeout=10))
$(call add_fuzz,handoff,$(BUILD)/tests/fuzz/agent-handoff-libfuzzer $(AGENT_SEEDS)/.made, \
	tests/fuzz/corpus/handoff $(AGENT_SEEDS),-max_len=12000 -timeout=10)
