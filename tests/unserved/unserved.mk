# Libraries that have no front yet: linked with, and called.
UNSERVED_TESTS := $(BUILD)/tests/unserved/linked12 $(BUILD)/tests/unserved/linked13

define unserved_test
$$(BUILD)/tests/unserved/linked$(1): tests/unserved/linked.c \
		$$(addprefix $$(OBJ)/link/,$(2) \
		libnvshmem_host.so.3 libcufile.so.0)
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(filter-out -fsanitize%,$$(ALL_CFLAGS)) -o $$@ $$^
endef
$(eval $(call unserved_test,12,libcusolverMg.so.11))
$(eval $(call unserved_test,13,libcusolverMg.so.12))

# Python is not built with a sanitizer and cannot load what is.
.PHONY: test-unserved
all-tests: test-unserved
test-unserved: $(if $(SAN),,run-unserved) ## libraries without a front load and refuse
$(call add_test,unserved,tests/unserved/unserved.py,all $(UNSERVED_TESTS), \
	timeout 300 $(PYTHON) tests/unserved/unserved.py $(BUILD) $(UNSERVED_TESTS))
