# cuRAND on the software GPU: opened by the worker where the driver is the software GPU.

RAND_LIB := $(LIB)/libvcuda-softgpu-curand.so
RAND_OBJS := $(call objects,$(wildcard softgpu/rand/*.c))

all: $(RAND_LIB)

$(RAND_OBJS): ALL_CFLAGS += -fPIC

$(RAND_LIB): $(RAND_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(RAND_OBJS) -L$(LIB) -lvcuda-softgpu -lm
