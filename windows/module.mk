# The client for Windows, by Debian's gcc-mingw-w64-x86-64: build/windows/*.dll and vcuda.exe, from
# the same sources and descriptions. docs/WINDOWS.md says what it has. Nothing of `all`.
#
# nvcuda.dll is the driver front with the sidecar in it; every other DLL is a front that stands on
# it. windows/compat/ is before mingw's own headers on the include path, windows/os/ behind them.

WINDOWS_GCC ?= x86_64-w64-mingw32-gcc-posix
WINDOWS_AR ?= x86_64-w64-mingw32-ar
WINDOWS_NM ?= x86_64-w64-mingw32-nm
WINDOWS := $(BUILD)/windows
WINDOWS_OBJ := $(OBJ)/windows

# Winsock and WaitOnAddress are of Windows 8; a stack protector would need a DLL of mingw's.
WINDOWS_CFLAGS = -std=gnu17 $(CFLAGS) -Wall -Wextra -Wstrict-prototypes -Werror -D_WIN32_WINNT=0x0A00 \
	-D__USE_MINGW_ANSI_STDIO=1 -I.
# printf's attribute means Microsoft's letters there, and everything that a DLL does not name in
# its .def is hidden.
WINDOWS_COMPAT = -Iwindows/compat $(WINDOWS_CFLAGS) -Wno-attributes -Wno-format -Wno-format-extra-args \
	-Wno-stringop-overread \
	-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
WINDOWS_LIBS := -static -lws2_32 -lsynchronization

# What Linux alone has, or what windows/ has in its place.
WINDOWS_ABSENT := shim/engine/attach/own_sidecar.c shim/engine/attach/rejoin.c shim/engine/thread_gone.c shim/driver/memory/pages/page_fault_signal.c \
	shim/driver/memory/pages/page_fault_userfaultfd.c shim/driver/memory/mirror/mirror_usable.c shim/driver/memory/sharing/share.c shim/driver/memory/sharing/sealed_file.c shim/driver/memory/pools/pool_file.c shim/driver/memory/virtual/vmm_host.c \
	sidecar/channel/adopt.c sidecar/control_client.c sidecar/install.c sidecar/channel/local.c sidecar/main.c \
	sidecar/server/metrics.c sidecar/server/pending.c sidecar/channel/renew.c sidecar/memory/segment.c sidecar/server/server.c sidecar/server/spare_segment.c \
	sidecar/server/state.c transport/light.c transport/local.c transport/loopback.c transport/tls.c \
	transport/unix.c transport/codec/codec.c common/config.c common/folder.c \
	common/instance_lock.c common/network.c common/openmetrics.c common/unix_socket.c
WINDOWS_SRCS := $(filter-out $(WINDOWS_ABSENT),$(SHIM_SRCS) $(addprefix shim/generated/, \
	cuda_stubs.c cuda_forms.c cuda_calls.c) $(wildcard sidecar/*.c sidecar/*/*.c transport/*.c \
	transport/codec/*.c common/*.c)) $(wildcard windows/client/*.c windows/shim/*.c) \
	windows/fronts/guard.c

# A library that is its header alone: Debian's, without the folder that it lies in.
WINDOWS_XXHASH := $(WINDOWS_OBJ)/include/xxhash.h
$(WINDOWS_XXHASH): /usr/include/xxhash.h
	$(Q)mkdir -p $(@D)
	$(Q)cp $< $@
WINDOWS_COMPAT += -isystem $(dir $(WINDOWS_XXHASH))

# windows_object(FOLDER,FLAGS): how objects of it are compiled.
define windows_object
$$(WINDOWS_OBJ)/$(1)/%.o: %.c | $$(CACHE)/.complete $$(WINDOWS_XXHASH)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(WINDOWS_GCC) $(2) -MMD -MP -c $$< -o $$@
endef
$(eval $(call windows_object,os,$$(WINDOWS_CFLAGS)))
$(eval $(call windows_object,shim,$$(WINDOWS_COMPAT) -isystem $$(CUDA13)/include))

# No DLL may wait while it is unloaded: windows/shim/exit.c calls what is a destructor elsewhere.
$(WINDOWS_OBJ)/shim/shim/driver/device/init.o: WINDOWS_COMPAT += -Ddestructor=unused

# windows_dll(NAME,MAP,OBJECTS,LIBRARIES)
define windows_dll
$$(WINDOWS)/$(1).dll: $(3) $(2) windows/def.py $(4)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)windows/def.py $(1).dll $(2) $$(WINDOWS_NM) $(3) >$$(WINDOWS_OBJ)/$(1).def
	$$(Q)$$(WINDOWS_GCC) -shared -o $$@ $$(WINDOWS_OBJ)/$(1).def $(3) \
		-Wl,--out-implib,$$(WINDOWS_OBJ)/lib$(1).a $(4) $$(WINDOWS_LIBS)
WINDOWS_DLLS += $$(WINDOWS)/$(1).dll
endef
WINDOWS_OS_OBJS := $(patsubst %.c,$(WINDOWS_OBJ)/os/%.o,$(wildcard windows/os/*.c))
WINDOWS_OBJS := $(WINDOWS_OS_OBJS) $(WINDOWS_SRCS:%.c=$(WINDOWS_OBJ)/shim/%.o)
$(eval $(call windows_dll,nvcuda,$(NAMES_DIR)/libcuda.map,$$(WINDOWS_OBJS)))

##### The fronts #####

# Each has what on Linux all fronts of an ABI share.
WINDOWS_NVCUDA := $(WINDOWS_OBJ)/libnvcuda.a
$(WINDOWS_NVCUDA): $(WINDOWS)/nvcuda.dll ;

# What a front asks of windows/os/ for itself, it has of its own.
WINDOWS_OS := $(WINDOWS_OBJ)/libos.a
$(WINDOWS_OS): $(WINDOWS_OS_OBJS)
	$(Q)rm -f $@
	$(Q)$(WINDOWS_AR) rcs $@ $^
WINDOWS_UNDER := $(WINDOWS_NVCUDA) $(WINDOWS_OS)

# windows_front(FOLDER,ABI,CUDA,SOURCES,DLL,MAP,LIBRARIES)
define windows_front
$(call windows_object,$(1),$$(WINDOWS_COMPAT) -DVCUDA_ABI=$(2) -isystem $$(CUDA$(3))/include)
$(call windows_dll,$(5),$(6),$(patsubst %.c,$(WINDOWS_OBJ)/$(1)/%.o,$(4) $(FRONT_COMMON)),$(7) $(WINDOWS_UNDER))
endef
$(foreach abi,12 13,$(eval $(call windows_front,cudart$(abi),$(abi),$(abi),$(RUNTIME_SRCS) windows/fronts/guard.c \
	$(addprefix shim/generated/,cudart_stubs.c cudart_forms.c),cudart64_$(abi),$(NAMES_DIR)/libcudart$(abi).map)))

# libcublas.so.12 is cublas64_12.dll; what is left out has no Windows version, or no number.
windows_name = $(subst .so.,64_,$(patsubst lib%,%,$(1)))
WINDOWS_WITHOUT := libnccl.so.2 libcudnn.so.8 libcupti.so.12 libcupti.so.13
WINDOWS_NAME.libcusparseLt.so.0 := cusparseLt
# It asks cuSPARSE for the names of statuses.
WINDOWS_NEEDS.libcusparseLt.so.0 := $(WINDOWS_OBJ)/libcusparse64_12.a
$(WINDOWS_OBJ)/libcusparse64_12.a: $(WINDOWS)/cusparse64_12.dll ;

# What shim/generated/libraries.mk says once more, for Windows.
define library_front
$(if $(filter $(4),$(WINDOWS_WITHOUT)),,$(call windows_front,$(1)$(2),$(2),13,$(wildcard shim/libraries/$(1)/*.c) \
	$(LIBRARY_MORE.$(1)) shim/generated/$(1)_stubs.c $(wildcard shim/generated/$(1)_forms.c),$(or \
	$(WINDOWS_NAME.$(4)),$(call windows_name,$(4))),$(call map_of,$(4)),$(WINDOWS_NEEDS.$(4))))
endef
library_part :=
unserved_front :=
include shim/generated/libraries.mk

$(eval $(call windows_object,nvml,$$(WINDOWS_COMPAT) -isystem $$(CUDA13)/include -isystem $$(NVML)/include))
$(eval $(call windows_dll,nvml,$(NVML_MAP),$(patsubst %.c,$(WINDOWS_OBJ)/nvml/%.o,$(wildcard shim/nvml/*.c)),$(WINDOWS_UNDER)))

##### Targets #####

$(WINDOWS)/vcuda.exe: windows/command/main.c windows/os/agent_address.h common/version.h
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(WINDOWS_GCC) $(WINDOWS_CFLAGS) -o $@ $< -static

.PHONY: windows windows-compiler
windows: windows-compiler $(WINDOWS_DLLS) $(WINDOWS)/vcuda.exe ## the client for Windows, build/windows (apt-get install gcc-mingw-w64-x86-64)
windows-compiler:
	$(Q)command -v $(WINDOWS_GCC) >/dev/null || { echo "windows: no $(WINDOWS_GCC):" \
		"apt-get install gcc-mingw-w64-x86-64" >&2; exit 1; }

include windows/tests.mk
