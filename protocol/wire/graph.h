/* SPDX-License-Identifier: Apache-2.0
 *
 * What vcudaGraphAdd, Set, Get and List carry (vcuda.api 75..89): the parameters of a node, by
 * its CUgraphNodeType.  An EMPTY node has none.  All that a graph touches is the device's:
 * copies from and to the app's memory stand in for it with device memory that the shim fills
 * before a launch, or fetches after it.
 */
#ifndef VCUDA_PROTOCOL_WIRE_GRAPH_H
#define VCUDA_PROTOCOL_WIRE_GRAPH_H

#include <stdint.h>

#define GRAPH_NODES_MAX (1u << 20) /* of one graph */
#define GRAPH_NO_NODE 0xffffffffu
/* vcudaGraphInstantiate's `result`, beside CUgraphInstantiateResult: its context keeps memory
 * of kernels from now on (CU_CTX_LMEM_RESIZE_TO_MAX). Only for who wants OPEN_FEATURE_KERNELS.
 */
#define GRAPH_RESULT_KERNELS (1u << 31)
/* vcudaGraphSet's type: params are struct graph_enabled, for an executable graph's node. */
#define GRAPH_SET_ENABLED 0x100u
/* The same for a graph's kernel node: struct graph_attribute, struct graph_from. */
#define GRAPH_SET_ATTRIBUTE 0x101u
#define GRAPH_COPY_ATTRIBUTES 0x102u

/* KERNEL: followed by the parameter block. */
struct graph_kernel {
	uint64_t function; /* handle; in answers 0 where it has none (vcudaGraphFunction) */
	uint32_t grid[3], block[3];
	uint32_t shared;
	uint32_t param_bytes;
};
_Static_assert(sizeof(struct graph_kernel) == 40, "");

/* MEMCPY: as vcudaCopy. A side with an array's handle: byte, row and slice in it, in place of
 * address, pitch and slice. */
struct graph_copy {
	uint64_t dst, dst_pitch, dst_slice;
	uint64_t src, src_pitch, src_slice;
	uint64_t width, height, depth;
	uint64_t dst_array, src_array;
};
_Static_assert(sizeof(struct graph_copy) == 88, "");

/* MEMSET: as vcudaFill. */
struct graph_fill {
	uint64_t dst, pitch;
	uint32_t value, element;
	uint64_t width, height;
};

/* HOST: the ticket that the upcall carries; WAIT_EVENT, EVENT_RECORD: the event. */
struct graph_number {
	uint64_t number;
};

/* GRAPH: the node has a clone of it, or the graph itself. */
struct graph_child {
	uint64_t graph;
	uint32_t move;
	uint32_t reserved;
};

/* BATCH_MEM_OP: followed by so many CUstreamBatchMemOpParams. */
struct graph_batch {
	uint32_t count, flags;
};
#define GRAPH_BATCH_MAX 256u /* CUDA takes no more at once */

/* CONDITIONAL: followed by the handles of so many graphs, new ones. */
struct graph_conditional {
	uint64_t handle; /* the driver's, of vcudaConditionalCreate */
	uint32_t type;	 /* CUgraphConditionalNodeType */
	uint32_t size;
};
#define GRAPH_BODIES_MAX 1024u

struct graph_attribute {
	uint32_t id; /* CUlaunchAttributeID */
	uint32_t reserved;
	uint8_t value[64]; /* CUlaunchAttributeValue */
};
struct graph_from {
	uint64_t graph;
	uint32_t node;
	uint32_t reserved;
};

struct graph_enabled {
	uint32_t enabled;
	uint32_t reserved;
};

enum graph_make {
	GRAPH_NEW = 0,	 /* empty */
	GRAPH_CLONE = 1, /* of the graph `of`; its nodes have the same numbers */
	GRAPH_CHILD = 2, /* a name for the child graph of node `node` of `of` */
};

enum graph_list {
	GRAPH_TYPES = 0, /* uint32_t each: CUgraphNodeType; GRAPH_NO_NODE: it is gone */
	GRAPH_EDGES = 1, /* struct graph_edge each */
};

struct graph_edge {
	uint32_t from, to; /* node numbers */
	uint8_t data[8];   /* CUgraphEdgeData */
};
_Static_assert(sizeof(struct graph_edge) == 16, "");

/* What the next node of a stream that captures waits for. */
struct graph_tail {
	uint32_t from;
	uint8_t data[8]; /* CUgraphEdgeData */
};
_Static_assert(sizeof(struct graph_tail) == 12, "");

#endif
