# packaging/: what people install without a build.
.PHONY: deb
deb: all examples ## Debian packages vcuda, vcuda-client, gpu-agent, vcuda-libs: build/deb (wants go-md2man and dpkg-dev)
	$(Q)packaging/deb.sh $(BUILD) $(BUILD)/deb

##### The Python wheel #####

# Its commands and its software GPU are built once more, by the rules of their folders, against glibc 2.17 and
# with what they need linked in. Without cuFFT: FFTW's licence is the GPL, which the wheel is not under.
OLD := $(BUILD)/old
OLD_LIBRARIES := $(CACHE)/glibc-2.17
OLD_COMMANDS := $(patsubst %,$(OLD)/bin/%,vcuda vcuda-top vcuda-client gpu-agent)
OLD_SOFTGPU = $(patsubst $(BUILD)/%,$(OLD)/%,$(SOFTGPU_LIB) $(BLAS_LIB) $(DNN_LIB) $(RAND_LIB) $(SOLVER_LIB) \
	$(SPARSE_LIB) $(SPARSELT_LIB) $(NCCL_LIB) $(CUPTI_LIB))
# What tells gcc's and clang's functions which processor it is comes with neither zig nor glibc.
OLD_LDFLAGS = -L$(OLD_LIBRARIES)/lib $$($(CLANG) --rtlib=compiler-rt -print-libgcc-file-name)
old_make = $(MAKE) --no-print-directory BUILD=$(OLD) LIGHT=0 PTX_V3=-march=x86_64_v3 CFLAGS='-O2 -g0 -fPIE' \
	CC='$(OLD_CC) -isystem $(OLD_LIBRARIES)/include -include $(OLD_LIBRARIES)/include/openblas_prefix.h'

.PHONY: wheel
wheel: all ## a Python wheel (manylinux_2_17) with the commands, what is preloaded and the software GPU: build/wheel
	$(Q)packaging/old-libraries.sh $(CACHE) $$(nproc)
	+$(Q)$(old_make) LDFLAGS="$(OLD_LDFLAGS) -pie" $(OLD_COMMANDS)
	+$(Q)$(old_make) LDFLAGS="$(OLD_LDFLAGS)" $(OLD_SOFTGPU)
	$(Q)packaging/wheel.py $(BUILD) $(OLD_LIBRARIES) $(BUILD)/wheel

##### A release #####

.PHONY: release
release: ## every product of the commit, an SBOM of each, checksums, changes: build/release; built twice and compared (20 minutes)
	$(Q)mkdir -p $(BUILD)
	$(Q)packaging/release.sh $(BUILD) $(CACHE) $(BUILD)/release
