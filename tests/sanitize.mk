# `make SAN=address|undefined|address+undefined|thread test-sanitize`: what suits the sanitizer.
#
# Address and undefined behaviour: every test that runs our code in its own process, and the
# fuzzers' corpora. Threads: what shares memory between threads. Left out there are the tests whose
# addresses lie where ThreadSanitizer lets no program have memory: the device windows
# (shim_memory), a kernel's wild address (ptx_faults); and tests of processes with one thread.
SANITIZE_address := test-unit test-agent test-worker test-shim-unit test-runtime test-softgpu \
	test-ptx test-softdnn test-softsolver test-softsparse test-softsparselt run-parity_generated replay-sidecar replay-shim
SANITIZE_undefined := $(SANITIZE_address)
SANITIZE_address+undefined := $(SANITIZE_address)
SANITIZE_thread := test-unit test-threads test-softgpu

THREAD_TESTS := $(SHIM_UNIT)/shim_handle $(SHIM_UNIT)/shim_ring $(RUNTIME_TESTS)/table \
	$(BUILD)/tests/ptx_execution $(BUILD)/tests/ptx_instructions

# What they run, so that it can be built with -j and run without.
SANITIZE_BUILD_address := $(UNIT_TESTS:%=$(BUILD)/tests/%) $(TOY_AGENT) $(AGENT_UNIT) $(WORKER_TEST) \
	$(SHIM_UNIT_TESTS:%=$(SHIM_UNIT)/%) $(RUNTIME_TEST_LIBS) $(SOFTGPU_TESTS) $(PTX_TESTS) $(DNN_TESTS) $(SOLVER_TESTS) \
	$(PARITY)/generated $(SIDECAR_REPLAYS)
SANITIZE_BUILD_undefined := $(SANITIZE_BUILD_address)
SANITIZE_BUILD_address+undefined := $(SANITIZE_BUILD_address)
SANITIZE_BUILD_thread := $(UNIT_TESTS:%=$(BUILD)/tests/%) $(THREAD_TESTS) $(SOFTGPU_TESTS)

.PHONY: build-sanitize
build-sanitize: $(SANITIZE_BUILD_$(SAN))

.PHONY: test-sanitize test-threads
test-threads: $(THREAD_TESTS)
	$(Q)for test in $^; do timeout 300 $$test || exit 1; done

test-sanitize: $(SANITIZE_$(SAN)) ## the tests that suit the sanitizer that SAN= names
	$(if $(SANITIZE_$(SAN)),,$(error test-sanitize: SAN=address, undefined, address+undefined or thread, not '$(SAN)'))
	@echo 'test-sanitize: $(SAN): passed'
