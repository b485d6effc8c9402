# What a program loads in place of NVIDIA's libraries. Many names, few libraries: libvcuda-cuda.so is
# the driver front, libvcuda-12.so and libvcuda-13.so hold every front of an ABI, and a *name holder*
# stands for each NVIDIA name: a file of 1.5 KB with its SONAME and version node, no symbols, that
# needs the library behind it. libvcuda.so, which LD_PRELOAD names, needs them all, by file names
# that end in .so (what is copied as *.so works), found beside it.
#
# A front adds itself in a .mk file of its folder:
#	FRONT12_OBJS += its objects
#	FRONT12_NAMES += libcublas.so.12
# and its version script is libcublas12.map of NAMES_DIR, or what MAP.libcublas.so.12 says.

# Everything that is preloaded runs on old systems: glibc 2.17 and newer (tests/shim/preload.sh).
PRELOAD_CC ?= $(if $(SAN),$(CC) $(SANFLAGS),$(OLD_CC))
# zig keeps frame pointers where it is not told: they are a tenth of a launch's instructions.
PRELOAD_CFLAGS ?= -std=gnu17 $(CFLAGS) $(WARNINGS) -fPIC -fvisibility=hidden \
	-fstack-protector-strong $(if $(SAN),,-fomit-frame-pointer)
# Fences are beyond TSan, which then sees less, not more.
ifeq ($(SAN),thread)
PRELOAD_CFLAGS += -Wno-tsan
endif
PRELOAD_LDFLAGS ?= -shared -Wl,--hash-style=gnu -Wl,-z,relro

# Names out of the .api files, for the linker and the assembler.
NAMES_DIR := $(OBJ)/names
$(NAMES_DIR)/.made: $(wildcard protocol/api/*.api protocol/generator/*.py) protocol/generate.py
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) protocol/generate.py --names $(@D)
	$(Q)touch $@

.PRECIOUS: $(NAMES_DIR)/%.s $(NAMES_DIR)/%.map
$(NAMES_DIR)/%.s $(NAMES_DIR)/%.map: $(NAMES_DIR)/.made ;

# What each library front has for itself, though no ABI shows in it.
FRONT_COMMON := shim/libraries/common/items.c
SHIM_SRCS := $(filter-out $(FRONT_COMMON),$(wildcard shim/engine/*.c shim/engine/*/*.c shim/driver/*.c \
	shim/driver/*/*.c shim/driver/*/*/*.c shim/libraries/common/*.c))
SHIM_OBJS := $(patsubst %.c,$(OBJ)/shim/%.o,$(SHIM_SRCS) $(addprefix shim/generated/, \
	cuda_stubs.c cuda_forms.c cuda_calls.c))

CUDA_LIB := $(LIB)/libvcuda-cuda.so
FRONT12_LIB := $(LIB)/libvcuda-12.so
FRONT13_LIB := $(LIB)/libvcuda-13.so

# An empty library whose SONAME says where a file of ours is: what is linked with it needs that
# file, beside it, and is built without waiting for it. With $ORIGIN in it the loader does not
# search, and sees at once that a library is the one that LD_PRELOAD names.
stub = $(addprefix $(OBJ)/preload-stub/,$(notdir $(1)))
CUDA_STUB := $(call stub,$(CUDA_LIB))

FRONT12_OBJS := $(FRONT_COMMON:%.c=$(OBJ)/shim/%.o)
FRONT13_OBJS := $(FRONT12_OBJS)
FRONT12_NAMES :=
FRONT13_NAMES :=
SHIM_FRONTS := $(filter-out shim/generated/%,$(wildcard shim/*/*.mk))
include $(SHIM_FRONTS)
# What says which fronts there are, and in which order.
SHIM_ORDER := shim/module.mk $(SHIM_FRONTS) $(wildcard shim/generated/*.mk)

$(OBJ)/preload-stub/%.so: shim/module.mk | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo 'extern int vcuda_stub; int vcuda_stub;' | $(PRELOAD_CC) -shared -fPIC -x c - \
		-Wl,-soname,'$$ORIGIN/$(@F)' -o $@

##### The driver front #####

$(OBJ)/shim/%.o: %.c common/glibc_2_17.h | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_CFLAGS) -D_GNU_SOURCE -I. -isystem $(CUDA13)/include \
		-MMD -MP -c $< -o $@

# Bound lazily: most processes that preload it never make a CUDA call.
$(CUDA_LIB): $(SHIM_OBJS) $(NAMES_DIR)/libcuda.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PRELOAD_CC) $(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-z,defs -Wl,-soname,libcuda.so.1 \
		-Wl,--version-script=$(NAMES_DIR)/libcuda.map -o $@ $(SHIM_OBJS) -lpthread

##### The fronts of an ABI #####

# libcublas.so.12 -> its version script; the file of its name holder.
map_of = $(or $(MAP.$(1)),$(NAMES_DIR)/$(subst .so.,,$(1)).map)
holder_of = $(LIB)/libvcuda-$(subst .so.,,$(patsubst lib%,%,$(1))).so

# Bound lazily, and to the driver front by its file name.
define front_library
$(FRONT$(1)_LIB): $(FRONT$(1)_OBJS) $(foreach name,$(FRONT$(1)_NAMES),$(call map_of,$(name))) \
		shim/front.py $(CUDA_STUB)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PYTHON) shim/front.py together $$(filter %.map,$$^) >$$(OBJ)/$$(@F).map
	$$(Q)$$(PRELOAD_CC) $$(PRELOAD_LDFLAGS) -Wl,-z,lazy -Wl,-soname,$$(@F) \
		-Wl,--version-script=$$(OBJ)/$$(@F).map -o $$@ $$(filter %.o,$$^) \
		-Wl,--no-as-needed $$(CUDA_STUB) -Wl,--as-needed -lpthread -ldl
endef
$(foreach abi,12 13,$(eval $(call front_library,$(abi))))

##### Names #####

HOLD := ld -shared -T shim/holder.ld --hash-style=gnu -z norelro -z nodelete --no-as-needed

# holder(FILE,NAME,LIBRARY,MAP): FILE holds NAME for LIBRARY, which has the version nodes of MAP.
define holder
$(1): $(4) shim/front.py shim/holder.ld $(call stub,$(3))
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(PYTHON) shim/front.py nodes $(4) >$$(OBJ)/$$(@F).map
	$$(Q)rm -f $$@
	$$(Q)$$(HOLD) -soname $(2) --version-script=$$(OBJ)/$$(@F).map $(call stub,$(3)) -o $$@
all: $(1)
endef

# What is found by its own name is a link to a holder, or a holder: where links become copies there
# is still one copy of each front.
define front_name
$(call holder,$(call holder_of,$(1)),$(1),$(2),$(3))
$(LIB)/$(1): $(call holder_of,$(1))
	$$(Q)ln -sf $$(<F) $$@
all: $(LIB)/$(1)
$(OBJ)/link/$(1): $(3)
FRONT_HOLDERS += $(call holder_of,$(1))
endef

FRONT_HOLDERS :=
$(foreach abi,12 13,$(foreach name,$(FRONT$(abi)_NAMES),$(eval $(call \
	front_name,$(name),$(FRONT$(abi)_LIB),$(call map_of,$(name))))))
$(eval $(call holder,$(LIB)/libnvidia-ml.so.1,libnvidia-ml.so.1,$(NVML_LIB),$(NVML_MAP)))

# Copied by itself into a folder that the loader knows (/usr/local/nvidia/lib, Triton looks there),
# it finds the front where images have it.
$(LIB)/libcuda.so.1: $(NAMES_DIR)/libcuda.map shim/front.py shim/holder.ld
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) $(OBJ)/plain-stub
	$(Q)$(CC) -shared -nostdlib -x c /dev/null -Wl,-soname,$(notdir $(CUDA_LIB)) \
		-o $(OBJ)/plain-stub/libcuda.so
	$(Q)$(PYTHON) shim/front.py nodes $< >$(OBJ)/$(@F).map
	$(Q)rm -f $@
	$(Q)$(HOLD) -soname $(@F) --version-script=$(OBJ)/$(@F).map --enable-new-dtags \
		-rpath '$$ORIGIN:/lib/vcuda:/usr/local/lib/vcuda' $(OBJ)/plain-stub/libcuda.so -o $@
all: $(LIB)/libcuda.so.1

# The names without a number, in a folder of their own that LIBRARY_PATH and LD_LIBRARY_PATH may name: no other library
# is found by it. What is linked with one has all symbols; what opens one gets those of the front, whose filter it is.
# Each is a file, so that nothing becomes a second copy of a front where links become files.
# driver_name(FILE,SONAME,FRONT,MAP[,NAMES])
define driver_name
$(LIB)/driver/$(1): $(4) $(5) shim/front.py
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D) $$(OBJ)/driver
	$$(Q)$$(PYTHON) shim/front.py symbols $(4) $(5) >$$(OBJ)/driver/$(1).s
	$$(Q)$$(CC) -shared -nostdlib -Wl,--hash-style=gnu -Wl,-z,noseparate-code -Wl,--build-id=none -Wl,-soname,$(2) \
		-Wl,--filter='$$$$ORIGIN/../$(notdir $(3))' -Wl,--version-script=$(4) -o $$@ $$(OBJ)/driver/$(1).s
all: $(LIB)/driver/$(1)
endef
$(eval $(call driver_name,libcuda.so,libcuda.so.1,$(CUDA_LIB),$(NAMES_DIR)/libcuda.map))
# NVML's map is a pattern: the front itself says what there is.
$(OBJ)/driver/nvml.names: $(NVML_LIB)
	$(Q)mkdir -p $(@D)
	$(Q)nm -D --defined-only $< >$@
$(eval $(call driver_name,libnvidia-ml.so,libnvidia-ml.so.1,$(NVML_LIB),$(NVML_MAP),$(OBJ)/driver/nvml.names))

# A library to link a test with: the SONAME and the names of NVIDIA's, and nothing behind them. What is linked with
# one needs headers too, so it waits for `make deps` here.
$(OBJ)/link/%: shim/front.py | $(CACHE)/.complete
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(PYTHON) shim/front.py symbols $(call map_of,$*) >$@.s
	$(Q)$(CC) -shared -nostdlib -Wl,-soname,$* -Wl,--version-script=$(call map_of,$*) -o $@ $@.s

##### libvcuda.so #####

# While a program is loaded it stands for libcudart.so.13 (SONAME and symbol version), as
# libutilities.so does for 12 (shim/loader/loader.mk says why). dlsym on that handle searches
# what it needs in this order: the fronts of 13 come first.
VCUDA_NEEDS := $(FRONT13_LIB) $(CUDA_LIB) $(FRONT12_LIB) $(NVML_LIB) \
	$(filter-out $(call holder_of,libcudart.so.13),$(FRONT_HOLDERS))

$(LIB)/libvcuda.so: $(call stub,$(VCUDA_NEEDS)) shim/libvcuda.map shim/holder.ld $(SHIM_ORDER) \
		| $(VCUDA_NEEDS)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(HOLD) -soname libcudart.so.13 --version-script=shim/libvcuda.map \
		$(call stub,$(VCUDA_NEEDS)) -o $@

# What `vcuda preload` names, in its order: a program's own NEEDED libraries are looked for before
# those of a preloaded one, so each name stands in the list itself.
PRELOADED := $(LOADER_LIB) $(LIB)/libvcuda.so $(CUDA_LIB) $(FRONT12_LIB) $(FRONT13_LIB) \
	$(NVML_LIB) $(filter-out $(foreach abi,12 13,$(call holder_of,libcudart.so.$(abi))), \
	$(FRONT_HOLDERS))

$(LIB)/preload.list: $(SHIM_ORDER) | $(PRELOADED)
	$(Q)printf '%s\n' $(notdir $(PRELOADED)) >$@

# The chart has a copy of it.
.PHONY: check-preload
check: check-preload
check-preload:
	$(Q)printf '%s\n' $(notdir $(PRELOADED)) | diff deploy/helm/vcuda/files/preload - || \
		{ echo "deploy/helm/vcuda/files/preload is not the order of the fronts: make policies" >&2; exit 1; }

all: $(LIB)/libvcuda.so $(LIB)/preload.list
