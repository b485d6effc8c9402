# images/: what runs in other people's containers, built so that it runs there; `make images`.
#
# vcuda-client is static (musl, whose name look-up needs nothing): it is all that the client's image
# has beside the libraries, and runs in any container.  The vcuda command loads NVML's front, so it is
# dynamic, against an old glibc like the fronts themselves.
IMAGES := $(BUILD)/images
SOURCES := $(CACHE)/sources
# musl has ints where glibc has size_t, in its macros too: conversions are checked by the other builds.
PORTABLE_CFLAGS := -std=gnu17 -O2 -g0 $(filter-out -Wconversion,$(WARNINGS)) -Wno-sign-compare -fstack-protector-strong -fno-sanitize=undefined \
	-D_GNU_SOURCE -I. -isystem $(SOURCES) -isystem $(SOURCES)/libyaml/include -isystem $(SOURCES)/libzstd/lib \
	-isystem $(SOURCES)/xxhash -pthread
YAML_CFLAGS := -O2 -g0 -fno-sanitize=undefined -DYAML_DECLARE_STATIC -DYAML_VERSION_STRING='"0.2.5"' \
	-DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5
CLIENT_SRCS := $(wildcard sidecar/*.c sidecar/*/*.c transport/*.c transport/codec/*.c transport/tls/*.c common/*.c)
ZSTD_CFLAGS := -O2 -g0 -ffunction-sections -fno-sanitize=undefined -DZSTD_DISABLE_ASM=1 -DZSTD_LEGACY_SUPPORT=0
# Without transport/tls: it knows tls:// addresses, and dials none.
CLIENT_COMMAND_SRCS := $(wildcard command/*.c transport/*.c common/*.c)

$(SOURCES)/.complete: images/fetch-sources.sh
	$(Q)images/fetch-sources.sh $(CACHE)
	$(Q)touch $@

# OpenSSL for the static client.
MUSL_SSL := $(CACHE)/openssl-musl
$(MUSL_SSL)/STAMP: $(SOURCES)/.complete images/build-openssl.sh | $(CACHE)/.complete
	$(call say,OPENSSL,$@)
	$(Q)images/build-openssl.sh $(CACHE) $$(nproc)
	$(Q)touch $@
$(IMAGES)/obj/static/transport/tls/%.o: PORTABLE_CFLAGS += -isystem $(MUSL_SSL)/include
$(patsubst %.c,$(IMAGES)/obj/static/%.o,$(wildcard transport/tls/*.c)): $(MUSL_SSL)/STAMP

# portable(TARGET, NAME): rules for the objects of one target of zig's.
define portable
$(IMAGES)/obj/$(2)/%.o: %.c common/glibc_2_17.h | $(SOURCES)/.complete $(CACHE)/.complete
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(ZIG) cc -target $(1) $$(PORTABLE_CFLAGS) -isystem $(NVML)/include -isystem $(CUDA13)/include -MMD -MP -c $$< -o $$@

$(IMAGES)/obj/$(2)/parts.a: $(SOURCES)/.complete
	$$(call say,AR,$$@)
	$$(Q)rm -rf $(IMAGES)/obj/$(2)/parts && mkdir -p $(IMAGES)/obj/$(2)/parts
	$$(Q)for source in $(SOURCES)/libyaml/src/*.c $(SOURCES)/cjson/cJSON.c; do \
		$(ZIG) cc -target $(1) $$(YAML_CFLAGS) -I$(SOURCES)/libyaml/include -c $$$$source \
			-o $(IMAGES)/obj/$(2)/parts/$$$$(basename $$$$source .c).o || exit 1; done
	$$(Q)for source in $(foreach part,common compress decompress,$(SOURCES)/libzstd/lib/$(part)/*.c); do \
		$(ZIG) cc -target $(1) $$(ZSTD_CFLAGS) -c $$$$source \
			-o $(IMAGES)/obj/$(2)/parts/$$$$(basename $$$$source .c).o || exit 1; done
	$$(Q)rm -f $$@ && $(ZIG) ar rcsD $$@ $(IMAGES)/obj/$(2)/parts/*.o
endef
$(eval $(call portable,x86_64-linux-musl,static))
$(eval $(call portable,x86_64-linux-gnu.2.17 -include common/glibc_2_17.h,old))

TELLS_COMMIT_OLD := $(IMAGES)/obj/static/sidecar/main.o $(IMAGES)/obj/old/command/main.o
$(TELLS_COMMIT_OLD): $(OBJ)/commit
$(TELLS_COMMIT_OLD): PORTABLE_CFLAGS += -DVCUDA_COMMIT='"$(COMMIT)"'

$(IMAGES)/bin/vcuda-client: $(CLIENT_SRCS:%.c=$(IMAGES)/obj/static/%.o) $(IMAGES)/obj/static/parts.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(ZIG) cc -target x86_64-linux-musl -static -s -pthread -Wl,--gc-sections -o $@ $^ \
		$(MUSL_SSL)/libssl.a $(MUSL_SSL)/libcrypto.a

$(IMAGES)/bin/vcuda: $(CLIENT_COMMAND_SRCS:%.c=$(IMAGES)/obj/old/%.o) $(IMAGES)/obj/old/parts.a
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(OLD_CC) -s -pthread -o $@ $^ -ldl

-include $(shell find $(IMAGES)/obj -name '*.d' 2>/dev/null)

.PHONY: images-programs
images-programs: $(IMAGES)/bin/vcuda-client $(IMAGES)/bin/vcuda ## the client's two programs as they stand in images: static, and for old glibcs

.PHONY: images
images: all examples programs-13 $(IMAGES)/bin/vcuda-client $(IMAGES)/bin/vcuda ## container images: build/images/*.tar (images/build.sh says how to choose)
	$(Q)images/build.sh $(BUILD) $(CACHE)
