# tests/static: programs with the CUDA runtime linked into them, which no library can replace by name.
#
#	plain/13 plain/12   every program of tests/programs with nvcc's default, the static runtime
#	rdc/13              the same with relocatable device code (-rdc=true), linked on the device's side
#	stripped            one of them without its symbols
#	unknown             and without the table of its functions for the unwinder, which cannot work

STATIC_DIR := $(BUILD)/static
STATIC_NVCCFLAGS := $(subst -cudart shared,-cudart static,$(NVCCFLAGS))
STATIC_PROGRAMS := $(foreach kind,plain/13 plain/12 rdc/13,$(addprefix $(STATIC_DIR)/$(kind)/,$(PROGRAMS)))
STATIC_STRIPPED := $(foreach kind,stripped unknown,$(foreach abi,12 13,$(STATIC_DIR)/$(kind)/$(abi)/vector-add))

# What clang links with for CUDA 12: the runtime, and what it needs.
STATIC_LIBS12 := -Xlinker $(CUDA12)/lib/libcudart_static.a -Xlinker $(CUDA12)/lib/libculibos.a \
	-lstdc++ -lm -lrt -ldl -lpthread

$(STATIC_DIR)/rdc/13/%: $(PROGRAMS_DIR)/%.cu $(PROGRAM_HEADERS) $$(PROGRAM_PARTS_$$*) \
		$$(call program_blobs,13,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) $(STATIC_NVCCFLAGS) -rdc=true $(PROGRAM_FLAGS13_$*) $(filter %.cu %.o,$^) -o $@ \
		-L$(CUDA13)/lib -L$(OBJ)/programs/stub $(PROGRAM_LIBS_$*)

$(STATIC_DIR)/plain/13/%: $$(call program_objects,13,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -cudart static -Xcompiler -pthread $^ -o $@ -L$(CUDA13)/lib -L$(OBJ)/programs/stub \
		$(PROGRAM_LIBS_$*)

$(STATIC_DIR)/plain/12/%: $$(call program_objects,12,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -pthread $^ -o $@ -L$(OBJ)/programs/stub $(PROGRAM_LIBS_$*) $(STATIC_LIBS12)

$(STATIC_DIR)/stripped/%: $(STATIC_DIR)/plain/%
	$(Q)mkdir -p $(@D)
	$(Q)strip -o $@ $<

$(STATIC_DIR)/unknown/13/%: $$(call program_objects,13,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(NVCC) -cudart static -Xcompiler -pthread -Xlinker --no-eh-frame-hdr -Xlinker -s $^ -o $@ -L$(CUDA13)/lib

$(STATIC_DIR)/unknown/12/%: $$(call program_objects,12,$$*) | $(CACHE)/.complete $(OBJ)/programs/stub/libcuda.so
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -pthread -Xlinker --no-eh-frame-hdr -s $^ -o $@ $(STATIC_LIBS12)

$(STATIC_DIR)/libcupti: tests/static/cupti.c | $(CACHE)/.complete
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -isystem $(CUDA13)/include -o $@ $< -ldl

# What `make test` runs; `make test-static-programs` runs all.
STATIC_SOME := vector-add graph-copies two-files symbols managed-variables \
	nested-launches
STATIC_SOME_BUILT := $(foreach kind,plain/13 plain/12 rdc/13,$(addprefix $(STATIC_DIR)/$(kind)/,$(STATIC_SOME)))
STATIC_RUN := VCUDA_SOFTGPU_DEVICES=2 $(PROGRAMS_DIR)/run.sh -j2

.PHONY: static-programs test-static test-static-programs
static-programs: $(STATIC_SOME_BUILT) $(STATIC_STRIPPED)
all-tests: test-static
test-static: run-static run-static_plain run-static_rdc run-static_cupti ## programs with the CUDA runtime linked into them
test-static-programs: all $(STATIC_PROGRAMS) ## all of tests/programs like that, and with -rdc=true
	$(Q)$(STATIC_RUN) --programs $(STATIC_DIR)/plain
	$(Q)$(STATIC_RUN) --programs $(STATIC_DIR)/rdc --abi 13
$(call add_test,static,tests/static/static.sh,all $(STATIC_STRIPPED) \
	$(foreach abi,12 13,$(STATIC_DIR)/plain/$(abi)/vector-add),tests/static/static.sh $(BUILD))
$(call add_test,static_cupti,tests/static/cupti.c,all $(STATIC_DIR)/libcupti, \
	timeout 60 $(BIN)/vcuda run --software -- $(STATIC_DIR)/libcupti)
$(call add_test,static_plain,tests/static/static.mk,all $(STATIC_SOME_BUILT), \
	$(STATIC_RUN) --programs $(STATIC_DIR)/plain $(STATIC_SOME))
$(call add_test,static_rdc,tests/static/static.mk,all $(STATIC_SOME_BUILT), \
	$(STATIC_RUN) --programs $(STATIC_DIR)/rdc --abi 13 $(STATIC_SOME))

##### Several runtimes in one process #####

# libpart-KIND.so; what each adds tells them apart.
MIXED_DIR := $(STATIC_DIR)/mixed
MIXED_ADDS := static=3 shared=5 rdc=7 static12=11
mixed_adds = $(patsubst $(1)=%,%,$(filter $(1)=%,$(MIXED_ADDS)))
MIXED_NVCC := $(NVCC) -std=c++17 -O2 -L$(CUDA13)/lib
MIXED_PART := tests/static/part.cu tests/static/part.h
mixed_part = -shared -Xcompiler -fPIC -DPART_ADDS=$(call mixed_adds,$(1)) tests/static/part.cu

$(MIXED_DIR)/libpart-static.so $(MIXED_DIR)/libpart-shared.so: $(MIXED_DIR)/libpart-%.so: $(MIXED_PART) \
		| $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MIXED_NVCC) -cudart $* $(call mixed_part,$*) -o $@

$(MIXED_DIR)/libpart-rdc.so: $(MIXED_PART) tests/static/part-device.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MIXED_NVCC) -cudart static -rdc=true -DPARTS $(call mixed_part,rdc) \
		tests/static/part-device.cu -o $@

$(MIXED_DIR)/libpart-static12.so: $(MIXED_PART) | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG_CUDA) $(CLANG_CUDAFLAGS) -fPIC -shared -DPART_ADDS=$(call mixed_adds,static12) \
		tests/static/part.cu -o $@ $(STATIC_LIBS12)

# The program's runtime is of one kind, that of the library that it is linked with of the other.
MIXED_OTHER_static := shared
MIXED_OTHER_shared := static
$(MIXED_DIR)/mixed-%: tests/static/mixed.cu tests/static/part.h $(PROGRAM_HEADERS) \
		$(MIXED_DIR)/libpart-static.so $(MIXED_DIR)/libpart-shared.so
	$(call say,NVCC,$@)
	$(Q)$(MIXED_NVCC) -cudart $* -I$(PROGRAMS_DIR) -DLINKED_ADDS=$(call mixed_adds,$(MIXED_OTHER_$*)) \
		$< -o $@ -L$(MIXED_DIR) -lpart-$(MIXED_OTHER_$*) -Xlinker -rpath='$$ORIGIN'

mixed_opened = $(foreach name,$(1),./libpart-$(name).so=$(call mixed_adds,$(name)))
MIXED_BUILT := $(foreach kind,static shared,$(MIXED_DIR)/mixed-$(kind)) \
	$(foreach kind,rdc static12,$(MIXED_DIR)/libpart-$(kind).so)
MIXED_VCUDA := timeout 180 $(abspath $(BIN))/vcuda run --software --

# By paths, and by a plain name, which the program's RPATH finds.
test-static: run-static_mixed run-static_opened
$(call add_test,static_mixed,tests/static/mixed.cu,all $(MIXED_BUILT),cd $(MIXED_DIR) && \
	$(MIXED_VCUDA) ./mixed-static $(call mixed_opened,rdc static12 static) && \
	$(MIXED_VCUDA) ./mixed-shared libpart-static12.so=$(call mixed_adds,static12) \
	$(call mixed_opened,rdc))
$(call add_test,static_opened,tests/static/opened.py,all,$(MIXED_VCUDA) $(PYTHON) \
	tests/static/opened.py $(CUDA12) $(CUDA13))

##### Under a debugger #####

# The mixed programs, with a debugger's breakpoint where the loader tells of what it has mapped.
$(STATIC_DIR)/traced: tests/static/traced.c tests/die.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -I. -o $@ $< -ldl

test-static: $(if $(SAN),,run-static_traced)
$(call add_test,static_traced,tests/static/traced.c,all $(MIXED_BUILT) $(STATIC_DIR)/traced,cd $(MIXED_DIR) && \
	$(MIXED_VCUDA) ../traced ./mixed-static $(call mixed_opened,rdc static12 static) && \
	$(MIXED_VCUDA) ../traced ./mixed-shared libpart-static12.so=$(call mixed_adds,static12) \
	$(call mixed_opened,rdc))

##### Libraries without symbols #####

STRIPPED := $(foreach name,stripped12 stripped13 stripped13_ptds,$(STATIC_DIR)/libraries/$(name).so)
stripped_cuda = $(if $(findstring 12,$(1)),$(CUDA12),$(CUDA13))

$(STRIPPED): $(STATIC_DIR)/libraries/%.so: tests/static/stripped.c | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -fPIC -shared -s \
		$(if $(findstring ptds,$*),-DCUDA_API_PER_THREAD_DEFAULT_STREAM) \
		-isystem $(call stripped_cuda,$*)/include -o $@ $< -Wl,--exclude-libs,ALL \
		$(call stripped_cuda,$*)/lib/libcudart_static.a $(if $(findstring 12,$*),$(CUDA12)/lib/libculibos.a) \
		-lstdc++ -lm -lrt -ldl -lpthread

test-static: run-static_stripped
$(call add_test,static_stripped,tests/static/stripped.py,all $(STRIPPED),$(MIXED_VCUDA) $(PYTHON) \
	tests/static/stripped.py $(foreach file,$(STRIPPED),$(file)=$(if $(findstring 12,$(file)),12,13)))
