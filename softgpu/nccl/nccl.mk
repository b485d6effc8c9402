# NCCL between software GPUs: opened by the worker where the driver is the software GPU.

NCCL_LIB := $(LIB)/libvcuda-softgpu-nccl.so
NCCL_OBJS := $(call objects,$(wildcard softgpu/nccl/*.c) softgpu/blas/number.c)

all: $(NCCL_LIB)

$(NCCL_OBJS): ALL_CFLAGS += -fPIC

$(NCCL_LIB): $(NCCL_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(NCCL_OBJS) -L$(LIB) -lvcuda-softgpu -lm
