# build/bin/vcuda-client
SIDECAR_SRCS := $(wildcard sidecar/*.c sidecar/*/*.c transport/codec/*.c)
SIDECAR_OBJS := $(call objects,$(SIDECAR_SRCS))
# Everything but main(), for tests and for the `vcuda` command.
SIDECAR_PARTS := $(filter-out $(OBJ)/sidecar/main.o,$(SIDECAR_OBJS))
SIDECAR_LIBS := -lyaml -lcjson -lzstd -lm

all: $(BIN)/vcuda-client

$(BIN)/vcuda-client: $(SIDECAR_OBJS) $(call objects,$(wildcard transport/*.c transport/tls/*.c common/*.c)) $(TRANSPORT_LIGHT_OBJS)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) $(SIDECAR_LIBS) $(TRANSPORT_TLS_LIBS) $(TRANSPORT_LIGHT_LIBS)
