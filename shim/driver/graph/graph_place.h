/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the memory is that a graph owns (memory_node.c): the device's, or managed.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_GRAPH_PLACE_H
#define VCUDA_SHIM_DRIVER_GRAPH_GRAPH_PLACE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph_place {
	CUdeviceptr address;
	size_t bytes;
	int device;
	uint16_t context; /* memory_range's */
	uint64_t managed; /* managed_range's id; 0: it is the device's */
};

/* What a node asks for. */
static inline bool graph_place_managed(const CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	return alloc->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
}

/* BYTES on DEVICE: managed memory is made in the current context, if that is the device's. */
CUresult graph_place_get(struct graph_place *place, int device, bool managed, size_t bytes);
/* Nobody needs it any more; what is outstanding may still use it. */
void graph_place_put(const struct graph_place *place);

#endif
