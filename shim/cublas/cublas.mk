# The cuBLAS front, once for each ABI: build/lib/libvcuda-cublas{12,13}.so, with the SONAME and the
# symbol versions of NVIDIA's libcublas.so.{12,13}.  It needs no header of cuBLAS.

CUBLAS_SRCS := $(wildcard shim/cublas/*.c)
CUBLAS_LIBS := $(LIB)/libvcuda-cublas12.so $(LIB)/libvcuda-cublas13.so

all: $(CUBLAS_LIBS) $(LIB)/libcublas.so.12 $(LIB)/libcublas.so.13

define cublas_objects
$$(OBJ)/cublas$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DCUBLAS_MAJOR=$(1) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
$$(LIB)/libvcuda-cublas$(1).so: $$(patsubst %.c,$$(OBJ)/cublas$(1)/%.o, \
	$$(CUBLAS_SRCS) protocol/generated/cublas_stubs$(1).c)
endef
$(foreach major,12 13,$(eval $(call cublas_objects,$(major))))

# Bound lazily: most processes that preload it never make a call.
$(LIB)/libvcuda-cublas%.so: protocol/generated/libcublas%.map $(RUNTIME_STUB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,libcublas.so.$* \
		-Wl,--version-script=$< -o $@ $(filter %.o,$^) \
		-Wl,--no-as-needed $(RUNTIME_STUB) -Wl,--as-needed

$(LIB)/libcublas.so.%: $(LIB)/libvcuda-cublas%.so
	$(Q)ln -sf $(<F) $@
