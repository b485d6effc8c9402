# The runtime front, once for each ABI: build/lib/libvcuda-cudart{12,13}.so, with the SONAME and
# the symbol versions of NVIDIA's libcudart.so.{12,13}.

RUNTIME_SRCS := $(wildcard shim/runtime/*.c)
RUNTIME_LIBS := $(LIB)/libvcuda-cudart12.so $(LIB)/libvcuda-cudart13.so

# What the front needs of the driver front, as an empty library of its file name (shim/module.mk):
# a build of one does not wait for the other.
RUNTIME_STUB := $(OBJ)/preload-stub/libvcuda-cuda.so

all: $(RUNTIME_LIBS) $(LIB)/libcudart.so.12 $(LIB)/libcudart.so.13

$(OBJ)/cudart12/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA12)/include \
		-MMD -MP -c $< -o $@

$(OBJ)/cudart13/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA13)/include \
		-MMD -MP -c $< -o $@

# Bound lazily: most processes that preload it never make a CUDA call.
$(LIB)/libvcuda-cudart%.so: protocol/generated/libcudart%.map $(RUNTIME_STUB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,libcudart.so.$* \
		-Wl,--version-script=$< -o $@ $(filter %.o,$^) \
		-Wl,--no-as-needed $(RUNTIME_STUB) -Wl,--as-needed

$(LIB)/libvcuda-cudart12.so: $(patsubst %.c,$(OBJ)/cudart12/%.o, \
	$(RUNTIME_SRCS) protocol/generated/cudart_stubs12.c)
$(LIB)/libvcuda-cudart13.so: $(patsubst %.c,$(OBJ)/cudart13/%.o, \
	$(RUNTIME_SRCS) protocol/generated/cudart_stubs13.c)

$(LIB)/libcudart.so.%: $(LIB)/libvcuda-cudart%.so
	$(Q)ln -sf $(<F) $@

##### Tests: the front on the software GPU, with nothing between #####

RUNTIME_TESTS := $(BUILD)/tests/runtime
RUNTIME_TEST_LIBS := $(RUNTIME_TESTS)/lib/.complete

# The software GPU under the driver front's name, and ours under NVIDIA's.
$(RUNTIME_TEST_LIBS): $(RUNTIME_LIBS) $(LIB)/libvcuda-softgpu.so
	$(Q)mkdir -p $(@D)
	$(Q)ln -sf $(abspath $(LIB))/libvcuda-softgpu.so $(@D)/libvcuda-cuda.so
	$(Q)ln -sf $(abspath $(LIB))/libvcuda-softgpu.so $(@D)/libcuda.so.1
	$(Q)ln -sf $(abspath $(LIB))/libvcuda-cudart12.so $(@D)/libcudart.so.12
	$(Q)ln -sf $(abspath $(LIB))/libvcuda-cudart13.so $(@D)/libcudart.so.13
	$(Q)touch $@

# As many error codes as the header has (names that stand for the same number once).
runtime_errors = $(shell sed -n '/enum.*cudaError$$/,/^}/s/^[ ,]*cuda[a-zA-Z0-9]* *= *\([0-9]*\).*/\1/p' \
	$(1)/include/driver_types.h | sort -u | wc -l)

$(RUNTIME_TESTS)/api%: tests/unit/runtime_api.c $(RUNTIME_TEST_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-deprecated-declarations -D_GNU_SOURCE -I. \
		-DRUNTIME_ERRORS=$(call runtime_errors,$(CUDA$*)) -isystem $(CUDA$*)/include \
		-o $@ $< -L$(CUDA$*)/lib -l:libcudart.so.$* -lcmocka

$(RUNTIME_TESTS)/table: tests/unit/runtime_table.c shim/runtime/table.c shim/runtime/table.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -fsanitize=thread -D_GNU_SOURCE -I. \
		-o $@ $(filter %.c,$^) -lcmocka

# A driver that only counts, under the driver front's name.
$(RUNTIME_TESTS)/counting/libvcuda-cuda.so: tests/unit/runtime_driver.c tests/unit/runtime_driver.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SANFLAGS) -Wmissing-prototypes,$(ALL_CFLAGS)) -fvisibility=default \
		-D_GNU_SOURCE -D__CUDA_API_VERSION_INTERNAL -I. -isystem $(CUDA13)/include \
		-shared -fPIC -Wl,-soname,$(@F) -o $@ $<

$(RUNTIME_TESTS)/register%: tests/unit/runtime_register.c $(RUNTIME_TEST_LIBS) \
		$(RUNTIME_TESTS)/counting/libvcuda-cuda.so
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA$*)/include -o $@ $< \
		-L$(CUDA$*)/lib -l:libcudart.so.$* $(RUNTIME_TESTS)/counting/libvcuda-cuda.so \
		-lcmocka

.PHONY: test-runtime
test: test-runtime
test-runtime: ## the runtime front
test-runtime: $(RUNTIME_TESTS)/table $(foreach abi,12 13,$(RUNTIME_TESTS)/api$(abi) \
		$(RUNTIME_TESTS)/register$(abi))
	$(Q)timeout 60 $(RUNTIME_TESTS)/table
	$(Q)for abi in 12 13; do \
		LD_LIBRARY_PATH=$(RUNTIME_TESTS)/lib timeout 60 $(RUNTIME_TESTS)/api$$abi && \
		LD_LIBRARY_PATH=$(RUNTIME_TESTS)/counting:$(RUNTIME_TESTS)/lib \
			timeout 60 $(RUNTIME_TESTS)/register$$abi || exit 1; done
