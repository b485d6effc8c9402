# tests/cudnn: programs with cuDNN and the driver API.  build/cudnn/9/NAME needs libcuda.so.1 and
# libcudnn.so.9, natively NVIDIA's; build/tests/dnn/NAME is the same on the software libraries.

.PHONY: test-cudnn test-softdnn cudnn-programs

CUDNN_TEST_NAMES := $(patsubst tests/cudnn/%.c,%,$(wildcard tests/cudnn/*.c))
# NAME-8, NAME-9: of what only that one has.
CUDNN_TESTS := $(addprefix $(BUILD)/cudnn/8/,$(filter-out %-9,$(CUDNN_TEST_NAMES))) \
	$(addprefix $(BUILD)/cudnn/9/,$(filter-out %-8,$(CUDNN_TEST_NAMES)))
CUDNN_TEST_HEADERS := $(wildcard tests/cudnn/*.h) tests/die.h $(wildcard protocol/libraries/cudnn*.h) \
	protocol/generated/cudnn_api.h
CUDNN_TEST_CC = $(CC) -std=gnu17 -O2 -g $(WARNINGS) -Wno-conversion -D_GNU_SOURCE -I. \
	-isystem $(CUDA13)/include
MAP.libcuda.so.1 := $(NAMES_DIR)/libcuda.map

define cudnn_test
$$(BUILD)/cudnn/$(1)/%: tests/cudnn/%.c $$(CUDNN_TEST_HEADERS) $$(OBJ)/link/libcudnn.so.$(1) \
		$$(OBJ)/link/libcuda.so.1
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CUDNN_TEST_CC) -DCUDNN_ABI=$(1) -o $$@ $$< $$(OBJ)/link/libcudnn.so.$(1) \
		$$(OBJ)/link/libcuda.so.1 -Wl,--allow-shlib-undefined -lm
endef
$(foreach abi,8 9,$(eval $(call cudnn_test,$(abi))))

cudnn-programs: $(CUDNN_TESTS)
all-tests: test-cudnn
test-cudnn: all $(CUDNN_TESTS) ## cuDNN through the whole stack, on the software GPU
	$(Q)timeout 600 tests/cublas/run.py --build $(BUILD) --family cudnn
$(call library_tests,cudnn)

# Without the stack: the software library alone.
DNN_TESTS := $(addprefix $(BUILD)/tests/dnn/,$(filter-out steady %-8,$(CUDNN_TEST_NAMES)))
$(DNN_TESTS): $(BUILD)/tests/dnn/%: tests/cudnn/%.c $(CUDNN_TEST_HEADERS) $(DNN_LIB) $(SOFTGPU_LIB)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDNN_TEST_CC) $(SANFLAGS) -o $@ $< $(DNN_LIB) $(SOFTGPU_LIB) \
		-Wl,-rpath,$(abspath $(LIB)) -lm

all-tests: test-softdnn
test-softdnn: $(DNN_TESTS:$(BUILD)/tests/dnn/%=run-softdnn_%) ## the software cuDNN alone
$(foreach test,$(DNN_TESTS),$(call add_test,softdnn_$(notdir $(test)), \
	tests/cudnn/$(notdir $(test)).c,$(test),timeout 300 $(test)))
