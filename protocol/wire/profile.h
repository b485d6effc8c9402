/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent's CUPTI recorded of the GPU, as it travels (vcudaProfileEnable, …Flush, …Read
 * of vcuda.api).  While a session is profiled, the worker serves each frame under an external
 * correlation id that is the frame's `seq`: so the program's end knows whose work a record is.
 *
 * A batch is a run of records, each struct profile_record and, behind it, its name; each begins
 * at a multiple of 8 bytes.  Layouts are ours: CUPTI's differ with its version.  Both ends
 * check `bytes` and `name_bytes` before they look further.
 */
#ifndef VCUDA_PROTOCOL_WIRE_PROFILE_H
#define VCUDA_PROTOCOL_WIRE_PROFILE_H

#include <stdint.h>

/* vcudaProfileEnable's `kinds`: 1u << kind for each. */
enum profile_kind {
	PROFILE_KERNEL = 0,	       /* CUPTI_ACTIVITY_KIND_KERNEL: kernels one at a time */
	PROFILE_CONCURRENT_KERNEL = 1, /* CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL */
	PROFILE_COPY = 2,	       /* CUPTI_ACTIVITY_KIND_MEMCPY */
	PROFILE_FILL = 3,	       /* CUPTI_ACTIVITY_KIND_MEMSET */
	PROFILE_PEER_COPY = 4,	       /* CUPTI_ACTIVITY_KIND_MEMCPY2 */
	PROFILE_GRAPH = 5,	       /* CUPTI_ACTIVITY_KIND_GRAPH_TRACE */
	PROFILE_KINDS
};

/* vcudaProfileId's `what`: the number by which records name it. */
enum profile_id {
	PROFILE_ID_CONTEXT = 0, /* the frame's; `handle` is of no matter */
	PROFILE_ID_STREAM = 1,	/* `handle`: as a stream travels */
	PROFILE_ID_GRAPH = 2,
	PROFILE_ID_GRAPH_EXEC = 3,
	PROFILE_IDS
};

struct profile_kernel {
	int32_t grid[3], block[3];
	uint32_t cluster[3]; /* 0: none */
	int32_t static_shared, dynamic_shared;
	uint32_t shared_executed;
	uint32_t local_thread;
	uint32_t registers;
	uint64_t local_total;
	int64_t grid_id;
	uint32_t cluster_policy, max_cluster, max_active_clusters;
	uint8_t cache_config, shared_config, launch_type, carveout_requested;
	uint8_t carveout, partitioned_requested, partitioned_executed, reserved[5];
};

struct profile_copy {
	uint64_t bytes, count;
	uint32_t source_device, source_context, target_device, target_context; /* peers */
	uint8_t kind, source_kind, target_kind, flags; /* CUPTI's numbers */
	uint8_t reserved[4];
};

struct profile_fill {
	uint64_t bytes;
	uint32_t value;
	uint16_t flags, memory_kind;
};

struct profile_record {
	uint32_t kind;	     /* enum profile_kind */
	uint32_t bytes;	     /* of this struct and the name, rounded up to 8 */
	uint64_t seq;	     /* the frame that it was served for; 0: none */
	uint64_t start, end; /* ns by the worker's clock: `now` of …Enable and …Flush */
	uint64_t completed;  /* kernels; 0: CUPTI does not say */
	uint64_t node;	     /* graph node, or 0 */
	uint32_t device, context, stream, graph;
	uint32_t launch; /* the worker's own correlation id: one API call of the agent's */
	uint32_t channel, channel_type;
	uint32_t name_bytes; /* with its NUL; 0: none */
	union {
		struct profile_kernel kernel;
		struct profile_copy copy;
		struct profile_fill fill;
	};
};
_Static_assert(sizeof(struct profile_kernel) == 96, "");
_Static_assert(sizeof(struct profile_copy) == 40, "");
_Static_assert(sizeof(struct profile_fill) == 16, "");
_Static_assert(sizeof(struct profile_record) == 176, "");

#define PROFILE_NAME_MAX 4096 /* longer names are cut */

#endif
