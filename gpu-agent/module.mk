# gpu-agent: supervisor, front and worker in one binary.  It never links libcuda: the worker opens
# the driver that is configured.

# Everything but the worker; tests link it with a toy worker of their own.
AGENT_FRONT_SRCS := gpu-agent/main.c $(wildcard gpu-agent/supervisor/*.c gpu-agent/supervisor/*/*.c gpu-agent/front/*.c gpu-agent/front/*/*.c \
	gpu-agent/identity/*.c gpu-agent/keeper/*.c \
	gpu-agent/probe/*.c gpu-agent/sandbox/*.c gpu-agent/cache/*.c)
AGENT_FRONT_SRCS += $(wildcard gpu-agent/store/*.c gpu-agent/store/*/*.c gpu-agent/uploads/*.c) transport/codec/name.c
AGENT_FRONT_OBJS := $(call objects,$(AGENT_FRONT_SRCS))
AGENT_WORKER_SRCS := $(wildcard gpu-agent/worker/*.c gpu-agent/worker/*/*.c \
	gpu-agent/worker/*/*/*.c) \
	$(wildcard gpu-agent/generated/*.c) $(filter-out %/name.c,$(wildcard transport/codec/*.c))
AGENT_OBJS := $(AGENT_FRONT_OBJS) $(call objects,$(AGENT_WORKER_SRCS))
AGENT_LIBS := -lyaml -lmicrohttpd -lcjson -lhiredis -lssl -lcrypto -lzstd -lm -ldl

# NVIDIA's NVML is opened at run time (nvml.c); only its types come from the header.
$(addprefix $(OBJ)/gpu-agent/worker/driver/nvml/,nvml.o nvml_pair.o): CPPFLAGS += -isystem $(NVML)/include

# Their bytes come by .incbin, which the compiler's list of dependencies does not know.
$(OBJ)/gpu-agent/store/registry/registry_scripts.o $(FUZZ_OBJ)/gpu-agent/store/registry/registry_scripts.o: \
	$(wildcard gpu-agent/store/registry/*.lua)
$(OBJ)/gpu-agent/front/http/page.o: $(wildcard gpu-agent/front/http/page/*)

all: $(BIN)/gpu-agent

$(BIN)/gpu-agent: $(AGENT_OBJS) $(call objects,$(wildcard common/*.c transport/*.c transport/tls/*.c)) $(TRANSPORT_LIGHT_OBJS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS) $(TRANSPORT_LIGHT_LIBS)
