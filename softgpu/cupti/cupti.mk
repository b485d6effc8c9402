# CUPTI on the software GPU: opened by the worker where the driver is the software GPU.

CUPTI_LIB := $(LIB)/libvcuda-softgpu-cupti.so
CUPTI_OBJS := $(call objects,$(wildcard softgpu/cupti/*.c))

all: $(CUPTI_LIB)

$(CUPTI_OBJS): ALL_CFLAGS += -fPIC

$(CUPTI_LIB): $(CUPTI_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(CUPTI_OBJS) -L$(LIB) -lvcuda-softgpu
