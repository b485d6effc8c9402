# What programs that use tensors with names are linked with (include/vcuda/tensor.h).
TENSOR_LIB := $(LIB)/libvcuda-tensor.so
TENSOR_LIB_OBJS := $(patsubst %.c,$(OBJ)/shim/%.o,$(wildcard shim/tensor/*.c))

$(TENSOR_LIB): $(TENSOR_LIB_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,defs -Wl,-soname,$(@F) -o $@ $^ -lpthread -ldl
all: $(TENSOR_LIB)

# The module over it, where the commands look for what belongs to them.
PYTHON_MODULE := $(patsubst python/%,$(LIB)/python/%,$(wildcard python/vcuda/*.py))

$(LIB)/python/%.py: python/%.py
	$(call say,COPY,$@)
	$(Q)mkdir -p $(@D)
	$(Q)cp $< $@
all: $(PYTHON_MODULE)
