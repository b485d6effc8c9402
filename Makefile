# vcuda: build, test, install.  `make help` lists what there is.
#
# Each folder brings its own rules in FOLDER/module.mk; this file holds what they share.

# Nothing here is made by a rule that is not written here.
MAKEFLAGS += --no-builtin-rules
# What a newcomer types takes as many jobs as there are processors and two more, since some wait; a -j that
# is given says otherwise. No other goal does: several goals come one after the other (clean all), and some
# tests want a machine to themselves.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
ifneq ($(filter all demo test build-tests,$(MAKECMDGOALS)),)
ifeq ($(words $(MAKECMDGOALS)),1)
MAKEFLAGS += -j$(shell expr $$(nproc) + 2)
endif
endif
endif

##### Settings (override on the command line) #####

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= gcc
V       ?= 0
SAN     ?=
CLANG   ?= clang-19
CLANG_FORMAT ?= clang-format-19
PYTHON  ?= python3

# The CUDA headers, nvcc and the two runtimes come from pinned registry packages; `make deps`
# puts them here.  Outside build/, so that `make clean` and other checkouts keep them.
CACHE   ?= $(if $(XDG_CACHE_HOME),$(XDG_CACHE_HOME),$(HOME)/.cache)/vcuda
CUDA13  := $(CACHE)/cuda-13.0
CUDA12  := $(CACHE)/cuda-12.9
CUDA135 := $(CACHE)/cuda-13.5
NVML    := $(CACHE)/nvml
ZIG     := $(CACHE)/venv/bin/python -m ziglang
# For programs and libraries that run wherever glibc is 2.17 or newer.
OLD_CC  := $(ZIG) cc -target x86_64-linux-gnu.2.17 -fno-sanitize=undefined -include common/glibc_2_17.h

# LIGHT=0: without QUIC, for who has no ngtcp2 (transport/light/light.h says what then is not had).
LIGHT ?= 1

ifeq ($(V),0)
Q := @
say = @printf '  %-8s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$(2))'
else
Q :=
say = @:
endif

##### Flags #####

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Werror
comma := ,
SANITIZERS := $(subst +,$(comma),$(SAN))
ifneq ($(SAN),)
BUILD := $(BUILD)/san-$(SAN)
SANFLAGS := -fsanitize=$(SANITIZERS) -fno-omit-frame-pointer
ifneq ($(findstring undefined,$(SAN)),)
SANFLAGS += -fno-sanitize-recover=undefined
endif
endif
CPPFLAGS += -D_GNU_SOURCE -I. -isystem $(CUDA13)/include
CFLAGS   ?= -O2 -g
# A build that is to be repeated elsewhere names no folder: what debuggers are told is in a program's build-id.
SAME_ELSEWHERE := $(if $(SOURCE_DATE_EPOCH),-ffile-prefix-map=$(CURDIR)=.)
ALL_CFLAGS = -std=gnu17 $(CFLAGS) $(SAME_ELSEWHERE) $(WARNINGS) -fvisibility=hidden -fstack-protector-strong \
	$(if $(SAN),$(SANFLAGS),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2) -pthread
# A dist or an installed tree brings its libraries in lib/deps: not in lib, where the fronts are,
# since a worker that opens libcuda.so.1 must not find ours.
ALL_LDFLAGS = $(LDFLAGS) -Wl,-z,relro,-z,now -Wl,-rpath,'$$ORIGIN/../lib/deps' $(SANFLAGS) -pthread

# What --version tells beside the version: the commit, and + where the sources are not quite those. Objects that
# have it are built anew when it changes.
COMMIT := $(or $(shell git describe --always --abbrev=12 --dirty=+ --exclude='*' 2>/dev/null),unknown)

BIN := $(BUILD)/bin
LIB := $(BUILD)/lib
OBJ := $(BUILD)/obj

# objects(SOURCES): where their objects go.
objects = $(patsubst %.c,$(OBJ)/%.o,$(1))

##### Targets #####

.DEFAULT_GOAL := all
.PHONY: help deps all demo test all-tests test-long long-tests generate check format lint bench fuzz dist install clean
.DELETE_ON_ERROR:

MODULES := transport/module.mk $(filter-out transport/module.mk,$(wildcard */module.mk))
include tests/list.mk $(MODULES)

# Their prerequisites are the folders'.
all: ## every binary and library: build/bin, build/lib
all-tests: ## every test-… but test-long, test-sanitize, test-torch, test-peers, test-numba and test-windows, on the software GPU; needs nothing else
test: ## the same; the suites that wait the most begin first. ALSO: what else is made meanwhile
	$(Q)$(MAKE) --no-print-directory all stack-programs
	$(Q)$(MAKE) --no-print-directory --output-sync STACK_READY=1 test-stack test-processes $(ALSO) all-tests
test-long: long-tests ## what takes long besides: models, programs with each optimisation off and by shared memory, calls that fail
fuzz: ## libFuzzer on every parser, FUZZ_SECONDS each (make test replays the corpora)

help: ## this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sort -u | \
		sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 28
	@echo
	@echo '  settings: V=1  SAN=address|undefined|address+undefined|thread  CC=gcc|clang-19  PREFIX=  DESTDIR='

deps: ## install what the build needs (Debian packages as root, registry packages into CACHE)
	$(Q)tools/install-deps.sh $(CACHE)

# Built once; every rule that needs a CUDA header, nvcc or zig depends on it.
$(CACHE)/.complete: tools/install-deps.sh tools/fetch_headers.py
	$(Q)tools/install-deps.sh $(CACHE)

$(OBJ)/%.o: %.c | $(CACHE)/.complete
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(OBJ)/commit: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
.PHONY: FORCE
TELLS_COMMIT := command/main.o sidecar/main.o gpu-agent/supervisor/settings/options.o
$(addprefix $(OBJ)/,$(TELLS_COMMIT)): $(OBJ)/commit
$(addprefix $(OBJ)/,$(TELLS_COMMIT)) $(addprefix $(FUZZ_OBJ)/,$(TELLS_COMMIT)): CPPFLAGS += -DVCUDA_COMMIT='"$(COMMIT)"'

# The rest of all is zig's, whatever CC is.
.PHONY: objects
objects: $(AGENT_OBJS) $(COMMAND_OBJS) $(SIDECAR_OBJS) $(COMMON_OBJS) $(TRANSPORT_OBJS) $(TRANSPORT_TLS_OBJS) $(TRANSPORT_LIGHT_OBJS) \
	$(call objects,$(wildcard softgpu/*/*.c)) $(PTX_OBJS) ## what CC compiles of all, and nothing linked

dist: all programs cublas-programs cublaslt-programs cudnn-programs cufft-programs curand-programs cusolver-programs cusparse-programs cusparselt-programs nccl-programs bench-programs $(STACK_GPU) $(DIFFERENTIAL_TRACE) ## binaries, libraries and programs under .dist/, for a machine without ours
	$(Q)tools/dist.sh $(BUILD) .dist $(CACHE)

install: all ## into DESTDIR/PREFIX
	$(Q)tools/install.sh $(BUILD) $(DESTDIR)$(PREFIX)

lint: ## layout of the C files, syntax of the scripts, layers between the folders, generated code, the list of tests
	$(Q)git ls-files '*.c' '*.h' | grep -v '/generated/' | \
		xargs $(CLANG_FORMAT) --dry-run -Werror
	$(Q)git ls-files '*.c' '*.h' | grep -v '/generated/' | xargs wc -l | \
		awk '$$2 != "total" && $$1 > 500 {print "lint: more than 500 lines: " $$2; bad = 1} END {exit bad}' >&2
	$(Q)! git ls-files ':(glob)*.[ch]' ':(glob)*.cu' ':(glob)*.py' | grep . || \
		{ echo "lint: these belong into a folder" >&2; exit 1; }
	$(Q)! git ls-files -s | grep ^120000 || \
		{ echo "lint: these are links, which point to nothing elsewhere" >&2; exit 1; }
	$(Q)$(PYTHON) -m py_compile $$(git ls-files '*.py')
	$(Q)for script in .ci/run $$(git ls-files '*.sh'); do bash -n $$script || exit 1; done
	$(Q)! git ls-files -s '*.py' '*.sh' | grep ^100644 | cut -f 2 | xargs -r grep -lm1 '^#!' || \
		{ echo "lint: these have a #! line: chmod +x" >&2; exit 1; }
	$(Q)tools/layers.py --test
	$(Q)tools/stems.py --test
	$(Q)tools/locks.py --test
	$(Q)tools/waits.py --test
	$(Q)tools/words.py --test
	$(Q)$(MAKE) --no-print-directory check check-tests

format: ## lay the C files out as .clang-format says
	$(Q)git ls-files '*.c' '*.h' | grep -v '/generated/' | xargs $(CLANG_FORMAT) -i

clean: ## remove build/
	$(Q)rm -rf $(BUILD)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
