# What a program loads in place of NVIDIA's libraries: libvcuda.so, which LD_PRELOAD names, and the
# fronts that it needs, by file names that end in .so, found beside it.

# Everything that is preloaded runs on old systems: glibc 2.28 and newer (tests/shim/preload.sh).
PRELOAD_CC ?= $(if $(SAN),$(CC) $(SANFLAGS),$(ZIG) cc -target x86_64-linux-gnu.2.28 \
	-fno-sanitize=undefined)
PRELOAD_CFLAGS ?= -std=gnu17 $(CFLAGS) $(WARNINGS) -fPIC -fvisibility=hidden \
	-fstack-protector-strong
# Fences are beyond TSan, which then sees less, not more.
ifeq ($(SAN),thread)
PRELOAD_CFLAGS += -Wno-tsan
endif
PRELOAD_LDFLAGS ?= -shared -Wl,-z,relro -Wl,-rpath,'$$ORIGIN'

SHIM_SRCS := $(wildcard shim/*.c)
SHIM_OBJS := $(patsubst %.c,$(OBJ)/shim/%.o,$(SHIM_SRCS) $(addprefix protocol/generated/, \
	cuda_stubs.c cuda_calls.c cuda_procs.c))

all: $(LIB)/libvcuda-cuda.so $(LIB)/libcuda.so.1 $(LIB)/libvcuda.so

$(OBJ)/shim/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA13)/include \
		-MMD -MP -c $< -o $@

# Bound lazily: most processes that preload it never make a CUDA call.
$(LIB)/libvcuda-cuda.so: $(SHIM_OBJS) protocol/generated/libcuda.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-z,defs -Wl,-soname,libcuda.so.1 \
		-Wl,--version-script=protocol/generated/libcuda.map -o $@ $(SHIM_OBJS) -lpthread

$(LIB)/libcuda.so.1: $(LIB)/libvcuda-cuda.so
	$(Q)ln -sf $(<F) $@

-include shim/runtime/runtime.mk shim/cublas/cublas.mk shim/cudnn/cudnn.mk shim/utilities/utilities.mk shim/nvml/nvml.mk

# Empty libraries whose SONAME is the file name of a front: NEEDED then holds file names.
PRELOAD_FRONTS := libvcuda-cuda.so $(notdir $(RUNTIME_LIBS) $(CUBLAS_LIBS) $(CUDNN_LIBS) $(NVML_LIB))
PRELOAD_STUBS := $(addprefix $(OBJ)/preload-stub/,$(PRELOAD_FRONTS))

$(OBJ)/preload-stub/%.so: | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo 'extern int vcuda_stub; int vcuda_stub;' | $(PRELOAD_CC) -shared -fPIC -x c - \
		-Wl,-soname,$(@F) -o $@

# While a program is loaded it stands for libcudart.so.13 (SONAME and symbol version), as
# libutilities.so does for 12 (shim/utilities/utilities.mk says why). dlsym on that handle searches
# what it needs in this order: the front of 13 comes first.
$(LIB)/libvcuda.so: $(PRELOAD_STUBS) shim/libvcuda.map shim/module.mk | $(addprefix $(LIB)/,$(PRELOAD_FRONTS))
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo 'extern int vcuda_stub; int vcuda_stub;' | $(PRELOAD_CC) $(PRELOAD_LDFLAGS) -fPIC \
		-fvisibility=hidden -x c - -x none -Wl,--no-as-needed \
		$(OBJ)/preload-stub/libvcuda-cudart13.so $(PRELOAD_STUBS) \
		-Wl,--version-script=shim/libvcuda.map -Wl,-soname,libcudart.so.13 -o $@
