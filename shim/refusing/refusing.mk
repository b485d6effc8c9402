# Refusing fronts for the libraries that have none yet: their names (*.txt), each a few bytes of
# assembly, as parts of libvcuda-12.so (those that only CUDA 12 has) and libvcuda-13.so.

REFUSING12 := libcufft.so.11 libcusolver.so.11 libcusolverMg.so.11
REFUSING13 := libcufft.so.12 libcusolver.so.12 libcusolverMg.so.12 libcurand.so.10 \
	libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvshmem_host.so.3 libcufile.so.0

REFUSING_DIR := $(OBJ)/refusing
REFUSING_LISTS := $(wildcard shim/refusing/*.txt) shim/refusing/refusing.py

.PRECIOUS: $(REFUSING_DIR)/%.s $(REFUSING_DIR)/%.map
$(REFUSING_DIR)/%.s: $(REFUSING_LISTS)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) shim/refusing/refusing.py symbols $* >$@

$(REFUSING_DIR)/%.map: $(REFUSING_LISTS)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) shim/refusing/refusing.py map $* >$@

$(REFUSING_DIR)/%.o: $(REFUSING_DIR)/%.s
	$(call say,AS,$@)
	$(Q)$(CC) -c $< -o $@

$(REFUSING_DIR)/refusing.o: shim/refusing/refusing.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -MMD -MP -c $< -o $@

define refusing_front
FRONT$(1)_OBJS += $(REFUSING_DIR)/refusing.o $(REFUSING$(1):%=$(REFUSING_DIR)/%.o)
FRONT$(1)_NAMES += $(REFUSING$(1))
$(foreach name,$(REFUSING$(1)),$(eval MAP.$(name) := $(REFUSING_DIR)/$(name).map))
endef
$(foreach abi,12 13,$(eval $(call refusing_front,$(abi))))
