# The agent with a toy worker: supervisor and front as they are, no GPU.
TOY_AGENT := $(BUILD)/tests/toy-agent

$(TOY_AGENT): $(AGENT_FRONT_OBJS) $(OBJ)/tests/agent/toy_worker.o \
		$(call objects,$(wildcard common/*.c transport/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS)
