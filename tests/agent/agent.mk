# The agent with a toy worker: supervisor and front as they are, no GPU.  `make test-agent`.
.PHONY: test-agent

TOY_AGENT := $(BUILD)/tests/toy-agent
AGENT_UNIT := $(patsubst tests/unit/agent/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/agent/agent_*.c))
# All of the front but its main(), for tests that call its functions.
AGENT_PARTS := $(filter-out $(OBJ)/gpu-agent/main.o,$(AGENT_FRONT_OBJS)) \
	$(OBJ)/tests/agent/toy_worker.o $(call objects,$(wildcard common/*.c transport/*.c))

$(TOY_AGENT): $(OBJ)/gpu-agent/main.o $(AGENT_PARTS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS)

$(AGENT_UNIT): $(BUILD)/tests/unit/%: $(OBJ)/tests/unit/agent/%.o $(OBJ)/tests/agent/client.o \
		$(AGENT_PARTS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS) -lcmocka

all-tests: test-agent

test-agent: $(AGENT_UNIT:$(BUILD)/tests/unit/%=run-%) ## the agent's supervisor and front, with a toy worker
$(foreach test,$(notdir $(AGENT_UNIT)),$(call add_test,$(test),tests/unit/agent/$(test).c, \
	$(BUILD)/tests/unit/$(test) $(TOY_AGENT),TOY_AGENT=$(TOY_AGENT) timeout 300 $$<))
