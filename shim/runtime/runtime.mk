# The runtime front, once for each ABI: build/lib/libvcuda-cudart{12,13}.so, with the SONAME and
# the symbol versions of NVIDIA's libcudart.so.{12,13}.

# Everything that is preloaded runs on old systems: glibc 2.28 and newer (docs/TOOLCHAIN.md).
PRELOAD_CC ?= $(if $(SAN),$(CC) $(SANFLAGS),$(ZIG) cc -target x86_64-linux-gnu.2.28 \
	-fno-sanitize=undefined)
PRELOAD_CFLAGS ?= -std=gnu17 $(CFLAGS) $(WARNINGS) -fPIC -fvisibility=hidden \
	-fstack-protector-strong

RUNTIME_SRCS := $(wildcard shim/runtime/*.c)
RUNTIME_LIBS := $(LIB)/libvcuda-cudart12.so $(LIB)/libvcuda-cudart13.so

# What the front needs of the driver front, as an empty library of its file name: NEEDED then
# holds the file name, which $ORIGIN finds, and a build of one does not wait for the other.
RUNTIME_STUB := $(OBJ)/cudart-stub/libvcuda-cuda.so

all: $(RUNTIME_LIBS) $(LIB)/libcudart.so.12 $(LIB)/libcudart.so.13

$(OBJ)/cudart12/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA12)/include \
		-MMD -MP -c $< -o $@

$(OBJ)/cudart13/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA13)/include \
		-MMD -MP -c $< -o $@

$(RUNTIME_STUB): | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo 'extern int vcuda_stub; int vcuda_stub;' | $(PRELOAD_CC) -shared -fPIC -x c - \
		-Wl,-soname,$(@F) -o $@

# Bound lazily: most processes that preload it never make a CUDA call.
$(LIB)/libvcuda-cudart%.so: protocol/generated/libcudart%.map $(RUNTIME_STUB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) -shared -Wl,-soname,libcudart.so.$* -Wl,--version-script=$< \
		-Wl,-z,relro -Wl,-z,lazy -Wl,-rpath,'$$ORIGIN' -o $@ $(filter %.o,$^) \
		-Wl,--no-as-needed $(RUNTIME_STUB) -Wl,--as-needed

$(LIB)/libvcuda-cudart12.so: $(patsubst %.c,$(OBJ)/cudart12/%.o, \
	$(RUNTIME_SRCS) protocol/generated/cudart_stubs12.c)
$(LIB)/libvcuda-cudart13.so: $(patsubst %.c,$(OBJ)/cudart13/%.o, \
	$(RUNTIME_SRCS) protocol/generated/cudart_stubs13.c)

$(LIB)/libcudart.so.%: $(LIB)/libvcuda-cudart%.so
	$(Q)ln -sf $(<F) $@
