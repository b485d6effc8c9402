# The worker in a process of its own, on the software GPU: front and client are the test.
# `make test-worker`, or one of them: `make run-worker_order`.
WORKER_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/worker_*.c))

$(WORKER_TESTS:%=$(BUILD)/tests/%): $(BUILD)/tests/%: $(OBJ)/tests/unit/%.o \
		$(filter-out $(OBJ)/gpu-agent/main.o,$(AGENT_OBJS)) \
		$(call objects,$(wildcard common/*.c transport/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS) -lcmocka

GATE_DRIVER := $(BUILD)/tests/libgate-driver.so

$(GATE_DRIVER): tests/unit/gate_driver.c $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(SOFTGPU_LIB)

# The software GPU, and beside it a cuFFT of its own.
GATE_CUFFT := $(BUILD)/tests/gate/libvcuda-softgpu-cufft.so
GATE_CUFFT_DRIVER := $(BUILD)/tests/gate/libvcuda-softgpu.so

$(GATE_CUFFT): tests/unit/gate_cufft.c $(FFT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)ln -sf $(abspath $(SOFTGPU_LIB)) $(GATE_CUFFT_DRIVER)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(FFT_LIB)

.PHONY: test-worker
test: test-worker
test-worker: $(WORKER_TESTS:%=run-%) ## the worker: a client that lies, and what comes in which order
WORKER_ENV := SOFTGPU=$(SOFTGPU_LIB) GATE_DRIVER=$(GATE_DRIVER) \
	GATE_CUFFT_DRIVER=$(abspath $(GATE_CUFFT_DRIVER)) VCUDA_LOG=warn
$(foreach test,$(WORKER_TESTS),$(call add_test,$(test),tests/unit/$(test).c, \
	$(BUILD)/tests/$(test) $(SOFTGPU_LIB) $(BLAS_LIB) $(GATE_DRIVER) $(GATE_CUFFT), \
	$(WORKER_ENV) timeout 300 $$< 2>$$<.log || { tail -40 $$<.log; false; }))
