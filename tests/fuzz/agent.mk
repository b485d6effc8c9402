# Fuzz targets of the agent's front.  `make test-agent` replays the corpus with a plain driver;
# `make fuzz-agent` runs libFuzzer for FUZZ_SECONDS each (clang, address sanitizer).
.PHONY: fuzz-agent

AGENT_FUZZ := hello http handoff jwt tls tls_records
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
$(patsubst %,$(BUILD)/tests/fuzz/agent-%-replay,tls tls_records): $(call objects,$(wildcard transport/tls/*.c))
$(patsubst %,$(BUILD)/tests/fuzz/agent-%-libfuzzer,tls tls_records): $(call fuzz_objects,$(wildcard transport/tls/*.c))

# What the description makes (seeds.py); a target without has its corpus alone.
AGENT_SEEDED := hello handoff
agent_seeds = $(if $(filter $(1),$(AGENT_SEEDED)),$(BUILD)/tests/fuzz/seeds-$(1))
$(AGENT_SEEDED:%=$(BUILD)/tests/fuzz/seeds-%/.made): $(BUILD)/tests/fuzz/seeds-%/.made: \
		$(wildcard tests/fuzz/seed*.py) protocol/wire/session.h
	$(Q)rm -rf $(@D)
	$(Q)$(PYTHON) tests/fuzz/seeds.py $* $(@D)
	$(Q)touch $@

test-agent: $(AGENT_FUZZ:%=run-replay_%) $(AGENT_SEEDED:%=run-replay_%_seeds)
$(foreach t,$(AGENT_FUZZ),$(call add_test,replay_$(t),tests/fuzz/$(t).c, \
	$(BUILD)/tests/fuzz/agent-$(t)-replay,timeout 180 $$< tests/fuzz/corpus/$(t)))
$(foreach t,$(AGENT_SEEDED),$(call add_test,replay_$(t)_seeds,tests/fuzz/$(t).c, \
	$(BUILD)/tests/fuzz/agent-$(t)-replay $(call agent_seeds,$(t))/.made, \
	FUZZ_CUTS=0 timeout 180 $$< $(call agent_seeds,$(t))))

fuzz-agent: $(AGENT_FUZZ:%=fuzz-%)
$(foreach t,$(AGENT_FUZZ),$(call add_fuzz,$(t), \
	$(BUILD)/tests/fuzz/agent-$(t)-libfuzzer $(patsubst %,%/.made,$(call agent_seeds,$(t))), \
	tests/fuzz/corpus/$(t) $(call agent_seeds,$(t)),-max_len=12000 -timeout=10))
