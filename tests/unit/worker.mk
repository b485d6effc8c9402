# The worker in a process of its own, on the software GPU: front and client are the test.
# `make test-worker`.
WORKER_TEST := $(BUILD)/tests/worker_frames

$(WORKER_TEST): $(OBJ)/tests/unit/worker_frames.o $(filter-out $(OBJ)/gpu-agent/main.o,$(AGENT_OBJS)) \
		$(call objects,$(wildcard common/*.c transport/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS) -lcmocka

.PHONY: test-worker
test: test-worker
test-worker: $(WORKER_TEST) $(SOFTGPU_LIB) ## the worker against a client that lies
	$(Q)SOFTGPU=$(SOFTGPU_LIB) timeout 300 $< 2>$<.log || { tail -40 $<.log; false; }
