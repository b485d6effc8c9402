# Linked into the sidecar and the agent.
TRANSPORT_SRCS := $(wildcard transport/*.c)
TRANSPORT_OBJS := $(call objects,$(TRANSPORT_SRCS))
# Who is linked without these has no tls:// (transport/tls/tls.h).
TRANSPORT_TLS_SRCS := $(wildcard transport/tls/*.c)
TRANSPORT_TLS_OBJS := $(call objects,$(TRANSPORT_TLS_SRCS))
TRANSPORT_TLS_LIBS := -lssl -lcrypto
# Who is linked without these speaks TCP with a light:// agent (transport/light/light.h).
TRANSPORT_LIGHT_SRCS := $(if $(filter 1,$(LIGHT)),$(wildcard transport/light/*.c))
TRANSPORT_LIGHT_OBJS := $(call objects,$(TRANSPORT_LIGHT_SRCS))
TRANSPORT_LIGHT_LIBS := $(if $(TRANSPORT_LIGHT_SRCS),-lngtcp2_crypto_gnutls -lngtcp2 -lgnutls)
# What codes payloads; linked into the sidecar and the worker, with libzstd.
TRANSPORT_CODEC_SRCS := $(wildcard transport/codec/*.c)
TRANSPORT_CODEC_OBJS := $(call objects,$(TRANSPORT_CODEC_SRCS))
# Loops over bytes, which the compiler makes wide.
$(addprefix $(OBJ)/transport/codec/,planes.o codec.o name.o): ALL_CFLAGS += -O3
