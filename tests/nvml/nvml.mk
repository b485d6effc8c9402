# tests/nvml: the NVML front, from C and from pynvml, on the software GPU through the whole stack.
NVML_TEST := $(BUILD)/tests/nvml/front
NVML_PYTHON := $(CACHE)/venv/bin/python

$(NVML_TEST): tests/nvml/front.c | $(CACHE)/.complete
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -isystem $(NVML)/include $(ALL_CFLAGS) \
		-Wno-deprecated-declarations -o $@ $< -ldl

# A driver that brings a node's NVML with it: the software GPU, needing node.c by NVIDIA's SONAME.
NVML_NODE := $(BUILD)/tests/nvml/libnode-driver.so

$(NVML_NODE): tests/nvml/node.c $(LIB)/libvcuda-softgpu.so | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)/node
	$(Q)$(CC) $(CPPFLAGS) -isystem $(NVML)/include $(ALL_CFLAGS) -Wno-deprecated-declarations \
		-fPIC -shared -Wl,-soname,libnvidia-ml.so.1 -o $(@D)/node/libnvidia-ml.so.1 $<
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared -o $@ -x c /dev/null -x none -Wl,--no-as-needed \
		-Wl,-rpath,$(abspath $(@D)/node):$(abspath $(LIB)) \
		$(@D)/node/libnvidia-ml.so.1 $(LIB)/libvcuda-softgpu.so

# Python is not built with a sanitizer and cannot load what is.
.PHONY: test-nvml
all-tests: test-nvml
test-nvml: $(addprefix run-nvml_,names front alone meter agents $(if $(SAN),,python node)) ## the NVML front
$(call add_test,nvml_names,tests/nvml/names.py,all, \
	timeout 90 $(PYTHON) tests/nvml/names.py $(NVML_LIB) $(NVML)/include/nvml.h \
	$$$$($(NVML_PYTHON) -c 'import pynvml; print(pynvml.__file__)'))
$(call add_test,nvml_front,tests/nvml/front.c,all $(NVML_TEST), \
	timeout 180 $(BIN)/vcuda run --software -- $(NVML_TEST))
$(call add_test,nvml_alone,tests/nvml/front.c,all $(NVML_TEST), \
	env -u REMOTE_GPU_ADDRESS LD_PRELOAD=$$$$($(BIN)/vcuda preload) \
	VCUDA_SOCKET=$(BUILD)/no-such-socket timeout 90 $(NVML_TEST) alone)
$(call add_test,nvml_meter,tests/nvml/meter.py,all $(NVML_NODE), \
	BUILD=$(BUILD) timeout 180 $(PYTHON) tests/nvml/meter.py $(NVML_NODE) $(dir $(NVML_NODE))node)
$(call add_test,nvml_python,tests/nvml/python.py,all, \
	timeout 180 $(BIN)/vcuda run --software -- $(NVML_PYTHON) tests/nvml/python.py)
$(call add_test,nvml_agents,tests/nvml/agents.py,all $(NVML_NODE), \
	BUILD=$(BUILD) timeout 180 $(PYTHON) tests/nvml/agents.py $(NVML_NODE) $(BIN)/vcuda)
$(call add_test,nvml_node,tests/nvml/node.py,all $(NVML_NODE), \
	BUILD=$(BUILD) timeout 180 $(PYTHON) tests/nvml/on_node.py $(NVML_NODE) \
	$(NVML_PYTHON) tests/nvml/node.py $(abspath $(BIN)/vcuda))
