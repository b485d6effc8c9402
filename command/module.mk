# build/bin/vcuda
COMMAND_OBJS := $(call objects,$(wildcard command/*.c))

# NVML's front is opened at run time (smi.c, topology.c); only its types come from the header.
$(addprefix $(OBJ)/command/,smi.o topology.o): CPPFLAGS += -isystem $(NVML)/include

all: $(BIN)/vcuda $(BIN)/vcuda-top

# A program of its own: nothing else needs ncurses, and a static client has none.
$(BIN)/vcuda-top: $(call objects,$(wildcard command/top/*.c) command/http.c) \
		$(call objects,$(wildcard transport/*.c common/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lcjson -lncursesw -ltinfo

$(BIN)/vcuda: $(COMMAND_OBJS) $(call objects,$(wildcard transport/*.c common/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lcjson -ldl
