# The software GPU: our own libcuda, whose device is the CPU.

# PTX_OBJS, the interpreter's objects.
include softgpu/ptx/ptx.mk

SOFTGPU_SRCS := $(wildcard softgpu/driver/*.c softgpu/driver/*/*.c)

SOFTGPU_LIB := $(LIB)/libvcuda-softgpu.so

all: $(SOFTGPU_LIB)

# nodelete: executor threads may outlive the last dlclose.
$(SOFTGPU_LIB): $(call objects,$(SOFTGPU_SRCS)) $(PTX_OBJS) softgpu/softgpu.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=softgpu/softgpu.map -o $@ \
		$(filter %.o,$^) -lzstd -llz4 -lm

$(call objects,$(SOFTGPU_SRCS)): ALL_CFLAGS += -fPIC

# A kernel's fence is a real one; gcc warns that its TSan does not know fences.
ifeq ($(SAN)$(findstring clang,$(CC)),thread)
$(PTX_OBJS): ALL_CFLAGS += -Wno-tsan
endif

-include softgpu/blas/blas.mk
-include softgpu/dnn/dnn.mk
-include softgpu/fft/fft.mk
-include softgpu/rand/rand.mk
-include softgpu/solver/solver.mk
-include softgpu/sparse/sparse.mk
-include softgpu/sparselt/sparselt.mk
-include softgpu/nccl/nccl.mk
-include softgpu/cupti/cupti.mk

##### Tests #####

SOFTGPU_TESTS := $(patsubst tests/unit/softgpu/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/softgpu/softgpu_*.c))
SOFTGPU_TEST_OBJS := $(call objects,$(wildcard tests/unit/softgpu/softgpu_*.c))

# What nvcc makes of one kernel, with each of its three compressions, and as PTX and machine code.
SOFTGPU_IMAGES := $(addprefix $(BUILD)/tests/images/,none.fatbin zstd.fatbin lz4.fatbin \
	machine.fatbin kernels.ptx kernels.cubin)
$(SOFTGPU_IMAGES): tests/unit/softgpu/softgpu_kernels.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc $(SOFTGPU_IMAGE_FLAGS) -o $@ $<
$(BUILD)/tests/images/%.fatbin: SOFTGPU_IMAGE_FLAGS = -fatbin \
	-gencode arch=compute_75,code=[sm_75,compute_75] \
	$(patsubst %,--compress-mode=%,$(SOFTGPU_COMPRESS))
$(BUILD)/tests/images/none.fatbin: SOFTGPU_COMPRESS := none
$(BUILD)/tests/images/lz4.fatbin: SOFTGPU_COMPRESS := speed
$(BUILD)/tests/images/machine.fatbin: SOFTGPU_IMAGE_FLAGS := -fatbin \
	-gencode arch=compute_80,code=sm_80
$(BUILD)/tests/images/kernels.ptx: SOFTGPU_IMAGE_FLAGS := -ptx -arch=compute_75
$(BUILD)/tests/images/kernels.cubin: SOFTGPU_IMAGE_FLAGS := -cubin -arch=sm_80

$(SOFTGPU_TEST_OBJS): CPPFLAGS += -DIMAGES='"$(abspath $(BUILD)/tests/images)"'

# The reader of fat binaries is not exported: its test takes the object.
$(BUILD)/tests/softgpu_fatbin: $(OBJ)/softgpu/driver/module/fatbin.o
$(BUILD)/tests/softgpu_fatbin: SOFTGPU_TEST_LIBS := -lzstd -llz4

# Tasks of the libraries beside the driver.
$(BUILD)/tests/softgpu_tasks: $(BLAS_LIB) $(DNN_LIB)
$(BUILD)/tests/softgpu_tasks: SOFTGPU_TEST_LIBS := $(BLAS_LIB) $(DNN_LIB)

$(BUILD)/tests/softgpu_fft: $(FFT_LIB)
$(BUILD)/tests/softgpu_fft: SOFTGPU_TEST_LIBS := $(FFT_LIB) -lm

$(BUILD)/tests/softgpu_sparse: $(SPARSE_LIB)
$(BUILD)/tests/softgpu_sparse: SOFTGPU_TEST_LIBS := $(SPARSE_LIB) -lm

$(BUILD)/tests/softgpu_cupti $(BUILD)/tests/softgpu_cupti_flow: $(CUPTI_LIB)
$(BUILD)/tests/softgpu_cupti $(BUILD)/tests/softgpu_cupti_flow: SOFTGPU_TEST_LIBS := $(CUPTI_LIB)

$(SOFTGPU_TESTS): $(BUILD)/tests/%: $(OBJ)/tests/unit/softgpu/%.o $(SOFTGPU_LIB) | $(SOFTGPU_IMAGES)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(SOFTGPU_LIB) \
		-Wl,-rpath,$(abspath $(LIB)) -lcmocka $(SOFTGPU_TEST_LIBS)

.PHONY: test-softgpu
all-tests: test-softgpu
test-softgpu: $(SOFTGPU_TESTS:$(BUILD)/tests/%=run-%) ## the software GPU's driver
$(foreach test,$(notdir $(SOFTGPU_TESTS)),$(call add_test,$(test),tests/unit/softgpu/$(test).c, \
	$(BUILD)/tests/$(test), \
	TSAN_OPTIONS=suppressions=tests/unit/softgpu/softgpu_tsan.supp timeout 300 $$<))
