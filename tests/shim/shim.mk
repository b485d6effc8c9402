.PHONY: test-preload
all-tests: test-preload
test-preload: run-preload ## what is preloaded loads on old systems and keeps still
$(call add_test,preload,tests/shim/preload.sh,all,timeout 300 tests/shim/preload.sh $(LIB))

# Not with a sanitizer, whose runtime would have to be preloaded first.
.PHONY: test-names
all-tests: test-names
test-names: $(if $(SAN),,run-names) ## whatever way a program names a library of NVIDIA's, it gets ours, once
$(call add_test,names,tests/shim/names.py,all,timeout 300 $(PYTHON) tests/shim/names.py $(LIB))

.PHONY: test-globals test-knots
all-tests: test-globals
test-globals: $(if $(SAN),,run-globals) ## no two programs of ours give one global name two meanings; each begins with its room's word
all-tests: test-knots
test-knots: $(if $(SAN),,run-knots) ## source files that call one another in a circle are known
$(call add_test,knots,tests/shim/knots.py,all,$(PYTHON) tests/shim/knots.py $(BUILD))
$(call add_test,globals,tests/shim/globals.py,all,$(PYTHON) tests/shim/globals.py $(BUILD))

SHIM_PROGRAMS := $(patsubst tests/shim/%.c,$(BUILD)/tests/shim/%,$(wildcard tests/shim/*.c))
$(BUILD)/tests/shim/%: tests/shim/%.c $(CUDA_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CPPFLAGS) -o $@ $< $(CUDA_LIB)

.PHONY: test-shim-programs
all-tests: test-shim-programs
test-shim-programs: $(SHIM_PROGRAMS:$(BUILD)/tests/shim/%=run-front_%) ## order and crowds, straight on the driver front
$(foreach program,$(SHIM_PROGRAMS),$(call add_test,front_$(notdir $(program)), \
	tests/shim/$(notdir $(program)).c,all $(program), \
	timeout 180 $(BIN)/vcuda run --software -- $(program)))

# The same programs with the shim in them, which checks the order of its locks (shim/engine/lock.h).
LOCK_PROGRAMS := $(SHIM_PROGRAMS:$(BUILD)/tests/shim/%=$(BUILD)/tests/shim/locks_%)
$(LOCK_PROGRAMS): $(BUILD)/tests/shim/locks_%: $(OBJ)/tests/shim/%.o \
		$(call objects,$(SHIM_TEST_SRCS)) $(LOCK_ORDER_OBJ)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LOCK_ORDER_LD) -ldl

# Programs with the runtime front in them too.
LOCK_CUDA := $(addprefix $(BUILD)/tests/shim/locks_,threads streams async-memory graph-capture \
	graph-memory-nodes graph-user-objects graph-host-memory graph-copies pools-host pools-managed \
	host-memory-handles graph-memory-kinds host-functions mapped mapped-flags managed managed-ranges managed-system)
$(LOCK_CUDA): $(BUILD)/tests/shim/locks_%: $(PROGRAM_OBJ)/13/%.o \
		$(call objects,$(SHIM_TEST_RUNTIME_SRCS) $(SHIM_TEST_SRCS)) $(LOCK_ORDER_OBJ) | $(CACHE)/.complete
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -cudart none -Xcompiler -pthread $^ -o $@ \
		$(LOCK_ORDER_LD:-Wl$(comma)%=-Xlinker %) -ldl

# And one with the front of cuDNN, whose plans have a lock.
LOCK_CUDNN_SRCS := $(wildcard shim/libraries/cudnn/*.c shim/generated/cudnn_*.c)
$(call objects,$(LOCK_CUDNN_SRCS)): CPPFLAGS += -DVCUDA_LOCK_ORDER -DVCUDA_ABI=9 -Wno-stringop-overread
$(BUILD)/tests/shim/locks_cudnn-plans: tests/cudnn/backend.c $(CUDNN_TEST_HEADERS) \
		$(call objects,$(LOCK_CUDNN_SRCS) $(FRONT_COMMON) $(SHIM_TEST_SRCS)) $(LOCK_ORDER_OBJ)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDNN_TEST_CC) $(SANFLAGS) -DCUDNN_ABI=9 -o $@ $(filter %.c %.o,$^) $(LOCK_ORDER_LD) -ldl -lm

# And programs with the front of CUPTI, which they find in themselves.
LOCK_CUPTI := $(addprefix $(BUILD)/tests/shim/locks_,profiler profiler-callbacks)
LOCK_CUPTI_SRCS := $(wildcard shim/libraries/cupti/*.c) shim/generated/cupti_stubs.c
$(call objects,$(LOCK_CUPTI_SRCS)): CPPFLAGS += -DVCUDA_LOCK_ORDER -DVCUDA_ABI=13
$(LOCK_CUPTI): $(BUILD)/tests/shim/locks_%: tests/programs/%.cu tests/programs/profiler.h \
		$(call objects,$(LOCK_CUPTI_SRCS) $(SHIM_TEST_RUNTIME_SRCS) $(SHIM_TEST_SRCS)) $(LOCK_ORDER_OBJ) | \
		$(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart none -Xcompiler -pthread -Itests/programs -isystem $(CACHE)/cupti-13 \
		-DLIBRARY=NULL -Xlinker --export-dynamic $(filter %.cu %.o,$^) -o $@ \
		$(LOCK_ORDER_LD:-Wl$(comma)%=-Xlinker %) -ldl

$(BUILD)/tests/shim_locks: $(OBJ)/tests/shim/locks/wrong.o $(LOCK_ORDER_OBJ)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(LOCK_ORDER_LD) -lcmocka

.PHONY: test-locks
all-tests: test-locks
test-locks: run-locks_check $(patsubst $(BUILD)/tests/shim/%,run-%,$(LOCK_PROGRAMS) $(LOCK_CUDA) $(LOCK_CUPTI)) run-locks_cudnn-plans ## the shim takes its locks in their order
$(call add_test,locks_check,tests/shim/locks/wrong.c,$(BUILD)/tests/shim_locks,timeout 180 $$<)
$(foreach program,$(LOCK_PROGRAMS),$(call add_test,$(notdir $(program)), \
	tests/shim/$(patsubst locks_%,%,$(notdir $(program))).c,all $(program), \
	timeout 180 $(BIN)/vcuda run --software -- $(program)))
$(foreach program,$(LOCK_CUDA) $(LOCK_CUPTI),$(call add_test,$(notdir $(program)), \
	tests/programs/$(patsubst locks_%,%,$(notdir $(program))).cu,all $(program), \
	timeout 180 $(BIN)/vcuda run --software -- $(program)))
$(call add_test,locks_cudnn-plans,tests/cudnn/backend.c,all $(BUILD)/tests/shim/locks_cudnn-plans, \
	timeout 180 $(BIN)/vcuda run --software -- $(BUILD)/tests/shim/locks_cudnn-plans)

# What CUPTI's front is told, of the driver front and of the runtime's of each ABI.
$(BUILD)/tests/shim/trace13.o: tests/shim/trace/kernel.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -cudart none -c -o $@ $<
$(BUILD)/tests/shim/trace12.o: tests/shim/trace/kernel.cu | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG_CUDA) -c -o $@ $<
$(BUILD)/tests/shim/trace%: tests/shim/trace/trace.c $(BUILD)/tests/shim/trace%.o $(CUDA_LIB) | $(CACHE)/.complete
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA$*)/include -o $@ $(filter %.c %.o,$^) $(CUDA_LIB) \
		-L$(CUDA$*)/lib -l:libcudart.so.$* -lstdc++

$(BUILD)/tests/shim/callbacks%: tests/shim/trace/callbacks.c shim/libraries/cupti/callbacks.c \
		shim/libraries/cupti/callbacks.h shim/generated/cupti_callbacks.inc | $(CACHE)/.complete
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -D_GNU_SOURCE -DVCUDA_ABI=$* -I. -isystem $(CACHE)/cupti-$* -o $@ $(filter %.c,$^)

.PHONY: test-trace
all-tests: test-trace
test-trace: run-trace_12 run-trace_13 run-callbacks_12 run-callbacks_13 ## calls are told to who records them
$(foreach abi,12 13,$(call add_test,trace_$(abi),tests/shim/trace/trace.c,all $(BUILD)/tests/shim/trace$(abi), \
	timeout 180 $(BIN)/vcuda run --software -- $(BUILD)/tests/shim/trace$(abi)))
$(foreach abi,12 13,$(call add_test,callbacks_$(abi),tests/shim/trace/callbacks.c,$(BUILD)/tests/shim/callbacks$(abi), \
	timeout 60 $$<))

# Programs of tests/programs that are recorded.
$(BUILD)/tests/shim/recorder.so: tests/shim/trace/recorder.c $(CUDA_LIB)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -D_GNU_SOURCE -I. -shared -fPIC -o $@ $< $(CUDA_LIB)
RECORDED := vector-add streams threads contexts per-thread-stream copies-2d arrays-2d graph-capture library \
	driver-linked device-reset old-launch async-memory virtual-memory call-order
RECORDED_BUILT := $(foreach abi,12 13,$(addprefix $(BUILD)/programs/$(abi)/,$(RECORDED)))
test-trace: $(if $(SAN),,run-trace_programs)
$(call add_test,trace_programs,tests/shim/trace/recorder.c,all $(BUILD)/tests/shim/recorder.so $(RECORDED_BUILT), \
	VCUDA_SOFTGPU_DEVICES=2 timeout 300 $(PROGRAMS_DIR)/run.sh -j2 $(RECORDED) -- $(BIN)/vcuda run --software -- \
	sh -c 'LD_PRELOAD=$$$$LD_PRELOAD:$(abspath $(BUILD))/tests/shim/recorder.so exec "$$$$@"' sh)
