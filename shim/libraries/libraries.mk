# The fronts of libraries that are served, once for each major, parts of libvcuda-12.so and
# libvcuda-13.so. They need no header of the library. Which there are is generated.

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

LIBRARY_MORE.cudnn := shim/engine/sha256.c
include shim/generated/libraries.mk

# PyTorch before 2.4 opens this part of cuDNN 8 by name, and warns where it is missing.
MAP.libcudnn_cnn_infer.so.8 := shim/libraries/cudnn/cnn_infer.map
FRONT12_NAMES += libcudnn_cnn_infer.so.8
