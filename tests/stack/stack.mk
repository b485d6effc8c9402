# tests/stack, tests/processes: the whole stack in real processes on the software GPU.

STACK_APP := $(BUILD)/stack/app

STACK_OUTLAST := $(BUILD)/stack/outlast

STACK_SPREAD := $(BUILD)/stack/spread

STACK_DIRECT := $(BUILD)/stack/direct

STACK_PAYLOADS := $(BUILD)/stack/payloads

STACK_UPLOADS := $(BUILD)/stack/uploads

STACK_EVENTS := $(BUILD)/stack/events

$(STACK_APP) $(STACK_OUTLAST) $(STACK_SPREAD) $(STACK_DIRECT) $(STACK_PAYLOADS) $(STACK_UPLOADS) $(STACK_EVENTS): $(BUILD)/stack/%: tests/stack/%.cu tests/say.h tests/stack/must.h tests/stack/turns.h | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart shared -I . -Xcompiler -pthread $< -o $@ \
		-L$(CUDA13)/lib

STACK_DRIVERS := $(addprefix $(BUILD)/stack/,libslow-driver.so libprying-driver.so libcaching-driver.so libidling-driver.so libchannel-driver.so liblate-driver.so libwordless-driver.so libown_kernels-driver.so libholding-driver.so libimporting-driver.so)

$(STACK_DRIVERS): $(BUILD)/stack/lib%-driver.so: tests/stack/%_driver.c $(LIB)/libvcuda-softgpu.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(LIB)/libvcuda-softgpu.so -pthread

# For tests/gpu and bench/upload_cache.py. libprying-nvidia.so: the same in front of NVIDIA's libcuda.so.1, wherever
# the loader finds it.
STACK_GPU := $(STACK_APP) $(STACK_UPLOADS) $(BUILD)/stack/libprying-nvidia.so

$(BUILD)/stack/libprying-nvidia.so: tests/stack/prying_driver.c $(LIB)/libcuda.so.1
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< -pthread \
		-Wl,--no-as-needed,--allow-shlib-undefined -L$(LIB) -l:libcuda.so.1

# NCCLs of the software GPU that lack what NVIDIA's of that version lack.
STACK_NCCLS := $(patsubst tests/stack/%.map,$(BUILD)/stack/%/libnccl.so.2,$(wildcard tests/stack/nccl-*.map))

$(STACK_NCCLS): $(BUILD)/stack/%/libnccl.so.2: tests/stack/%.map $(NCCL_OBJS) $(LIB)/libvcuda-softgpu.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,$(abspath $(LIB)) -Wl,--version-script,$< -o $@ $(NCCL_OBJS) 		-L$(LIB) -lvcuda-softgpu -lm

# Of the others' programs.
STACK_PROGRAMS := $(STACK_APP) $(BUILD)/faults/libfailpoint.so $(STACK_OUTLAST) $(STACK_SPREAD) $(STACK_DIRECT) $(STACK_PAYLOADS) $(STACK_UPLOADS) $(STACK_EVENTS) $(STACK_DRIVERS) $(BUILD)/static/unknown/13/vector-add $(addprefix $(BUILD)/programs/13/, \
	processes streams host-functions async-memory pinned-memory copies-2d peers peer-access peer-copies peer-fault sharing-peers \
	devices devices-order devices-work device-query profiler-devices symbols contexts \
	virtual-memory sharing memory-full memory-fragments error-memory)

.PHONY: test-stack test-processes stack-programs
stack-programs: $(STACK_PROGRAMS) $(BUILD)/cudnn/9/steady $(BUILD)/cublas/12/products \
	$(BUILD)/cublas/13/products $(addprefix $(BUILD)/cufft/13/several-,gpus calls) $(addprefix $(BUILD)/nccl/13/,first processes collectives errors apart grow windows missing suspend params steady) \
	$(STACK_NCCLS)
all-tests: test-stack test-processes
build-tests: stack-programs
# STACK_READY=1: all that it needs is there. Without prerequisites make begins it at once; else it comes back
# to it when it has been through all goals.
test-stack: $(if $(STACK_READY),,all stack-programs) ## bad input, ways in, limits, cuts, faults of a device: real processes
	$(Q)BUILD=$(BUILD) timeout 1200 tests/stack/run.py --in stack
test-processes: $(if $(STACK_READY),,all stack-programs) ## real processes that are stopped, killed or many
	$(Q)BUILD=$(BUILD) timeout 1200 tests/stack/run.py --in processes

TEST_LIST += $(patsubst %,stack-*=%,$(wildcard tests/stack/test_*.py tests/processes/test_*.py))
run-stack-%: all stack-programs
	$(Q)BUILD=$(BUILD) timeout 240 tests/stack/run.py --exact $*

# The programs of tests/programs with memory that agent and program share.
long-tests: run-local_programs
$(call add_test,local_programs,tests/stack/on_local.py,all programs-13,VCUDA_SOFTGPU_DEVICES=2 \
	tests/stack/on_local.py $(PROGRAMS_DIR)/run.sh -j2 --abi 13 -- $(BIN)/vcuda run --)
