# The PTX interpreter: PTX_OBJS for whoever links it, its tests and its benchmark.
#
# The files of handlers are compiled twice, for any x86-64 and for x86-64-v3 (AVX2, FMA); which
# one runs is decided at start (op.c). With a sanitizer once: they take the compiler longest, and what it
# looks at is the same.

PTX_TWICE := $(addprefix softgpu/ptx/ops/,ops_int.c ops_bits.c ops_float.c ops_half.c ops_cvt.c \
	ops_memory.c ops_warp.c)
PTX_PLAIN := $(filter-out $(PTX_TWICE),$(wildcard \
	$(addprefix softgpu/ptx/,parse/*.c decode/*.c ops/*.c run/*.c)))

PTX_OBJS := $(call objects,$(PTX_PLAIN)) \
	$(patsubst %.c,$(OBJ)/%.base.o,$(PTX_TWICE)) $(if $(SAN),,$(patsubst %.c,$(OBJ)/%.v3.o,$(PTX_TWICE)))

# No contraction (PTX says where fma is), no errno; lanes are read as several types.
PTX_CFLAGS := $(if $(SAN),-O1,-O3) -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -fwrapv
# clang says so where a loop that may be vectorised is not.
$(PTX_OBJS): WARNINGS += -Wno-pass-failed
$(PTX_OBJS): CFLAGS := $(CFLAGS) -fPIC $(PTX_CFLAGS)
# zig cc spells it with underscores.
PTX_V3 ?= -march=x86-64-v3
# Handlers that check themselves are slow to compile: less of each, and its body once.
PTX_CHECKED := -DINLINE='static inline' -DPTX_BASE_ALONE
$(PTX_OBJS): CPPFLAGS += $(if $(SAN),$(PTX_CHECKED))

$(OBJ)/softgpu/%.base.o: softgpu/%.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -DPTX_ISA=base $(ALL_CFLAGS) $(if $(SAN),-O1,-O2) -MMD -MP -c $< -o $@

$(OBJ)/softgpu/%.v3.o: softgpu/%.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -DPTX_ISA=v3 $(ALL_CFLAGS) $(PTX_V3) -MMD -MP -c $< -o $@

##### Tests and benchmark #####

PTX_TESTS := $(addprefix $(BUILD)/tests/ptx_,instructions execution expressions faults matrix wmma shared sparse runtime bulk texture)

$(BUILD)/tests/ptx_%: $(OBJ)/softgpu/ptx/tests/%.o $(OBJ)/softgpu/ptx/tests/run_text.o $(PTX_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $^ $(ALL_LDFLAGS) -lcmocka -lm -o $@

# Which instructions of a PTX file are not served: build/tests/ptx_load FILE ...
$(BUILD)/tests/ptx_load: $(OBJ)/softgpu/ptx/tests/load.o $(PTX_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $^ $(ALL_LDFLAGS) -lm -o $@

# Both forms of the handlers are tested where the processor has AVX2.
.PHONY: test-ptx
all-tests: test-ptx
test-ptx: $(PTX_TESTS:$(BUILD)/tests/%=run-%) ## the PTX interpreter
$(foreach test,$(notdir $(PTX_TESTS)),$(call add_test,$(test),softgpu/ptx/tests/$(test:ptx_%=%).c, \
	$(BUILD)/tests/$(test),timeout 300 $$< $(if $(SAN),,&& VCUDA_PTX_ISA=base timeout 300 $$<)))

# What PTX is, NVIDIA's assembler says.
test-ptx: run-ptx_forms
$(call add_test,ptx_forms,softgpu/ptx/tests/forms.py,$(BUILD)/tests/ptx_load, \
	timeout 900 softgpu/ptx/tests/forms.py $(CUDA13)/bin/ptxas $$<)

# The benchmark, with a product of a moment, which it checks.
test-ptx: run-ptx_matmul
$(call add_test,ptx_matmul,bench/ptx_matmul.c,$(BUILD)/bench/ptx_matmul,timeout 120 $$< 64 2)

$(BUILD)/bench/ptx_matmul: $(OBJ)/bench/ptx_matmul.o $(PTX_OBJS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $^ $(ALL_LDFLAGS) -lm -o $@
