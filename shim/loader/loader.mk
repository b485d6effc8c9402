# The loader guard, the other name in LD_PRELOAD beside libvcuda.so.

LOADER_SRCS := $(wildcard shim/loader/*.c)
LOADER_OBJS := $(patsubst %.c,$(OBJ)/preload/%.o,$(LOADER_SRCS))
LOADER_LIB := $(LIB)/libutilities.so

all: $(LOADER_LIB)

$(LOADER_OBJS): $(OBJ)/preload/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -MMD -MP -c $< -o $@

# It stands for libcudart.so.12 (SONAME and symbol version) while a program is loaded: the loader
# looks for a program's own NEEDED libraries before those of a preloaded one, and so finds it loaded
# already; libvcuda.so stands for libcudart.so.13. The functions are found in the fronts behind
# them. Only dlopen is exported, without a version.
LOADER_STUB := $(call stub,$(FRONT12_LIB))

$(LOADER_LIB): $(LOADER_OBJS) shim/loader/loader.map shim/loader/initfirst.py \
		$(LOADER_STUB) | $(FRONT12_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-soname,libcudart.so.12 -Wl,-z,nodelete \
		-Wl,--version-script=shim/loader/loader.map -o $@ $(LOADER_OBJS) -ldl \
		-Wl,--no-as-needed $(LOADER_STUB) -Wl,--as-needed
	$(Q)$(PYTHON) shim/loader/initfirst.py $@
