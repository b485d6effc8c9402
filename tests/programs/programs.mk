# tests/programs: every NAME.cu becomes build/programs/13/NAME (NVIDIA's nvcc, CUDA 13) and
# build/programs/12/NAME (clang, CUDA 12.9), both with the shared runtime and no RPATH.

PROGRAMS_DIR := tests/programs
PROGRAMS := $(patsubst $(PROGRAMS_DIR)/%.cu,%,$(wildcard $(PROGRAMS_DIR)/*.cu))
PROGRAMS13 := $(addprefix $(BUILD)/programs/13/,$(PROGRAMS) \
	vector-add-plain vector-add-lz4 vector-add-smallest)
PROGRAMS12 := $(addprefix $(BUILD)/programs/12/,$(PROGRAMS))
PROGRAM_HEADERS := $(wildcard $(PROGRAMS_DIR)/*.h)

NVCC := $(CUDA13)/bin/nvcc
NVCCFLAGS := -std=c++17 -O2 -cudart shared -Xcompiler -pthread -I$(PROGRAMS_DIR)
CLANG_CUDA := $(CLANG) -x cuda --cuda-path=$(CUDA12) --cuda-gpu-arch=sm_80 \
	--cuda-include-ptx=all -Wno-unknown-cuda-version
CLANG_CUDAFLAGS := -std=c++17 -O2 -pthread -I$(PROGRAMS_DIR)

##### What single programs need beside their one source #####

PROGRAM_PARTS_two-files := $(PROGRAMS_DIR)/parts/two-files-second.cu
PROGRAM_BLOBS_module := ptx
PROGRAM_BLOBS_library := ptx
PROGRAM_BLOBS_fat-binaries := plain zstd lz4
PROGRAM_BLOBS_driver-linked := ptx
PROGRAM_LIBS_driver-linked := -lcuda
PROGRAM_LIBS_contexts := -lcuda
PROGRAM_LIBS_context-memory := -lcuda
PROGRAM_LIBS_linking := -lcuda
PROGRAM_FLAGS13_monte-carlo = -isystem $(CURAND_INCLUDE)
PROGRAM_FLAGS12_monte-carlo = -isystem $(CURAND_INCLUDE)
PROGRAM_FLAGS13_profiler = -isystem $(CACHE)/cupti-13
PROGRAM_FLAGS12_profiler = -isystem $(CACHE)/cupti-12
PROGRAM_FLAGS13_profiler-callbacks = $(PROGRAM_FLAGS13_profiler)
PROGRAM_FLAGS12_profiler-callbacks = $(PROGRAM_FLAGS12_profiler)
PROGRAM_FLAGS13_profiler-devices = $(PROGRAM_FLAGS13_profiler)
PROGRAM_FLAGS12_profiler-devices = $(PROGRAM_FLAGS12_profiler)
PROGRAM_FLAGS13_per-thread-stream := --default-stream per-thread
PROGRAM_FLAGS12_per-thread-stream := -DCUDA_API_PER_THREAD_DEFAULT_STREAM
PROGRAM_BLOBS_machine-code := cubin
PROGRAM_BLOBS_graph-conditional := conditional
PROGRAM_BLOBS_nested-launches := nested
PROGRAM_BLOBS_tensor-copies := tensor
PROGRAM_FLAGS13_machine-code := -gencode arch=compute_75,code=sm_75
PROGRAM_FLAGS12_machine-code := --no-cuda-gpu-arch=sm_80 --cuda-gpu-arch=sm_75 \
	--no-cuda-include-ptx=all
PROGRAM_FLAGS13_sparse-matrices := -arch=compute_80
PROGRAM_FLAGS13_clusters := -arch=compute_90
PROGRAM_FLAGS12_clusters := --no-cuda-gpu-arch=sm_80 --cuda-gpu-arch=sm_90
# The default (zstd for PTX) is what every other program carries.
PROGRAM_FLAGS13_vector-add-plain := --compress-mode=none
PROGRAM_FLAGS13_vector-add-lz4 := --compress-mode=speed
PROGRAM_FLAGS13_vector-add-smallest := --compress-mode=size

program_blobs = $(foreach blob,$(PROGRAM_BLOBS_$(2)),$(OBJ)/programs/modules/$(1)/$(blob).o)

##### Modules that programs load by themselves, embedded as bytes #####

.SECONDEXPANSION:

MODULE_DIR := $(OBJ)/programs/modules
MODULE_SOURCE := $(PROGRAMS_DIR)/modules/numbers.cu

$(MODULE_DIR)/13/ptx: $(MODULE_SOURCE) | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -arch=compute_75 -ptx -o $@ $<

$(MODULE_DIR)/12/ptx: $(MODULE_SOURCE) | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG_CUDA) -Wno-unused-command-line-argument -std=c++17 -O2 --cuda-device-only -S -o $@ $<

# clang cannot choose the compression, so these three are nvcc's for both.
MODULE_MODE_plain := none
MODULE_MODE_zstd := size
MODULE_MODE_lz4 := speed
$(foreach abi,12 13,$(foreach mode,plain zstd lz4,$(MODULE_DIR)/$(abi)/$(mode))): $(MODULE_SOURCE) \
		| $(CACHE)/.complete
	$(call say,FATBIN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -arch=sm_75 -gencode arch=compute_75,code=compute_75 \
		--compress-mode=$(MODULE_MODE_$(@F)) -fatbin -o $@ $<

$(MODULE_DIR)/12/cubin $(MODULE_DIR)/13/cubin: $(MODULE_SOURCE) | $(CACHE)/.complete
	$(call say,CUBIN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -arch=sm_75 -cubin -o $@ $<

# What a kernel does with libcudadevrt (conditional nodes, launches of its own), which is machine
# code: linked for compute capability 9.0, and PTX beside it for the software GPU, which has those
# functions itself.
MODULES_DEVICE_RUNTIME := conditional nested
$(foreach abi,12 13,$(addprefix $(MODULE_DIR)/$(abi)/,$(MODULES_DEVICE_RUNTIME))): \
		$(MODULE_DIR)/%: $(PROGRAMS_DIR)/modules/$$(@F).cu | $(CACHE)/.complete
	$(call say,FATBIN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -arch=sm_90 -dc -o $@.dc.o $<
	$(Q)$(NVCC) -arch=sm_90 -dlink -cubin -o $@.cubin $@.dc.o -L$(CUDA13)/lib -lcudadevrt
	$(Q)$(NVCC) -std=c++17 -O2 -arch=compute_80 -rdc=true -ptx -o $@.ptx $<
	$(Q)$(CUDA13)/bin/fatbinary --create=$@ -64 --image3=kind=elf,sm=90,file=$@.cubin \
		--image3=kind=ptx,sm=80,file=$@.ptx

# Tensor maps came with compute capability 9.0.
$(MODULE_DIR)/12/tensor $(MODULE_DIR)/13/tensor: $(PROGRAMS_DIR)/modules/tensor.cu | $(CACHE)/.complete
	$(call say,PTX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -arch=compute_90 -ptx -o $@ $<

# Kept. (.SECONDARY: without names would let any missing file pass for made.)
.PRECIOUS: $(MODULE_DIR)/%.o $(OBJ)/%.o $(OBJ)/link/%
$(MODULE_DIR)/%.o: $(MODULE_DIR)/% $(PROGRAMS_DIR)/modules/embed.S
	$(Q)$(CC) -c -DNAME=module_$(@F:.o=) -DFILE='"$<"' $(PROGRAMS_DIR)/modules/embed.S -o $@

# To link -lcuda where there is no driver: the names that the programs use, and nothing in them.
$(OBJ)/programs/stub/libcuda.so: $(PROGRAMS_DIR)/parts/driver-names.txt
	$(call say,STUB,$@)
	$(Q)mkdir -p $(@D)
	$(Q)sed -n 's/^\(cu[A-Za-z0-9_]*\)$$/void \1(void);void \1(void){}/p' $< | \
		$(CC) -shared -fPIC -Wl,-soname,libcuda.so.1 -x c - -o $@

##### The programs #####

# What a program is compiled to does not depend on which runtime it is linked with: tests/static links
# the same objects.
PROGRAM_OBJ := $(OBJ)/programs/objects
.PRECIOUS: $(PROGRAM_OBJ)/13/%.o $(PROGRAM_OBJ)/12/%.o

$(PROGRAM_OBJ)/13/vector-add-%.o: $(PROGRAMS_DIR)/vector-add.cu $(PROGRAM_HEADERS) | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCCFLAGS) $(PROGRAM_FLAGS13_vector-add-$*) -c $< -o $@

$(PROGRAM_OBJ)/13/%.o: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(NVCCFLAGS) $(PROGRAM_FLAGS13_$*) -c $< -o $@

$(PROGRAM_OBJ)/12/%.o: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG_CUDA) $(CLANG_CUDAFLAGS) $(PROGRAM_FLAGS12_$*) -c $< -o $@

# The objects of a program: its own, those of its other sources, and what is embedded in it.
program_objects = $(PROGRAM_OBJ)/$(1)/$(2).o $(patsubst $(PROGRAMS_DIR)/%.cu,$(PROGRAM_OBJ)/$(1)/%.o,$(PROGRAM_PARTS_$(2))) \
	$(call program_blobs,$(1),$(2))

$(BUILD)/programs/13/%: $$(call program_objects,13,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -cudart shared -Xcompiler -pthread $^ -o $@ -L$(CUDA13)/lib -L$(OBJ)/programs/stub \
		$(PROGRAM_LIBS_$*)

$(BUILD)/programs/12/%: $$(call program_objects,12,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -pthread $^ -o $@ -L$(CUDA12)/lib -L$(OBJ)/programs/stub -lcudart $(PROGRAM_LIBS_$*) \
		-lstdc++ -lm

# The PTX alone, to read and to try the software GPU's decoder on.
$(OBJ)/programs/ptx/13/%.ptx: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) | $(CACHE)/.complete
	$(call say,PTX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -std=c++17 -O2 -arch=compute_75 -ptx -o $@ $<

$(OBJ)/programs/ptx/12/%.ptx: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) | $(CACHE)/.complete
	$(call say,PTX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG_CUDA) -Wno-unused-command-line-argument -std=c++17 -O2 --cuda-device-only -S -o $@ $<

.PHONY: programs programs-12 programs-13 programs-ptx
programs-ptx: $(foreach abi,12 13,$(PROGRAMS:%=$(OBJ)/programs/ptx/$(abi)/%.ptx))
programs-13: $(PROGRAMS13)
programs-12: $(PROGRAMS12)
programs: programs-13 programs-12 ## the CUDA test programs of tests/programs, for both ABIs

# On the software GPU, through shim, sidecar and agent.
.PHONY: test-programs test-switches test-crowd
all-tests: test-programs test-crowd
long-tests: test-switches
test-programs: all programs ## every program of tests/programs, through shim, sidecar and agent
	$(Q)VCUDA_SOFTGPU_DEVICES=2 $(PROGRAMS_DIR)/run.sh -j2
test-switches: run-switches ## the same results with every optimisation switched off
$(call add_test,switches,$(PROGRAMS_DIR)/switches.sh,all programs,$(PROGRAMS_DIR)/switches.sh)
# What uses several devices, with two and with four, and with every optimisation switched off.
PROGRAMS_SEVERAL := devices devices-order devices-work managed-devices peers peer-access peer-copies peer-fault sharing-order sharing-peers
long-tests: run-switches_several
$(call add_test,switches_several,$(PROGRAMS_DIR)/switches.sh,all $(foreach abi,12 13, \
	$(PROGRAMS_SEVERAL:%=$(BUILD)/programs/$(abi)/%)),VCUDA_SOFTGPU_DEVICES=4 \
	$(PROGRAMS_DIR)/run.sh $(PROGRAMS_SEVERAL) && VCUDA_SOFTGPU_DEVICES=2 \
	VCUDA_SOFTGPU_FAULT=no-peers=1 $(PROGRAMS_DIR)/run.sh managed-devices && VCUDA_SOFTGPU_DEVICES=2 \
	$(PROGRAMS_DIR)/switches.sh -j2 --abi 13 $(PROGRAMS_SEVERAL))
test-crowd: run-crowd ## 64 processes at once
$(call add_test,crowd,$(PROGRAMS_DIR)/processes.cu,all $(BUILD)/programs/13/processes, \
	timeout 300 $(BIN)/vcuda run --software -- $(BUILD)/programs/13/processes --count 63)

# run-program_13-NAME, run-program_12-NAME
program_test = $(call add_test,program_$(1)-$(2),$(PROGRAMS_DIR)/$(3).cu, \
	all $(BUILD)/programs/$(1)/$(2),VCUDA_SOFTGPU_DEVICES=2 $(PROGRAMS_DIR)/run.sh --abi $(1) \
	--programs $(BUILD)/programs $(2) -- $(BIN)/vcuda run --software --)
$(foreach name,$(PROGRAMS),$(foreach abi,12 13,$(call program_test,$(abi),$(name),$(name))))
$(foreach mode,plain lz4 smallest,$(call program_test,13,vector-add-$(mode),vector-add))

# What a real device gave, as `textures --record` printed it there: the software GPU's filter must
# give the same.
TEXTURES_RECORD := $(wildcard $(PROGRAMS_DIR)/textures-h200.txt)
ifneq ($(TEXTURES_RECORD),)
test-programs: run-textures_record
$(call add_test,textures_record,$(PROGRAMS_DIR)/textures.cu,all $(BUILD)/programs/13/textures, \
	timeout 300 $(BIN)/vcuda run --software -- $(BUILD)/programs/13/textures --against \
	$(TEXTURES_RECORD))
endif

# And what a real device gave for single instructions, as `instructions --record` printed it there.
INSTRUCTIONS_RECORD := $(wildcard $(PROGRAMS_DIR)/instructions-h200.txt)
ifneq ($(INSTRUCTIONS_RECORD),)
test-programs: run-instructions_record
$(call add_test,instructions_record,$(PROGRAMS_DIR)/instructions.cu,all \
	$(BUILD)/programs/13/instructions,timeout 300 $(BIN)/vcuda run --software -- \
	$(BUILD)/programs/13/instructions --against $(INSTRUCTIONS_RECORD))
endif
