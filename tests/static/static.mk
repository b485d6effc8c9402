# tests/static: a program with the CUDA runtime linked into it, which no library can replace by
# name: with its symbols (nvcc's default build), and stripped of them.

STATIC_DIR := $(BUILD)/static
STATIC_SOURCE.symbols := tests/programs/vector-add.cu
STATIC_SOURCE.graph := tests/programs/graph-copies.cu
STATIC_PROGRAMS := $(foreach abi,12 13,$(STATIC_DIR)/$(abi)/symbols $(STATIC_DIR)/$(abi)/stripped \
	$(STATIC_DIR)/$(abi)/graph)

define static_programs
$(STATIC_DIR)/13/$(1): $(STATIC_SOURCE.$(1)) $(PROGRAM_HEADERS) | $$(CACHE)/.complete
	$$(call say,NVCC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart static -Itests/programs $$< -o $$@ -L$$(CUDA13)/lib

$(STATIC_DIR)/12/$(1): $(STATIC_SOURCE.$(1)) $(PROGRAM_HEADERS) | $$(CACHE)/.complete
	$$(call say,CLANG,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CLANG) -x cuda --cuda-path=$$(CUDA12) --cuda-gpu-arch=sm_80 --cuda-include-ptx=all \
		-Wno-unknown-cuda-version -std=c++17 -O2 -Itests/programs $$< -o $$@ \
		-Xlinker $$(CUDA12)/lib/libcudart_static.a -Xlinker $$(CUDA12)/lib/libculibos.a \
		-lstdc++ -lm -lrt -ldl -lpthread
endef
$(foreach name,symbols graph,$(eval $(call static_programs,$(name))))

$(STATIC_DIR)/%/stripped: $(STATIC_DIR)/%/symbols
	$(Q)strip -o $@ $<

.PHONY: static-programs test-static
static-programs: $(STATIC_PROGRAMS)
test: test-static
test-static: run-static ## programs with the CUDA runtime linked into them
$(call add_test,static,tests/static/static.sh,all static-programs,tests/static/static.sh $(BUILD))
