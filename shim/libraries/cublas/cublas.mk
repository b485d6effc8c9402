# The cuBLAS front, once for each ABI, a part of libvcuda-{12,13}.so. It needs no header of cuBLAS.

CUBLAS_SRCS := $(wildcard shim/libraries/cublas/*.c)

define cublas_objects
$$(OBJ)/cublas$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DVCUDA_ABI=$(1) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
FRONT$(1)_OBJS += $$(patsubst %.c,$$(OBJ)/cublas$(1)/%.o, \
	$$(CUBLAS_SRCS) shim/generated/cublas_stubs.c)
FRONT$(1)_NAMES += libcublas.so.$(1)
endef
$(foreach major,12 13,$(eval $(call cublas_objects,$(major))))
