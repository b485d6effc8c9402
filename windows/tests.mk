# The client for Windows under wine64 (apt-get install wine64). Not a part of `make
# test`: neither mingw nor wine is in `make deps`. Read behind tests/, whose programs it builds too.
#
# build/windows/tests/NAME.exe and build/windows/tests/NAME are one source for both systems.

WINE ?= $(firstword $(wildcard /usr/lib/wine/wine64) wine64)
WINDOWS_TESTS := $(WINDOWS)/tests

# For programs that are written for Linux: what their headers ask of glibc.
WINDOWS_TEST_CC = $(WINDOWS_GCC) -std=gnu17 -O2 -g -D__USE_MINGW_ANSI_STDIO=1 -D_GNU_SOURCE -I. \
	'-DCMPLX(r,i)=__builtin_complex((double)(r),(double)(i))'

# windows_program(NAME,SOURCE,FLAGS,DLLS): NAME.exe.
define windows_program
$$(WINDOWS_TESTS)/$(1).exe: $(2) $$(wildcard $$(dir $(2))*.h) tests/die.h $(foreach dll,$(4),$$(WINDOWS)/$(dll).dll)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(WINDOWS_TEST_CC) $(3) -o $$@ $(2) $(foreach dll,$(4),$$(WINDOWS_OBJ)/lib$(dll).a)
WINDOWS_PROGRAMS += $$(WINDOWS_TESTS)/$(1).exe
endef
# linux_program(NAME,SOURCE,FLAGS,LIBRARIES): its twin.
define linux_program
$$(WINDOWS_TESTS)/$(1): $(2) $(4)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) -std=gnu17 -O2 -g $(3) -o $$@ $(2) $(4) -Wl,--allow-shlib-undefined
WINDOWS_PROGRAMS += $$(WINDOWS_TESTS)/$(1)
endef
define both_programs
$(call windows_program,$(1),$(2),$(3),$(4))
$(call linux_program,$(1),$(2),$(3),$(5))
endef

$(WINDOWS_TESTS)/kernels.h: tests/windows/kernels.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -fatbin -arch=compute_75 $< -o $(@D)/kernels.fatbin
	$(Q)$(PYTHON) -c 'import sys; print("static const unsigned char fatbin[] __attribute__((aligned(16))) = {%s};" % \
		",".join(map(str, open(sys.argv[1], "rb").read())))' $(@D)/kernels.fatbin >$@

$(eval $(call both_programs,driver,tests/windows/driver.c,-isystem $(CUDA13)/include,nvcuda,$(OBJ)/link/libcuda.so.1))
$(eval $(call windows_program,loop,tests/windows/loop.c,-isystem $(CUDA13)/include,nvcuda))
$(eval $(call windows_program,threads,tests/windows/threads.c,-isystem $(CUDA13)/include,nvcuda))
$(eval $(call windows_program,ipc,tests/windows/ipc.c,-isystem $(CUDA13)/include,nvcuda))
$(eval $(call windows_program,absent,tests/windows/absent.c,-isystem $(CUDA13)/include,nvcuda))
$(eval $(call both_programs,nvml,tests/windows/nvml.c,-isystem $(CUDA13)/include -isystem $(NVML)/include,nvml,$(NVML_LIB)))
$(foreach abi,12 13,$(eval $(call both_programs,runtime$(abi),tests/windows/runtime.c, \
	-I$(WINDOWS_TESTS) -isystem $(CUDA$(abi))/include,cudart64_$(abi),$(OBJ)/link/libcudart.so.$(abi))))
$(foreach abi,12 13,$(WINDOWS_TESTS)/runtime$(abi) $(WINDOWS_TESTS)/runtime$(abi).exe): $(WINDOWS_TESTS)/kernels.h

# Of other rooms, which on Linux are tested there.
$(foreach name,products level1 wide others,$(eval $(call windows_program,cublas-$(name), \
	tests/cublas/$(name).c,-DCUBLAS_ABI=12 -isystem $(CUDA12)/include,cudart64_12 cublas64_12)))
$(eval $(call windows_program,cublas13-products,tests/cublas/products.c, \
	-DCUBLAS_ABI=13 -isystem $(CUDA13)/include,cudart64_13 cublas64_13))
$(eval $(call windows_program,cublaslt-matmul,tests/cublaslt/matmul.c, \
	-DCUBLASLT_ABI=13 -isystem $(CUDA13)/include,cudart64_13 cublas64_13 cublasLt64_13))
$(eval $(call windows_program,cudnn-pooling,tests/cudnn/pooling.c, \
	-DCUDNN_ABI=9 -isystem $(CUDA13)/include,cudnn64_9 nvcuda))
$(eval $(call windows_program,cufft-statuses,tests/cufft/statuses.c, \
	-isystem $(CUDA13)/include -isystem $(CACHE)/cufft-12,cufft64_12 cudart64_13))
$(eval $(call windows_program,curand-numbers,tests/curand/numbers.c, \
	-isystem $(CUDA13)/include -isystem $(CURAND_INCLUDE),curand64_10 cudart64_13))
$(eval $(call windows_program,cusolver-cholesky,tests/cusolver/cholesky.c, \
	-DDISABLE_CUSOLVER_DEPRECATED $(CUSOLVER_INCLUDE.12),cusolver64_12 cusparse64_12 nvcuda))
$(eval $(call windows_program,cusparse-vectors,tests/cusparse/vectors.c, \
	-DDISABLE_CUSPARSE_DEPRECATED $(CUSPARSE_INCLUDE.13),cusparse64_12 nvcuda))
$(eval $(call windows_program,cusparselt-matmul,tests/cusparselt/matmul.c, \
	$(CUSPARSELT_INCLUDE.13),cusparseLt nvcuda))

# A prefix of its own; what wine leaves running in it ends with each test (test_windows.py).
$(WINDOWS)/prefix/.made:
	$(call say,WINE,$@)
	$(Q)command -v $(WINE) >/dev/null || { echo "windows: no wine64: apt-get install wine64" >&2; exit 1; }
	$(Q)mkdir -p $(@D)
	$(Q)export WINEPREFIX=$(abspath $(@D)) WINEDEBUG=-all; $(WINE) wineboot -i 2>/dev/null && \
		$(patsubst %wine64,%wineserver64,$(WINE)) -w
	$(Q)touch $@

.PHONY: test-windows windows-programs
windows-programs: windows $(WINDOWS_PROGRAMS)
test-windows: all windows-programs $(WINDOWS)/prefix/.made ## the client for Windows under wine64 (apt-get install gcc-mingw-w64-x86-64 wine64)
	$(Q)BUILD=$(BUILD) WINE=$(WINE) TEST_LIMIT=300 timeout 1800 tests/stack/run.py --in windows

TEST_LIST += windows-*=tests/windows/test_windows.py
run-windows-%: all windows-programs $(WINDOWS)/prefix/.made
	$(Q)BUILD=$(BUILD) WINE=$(WINE) TEST_LIMIT=300 timeout 400 tests/stack/run.py --in windows --exact $*
