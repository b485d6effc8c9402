# cuBLAS on the software GPU, on OpenBLAS: opened by the worker where the driver is the software GPU.

BLAS_LIB := $(LIB)/libvcuda-softgpu-cublas.so
BLAS_OBJS := $(call objects,$(wildcard softgpu/blas/*.c))

all: $(BLAS_LIB)

$(BLAS_OBJS): ALL_CFLAGS += -fPIC

$(BLAS_LIB): $(BLAS_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(BLAS_OBJS) -L$(LIB) -lvcuda-softgpu \
		-lopenblas -lm
