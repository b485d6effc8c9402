/* SPDX-License-Identifier: Apache-2.0
 *
 * What front, worker and agent-uploads say to each other of payloads that are kept by content
 * (docs/TRANSPORTS.md).  Each stripe of a session that may has two pairs of SOCK_SEQPACKET: the
 * front makes them, and gives one end of each to the worker and the other to agent-uploads.
 * What a worker says there is a tenant's word.
 */
#ifndef VCUDA_GPU_AGENT_UPLOADS_H
#define VCUDA_GPU_AGENT_UPLOADS_H

#include <stdint.h>

#include "gpu-agent/tensor.h"
#include "protocol/wire/frame.h"
#include "protocol/wire/session.h"

#define UPLOADS_VERSION 1u

/* A stripe's memory: both processes read and write it, each for itself. */
#define UPLOADS_SLOTS 8u
#define UPLOADS_SLOT_BYTES FRAME_PAYLOAD_MAX
#define UPLOADS_MEMORY (UPLOADS_SLOTS * UPLOADS_SLOT_BYTES)

/* front -> agent-uploads, fds: the ends for questions and for what is to be kept. */
struct uploads_lane {
	uint32_t version;
	uint32_t stripe;
	uint64_t session; /* the lane that this stripe had before is closed */
	char space[TENSOR_SPACE];
};

/* agent-uploads -> front, several times a second. front -> agent-uploads: the totals of those
 * before it, which it says with its own from then on, so that the next front has them, too. */
struct uploads_counts {
	uint32_t version;
	uint32_t lanes;
	uint64_t bytes;	      /* that are kept */
	uint64_t has_earlier; /* it was told those of the processes before it */
	uint64_t hits, hit_bytes, misses, evictions;
};

static inline void uploads_add(struct uploads_counts *to, const struct uploads_counts *totals)
{
	to->hits += totals->hits;
	to->hit_bytes += totals->hit_bytes;
	to->misses += totals->misses;
	to->evictions += totals->evictions;
}

enum uploads_what {
	/* worker, the first pair; each is answered */
	UPLOADS_BEGIN = 1, /* fd: the stripe's memory, a memfd of UPLOADS_MEMORY bytes */
	UPLOADS_ASK = 2,   /* names[count]: which are there? They stay for this stripe */
	UPLOADS_GET = 3,   /* names[0] into `slot`; it stays for nobody then */
	/* the second pair; each is answered, with `slot` */
	UPLOADS_PUT = 4, /* the first `length` bytes of `slot` */
};

struct uploads_request {
	uint32_t what;
	uint32_t slot;
	uint32_t length;
	uint32_t count;
	struct session_name names[SESSION_NAMES_ASK]; /* only `count` of them are sent */
};

struct uploads_answer {
	uint32_t what;
	uint32_t slot;
	uint32_t status; /* 0, or GIVE: it is not there */
	uint32_t reserved;
	union {
		uint64_t have; /* ASK: bits */
		uint64_t seed; /* BEGIN */
	};
};

_Static_assert(sizeof(struct uploads_lane) != sizeof(struct uploads_counts), "told apart");

#endif
