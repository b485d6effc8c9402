# `make SAN=address|undefined|address+undefined|thread test-sanitize`: what suits the sanitizer.
#
# Address and undefined behaviour: every test that runs our code in its own process, and the
# fuzzers' corpora. Threads: what shares memory between threads, and the order of the shim's locks. Left
# out there are the tests whose addresses lie where ThreadSanitizer lets no program have memory: the
# device windows (shim_memory, and of test-locks all programs that allocate on the device), a kernel's
# wild address (ptx_faults); and tests of processes with one thread.
SANITIZE_address := test-unit test-agent test-worker test-shim-unit test-runtime test-softgpu \
	test-ptx test-softdnn test-softsolver test-softsparse test-softsparselt run-parity_generated replay-sidecar replay-shim
SANITIZE_undefined := $(SANITIZE_address)
SANITIZE_address+undefined := $(SANITIZE_address)
SANITIZE_thread := test-unit test-threads test-softgpu run-locks_check test-thread-locks

THREAD_TESTS := $(SHIM_UNIT)/shim_handle $(SHIM_UNIT)/shim_ring $(RUNTIME_TESTS)/table \
	$(BUILD)/tests/ptx_execution $(BUILD)/tests/ptx_instructions

# What they run, so that it can be built with -j and run without.
SANITIZE_BUILD_address := $(UNIT_TESTS:%=$(BUILD)/tests/%) $(TOY_AGENT) $(AGENT_UNIT) \
	$(WORKER_TESTS:%=$(BUILD)/tests/%) $(GATE_DRIVER) $(GATED_DRIVER) $(GATED) \
	$(SHIM_UNIT_TESTS:%=$(SHIM_UNIT)/%) $(RUNTIME_TEST_LIBS) $(SOFTGPU_TESTS) $(PTX_TESTS) $(DNN_TESTS) $(SOLVER_TESTS) \
	$(PARITY)/generated $(SIDECAR_REPLAYS)
SANITIZE_BUILD_undefined := $(SANITIZE_BUILD_address)
SANITIZE_BUILD_address+undefined := $(SANITIZE_BUILD_address)
THREAD_LOCKS := $(BUILD)/tests/shim/locks_order
SANITIZE_BUILD_thread := $(UNIT_TESTS:%=$(BUILD)/tests/%) $(THREAD_TESTS) $(SOFTGPU_TESTS) $(BUILD)/tests/shim_locks \
	$(THREAD_LOCKS)

# gcc warns of fences, which it does not tell ThreadSanitizer of: those of a ring that another process has, too.
ifeq ($(SAN)$(findstring clang,$(CC)),thread)
$(call objects,$(SHIM_TEST_SRCS)): CFLAGS += -Wno-tsan
endif

.PHONY: build-sanitize
build-sanitize: $(SANITIZE_BUILD_$(SAN))

.PHONY: test-sanitize test-threads
test-threads: $(THREAD_TESTS)
	$(Q)for test in $^; do timeout 300 $$test || exit 1; done

# The program has the shim in it, sanitized; sidecar, agent and software GPU are as users have them.
.PHONY: test-thread-locks
test-thread-locks: $(THREAD_LOCKS)
	$(Q)$(MAKE) --no-print-directory SAN= BUILD=$(BUILD:%/san-$(SAN)=%) all
	$(Q)for program in $^; do TSAN_OPTIONS=halt_on_error=1 timeout 180 \
		$(BUILD:%/san-$(SAN)=%)/bin/vcuda run --software -- $$program || exit 1; done

test-sanitize: $(SANITIZE_$(SAN)) ## the tests that suit the sanitizer that SAN= names
	$(if $(SANITIZE_$(SAN)),,$(error test-sanitize: SAN=address, undefined, address+undefined or thread, not '$(SAN)'))
	@echo 'test-sanitize: $(SAN): passed'
