# cuSPARSELt on the software GPU: opened by the worker where the driver is the software GPU.

SPARSELT_LIB := $(LIB)/libvcuda-softgpu-cusparselt.so
SPARSELT_OBJS := $(call objects,$(wildcard softgpu/sparselt/*.c) $(addprefix softgpu/sparse/,number.c status.c task.c))

all: $(SPARSELT_LIB)

$(SPARSELT_OBJS): ALL_CFLAGS += -fPIC

$(SPARSELT_LIB): $(SPARSELT_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(SPARSELT_OBJS) -L$(LIB) -lvcuda-softgpu -lm
