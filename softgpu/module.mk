# The software GPU: our own libcuda, whose device is the CPU.

# PTX_OBJS, the interpreter's objects.
-include softgpu/ptx.mk

SOFTGPU_SRCS := $(filter-out softgpu/ptx%.c $(if $(PTX_OBJS),softgpu/no_ptx.c),\
	$(wildcard softgpu/*.c))

SOFTGPU_LIB := $(LIB)/libvcuda-softgpu.so

all: $(SOFTGPU_LIB)

# nodelete: executor threads may outlive the last dlclose.
$(SOFTGPU_LIB): $(call objects,$(SOFTGPU_SRCS)) $(PTX_OBJS) softgpu/softgpu.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=softgpu/softgpu.map -o $@ \
		$(filter %.o,$^) -lzstd -llz4 -lm

$(call objects,$(SOFTGPU_SRCS)): ALL_CFLAGS += -fPIC

##### Tests #####

SOFTGPU_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/softgpu_*.c))

$(BUILD)/tests/softgpu_%: $(OBJ)/tests/unit/softgpu_%.o $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< $(SOFTGPU_LIB) -Wl,-rpath,$(abspath $(LIB)) -lcmocka \
		$(SOFTGPU_TEST_LIBS)

.PHONY: test-softgpu
test: test-softgpu
test-softgpu: $(SOFTGPU_TESTS) ## the software GPU's driver
	$(Q)for test in $(SOFTGPU_TESTS); do timeout 120 $$test || exit 1; done
