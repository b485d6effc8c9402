# The cuDNN front, once for each major: 8 is a part of libvcuda-12.so, 9 of libvcuda-13.so (their names
# are the same, and no library can have both). It needs no header of cuDNN, nor the runtime.

CUDNN_SRCS := $(wildcard shim/libraries/cudnn/*.c) shim/engine/sha256.c

# Of cuDNN's major and the front library that it is a part of.
define cudnn_objects
$$(OBJ)/cudnn$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DVCUDA_ABI=$(1) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
FRONT$(2)_OBJS += $$(patsubst %.c,$$(OBJ)/cudnn$(1)/%.o, \
	$$(CUDNN_SRCS) shim/generated/cudnn_stubs.c)
FRONT$(2)_NAMES += libcudnn.so.$(1)
endef
$(eval $(call cudnn_objects,8,12))
$(eval $(call cudnn_objects,9,13))

# PyTorch before 2.4 opens this part of cuDNN 8 by name, and warns where it is missing.
MAP.libcudnn_cnn_infer.so.8 := shim/libraries/cudnn/cnn_infer.map
FRONT12_NAMES += libcudnn_cnn_infer.so.8
