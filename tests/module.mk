# Every kind of test brings its own rules: tests/KIND/KIND.mk.
# Objects for libFuzzer (tests/fuzz) have a folder of their own.
FUZZ_OBJ := $(BUILD)/fuzz/obj
fuzz_objects = $(patsubst %.c,$(FUZZ_OBJ)/%.o,$(1))
FUZZ_CFLAGS := -std=gnu17 -O1 -g -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize=function,vptr -fno-sanitize-recover=undefined -DFUZZ_COVERAGE -pthread

$(FUZZ_OBJ)/%.o: %.c | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@
# A fuzz target: $(call add_fuzz,NAME,BINARY NEEDS,CORPORA,OPTIONS,ENVIRONMENT).  `make fuzz-NAME` looks for
# FUZZ_SECONDS (0: for ever), at FUZZ_RUNS inputs at most; `make fuzz-NAME-built` makes what that runs.  No
# argument has a comma in it.
FUZZ_SECONDS ?= 30
FUZZ_RUNS ?= -1
define fuzz_rule
.PHONY: fuzz-$(1) fuzz-$(1)-built
fuzz: fuzz-$(1)
fuzz-$(1)-built: $(2)
fuzz-$(1): fuzz-$(1)-built
	$$(Q)mkdir -p $$(BUILD)/tests/fuzz/found-$(1)
	$$(Q)$(5) $(firstword $(2)) -max_total_time=$$(FUZZ_SECONDS) -runs=$$(FUZZ_RUNS) $(4) -verbosity=0 \
		-print_final_stats=1 -artifact_prefix=$$(BUILD)/tests/fuzz/$(1)- \
		$$(BUILD)/tests/fuzz/found-$(1) $(3)
# What its corpora, and what was found beside them, reach.
fuzz-coverage: $$(BUILD)/tests/fuzz/coverage/$(1).txt
$$(BUILD)/tests/fuzz/coverage/$(1).txt: FORCE | fuzz-$(1)-built
	$$(call say,COVER,$(1))
	$$(Q)mkdir -p $$(@D) $$(BUILD)/tests/fuzz/found-$(1)
	$$(Q)$(5) ASAN_SYMBOLIZER_PATH=$$$$(command -v addr2line) $(firstword $(2)) -runs=0 $(4) -print_coverage=1 \
		$(3) $$(wildcard $$(BUILD)/tests/fuzz/found-$(1)) >$$@ 2>&1 || { tail -n 20 $$@; exit 1; }
endef
add_fuzz = $(eval $(call fuzz_rule,$(strip $(1)),$(strip $(2)),$(strip $(3)),$(strip $(4)),$(strip $(5))))

.PHONY: fuzz-coverage FORCE
fuzz-coverage: ## how much of what reads foreign bytes the fuzzers' inputs reach
	$(Q)$(PYTHON) tests/fuzz/coverage.py $(BUILD)/tests/fuzz/coverage

# They are kept: targets share them.
.PRECIOUS: $(FUZZ_OBJ)/%.o
$(addprefix $(FUZZ_OBJ)/gpu-agent/worker/driver/nvml/,nvml.o nvml_pair.o): CPPFLAGS += -isystem $(NVML)/include
-include $(shell find $(FUZZ_OBJ) -name '*.d' 2>/dev/null)

# The shim as tests link it: with the check of the order of its locks (shim/engine/lock.h).  What is
# preloaded is compiled apart, without.
SHIM_TEST_SRCS := $(SHIM_SRCS) $(addprefix shim/generated/,cuda_stubs.c cuda_forms.c cuda_calls.c)
SHIM_TEST_RUNTIME_SRCS := $(RUNTIME_SRCS) $(addprefix shim/generated/,cudart_stubs.c cudart_forms.c)
LOCK_ORDER_OBJ := $(OBJ)/tests/shim/locks/lock_order.o
LOCK_ORDER_LD := -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_mutex_trylock \
	-Wl,--wrap=pthread_mutex_unlock
$(call objects,$(SHIM_TEST_SRCS) $(SHIM_TEST_RUNTIME_SRCS) tests/shim/locks/wrong.c) \
	$(LOCK_ORDER_OBJ): CPPFLAGS += -DVCUDA_LOCK_ORDER
$(call objects,$(SHIM_TEST_RUNTIME_SRCS)): CPPFLAGS += -DVCUDA_ABI=13

include $(wildcard tests/*/*.mk)
# Names what those define.
include tests/sanitize.mk
