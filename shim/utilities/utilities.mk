# The loader guard, the other name in LD_PRELOAD beside libvcuda.so.

UTILITIES_SRCS := $(wildcard shim/utilities/*.c)
UTILITIES_OBJS := $(patsubst %.c,$(OBJ)/preload/%.o,$(UTILITIES_SRCS))
UTILITIES_LIB := $(LIB)/libutilities.so

all: $(UTILITIES_LIB)

$(UTILITIES_OBJS): $(OBJ)/preload/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -MMD -MP -c $< -o $@

# Only dlopen is exported.
$(UTILITIES_LIB): $(UTILITIES_OBJS) shim/utilities/utilities.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete -Wl,-z,relro \
		-Wl,--version-script=shim/utilities/utilities.map -o $@ $(UTILITIES_OBJS) -ldl
	$(Q)$(PYTHON) shim/utilities/initfirst.py $@
