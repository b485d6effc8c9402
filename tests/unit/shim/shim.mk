# Unit tests of the shim: each is built from the sources that it looks at, with the sanitizers that
# find what it is after (SAN= overrides).
SHIM_UNIT := $(BUILD)/tests
SHIM_UNIT_FLAGS = $(filter-out -fsanitize%,$(ALL_CFLAGS)) $(CPPFLAGS) -U_FORTIFY_SOURCE
SHIM_UNIT_TESTS := shim_blocks shim_cache shim_mirror_runs shim_sha256 shim_handle shim_ring shim_fatbin shim_memory shim_visible shim_pci shim_pages shim_words shim_slack

SHIM_UNIT_SAN_shim_handle := thread
SHIM_UNIT_SAN_shim_ring := thread
SHIM_UNIT_LIBS_shim_sha256 := -lcrypto
SHIM_UNIT_WITH_visible := shim/driver/device/pci.c
SHIM_UNIT_WITH_memory := $(addprefix shim/driver/memory/,heap.c slab.c spare.c freed.c) shim/engine/status.c

# Of the part's name, which is its file's in whatever room.
define shim_unit
$$(SHIM_UNIT)/shim_$(1): $(call unit_files,shim_$(1).c) \
		$$(wildcard shim/engine/$(1).c shim/driver/$(1).c shim/driver/*/$(1).c shim/driver/*/*/$(1).c) $(SHIM_UNIT_WITH_$(1)) \
		shim/engine/blocks.c shim/driver/memory/free_extents.c shim/driver/memory/globals.c \
		$$(wildcard shim/*/*.h shim/*/*/*.h shim/*/*/*/*.h) | $$(CACHE)/.complete
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(SHIM_UNIT_FLAGS) \
		-fsanitize=$$(or $$(SANITIZERS),$$(SHIM_UNIT_SAN_$$(@F)),address$$(comma)undefined) \
		-o $$@ $$(sort $$(filter %.c,$$^)) $$(SHIM_UNIT_LIBS_$$(@F)) -lcmocka
endef
$(foreach part,$(SHIM_UNIT_TESTS:shim_%=%),$(eval $(call shim_unit,$(part))))

.PHONY: test-shim-unit
all-tests: test-shim-unit
test-shim-unit: $(SHIM_UNIT_TESTS:%=run-%) ## the shim's parts, one by one
$(foreach test,$(SHIM_UNIT_TESTS),$(call add_test,$(test),$(call unit_files,$(test).c), \
	$(SHIM_UNIT)/$(test),timeout 180 $$<))
