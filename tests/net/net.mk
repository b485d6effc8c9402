# tests/net: far agents, over a line between two network namespaces.  As root, so not part of make test.
NET_PROGRAMS := $(BUILD)/net/line $(BUILD)/net/upload

$(BUILD)/net/line: tests/net/line.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -o $@ $< $(ALL_LDFLAGS)

$(BUILD)/net/upload: tests/net/upload.cu | $(CACHE)/.complete
	$(call say,NVCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CUDA13)/bin/nvcc -std=c++17 -O2 -cudart shared -I . $< -o $@ -L$(CUDA13)/lib

.PHONY: test-net
test-net: run-net_lines ## light:// over lines that are long, lose and reorder, in network namespaces; as root
$(call add_test,net_lines,tests/net/run.py,all $(NET_PROGRAMS) $(BUILD)/stack/payloads, \
	timeout 600 tests/net/run.py --each || [ $$$$? = 77 ])
