# tests/nccl: programs with NCCL and the driver API.  build/nccl/13/NAME needs libcuda.so.1 and libnccl.so.2, natively
# NVIDIA's, and two devices.

.PHONY: test-nccl nccl-programs

NCCL_TEST_NAMES := $(patsubst tests/nccl/%.c,%,$(wildcard tests/nccl/*.c))
NCCL_TESTS := $(addprefix $(BUILD)/nccl/13/,$(NCCL_TEST_NAMES))

$(NCCL_TESTS): $(BUILD)/nccl/13/%: tests/nccl/%.c tests/nccl/check.h tests/check.h tests/die.h \
		$(OBJ)/link/libnccl.so.2 $(OBJ)/link/libcuda.so.1
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 -g $(WARNINGS) -Wno-conversion -Wno-pedantic -D_GNU_SOURCE -I. \
		-isystem $(CACHE)/nccl-cu13 -isystem $(CUDA13)/include -o $@ $< \
		$(OBJ)/link/libnccl.so.2 $(OBJ)/link/libcuda.so.1 -Wl,--allow-shlib-undefined -lm

nccl-programs: $(NCCL_TESTS)
all-tests: test-nccl
test-nccl: all $(NCCL_TESTS) ## NCCL between two software GPUs, through the whole stack
	$(Q)timeout 600 tests/cublas/run.py --build $(BUILD) --family nccl
$(call library_tests,nccl)
