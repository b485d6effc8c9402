# tests/static: programs with the CUDA runtime linked into them, which no library can replace by name.
#
#	plain/13 plain/12   every program of tests/programs with nvcc's default, the static runtime
#	rdc/13              the same with relocatable device code (-rdc=true), linked on the device's side
#	stripped            one of them without its symbols, which cannot work

STATIC_DIR := $(BUILD)/static
STATIC_NVCCFLAGS := $(subst -cudart shared,-cudart static,$(NVCCFLAGS))
STATIC_PROGRAMS := $(foreach kind,plain/13 plain/12 rdc/13,$(addprefix $(STATIC_DIR)/$(kind)/,$(PROGRAMS)))
STATIC_STRIPPED := $(foreach abi,12 13,$(STATIC_DIR)/stripped/$(abi)/vector-add)

# What clang links with for CUDA 12: the runtime, and what it needs.
STATIC_LIBS12 := -Xlinker $(CUDA12)/lib/libcudart_static.a -Xlinker $(CUDA12)/lib/libculibos.a \
	-lstdc++ -lm -lrt -ldl -lpthread

# static_nvcc(KIND,FLAGS)
define static_nvcc
$(STATIC_DIR)/$(1)/13/%: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) $$$$(PROGRAM_PARTS_$$$$*) \
		$$$$(call program_blobs,13,$$$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$$(call say,NVCC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(NVCC) $(STATIC_NVCCFLAGS) $(2) $$(PROGRAM_FLAGS13_$$*) $$(filter %.cu %.o,$$^) -o $$@ \
		-L$(CUDA13)/lib -L$(OBJ)/programs/stub $$(PROGRAM_LIBS_$$*)
endef
$(eval $(call static_nvcc,plain,))
$(eval $(call static_nvcc,rdc,-rdc=true))

$(STATIC_DIR)/plain/12/%: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) $$(PROGRAM_PARTS_$$*) \
		$$(call program_blobs,12,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG_CUDA) $(CLANG_CUDAFLAGS) $(PROGRAM_FLAGS12_$*) $(filter %.cu,$^) \
		$(addprefix -Xlinker ,$(filter %.o,$^)) -o $@ -L$(OBJ)/programs/stub $(PROGRAM_LIBS_$*) \
		$(STATIC_LIBS12)

$(STATIC_DIR)/stripped/%: $(STATIC_DIR)/plain/%
	$(Q)mkdir -p $(@D)
	$(Q)strip -o $@ $<

# What `make test` runs; `make test-static-programs` runs all.
STATIC_SOME := vector-add graph-copies two-files symbols managed-variables
STATIC_SOME_BUILT := $(foreach kind,plain/13 plain/12 rdc/13,$(addprefix $(STATIC_DIR)/$(kind)/,$(STATIC_SOME)))
STATIC_RUN := VCUDA_SOFTGPU_DEVICES=2 $(PROGRAMS_DIR)/run.sh -j2

.PHONY: static-programs test-static test-static-programs
static-programs: $(STATIC_SOME_BUILT) $(STATIC_STRIPPED)
test: test-static
test-static: run-static run-static_plain run-static_rdc ## programs with the CUDA runtime linked into them
test-static-programs: all $(STATIC_PROGRAMS) ## all of tests/programs like that, and with -rdc=true
	$(Q)$(STATIC_RUN) --programs $(STATIC_DIR)/plain
	$(Q)$(STATIC_RUN) --programs $(STATIC_DIR)/rdc --abi 13
$(call add_test,static,tests/static/static.sh,all $(STATIC_STRIPPED) \
	$(foreach abi,12 13,$(STATIC_DIR)/plain/$(abi)/vector-add),tests/static/static.sh $(BUILD))
$(call add_test,static_plain,tests/static/static.mk,all $(STATIC_SOME_BUILT), \
	$(STATIC_RUN) --programs $(STATIC_DIR)/plain $(STATIC_SOME))
$(call add_test,static_rdc,tests/static/static.mk,all $(STATIC_SOME_BUILT), \
	$(STATIC_RUN) --programs $(STATIC_DIR)/rdc --abi 13 $(STATIC_SOME))
