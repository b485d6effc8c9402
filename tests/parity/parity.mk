# Are the descriptions what NVIDIA's headers and libraries say?  Does the generator refuse what is
# no description?  Do the generated halves understand each other?
.PHONY: test-parity
all-tests: test-parity
test-parity: ## the descriptions against NVIDIA's headers and libraries

PARITY := $(BUILD)/tests/parity
PARITY_OBJS := $(call objects,tests/parity/generated.c common/error.c \
	$(patsubst %,shim/generated/%.c,cuda_calls cuda_stubs) shim/driver/procs.c \
	$(wildcard gpu-agent/generated/*.c))

PARITY_LIBS := $(CUDA_LIB) $(FRONT12_LIB) $(FRONT13_LIB)

test-parity: run-parity_headers run-parity_language run-parity_refused run-parity_generated
$(call add_test,parity_headers,tests/parity/parity.py,$(PARITY_LIBS) | $(CACHE)/.complete, \
	timeout 300 $(PYTHON) tests/parity/parity.py $(CACHE) $(PARITY_LIBS))
$(call add_test,parity_language,tests/parity/language.py,, \
	timeout 300 $(PYTHON) tests/parity/language.py)
$(call add_test,parity_refused,tests/parity/refused.py,, \
	timeout 60 $(PYTHON) tests/parity/refused.py)
$(call add_test,parity_generated,tests/parity/generated.c,$(PARITY)/generated,timeout 180 $$<)

# What the test does not bring, the hand-written halves, aborts if it is called.
$(PARITY)/hand.c: $(PARITY_OBJS) tests/parity/parity.mk
	$(Q)mkdir -p $(@D)
	$(Q)nm $(PARITY_OBJS) | awk '$$2 ~ /[TDRB]/ {has[$$3]} $$1 == "U" {wants[$$2]} \
		END {for (name in wants) if (!(name in has)) print name}' | sort | \
		grep -E '^(hand|serve|run|array|capture|context|copy|coredump|event|fill|function|graph|memory|module|pool|primary|proc|stream|trace|vcuda_trace|cublas|cublaslt|cudnn|cusolver|cusparse|cusparselt|library|plain)_' | \
		sed 's/.*/void &(void);\nvoid &(void)\n{\n\t__builtin_trap();\n}/' > $@

$(PARITY)/generated: $(PARITY_OBJS) $(PARITY)/hand.c
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ -lcmocka -ldl
