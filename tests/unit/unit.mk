# tests/unit: ROOM/PREFIX_NAME.c becomes build/tests/PREFIX_NAME; every program prints cmocka's lines.
# A name is there once, whatever its room.
#
# What a test is linked with besides common/: UNIT_OBJS_PREFIX, or NAME_OBJS for a single one;
# the same with LIBS and NEEDS (products that must be there when it runs). A prefix that is not
# listed in UNIT_PREFIXES has rules of its own elsewhere. Other folders add theirs with
#     UNIT_PREFIXES += shim
#     UNIT_OBJS_shim = …
# in an .mk of their own; those of the rooms come first.
include $(call unit_files,*.mk)

UNIT_COMMON = $(call objects,$(wildcard common/*.c transport/*.c))

UNIT_PREFIXES += common transport ring sidecar
transport_resolve_LIBS = -Wl,--wrap=getaddrinfo
transport_tls_OBJS = $(call objects,$(wildcard transport/tls/*.c))
transport_tls_LIBS = -lssl -lcrypto
transport_light_OBJS = $(call objects,$(wildcard transport/light/*.c))
transport_light_LIBS = $(TRANSPORT_LIGHT_LIBS)
UNIT_OBJS_ring = $(SIDECAR_PARTS)
UNIT_OBJS_sidecar = $(SIDECAR_PARTS)
UNIT_LIBS_ring = -lcjson -lzstd -lm
UNIT_PREFIXES += codec
UNIT_OBJS_codec = $(call objects,$(wildcard transport/codec/*.c))
UNIT_LIBS_codec = -lzstd -lm
UNIT_PREFIXES += uploads
UNIT_OBJS_uploads = $(call objects,gpu-agent/uploads/payloads.c gpu-agent/uploads/lanes.c gpu-agent/worker/staging/uploads.c \
	transport/codec/name.c)
UNIT_PREFIXES += resume
UNIT_OBJS_resume = $(SIDECAR_PARTS) $(call objects,gpu-agent/worker/reply/send_window.c)
UNIT_LIBS_resume = -lcjson -lzstd -lm
UNIT_PREFIXES += cudnn
UNIT_OBJS_cudnn = $(call objects,tests/fuzz/no_beside.c $(wildcard gpu-agent/worker/libraries/cudnn/*.c) gpu-agent/worker/handle.c gpu-agent/worker/limits/quotas.c \
	$(wildcard gpu-agent/worker/libraries/common/*.c) gpu-agent/probe/library_search.c gpu-agent/generated/cudnn_serve.c)
UNIT_LIBS_cudnn = -lcrypto -ldl
UNIT_PREFIXES += profile
UNIT_OBJS_profile = $(call objects,gpu-agent/worker/libraries/cupti/profile_buffer.c gpu-agent/worker/libraries/cupti/profile_store.c)
UNIT_PREFIXES += library
UNIT_PREFIXES += compiled
UNIT_OBJS_compiled = $(call objects,gpu-agent/cache/compiled.c gpu-agent/cache/tenant_folder.c)
UNIT_PREFIXES += images
UNIT_OBJS_images = $(call objects,gpu-agent/cache/images.c gpu-agent/cache/tenant_folder.c)
UNIT_LIBS_images = -lcrypto
UNIT_LIBS_compiled = -lcrypto
UNIT_LIBS_sidecar = -lcjson -lzstd -lm

UNIT_FILES = $(foreach prefix,$(sort $(UNIT_PREFIXES)),$(call unit_files,$(prefix)_*.c))
UNIT_TESTS = $(notdir $(UNIT_FILES:.c=))
unit_prefix = $(firstword $(subst _, ,$(1)))

.PHONY: test-unit
all-tests: test-unit
test-unit: ## common, transport and the sidecar's parts

# NAME and FILE.
define unit_rule
$$(BUILD)/tests/$(1): $$(OBJ)/$(2:.c=.o) $$(sort $$(UNIT_COMMON) \
		$$($(1)_OBJS) $$(UNIT_OBJS_$$(call unit_prefix,$(1))))
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(ALL_LDFLAGS) $$($(1)_LIBS) \
		$$(UNIT_LIBS_$$(call unit_prefix,$(1))) -lyaml -lcmocka

test-unit: run-$(1)
$$(call add_test,$(1),$(2),$$(BUILD)/tests/$(1) $$($(1)_NEEDS) \
	$$(UNIT_NEEDS_$$(call unit_prefix,$(1))),BUILD=$$$$(BUILD) timeout 300 $$$$<)
endef

$(foreach file,$(UNIT_FILES),$(eval $(call unit_rule,$(notdir $(file:.c=)),$(file))))
