/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that graphs own.  Natively an allocation has an address from the node on and memory
 * behind it from a launch to its free; here the memory is there as long as the node is, so that
 * it counts against the lease all that time, and the worker's node is an empty one: only its
 * place among the others matters.  Whether the memory is allocated is known here, since CUDA
 * decides that where a graph is launched and where a free is called.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_MEMORY_NODE_H
#define VCUDA_SHIM_DRIVER_GRAPH_MEMORY_NODE_H

#include "shim/driver/graph/graph.h"

struct context;
struct graph_memory;

/* A part's reference goes: the memory too where nobody has it allocated. Any thread. */
void graph_memory_let(struct graph_memory *memory);

/* cuMemFree (GRAPH_USE_ANY), cuMemFreeAsync: false: the address is no graph's. *STATUS:
 * INVALID_VALUE: it is not allocated now. */
bool graph_memory_free(CUdeviceptr address, uint64_t stream, CUresult *status);

/* The context was reset: what went with it (memory_context_gone) is gone already. */
void graph_memory_reset(const struct context *context, bool last);

/* Nodes for cuMemAllocAsync and cuMemFreeAsync on a stream that captures into GRAPH. */
CUresult memory_node_capture_alloc(struct graph *graph, uint64_t stream, int device,
	bool managed, size_t bytes, CUdeviceptr *address);
CUresult memory_node_capture_free(struct graph *graph, uint64_t stream, CUdeviceptr address);

/* Before a launch of PARTS on a stream: INVALID_VALUE, and nothing is changed, where an
 * allocation is allocated still (unless AUTO_FREE), or one that is to be freed is not. */
CUresult memory_nodes_launch(const struct parts *parts, bool auto_free, uint64_t stream);

#endif
