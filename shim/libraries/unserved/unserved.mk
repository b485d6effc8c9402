# Refusing fronts for the libraries that have none yet: their names (*.txt), each a few bytes of
# assembly, as parts of libvcuda-12.so (those that only CUDA 12 has) and libvcuda-13.so.

UNSERVED12 := libcufft.so.11 libcusolver.so.11 libcusolverMg.so.11
UNSERVED13 := libcufft.so.12 libcusolver.so.12 libcusolverMg.so.12 \
	libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvshmem_host.so.3 libcufile.so.0

UNSERVED_DIR := $(OBJ)/unserved
UNSERVED_LISTS := $(wildcard shim/libraries/unserved/*.txt) shim/libraries/unserved/unserved.py

.PRECIOUS: $(UNSERVED_DIR)/%.s $(UNSERVED_DIR)/%.map
$(UNSERVED_DIR)/%.s: $(UNSERVED_LISTS)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) shim/libraries/unserved/unserved.py symbols $* >$@

$(UNSERVED_DIR)/%.map: $(UNSERVED_LISTS)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) shim/libraries/unserved/unserved.py map $* >$@

$(UNSERVED_DIR)/%.o: $(UNSERVED_DIR)/%.s
	$(call say,AS,$@)
	$(Q)$(CC) -c $< -o $@

$(UNSERVED_DIR)/unserved.o: shim/libraries/unserved/unserved.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -MMD -MP -c $< -o $@

define unserved_front
FRONT$(1)_OBJS += $(UNSERVED_DIR)/unserved.o $(UNSERVED$(1):%=$(UNSERVED_DIR)/%.o)
FRONT$(1)_NAMES += $(UNSERVED$(1))
$(foreach name,$(UNSERVED$(1)),$(eval MAP.$(name) := $(UNSERVED_DIR)/$(name).map))
endef
$(foreach abi,12 13,$(eval $(call unserved_front,$(abi))))
