/* SPDX-License-Identifier: Apache-2.0
 *
 * What graphs use of a device's memory, and have reserved there, as NVIDIA's driver counts it:
 * in units of 32 MiB that a graph has from its first launch on, that another one gets which is
 * launched on the same stream, and that stay reserved until they are trimmed.  Only the figures
 * of cuDeviceGetGraphMemAttribute are of this kind: here each graph has memory of its own, from
 * its nodes on (memory_node.c).
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_GRAPH_USAGE_H
#define VCUDA_SHIM_DRIVER_GRAPH_GRAPH_USAGE_H

#include <stddef.h>
#include <stdint.h>

/* A stream that each stream is behind: memory was freed by a call that waits. */
#define GRAPH_USE_ANY UINT64_MAX

/* What the nodes of one graph allocate on one device. */
struct graph_use;

/* One allocation more of it; NULL: no memory. */
struct graph_use *graph_use_get(int device, uint64_t graph);
/* One less. */
void graph_use_put(struct graph_use *use);
/* In the launch PASS, in the order of its nodes: allocated, and freed again. */
void graph_use_alloc(struct graph_use *use, uint64_t pass, size_t bytes);
void graph_use_free(struct graph_use *use, uint64_t pass, size_t bytes);
/* That launch goes to the stream: what was allocated in it at once most is mapped. Once more is
 * no matter. */
void graph_use_launched(struct graph_use *use, uint64_t pass, uint64_t stream);
/* One of its allocations is allocated from here on, or not any more, behind the stream. */
void graph_use_lives(struct graph_use *use);
void graph_use_ends(struct graph_use *use, uint64_t stream);
/* The device's memory went with its contexts. */
void graph_usage_reset(int device);

#endif
