# tests/faults: faults of every kind in every state of a program, on the software GPU in real processes.

FAULTS_APP := $(BUILD)/faults/app
FAULTS_DRIVER := $(BUILD)/faults/libcounting-driver.so

$(FAULTS_APP): tests/faults/app.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart shared $< -o $@ -L$(CUDA13)/lib

$(FAULTS_DRIVER): tests/faults/counting_driver.c $(LIB)/libvcuda-softgpu.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $< \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(LIB)/libvcuda-softgpu.so -pthread

.PHONY: faults-programs
faults-programs: $(FAULTS_APP) $(FAULTS_DRIVER)

FAULTS_NEED := all faults-programs
FAULTS_RUN := BUILD=$(BUILD) timeout

.PHONY: fault-matrix test-faults
fault-matrix: $(FAULTS_NEED) ## every fault in every state of a program: FAULTS='--seeds 3', '--cell cut-bulk/upload/2' …
	$(Q)$(FAULTS_RUN) 7200 tests/faults/matrix.py $(FAULTS)
# What each can be, by hand, is in tests/faults/README.md.
.PHONY: fault-loops soak
fault-loops: $(FAULTS_NEED) ## programs that come and go, attach at once, are cut, count steps: LOOP='leaks 10000'
	$(Q)$(FAULTS_RUN) 7200 tests/faults/loops.py $(or $(LOOP),short)

SOAK_MINUTES ?= 30
soak: $(FAULTS_NEED) ## random programs and random faults for SOAK_MINUTES, SOAK_PROGRAMS at once
	$(Q)$(FAULTS_RUN) $$(($(SOAK_MINUTES) * 60 + 600)) tests/faults/loops.py soak $(SOAK_MINUTES) \
		--programs $(or $(SOAK_PROGRAMS),8)

test: test-faults
build-tests: faults-programs
test-faults: run-faults_matrix run-faults_loops ## a little of fault-matrix, fault-loops and of what is beside them
$(call add_test,faults_matrix,tests/faults/matrix.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/matrix.py --short)
$(call add_test,faults_loops,tests/faults/loops.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/loops.py short)
