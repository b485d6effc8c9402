# The NVML front: build/lib/libvcuda-nvml.so, with the SONAME of NVIDIA's libnvidia-ml.so.1.

NVML_OBJS := $(patsubst %.c,$(OBJ)/%.o,$(wildcard shim/nvml/*.c))
NVML_LIB := $(LIB)/libvcuda-nvml.so
NVML_MAP := shim/nvml/libnvidia-ml.map

all: $(NVML_LIB)

$(NVML_OBJS): $(OBJ)/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA13)/include \
		-isystem $(NVML)/include -MMD -MP -c $< -o $@

# Bound lazily, and to the driver front by its file name, as the other fronts are.
$(NVML_LIB): $(NVML_OBJS) $(NVML_MAP) $(CUDA_STUB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,libnvidia-ml.so.1 \
		-Wl,--version-script=$(NVML_MAP) -o $@ $(NVML_OBJS) \
		-Wl,--no-as-needed $(CUDA_STUB) -Wl,--as-needed
