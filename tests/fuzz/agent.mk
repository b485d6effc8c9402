# Fuzz targets of the agent's front.  `make test-agent` replays the corpus with a plain driver;
# `make fuzz-agent` runs libFuzzer for FUZZ_SECONDS each (clang, address sanitizer).
.PHONY: fuzz-agent
FUZZ_SECONDS ?= 30

AGENT_FUZZ := hello http
AGENT_FUZZ_SRCS := tests/fuzz/agent_target.c tests/agent/toy_worker.c \
	$(filter-out gpu-agent/main.c,$(AGENT_FRONT_SRCS)) $(wildcard common/*.c transport/*.c)

$(BUILD)/tests/fuzz/agent-%-replay: $(OBJ)/tests/fuzz/%.o $(OBJ)/tests/fuzz/agent_replay.o \
		$(call objects,$(AGENT_FUZZ_SRCS))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS)

$(BUILD)/tests/fuzz/agent-%-libfuzzer: tests/fuzz/%.c $(AGENT_FUZZ_SRCS)
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -std=gnu17 -O1 -g $(CPPFLAGS) -fsanitize=fuzzer,address,undefined -pthread \
		-o $@ $^ $(AGENT_LIBS)

test-agent: $(foreach t,$(AGENT_FUZZ),replay-agent-$(t))
.PHONY: $(foreach t,$(AGENT_FUZZ),replay-agent-$(t))
$(foreach t,$(AGENT_FUZZ),replay-agent-$(t)): replay-agent-%: $(BUILD)/tests/fuzz/agent-%-replay
	$(Q)timeout 60 $< tests/fuzz/corpus/$*

fuzz: fuzz-agent
fuzz-agent: $(foreach t,$(AGENT_FUZZ),$(BUILD)/tests/fuzz/agent-$(t)-libfuzzer)
	$(Q)for t in $(AGENT_FUZZ); do mkdir -p $(BUILD)/tests/fuzz/found-$$t; \
		$(BUILD)/tests/fuzz/agent-$$t-libfuzzer -max_total_time=$(FUZZ_SECONDS) \
		-max_len=12000 -timeout=10 -verbosity=0 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/tests/fuzz/ $(BUILD)/tests/fuzz/found-$$t \
		tests/fuzz/corpus/$$t || exit 1; done
