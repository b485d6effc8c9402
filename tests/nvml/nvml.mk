# tests/nvml: the NVML front, from C and from pynvml, on the software GPU through the whole stack.
NVML_TEST := $(BUILD)/tests/nvml/front
NVML_PYTHON := $(CACHE)/venv/bin/python

$(NVML_TEST): tests/nvml/front.c | $(CACHE)/.complete
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -isystem $(NVML)/include $(ALL_CFLAGS) \
		-Wno-deprecated-declarations -o $@ $< -ldl

.PHONY: test-nvml
test: test-nvml
test-nvml: all $(NVML_TEST) ## the NVML front and vcuda smi
	$(call say,TEST,nvml)
	$(Q)timeout 30 $(PYTHON) tests/nvml/names.py $(NVML_LIB) $(NVML)/include/nvml.h \
		$$($(NVML_PYTHON) -c 'import pynvml; print(pynvml.__file__)')
	$(Q)timeout 60 $(BIN)/vcuda run --software -- $(NVML_TEST)
	$(Q)env -u REMOTE_GPU_ADDRESS LD_PRELOAD=$$($(BIN)/vcuda preload) \
		VCUDA_SOCKET=$(BUILD)/no-such-socket timeout 30 $(NVML_TEST) alone
	$(Q)timeout 60 $(BIN)/vcuda run --software -- $(NVML_PYTHON) tests/nvml/python.py
