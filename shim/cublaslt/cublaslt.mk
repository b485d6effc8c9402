# The cuBLASLt front, once for each ABI: build/lib/libvcuda-cublaslt{12,13}.so, with the SONAME and
# the symbol versions of NVIDIA's libcublasLt.so.{12,13}.  It needs no header of cuBLAS.

CUBLASLT_SRCS := $(wildcard shim/cublaslt/*.c) shim/cublas/status.c
CUBLASLT_LIBS := $(LIB)/libvcuda-cublaslt12.so $(LIB)/libvcuda-cublaslt13.so

all: $(CUBLASLT_LIBS) $(LIB)/libcublasLt.so.12 $(LIB)/libcublasLt.so.13

define cublaslt_objects
$$(OBJ)/cublaslt$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DCUBLASLT_MAJOR=$(1) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
$$(LIB)/libvcuda-cublaslt$(1).so: $$(patsubst %.c,$$(OBJ)/cublaslt$(1)/%.o, \
	$$(CUBLASLT_SRCS) protocol/generated/cublaslt_stubs$(1).c)
endef
$(foreach major,12 13,$(eval $(call cublaslt_objects,$(major))))

# Bound lazily: most processes that preload it never make a call.
$(LIB)/libvcuda-cublaslt%.so: protocol/generated/libcublaslt%.map $(RUNTIME_STUB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,libcublasLt.so.$* \
		-Wl,--version-script=$< -o $@ $(filter %.o,$^) \
		-Wl,--no-as-needed $(RUNTIME_STUB) -Wl,--as-needed

$(LIB)/libcublasLt.so.%: $(LIB)/libvcuda-cublaslt%.so
	$(Q)ln -sf $(<F) $@
