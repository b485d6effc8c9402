# The cuDNN front, once for each major: build/lib/libvcuda-cudnn{8,9}.so, with the SONAME and the
# symbol versions of NVIDIA's libcudnn.so.{8,9}.  It needs no header of cuDNN.

CUDNN_SRCS := $(wildcard shim/cudnn/*.c) shim/sha256.c
CUDNN_LIBS := $(LIB)/libvcuda-cudnn8.so $(LIB)/libvcuda-cudnn9.so

all: $(CUDNN_LIBS) $(LIB)/libcudnn.so.8 $(LIB)/libcudnn.so.9

define cudnn_objects
$$(OBJ)/cudnn$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DCUDNN_MAJOR=$(1) -I. \
		-isystem $$(CUDA13)/include -MMD -MP -c $$< -o $$@
$$(LIB)/libvcuda-cudnn$(1).so: $$(patsubst %.c,$$(OBJ)/cudnn$(1)/%.o, \
	$$(CUDNN_SRCS) protocol/generated/cudnn_stubs$(1).c)
endef
$(foreach major,8 9,$(eval $(call cudnn_objects,$(major))))

# Bound lazily: most processes that preload it never make a call.
$(LIB)/libvcuda-cudnn%.so: protocol/generated/libcudnn%.map $(RUNTIME_STUB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,libcudnn.so.$* \
		-Wl,--version-script=$< -o $@ $(filter %.o,$^) \
		-Wl,--no-as-needed $(RUNTIME_STUB) -Wl,--as-needed -lpthread

$(LIB)/libcudnn.so.%: $(LIB)/libvcuda-cudnn%.so
	$(Q)ln -sf $(<F) $@
