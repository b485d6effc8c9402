# Benchmarks. `make bench` needs a GPU; `make bench-ptx` measures the software GPU here.
BENCH := $(BUILD)/bench

$(BENCH)/micro: bench/micro.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -O2 -cudart shared -L$(CUDA13)/lib $< -o $@

$(BENCH)/rawtcp: bench/rawtcp.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $< -o $@ $(ALL_LDFLAGS)

.PHONY: bench-programs
bench-programs: $(BENCH)/micro $(BENCH)/rawtcp

bench: dist ## native and remote side by side, as a table (needs a GPU)
	$(Q)bench/run.py --dist .dist
