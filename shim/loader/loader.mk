# The loader guard, the other name in LD_PRELOAD beside libvcuda.so.

UTILITIES_SRCS := $(wildcard shim/loader/*.c)
UTILITIES_OBJS := $(patsubst %.c,$(OBJ)/preload/%.o,$(UTILITIES_SRCS))
UTILITIES_LIB := $(LIB)/libutilities.so

all: $(UTILITIES_LIB)

$(UTILITIES_OBJS): $(OBJ)/preload/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -MMD -MP -c $< -o $@

# It stands for libcudart.so.12 (SONAME and symbol version) while a program is loaded: the loader
# looks for a program's own NEEDED libraries before those of a preloaded one, and so finds it loaded
# already; libvcuda.so stands for libcudart.so.13. The functions are found in the fronts behind
# them. Only dlopen is exported, without a version.
UTILITIES_STUB := $(call stub,$(FRONT12_LIB))

$(UTILITIES_LIB): $(UTILITIES_OBJS) shim/loader/loader.map shim/loader/initfirst.py \
		$(UTILITIES_STUB) | $(FRONT12_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-soname,libcudart.so.12 -Wl,-z,nodelete \
		-Wl,--version-script=shim/loader/loader.map -o $@ $(UTILITIES_OBJS) -ldl \
		-Wl,--no-as-needed $(UTILITIES_STUB) -Wl,--as-needed
	$(Q)$(PYTHON) shim/loader/initfirst.py $@
