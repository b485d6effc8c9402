/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditional nodes.  A handle is the driver's own value, since it travels inside of kernel
 * arguments: making one is a call.  The graphs that a node decides about are the node's, under
 * names that are made here; what their copies have to do with the app's memory belongs to every
 * executable graph that is made of the graph around them.
 */
#include <stdlib.h>

#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

CUresult hand_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out,
	CUgraph hGraph, CUcontext ctx, unsigned int defaultLaunchValue, unsigned int flags)
{
	struct context *context = ctx ? context_of(ctx) : context_current();
	struct context *before = thread_self.current;
	struct graph *graph = graph_find(hGraph);
	CUresult status;

	if (!pHandle_out || !graph || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread_set(context);
	status = send_vcudaConditionalCreate(
		graph->handle, defaultLaunchValue, flags, pHandle_out);
	thread_set(before);
	if (!status)
		graph->has_handle = true;
	return status;
}

/* What a node is asked for, and the array that the app was given. */
struct kept {
	CUDA_CONDITIONAL_NODE_PARAMS params;
	CUgraph names[];
};

static bool conditional_valid(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	switch ((int)p->type) {
	case CU_GRAPH_COND_TYPE_IF: return p->size == 1 || p->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE: return p->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH: return p->size > 0 && p->size <= GRAPH_BODIES_MAX;
	default: return false;
	}
}

/* The bodies' names, in the order of the app's array; they are the graph's from now on. */
static CUresult bodies_new(
	struct graph *graph, unsigned count, CUgraph *names, struct graph_conditional *to)
{
	uint64_t *handles = (uint64_t *)(void *)(to + 1);

	for (unsigned i = 0; i < count; i++) {
		struct graph *body = graph_new();

		if (!body)
			return CUDA_ERROR_OUT_OF_MEMORY;
		handles[i] = body->handle;
		names[i] = (CUgraph)(uintptr_t)body->handle;
		body->body = true;
		body->parent = graph;
		body->parent_node = graph->count;
		body->sibling = graph->children;
		graph->children = body;
	}
	return CUDA_SUCCESS;
}

static void bodies_free(struct graph *graph, uint32_t node)
{
	struct graph *next;

	for (struct graph *body = graph->children; body; body = next) {
		next = body->sibling;
		if (body->parent_node == node)
			graph_free(body);
	}
}

CUresult node_add_conditional(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t n,
	CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	struct node_params p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .awaited = true};
	struct graph *graph = graph_find(hGraph);
	struct graph_conditional *bytes;
	struct kept *kept;
	CUgraph *names;
	uint32_t number;
	CUresult status;

	/* Its context before all else. */
	if (!params->ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!graph || !phGraphNode || !params->handle || !conditional_valid(params))
		return CUDA_ERROR_INVALID_VALUE;
	if (!node_context_ok(params->ctx))
		return CUDA_ERROR_NOT_SUPPORTED;
	number = graph->count;
	p.size = sizeof(*bytes) + params->size * sizeof(uint64_t);
	p.bytes = calloc(1, p.size);
	kept = calloc(1, sizeof(*kept) + params->size * sizeof(CUgraph));
	if (!p.bytes || !kept) {
		free(p.bytes);
		free(kept);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	names = kept->names;
	bytes = (struct graph_conditional *)(void *)p.bytes;
	*bytes = (struct graph_conditional){
		.handle = params->handle, .type = params->type, .size = params->size};
	status = bodies_new(graph, params->size, names, bytes);
	status = node_add(phGraphNode, hGraph, dependencies, data, n, &p, status);
	if (status) {
		bodies_free(graph, number);
		free(kept);
		return status;
	}
	graph->has_conditional = true;
	/* As long as the node. */
	params->phGraph_out = names;
	kept->params = *params;
	graph_node_find(*phGraphNode)->storage = kept;
	return CUDA_SUCCESS;
}

CUresult node_get_conditional(
	const struct graph_node *node, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
	const struct kept *kept = node->storage;

	if (!kept)
		return CUDA_ERROR_NOT_SUPPORTED; /* of a clone: its graphs have no names */
	*params = kept->params;
	return CUDA_SUCCESS;
}
