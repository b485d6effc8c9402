# Libraries that have no front yet: linked with, and called.
REFUSING_TESTS := $(BUILD)/tests/refusing/linked12 $(BUILD)/tests/refusing/linked13

define refusing_test
$$(BUILD)/tests/refusing/linked$(1): tests/refusing/linked.c \
		$$(addprefix $$(OBJ)/link/,$(2) libcurand.so.10 libcusparse.so.12 \
		libcusparseLt.so.0 libnccl.so.2 libnvshmem_host.so.3 libcufile.so.0)
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(filter-out -fsanitize%,$$(ALL_CFLAGS)) -o $$@ $$^
endef
$(eval $(call refusing_test,12,libcufft.so.11 libcusolver.so.11 libcusolverMg.so.11))
$(eval $(call refusing_test,13,libcufft.so.12 libcusolver.so.12 libcusolverMg.so.12))

# Python is not built with a sanitizer and cannot load what is.
.PHONY: test-refusing
test: test-refusing
test-refusing: all $(REFUSING_TESTS) ## libraries without a front load and refuse
ifeq ($(SAN),)
	$(Q)timeout 120 $(PYTHON) tests/refusing/refusing.py $(BUILD) $(REFUSING_TESTS)
endif
