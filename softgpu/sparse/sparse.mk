# cuSPARSE on the software GPU: opened by the worker where the driver is the software GPU.

SPARSE_LIB := $(LIB)/libvcuda-softgpu-cusparse.so
SPARSE_OBJS := $(call objects,$(wildcard softgpu/sparse/*.c))

all: $(SPARSE_LIB)

$(SPARSE_OBJS): ALL_CFLAGS += -fPIC

$(SPARSE_LIB): $(SPARSE_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(SPARSE_OBJS) -L$(LIB) -lvcuda-softgpu -lm
