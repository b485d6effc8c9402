# The fronts of libraries that are served, once for each major, parts of libvcuda-12.so and
# libvcuda-13.so. They need no header of the library. Which there are is generated, and so is which have no front.

# library_front(FAMILY,MAJOR,CUDA,SONAME): the sources of shim/libraries/FAMILY, compiled for MAJOR,
# are a part of libvcuda-CUDA.so under that name; LIBRARY_MORE.FAMILY are further sources.
define library_front
$$(OBJ)/$(1)$(2)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DVCUDA_ABI=$(2) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
FRONT$(3)_OBJS += $$(patsubst %.c,$$(OBJ)/$(1)$(2)/%.o, \
	$$(wildcard shim/libraries/$(1)/*.c) $$(LIBRARY_MORE.$(1)) \
	shim/generated/$(1)_stubs.c $$(wildcard shim/generated/$(1)_forms.c))
FRONT$(3)_NAMES += $(4)
endef

# library_part(FAMILY,CUDA,SONAME): a part of the library that programs open by its own name, whose
# names the front has.
define library_part
MAP.$(3) := shim/libraries/$(1)/$$(patsubst lib$(1)_%,%,$$(firstword $$(subst .so., ,$(3)))).map
FRONT$(2)_NAMES += $(3)
endef

# What has no front yet: names out of the .api files, each a few bytes of assembly.
$(NAMES_DIR)/%.o: $(NAMES_DIR)/%.s
	$(call say,AS,$@)
	$(Q)$(CC) -c $< -o $@

$(NAMES_DIR)/unserved.o: shim/libraries/unserved/unserved.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -MMD -MP -c $< -o $@

FRONT12_OBJS += $(NAMES_DIR)/unserved.o
FRONT13_OBJS += $(NAMES_DIR)/unserved.o

# unserved_front(CUDA,SONAME): its names are a part of libvcuda-CUDA.so.
define unserved_front
FRONT$(1)_OBJS += $(NAMES_DIR)/$(2).o
FRONT$(1)_NAMES += $(2)
MAP.$(2) := $(NAMES_DIR)/$(2).map
endef

LIBRARY_MORE.cudnn := shim/engine/sha256.c
include shim/generated/libraries.mk
