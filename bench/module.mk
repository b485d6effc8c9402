# Benchmarks. `make bench` needs a GPU; `make bench-ptx` measures the software GPU here.
BENCH := $(BUILD)/bench

$(BENCH)/agents $(BENCH)/micro $(BENCH)/line $(BENCH)/instructions $(BENCH)/pinned_reads: $(BENCH)/%: bench/%.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -O2 -cudart shared -L$(CUDA13)/lib $< -o $@

$(BENCH)/rawtcp: bench/rawtcp.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $< -o $@ $(ALL_LDFLAGS)

# For the machine's own driver, by its SONAME: what is linked with only has it.
$(BENCH)/imports: $(OBJ)/bench/imports.o $(call objects,common/descriptors.c) $(OBJ)/link/libcuda.so.1
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $(filter %.o,$^) $(ALL_LDFLAGS) -pthread $(OBJ)/link/libcuda.so.1

$(BENCH)/tls: $(OBJ)/bench/tls.o $(call objects,$(wildcard common/*.c transport/*.c transport/tls/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lssl -lcrypto

.PHONY: bench-tls
bench-tls: $(BENCH)/tls ## bytes a second of a core, with and without TLS
	$(Q)$<

.PHONY: bench-programs
bench-programs: $(BENCH)/imports $(BENCH)/pinned_reads $(BENCH)/agents $(BENCH)/micro $(BENCH)/line $(BENCH)/instructions $(BENCH)/rawtcp $(BENCH)/tls

bench: dist ## native and remote side by side, as a table (needs a GPU)
	$(Q)bench/run.py --dist .dist

.PHONY: bench-line
bench-line: dist ## copies of each size beside raw TCP (needs a GPU)
	$(Q)bench/line.py --dist .dist

.PHONY: bench-instructions
bench-instructions: dist ## instructions, frames and waits of small calls, on the software GPU
	$(Q)bench/instructions.py --dist .dist
