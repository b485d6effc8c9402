# The loader guard: its ELF reader, and libraries with a static CUDA runtime opened by dlopen.

LOADER_TESTS := $(BUILD)/tests/loader

$(LOADER_TESTS)/image: tests/loader/image.c shim/loader/elf.c shim/loader/elf.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -D_GNU_SOURCE -I. -o $@ $(filter %.c,$^) -lcmocka

$(LOADER_TESTS)/bare_name: tests/loader/bare_name.c shim/loader/bare_name.c shim/loader/bare_name.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -D_GNU_SOURCE -I. -o $@ $(filter %.c,$^) -lcmocka -ldl

$(LOADER_TESTS)/host: tests/loader/host.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -o $@ $< -ldl

$(LOADER_TESTS)/devices: tests/loader/devices.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -D_GNU_SOURCE -o $@ $<

# A program that needs libcudart.so.12 or .13, which the loader finds preloaded by two names only.
$(LOADER_TESTS)/needs%: tests/loader/needs.c | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -D_GNU_SOURCE -isystem $(CUDA$*)/include -o $@ $< \
		-L$(CUDA$*)/lib -l:libcudart.so.$*

$(LOADER_TESTS)/plugin13.so: tests/loader/plugin.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart static -shared -Xcompiler -fPIC $< -o $@ \
		-L$(CUDA13)/lib

$(LOADER_TESTS)/plugin12.so: tests/loader/plugin.cu | $(CACHE)/.complete
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -x cuda --cuda-path=$(CUDA12) --cuda-gpu-arch=sm_80 --cuda-include-ptx=all \
		-Wno-unknown-cuda-version -std=c++17 -O2 -fPIC -shared $< -o $@ \
		-Xlinker $(CUDA12)/lib/libcudart_static.a -Xlinker $(CUDA12)/lib/libculibos.a \
		-lstdc++ -lm -lrt -ldl -lpthread

.PHONY: test-loader
all-tests: test-loader
test-loader: ## the loader guard
test-loader: run-loader_image run-loader_bare_name run-loader_devices $(foreach abi,12 13,run-loader_host$(abi) run-loader_needs$(abi))
$(call add_test,loader_image,tests/loader/image.c,$(LOADER_TESTS)/image,timeout 180 $$<)
$(call add_test,loader_bare_name,tests/loader/bare_name.c,$(LOADER_TESTS)/bare_name,timeout 60 $$<)
$(call add_test,loader_devices,tests/loader/devices.c,$(LOADER_TESTS)/devices $(LOADER_LIB), \
	LD_PRELOAD="$(abspath $(LOADER_LIB))" timeout 180 $$<)
$(foreach abi,12 13, \
	$(call add_test,loader_host$(abi),tests/loader/host.c,$(LOADER_TESTS)/host \
		$(LOADER_TESTS)/plugin$(abi).so $(LOADER_LIB) $(LIB)/libvcuda.so $(RUNTIME_TEST_LIBS), \
		LD_LIBRARY_PATH=$(RUNTIME_TESTS)/lib LD_PRELOAD="$(addprefix \
		$(abspath $(RUNTIME_TESTS))/lib/,libutilities.so libvcuda.so)" \
		timeout 180 $$< $(abspath $(LOADER_TESTS))/plugin$(abi).so) \
	$(call add_test,loader_needs$(abi),tests/loader/needs.c,$(LOADER_TESTS)/needs$(abi) \
		$(LOADER_LIB) $(LIB)/libvcuda.so, \
		for native in "" $(CUDA12)/lib:$(CUDA13)/lib; do \
		LD_LIBRARY_PATH=$$$$native LD_PRELOAD="$(abspath $(LOADER_LIB) $(LIB)/libvcuda.so)" \
		timeout 180 $$< || exit 1; done))

##### NVRTC for a GPU that runs PTX #####

NVRTC_PARTS := $(foreach name,libnvrtc.so.13 libnvrtc-672ee683.so.12,$(LOADER_TESTS)/$(name))

$(NVRTC_PARTS): tests/loader/nvrtc-part.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -fPIC -shared -o $@ $<

$(LOADER_TESTS)/nvrtc: tests/loader/nvrtc.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -o $@ $< -ldl

test-loader: run-loader_nvrtc
$(call add_test,loader_nvrtc,tests/loader/nvrtc.c,$(LOADER_TESTS)/nvrtc $(NVRTC_PARTS) $(LOADER_LIB), \
	for how in ptx none; do for there in "" "$(abspath $(NVRTC_PARTS))"; do VCUDA_NVRTC=$$$$how \
	LD_PRELOAD="$(abspath $(LOADER_LIB) $(LIB)/libvcuda.so) $$$$there" \
	timeout 180 $$< $(abspath $(NVRTC_PARTS)) || exit 1; done; done)

##### Many libraries with thread-local memory #####

$(LOADER_TESTS)/thread-local-part.so: tests/loader/thread-local-part.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -fPIC -shared -o $@ $<

$(LOADER_TESTS)/thread-local: tests/loader/thread-local.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -D_GNU_SOURCE -o $@ $< -ldl

test-loader: run-loader_thread_local
$(call add_test,loader_thread_local,tests/loader/thread-local.c,$(LOADER_TESTS)/thread-local \
	$(LOADER_TESTS)/thread-local-part.so $(LOADER_LIB), \
	LD_PRELOAD="$(abspath $(LOADER_LIB) $(LIB)/libvcuda.so)" \
	timeout 180 $$< $(abspath $(LOADER_TESTS)/thread-local-part.so))

##### nvJitLink for a GPU that runs PTX #####

NVJITLINK_PARTS := $(foreach name,libnvJitLink.so.12 libnvJitLink.so.13,$(LOADER_TESTS)/$(name))

$(NVJITLINK_PARTS): tests/loader/nvjitlink-part.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -fPIC -shared -o $@ $<

$(LOADER_TESTS)/nvjitlink: tests/loader/nvjitlink.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -D_GNU_SOURCE -rdynamic -o $@ $< -ldl

test-loader: run-loader_nvjitlink
$(call add_test,loader_nvjitlink,tests/loader/nvjitlink.c,$(LOADER_TESTS)/nvjitlink $(NVJITLINK_PARTS) \
	$(LOADER_LIB), \
	for how in ptx none; do VCUDA_NVRTC=$$$$how LD_PRELOAD="$(abspath $(LOADER_LIB) $(LIB)/libvcuda.so)" \
	timeout 180 $$< $(abspath $(NVJITLINK_PARTS)) || exit 1; done)

##### The row of functions by which a stripped runtime is known #####

# What compilers call, by its sizes before, in and behind __cudaInitModule; the last is nobody's.
ROW_PARTS := $(foreach time,12.8 12.2 12.0 other,$(LOADER_TESTS)/row-$(time).so)
row_12.8 := 0x4a,0x2b,0x22,0x37,0x7b,0x7b,0x38,0x69 0xd7 0x96,0xa2,0x93,0xa,0xa 0
row_12.2 := 0x4a,0x2b,0x22,0x37,0x7b,0x7b,0x38,0x69 0xc6 0x8c,0xb5,0x67,0xa,0xa 1
row_12.0 := 0x4c,0x28,0x15,0x22,0x6f,0x6f,0x39,0x61 0xd5 0x94,0xc9,0x5f,0x5,0x5 1
row_other := 0x4a,0x2b,0x22,0x37,0x7b,0x7b,0x38,0x69 0xd7 0x8c,0xb5,0x67,0xa,0xa 1

$(ROW_PARTS): $(LOADER_TESTS)/row-%.so: tests/loader/row.S
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -nostdlib -o $@ $< $(join -DBEFORE= -DINIT= -DBEHIND= -DBY_PLACE=,$(row_$*)) \
		-Wl,--eh-frame-hdr

$(LOADER_TESTS)/row: tests/loader/row.c shim/loader/stripped.c shim/loader/elf.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O2 $(WARNINGS) -D_GNU_SOURCE -I. -o $@ $^ -ldl

test-loader: run-loader_row
$(call add_test,loader_row,tests/loader/row.c,$(LOADER_TESTS)/row $(ROW_PARTS),timeout 180 $$< \
	$(abspath $(filter-out %other.so,$(ROW_PARTS))) -- $(abspath $(LOADER_TESTS)/row-other.so))
