# What programs that use tensors with names are linked with (include/vcuda/tensor.h).
TENSOR_LIB := $(LIB)/libvcuda-tensor.so

$(TENSOR_LIB): $(OBJ)/shim/shim/tensor/absent.o
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-soname,$(@F) -o $@ $<
all: $(TENSOR_LIB)
