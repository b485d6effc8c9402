/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditional nodes, for graph_node.c.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_CONDITIONAL_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_CONDITIONAL_H

#include "gpu-agent/worker/driver/graph/graph.h"

/* Refuses what is not a struct graph_conditional with its names behind it. */
void conditional_read(struct request *r, const unsigned char *bytes, uint32_t n);
/* *BODIES: the driver's graphs, c->size of them; they belong to the node. */
CUresult conditional_add(struct worker *w, struct worker_graph *graph, const CUgraphNode *after,
	size_t count, const struct graph_conditional *c, CUcontext context, CUgraphNode *node,
	CUgraph **bodies);
/* Names for them, once the node has its number. */
CUresult conditional_bind(struct worker *w, struct request *r, struct worker_graph *graph,
	uint32_t number, const struct graph_conditional *c, CUgraph *bodies);

#endif
