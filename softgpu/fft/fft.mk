# cuFFT on the software GPU, on FFTW: opened by the worker where the driver is the software GPU.

FFT_LIB := $(LIB)/libvcuda-softgpu-cufft.so
FFT_OBJS := $(call objects,$(wildcard softgpu/fft/*.c))

all: $(FFT_LIB)

$(FFT_OBJS): ALL_CFLAGS += -fPIC

$(FFT_LIB): $(FFT_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(FFT_OBJS) -L$(LIB) -lvcuda-softgpu \
		-lfftw3 -lm
