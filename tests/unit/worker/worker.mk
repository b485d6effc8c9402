# The worker in a process of its own, on the software GPU: front and client are the test.
# `make test-worker`, or one of them: `make run-worker_order`.
WORKER_TESTS := $(patsubst tests/unit/worker/%.c,%,$(wildcard tests/unit/worker/worker_*.c))

$(WORKER_TESTS:%=$(BUILD)/tests/%): $(BUILD)/tests/%: $(OBJ)/tests/unit/worker/%.o \
		$(filter-out $(OBJ)/gpu-agent/main.o,$(AGENT_OBJS)) \
		$(call objects,$(wildcard common/*.c transport/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS) -lcmocka

GATE_DRIVER := $(BUILD)/tests/libgate-driver.so

$(GATE_DRIVER): tests/unit/worker/gate_driver.c $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(SOFTGPU_LIB)

# The software GPU, and beside it libraries with a gate.
GATED_DRIVER := $(BUILD)/tests/gate/libvcuda-softgpu.so
GATED := $(addprefix $(BUILD)/tests/gate/,$(notdir $(FFT_LIB) $(DNN_LIB) $(SOLVER_LIB) $(SPARSE_LIB)))

$(GATED_DRIVER): tests/unit/worker/locked_driver.c $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(SOFTGPU_LIB)

$(GATED): $(BUILD)/tests/gate/%: tests/unit/worker/gate_libraries.c $(LIB)/%
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(LIB)/$*

.PHONY: test-worker
all-tests: test-worker
test-worker: $(WORKER_TESTS:%=run-%) ## the worker: a client that violates the protocol, and what comes in which order
WORKER_ENV := SOFTGPU=$(SOFTGPU_LIB) GATE_DRIVER=$(GATE_DRIVER) \
	GATED_DRIVER=$(abspath $(GATED_DRIVER)) VCUDA_LOG=warn
$(foreach test,$(WORKER_TESTS),$(call add_test,$(test),tests/unit/worker/$(test).c, \
	$(BUILD)/tests/$(test) $(SOFTGPU_LIB) $(BLAS_LIB) $(CUPTI_LIB) $(GATE_DRIVER) $(GATED_DRIVER) $(GATED), \
	$(WORKER_ENV) timeout 900 $$< 2>$$<.log || { tail -40 $$<.log; false; }))
