# build/bin/vcuda
COMMAND_OBJS := $(call objects,$(wildcard command/*.c))

all: $(BIN)/vcuda

$(BIN)/vcuda: $(COMMAND_OBJS) $(call objects,$(wildcard transport/*.c common/*.c))
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) -lyaml -lcjson
