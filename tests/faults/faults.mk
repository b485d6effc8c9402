# tests/faults: faults of every kind in every state of a program, on the software GPU in real processes.

FAULTS_APP := $(BUILD)/faults/app
FAULTS_DRIVER := $(BUILD)/faults/libcounting-driver.so

$(FAULTS_APP): tests/faults/app.cu tests/say.h | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart shared -I . $< -o $@ -L$(CUDA13)/lib

FAULTS_DRIVER_SRCS := tests/faults/counting_driver.c tests/faults/hostile_worker.c
$(FAULTS_DRIVER): $(FAULTS_DRIVER_SRCS) $(LIB)/libvcuda-softgpu.so
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fPIC -shared -o $@ $(FAULTS_DRIVER_SRCS) \
		-Wl,--no-as-needed,-rpath,$(abspath $(LIB)) $(LIB)/libvcuda-softgpu.so -pthread

FAULTS_POINT := $(BUILD)/faults/libfailpoint.so
$(FAULTS_POINT): tests/faults/failpoint.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -fno-builtin -fPIC -shared -o $@ $<

.PHONY: faults-programs
faults-programs: $(FAULTS_APP) $(FAULTS_DRIVER) $(FAULTS_POINT)

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

.PHONY: fault-points hostile-clients resume-cost
resume-cost: $(FAULTS_NEED) ## instructions of 100,000 launches in a sidecar with a grace and without, by valgrind: 1 % more at most
	$(Q)$(FAULTS_RUN) 1800 tests/faults/cost.py

# Every call of every process in every state is hours: POINTS='--jobs 2'.
POINTS ?= --jobs 2 --most 60 --least 3000
fault-points: $(FAULTS_NEED) ## the n-th call that may fail does, 3,000 times at least: POINTS='--only front --from 40 --to 60'
	$(Q)$(FAULTS_RUN) 14400 tests/faults/failpoints.py $(POINTS)

hostile-clients: $(FAULTS_NEED) ## violations against agent, worker and front, one after the other: CASES='"4 GiB" stripe'
	$(Q)$(FAULTS_RUN) 3600 tests/faults/hostile.py $(CASES)

all-tests: test-faults
build-tests: faults-programs
test-faults: run-faults_matrix run-faults_loops run-faults_answers run-faults_hostile ## a little of fault-matrix, fault-loops and of what is beside them
long-tests: run-faults_points
$(call add_test,faults_matrix,tests/faults/matrix.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/matrix.py --short)
$(call add_test,faults_loops,tests/faults/loops.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/loops.py short)
$(call add_test,faults_points,tests/faults/failpoints.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/failpoints.py --short)
$(call add_test,faults_answers,tests/faults/answers.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/answers.py)
$(call add_test,faults_hostile,tests/faults/hostile.py,$(FAULTS_NEED),$(FAULTS_RUN) 300 tests/faults/hostile.py --short)
$(call add_test,faults_cost,tests/faults/cost.py,$(FAULTS_NEED),$(FAULTS_RUN) 1800 tests/faults/cost.py)
