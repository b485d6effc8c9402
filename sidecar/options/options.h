/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sidecar was told: a YAML file, the environment, flags, the legacy command line.
 * A flag beats the environment, which beats the file.  docs/SIDECAR.md lists the keys.
 */
#ifndef VCUDA_SIDECAR_OPTIONS_OPTIONS_H
#define VCUDA_SIDECAR_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/channel.h"
#include "sidecar/agents/agents.h"
#include "sidecar/agents/spread.h"
#include "transport/codec/controller.h"
#include "transport/transport.h"

struct options {
	char socket[100];     /* short enough for the kernel with ".lock" and to spare */
	uint64_t socket_mode; /* permission bits */
	enum channel_mode mode;
	char agent[AGENTS_TEXT]; /* HOST[:PORT] or SCHEME://…, with , or + between; "" = none */
	char local_socket[100];	 /* of the agent, should it be on this machine; "" = none */
	bool local_never, local_only; /* protocol: native, local; else auto */
	bool light;		      /* protocol: light; local_never, too */
	char token[256];
	char credential[1024];	  /* the file of a signed token; "" = none */
	bool insecure;		  /* which may be sent in the clear */
	struct transport_tls tls; /* ca "": none */
	char pod[128];		  /* namespace/name, for the agent's ledger */
	char pod_uid[40];	  /* sessions with the same one share the limits */
	uint64_t vram_limit; /* bytes of each GPU for all processes together; 0 = no limit */
	uint64_t gpu_count;  /* GPUs that a process sees; 0 = all */
	enum spread_kind spread;
	uint64_t priority; /* features of HELLO that ask for a lower class; 0 = the tenant's */
	enum controller_mode compress; /* payloads on their way */
	bool upload_cache;	       /* those that the agent has do not travel */
	char congestion[16];	       /* of TCP; "": the kernel's default */
	uint64_t shm_size; /* shared memory of all processes together; 0 = no limit */
	char label[16];	   /* in what /proc says of shared memory: the pod's UID, or "host" */
	uint64_t ring, arena, bounce; /* bytes, powers of two */
	bool sized;		      /* arena or bounce as somebody said */
	uint64_t spin;	    /* ns before sleeping; UINT64_MAX = by the number of cores */
	uint64_t idle_exit; /* s without a process until it ends; 0 = never */
	uint64_t max_processes;
	uint64_t attach_timeout; /* s for dialing and handshake */
	uint64_t ping_timeout;	 /* s without an answer to a PING … */
	uint64_t busy_timeout;	 /* … and in the middle of a frame */
	uint64_t grace;	   /* s that a session outlives its connections; 0 = it does not */
	bool announce;	   /* the positional form: also in the network namespace, see
			      instance_lock.h */
	uint64_t dumpable; /* 1: its user may attach a debugger, and gets core dumps */
	bool json;
	bool openmetrics;
	bool remote; /* probe: --agent was given, only the agent is asked */
};

enum command {
	COMMAND_RUN,
	COMMAND_PROBE,
	COMMAND_DRAIN,
	COMMAND_STATUS,
	COMMAND_METRICS,
	COMMAND_CALLS,
	COMMAND_HELP,
	COMMAND_VERSION,
};

/* Defaults, environment, file and arguments together. 0, or -EINVAL with *error naming the
 * flag, or the file and line. */
int sidecar_options_parse(int argc, char **argv, struct options *options, enum command *command,
	struct error *error);

/* What a file holds, over what is there (for the fuzz target). */
int options_read_bytes(struct options *options, const char *name, const void *bytes, size_t n,
	struct error *error);

/* Whether what was set goes together: 0, or -EINVAL with *error. */
int options_agree(const struct options *options, struct error *error);

void options_default(struct options *options);
/* What nobody said, for the transport of the (first) agent: behind transport_assume. */
void options_suit(struct options *options);

/* The agents and GPUs that are asked for; stays as long as OPTIONS. */
struct spread_wish options_spread(const struct options *options);

extern const char options_usage[];

/* Whether a sidecar may have such a ring, arena and bounce buffer, bytes. */
bool options_channel_sizes(uint64_t ring, uint64_t arena, uint64_t bounce);

#endif
