# The runtime front, once for each ABI, a part of libvcuda-{12,13}.so.

RUNTIME_SRCS := $(wildcard shim/runtime/*.c)

define runtime_objects
RUNTIME$(1)_OBJS := $$(patsubst %.c,$$(OBJ)/cudart$(1)/%.o, \
	$$(RUNTIME_SRCS) $$(addprefix shim/generated/,cudart_stubs.c cudart_forms.c))
$$(OBJ)/cudart$(1)/%.o: %.c | $$(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_CFLAGS) -D_GNU_SOURCE -DVCUDA_ABI=$(1) -I. \
		-isystem $$(CUDA$(1))/include -MMD -MP -c $$< -o $$@
FRONT$(1)_OBJS += $$(RUNTIME$(1)_OBJS)
FRONT$(1)_NAMES += libcudart.so.$(1)
endef
$(foreach major,12 13,$(eval $(call runtime_objects,$(major))))

##### Tests: the front on the software GPU, with nothing between #####

RUNTIME_TESTS := $(BUILD)/tests/runtime
RUNTIME_TEST_LIBS := $(RUNTIME_TESTS)/lib/.complete

# The runtime front alone: the others want more of the driver front than NVIDIA's functions.
define runtime_alone
$$(RUNTIME_TESTS)/lib/libvcuda-$(1).so: $$(RUNTIME$(1)_OBJS) $$(CUDA_STUB) \
		$(NAMES_DIR)/libcudart$(1).map
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,$$(@F) \
		-Wl,--version-script=$(NAMES_DIR)/libcudart$(1).map -o $$@ \
		$$(filter %.o,$$^) -Wl,--no-as-needed $$(CUDA_STUB) -Wl,--as-needed -lpthread
endef
$(foreach major,12 13,$(eval $(call runtime_alone,$(major))))

# The software GPU under the driver front's name, ours under NVIDIA's, and what may be preloaded.
$(RUNTIME_TEST_LIBS): $(foreach abi,12 13,$(RUNTIME_TESTS)/lib/libvcuda-$(abi).so) \
		$(LIB)/libvcuda-softgpu.so
	$(Q)ln -sf $(abspath $(LIB))/libvcuda-softgpu.so $(@D)/libvcuda-cuda.so
	$(Q)ln -sf $(abspath $(LIB))/libvcuda-softgpu.so $(@D)/libcuda.so.1
	$(Q)ln -sf $(abspath $(LIB))/libutilities.so $(abspath $(LIB))/libvcuda.so $(@D)/
	$(Q)ln -sf $(abspath $(FRONT_HOLDERS) $(NVML_LIB)) $(@D)/
	$(Q)ln -sf libvcuda-12.so $(@D)/libcudart.so.12
	$(Q)ln -sf libvcuda-13.so $(@D)/libcudart.so.13
	$(Q)touch $@

# As many error codes as the header has (names that stand for the same number once).
runtime_errors = $(shell sed -n '/enum.*cudaError$$/,/^}/s/^[ ,]*cuda[a-zA-Z0-9]* *= *\([0-9]*\).*/\1/p' \
	$(1)/include/driver_types.h | sort -u | wc -l)

$(RUNTIME_TESTS)/api%: tests/unit/runtime/runtime_api.c $(RUNTIME_TEST_LIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-deprecated-declarations -D_GNU_SOURCE -I. \
		-DRUNTIME_ERRORS=$(call runtime_errors,$(CUDA$*)) -isystem $(CUDA$*)/include \
		-o $@ $< -L$(CUDA$*)/lib -l:libcudart.so.$* -lcmocka

$(RUNTIME_TESTS)/table: tests/unit/runtime/runtime_table.c shim/runtime/table.c shim/runtime/table.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -fsanitize=thread -D_GNU_SOURCE -I. \
		-o $@ $(filter %.c,$^) -lcmocka

# A driver that only counts, under the driver front's name.
$(RUNTIME_TESTS)/counting/libvcuda-cuda.so: tests/unit/runtime/runtime_driver.c tests/unit/runtime/runtime_driver.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out $(SANFLAGS) -Wmissing-prototypes,$(ALL_CFLAGS)) -fvisibility=default \
		-D_GNU_SOURCE -D__CUDA_API_VERSION_INTERNAL -I. -isystem $(CUDA13)/include \
		-shared -fPIC -Wl,-soname,$(@F) -o $@ $<

$(RUNTIME_TESTS)/register%: tests/unit/runtime/runtime_register.c $(RUNTIME_TEST_LIBS) \
		$(RUNTIME_TESTS)/counting/libvcuda-cuda.so
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA$*)/include -o $@ $< \
		-L$(CUDA$*)/lib -l:libcudart.so.$* $(RUNTIME_TESTS)/counting/libvcuda-cuda.so \
		-lcmocka

.PHONY: test-runtime
all-tests: test-runtime
test-runtime: ## the runtime front
test-runtime: run-runtime_table $(foreach abi,12 13,run-runtime_api$(abi) run-runtime_register$(abi))
$(call add_test,runtime_table,tests/unit/runtime/runtime_table.c,$(RUNTIME_TESTS)/table,timeout 180 $$<)
$(foreach abi,12 13, \
	$(call add_test,runtime_api$(abi),tests/unit/runtime/runtime_api.c,$(RUNTIME_TESTS)/api$(abi), \
		LD_LIBRARY_PATH=$(RUNTIME_TESTS)/lib timeout 180 $$<) \
	$(call add_test,runtime_register$(abi),tests/unit/runtime/runtime_register.c, \
		$(RUNTIME_TESTS)/register$(abi), \
		LD_LIBRARY_PATH=$(RUNTIME_TESTS)/counting:$(RUNTIME_TESTS)/lib timeout 180 $$<))
