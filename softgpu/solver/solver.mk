# cuSOLVER on the software GPU: opened by the worker where the driver is the software GPU.

SOLVER_LIB := $(LIB)/libvcuda-softgpu-cusolver.so
SOLVER_OBJS := $(call objects,$(wildcard softgpu/solver/*.c))

all: $(SOLVER_LIB)

$(SOLVER_OBJS): ALL_CFLAGS += -fPIC

$(SOLVER_LIB): $(SOLVER_OBJS) $(SOFTGPU_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN' -Wl,-soname,$(@F) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -o $@ $(SOLVER_OBJS) -L$(LIB) -lvcuda-softgpu -lopenblas -lm
