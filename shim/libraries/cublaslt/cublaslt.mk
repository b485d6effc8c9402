# The cuBLASLt front, once for each ABI, a part of libvcuda-{12,13}.so. It needs no header of cuBLAS;
# statuses are cuBLAS's (shim/libraries/cublas/status.c).

CUBLASLT_SRCS := $(wildcard shim/libraries/cublaslt/*.c)

define cublaslt_objects
$$(OBJ)/cublaslt$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DVCUDA_ABI=$(1) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
FRONT$(1)_OBJS += $$(patsubst %.c,$$(OBJ)/cublaslt$(1)/%.o, \
	$$(CUBLASLT_SRCS) shim/generated/cublaslt_stubs.c)
FRONT$(1)_NAMES += libcublasLt.so.$(1)
endef
$(foreach major,12 13,$(eval $(call cublaslt_objects,$(major))))
