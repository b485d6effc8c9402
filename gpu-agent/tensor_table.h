/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store knows: a memfd that the supervisor keeps, so that the next store goes on where
 * this one died, and that the front maps for reading (/v1/tensors, /metrics).  The store is the
 * only one that writes.  Of a record its state is written last, and taken away first.
 */
#ifndef VCUDA_GPU_AGENT_TENSOR_TABLE_H
#define VCUDA_GPU_AGENT_TENSOR_TABLE_H

#include <stdint.h>

#include "gpu-agent/tensor.h"

#define TENSORS_MAX 4096   /* each is a descriptor here and one of the supervisor's */
#define TENSOR_HOLDS 65536 /* sessions that hold one, together */
#define TENSOR_SHARES 256  /* bytes of the list of namespaces */

struct tensor_record {
	uint32_t state; /* enum tensor_state */
	uint32_t flags;
	uint8_t id[16], gpu[16];
	char space[TENSOR_SPACE];
	char name[TENSOR_NAME]; /* without the namespace */
	uint32_t dtype, rank;
	int64_t shape[TENSOR_RANK];
	uint64_t bytes, room, offset;
	uint64_t owner; /* a session; 0: it is over */
	uint64_t version, ctime, mtime;
	uint64_t used;	  /* in the order of taking and leaving: the least goes first */
	uint32_t holders; /* of `holds` */
	uint32_t piece;	  /* of memory, which several may have (pieces.c); 0: its own */
	char share[TENSOR_SHARES]; /* namespaces, each with a ',' behind it */
};

struct tensor_hold {
	uint64_t session;
	uint32_t tensor;
	uint32_t writes; /* it was given to be written, before it was sealed */
};

struct tensor_counters {
	uint64_t created, hits, misses, sealed, deleted, evicted, refused, pool_hits;
	uint64_t unfinished; /* whose owner ended before it was sealed */
	uint64_t lost;	     /* with a GPU, or another agent that does not come back */
};

struct tensor_table {
	uint64_t magic;
	uint64_t clock;	     /* of `used` */
	uint32_t count;	     /* records from here on were never used */
	uint32_t hold_count; /* of holds, without a gap */
	uint64_t epoch;	     /* ns since 1970 when it was made: what was before is lost */
	uint32_t restarts;   /* stores that took it over */
	uint32_t sandbox;    /* the parts that keep the store in (sandbox.h) */
	struct tensor_counters counters;
	uint64_t hash[TENSORS_MAX]; /* of namespace and name; 0: it has none */
	struct tensor_record records[TENSORS_MAX];
	struct tensor_hold holds[TENSOR_HOLDS];
};
#define TENSOR_TABLE_MAGIC (0x3145524f54534356ull ^ sizeof(struct tensor_table))

/* Under these names the supervisor keeps it, and each descriptor under its tensor's id. */
#define TENSOR_TABLE_NAME ((const uint8_t[16]){'t'})

#endif
