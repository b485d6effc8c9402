# cuDNN on the software GPU: opened by the worker where the driver is the software GPU.

DNN_LIB := $(LIB)/libvcuda-softgpu-cudnn.so
DNN_OBJS := $(call objects,$(wildcard softgpu/dnn/*.c))

all: $(DNN_LIB)

$(DNN_OBJS): ALL_CFLAGS += -fPIC

$(DNN_LIB): $(DNN_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(DNN_OBJS) -L$(LIB) -lvcuda-softgpu \
		-lopenblas -lm
