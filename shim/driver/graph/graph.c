/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: names, clones, the graphs inside of nodes.
 */
#include "shim/driver/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"
#include "shim/driver/stream/stream.h"

/* ---- names ---- */

uint32_t graph_id_new(void)
{
	static _Atomic uint32_t last;

	return atomic_fetch_add(&last, 1) + 1;
}

struct graph *graph_new(void)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return NULL;
	graph->id = graph_id_new();
	graph->context = thread_self.number;
	graph->handle = shim_mint(KIND_CUgraph, graph);
	if (!graph->handle) {
		free(graph);
		return NULL;
	}
	return graph;
}

void graph_node_free(struct graph_node *node)
{
	handle_release(node->handle);
	free(node->storage);
	free(node->copy);
	free(node->fill);
	free(node->batch);
	free(node);
}

void graph_free(struct graph *graph)
{
	while (graph->children)
		graph_free(graph->children);
	if (graph->parent) {
		struct graph **at = &graph->parent->children;

		while (*at != graph)
			at = &(*at)->sibling;
		*at = graph->sibling;
	}
	handle_release(graph->handle);
	for (uint32_t i = 0; i < graph->room; i++)
		if (graph->nodes[i])
			graph_node_free(graph->nodes[i]);
	parts_free(&graph->parts);
	shapes_free(&graph->shapes);
	free(graph->nodes);
	free(graph->types);
	free(graph->edges);
	free(graph);
}

struct graph *graph_find(CUgraph graph)
{
	struct graph *found = shim_object_of((uint64_t)(uintptr_t)graph, KIND_CUgraph);

	return found && !found->lost ? found : NULL;
}

static void graph_lose(void *object, void *context)
{
	struct graph *graph = object;

	parts_context_gone(&graph->parts, context);
	if (graph->context == ((const struct context *)context)->number)
		graph->lost = true;
}

static void exec_lose(void *object, void *context)
{
	struct graph_exec *exec = object;

	parts_context_gone(&exec->parts, context);
	if (exec->context != ((const struct context *)context)->number)
		return;
	exec->lost = true;
	exec->marked = false;
}

void graph_context_gone(const struct context *context)
{
	handle_each(KIND_CUgraph, graph_lose, (void *)(uintptr_t)context);
	handle_each(KIND_CUgraphExec, exec_lose, (void *)(uintptr_t)context);
}

struct graph_node *graph_node_find(CUgraphNode node)
{
	struct graph_node *found = shim_object_of((uint64_t)(uintptr_t)node, KIND_CUgraphNode);

	return found && !found->graph->lost ? found : NULL;
}

CUgraphNode graph_node_name(struct graph *graph, uint32_t number)
{
	struct graph_node *node;

	if (number >= graph->count)
		return NULL;
	if (number >= graph->room) {
		uint32_t room = graph->room ? graph->room : 16;
		struct graph_node **nodes;

		while (room <= number)
			room *= 2;
		nodes = realloc(graph->nodes, room * sizeof(*nodes));
		if (!nodes)
			return NULL;
		memset(nodes + graph->room, 0, (room - graph->room) * sizeof(*nodes));
		graph->nodes = nodes;
		graph->room = room;
	}
	node = graph->nodes[number];
	if (!node) {
		node = calloc(1, sizeof(*node));
		if (!node)
			return NULL;
		node->graph = graph;
		node->number = number;
		node->handle = shim_mint(KIND_CUgraphNode, node);
		if (!node->handle) {
			free(node);
			return NULL;
		}
		graph->nodes[number] = node;
	}
	return (CUgraphNode)(uintptr_t)node->handle;
}

CUresult graph_numbers(
	const struct graph *graph, const CUgraphNode *nodes, size_t n, uint32_t **numbers)
{
	*numbers = NULL;
	if (!n)
		return CUDA_SUCCESS;
	if (!nodes || n > GRAPH_NODES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*numbers = malloc(n * sizeof(**numbers));
	if (!*numbers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < n; i++) {
		struct graph_node *node = graph_node_find(nodes[i]);

		if (!node || node->graph != graph) {
			free(*numbers);
			*numbers = NULL;
			return CUDA_ERROR_INVALID_VALUE;
		}
		(*numbers)[i] = node->number;
	}
	return CUDA_SUCCESS;
}

bool graph_line_goes_on(const struct graph *graph, const uint32_t *after, size_t n)
{
	bool goes_on = false;

	for (size_t i = 0; graph->line && i < n; i++)
		goes_on |= after[i] == graph->line_end;
	return goes_on;
}

bool graph_has_nodes(const struct graph *graph, const CUgraphNode *nodes, size_t n)
{
	uint32_t *numbers;
	CUresult status = graph_numbers(graph, nodes, n, &numbers);

	free(numbers);
	return !status;
}

CUresult graph_gone(uint64_t handle)
{
	return send_vcudaGraphGone(handle);
}

static CUresult graph_make(
	struct graph *graph, enum graph_make what, uint64_t of, uint32_t node)
{
	struct wire_vcudaGraphMake *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaGraphMake, sizeof(*body));
	body->graph = graph->handle;
	body->what = what;
	body->of = of;
	body->node = node;
	return shim_post(&call);
}

CUresult hand_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	struct graph *graph;
	CUresult status;

	if (!phGraph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	graph = graph_new();
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = graph_make(graph, GRAPH_NEW, 0, 0);
	if (status)
		graph_free(graph);
	else
		*phGraph = (CUgraph)(uintptr_t)graph->handle;
	return status;
}

CUresult hand_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	struct graph *graph = graph_find(originalGraph), *clone;
	CUresult status;

	if (!phGraphClone || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->has_memory || graph->has_conditional || graph->has_handle)
		return CUDA_ERROR_NOT_SUPPORTED;
	status = graph_recount(graph);
	if (status)
		return status;
	clone = graph_new();
	if (!clone)
		return CUDA_ERROR_OUT_OF_MEMORY;
	clone->count = graph->count;
	clone->original = graph->handle;
	clone->pruned = graph->pruned;
	status = parts_copy_all(&clone->parts, graph) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < clone->parts.count; i++)
		if (clone->parts.places[i].graph == graph->handle)
			clone->parts.places[i].graph = clone->handle;
	if (!status)
		status = graph_make(clone, GRAPH_CLONE, graph->handle, 0);
	if (status)
		graph_free(clone);
	if (status)
		return status;
	graph_clone_described(clone, graph);
	graph_clone_types(clone, graph);
	*phGraphClone = (CUgraph)(uintptr_t)clone->handle;
	return CUDA_SUCCESS;
}

/* A graph inside of a node is a clone, too, of the one that was put there, or of that inside of
 * the node that its own was made from: the driver knows. */
static CUresult find_inside(
	const struct graph_node *node, const struct graph *clone, uint32_t *number)
{
	const struct wire_vcudaGraphFindInClone_reply *reply;
	struct wire_vcudaGraphFindInClone *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaGraphFindInClone, sizeof(*body));
	body->graph = node->graph->handle;
	body->node = node->number;
	body->clone = clone->handle;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		*number = reply->number;
	return shim_end(&call);
}

/* A clone's nodes have the numbers of those that they were made from. */
CUresult hand_cuGraphNodeFindInClone(
	CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	struct graph_node *node = graph_node_find(hOriginalNode);
	struct graph *clone = graph_find(hClonedGraph);
	uint32_t number;
	CUresult status;

	if (!phNode || !node || !clone)
		return CUDA_ERROR_INVALID_VALUE;
	*phNode = NULL;
	number = node->number;
	if (clone->original != node->graph->handle) {
		status = clone->parent && !clone->body ? find_inside(node, clone, &number)
						       : CUDA_ERROR_INVALID_VALUE;
		if (status)
			return status;
	}
	if (number >= clone->count)
		return CUDA_ERROR_INVALID_VALUE;
	*phNode = graph_node_name(clone, number);
	return *phNode ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void graph_child_gone(struct graph *graph, uint32_t number)
{
	struct graph *next;

	for (struct graph *child = graph->children; child; child = next) {
		next = child->sibling;
		if (child->parent_node == number)
			graph_free(child);
	}
}

/* A name for the graph that is inside of a node, made when it is first asked for. */
CUresult hand_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	const struct wire_vcudaGraphMake_reply *reply;
	struct graph_node *node = graph_node_find(hNode);
	struct wire_vcudaGraphMake *body;
	struct shim_call call;
	struct graph *child;
	CUresult status;

	if (!node || !phGraph)
		return CUDA_ERROR_INVALID_VALUE;
	for (child = node->graph->children; child; child = child->sibling)
		if (child->parent_node == node->number) {
			*phGraph = (CUgraph)(uintptr_t)child->handle;
			return CUDA_SUCCESS;
		}
	child = graph_new();
	if (!child)
		return CUDA_ERROR_OUT_OF_MEMORY;
	body = shim_begin(&call, OP_vcudaGraphMake, sizeof(*body));
	body->graph = child->handle;
	body->what = GRAPH_CHILD;
	body->of = node->graph->handle;
	body->node = node->number;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		child->count = reply->nodes < GRAPH_NODES_MAX ? reply->nodes : 0;
	status = shim_end(&call);
	if (status) {
		graph_free(child);
		return status;
	}
	child->parent = node->graph;
	child->parent_node = node->number;
	child->sibling = node->graph->children;
	node->graph->children = child;
	*phGraph = (CUgraph)(uintptr_t)child->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphDestroy(CUgraph hGraph)
{
	struct graph *graph = shim_object_of((uint64_t)(uintptr_t)hGraph, KIND_CUgraph);
	uint64_t handle;
	bool lost;

	if (!graph || graph->parent)
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->capturing)
		return CUDA_ERROR_ILLEGAL_STATE;
	handle = graph->handle;
	lost = graph->lost;
	graph_free(graph);
	if (!lost)
		(void)graph_gone(handle); /* behind a fault it goes all the same, as natively */
	return CUDA_SUCCESS;
}

/* ---- numbers ---- */

CUresult hand_cuGraphGetId(CUgraph hGraph, unsigned int *graphId)
{
	const struct graph *graph = graph_find(hGraph);

	if (!graph || !graphId)
		return CUDA_ERROR_INVALID_VALUE;
	*graphId = graph->id;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphExecGetId(CUgraphExec hGraphExec, unsigned int *graphId)
{
	const struct graph_exec *exec = graph_exec_find(hGraphExec);

	if (!exec || !graphId)
		return CUDA_ERROR_INVALID_VALUE;
	*graphId = exec->id;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	struct graph_exec *exec = graph_exec_find(hGraphExec);

	if (!exec || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* As NVIDIA's driver, which does not tell these. */
	*flags = exec->flags & ~(uint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY |
					   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphNodeGetContainingGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	const struct graph_node *node = graph_node_find(hNode);

	if (!node || !phGraph)
		return CUDA_ERROR_INVALID_VALUE;
	*phGraph = (CUgraph)(uintptr_t)node->graph->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphNodeGetLocalId(CUgraphNode hNode, unsigned int *nodeId)
{
	const struct graph_node *node = graph_node_find(hNode);

	if (!node || !nodeId)
		return CUDA_ERROR_INVALID_VALUE;
	*nodeId = node->number;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphNodeGetToolsId(CUgraphNode hNode, unsigned long long *toolsNodeId)
{
	const struct graph_node *node = graph_node_find(hNode);

	if (!node || !toolsNodeId)
		return CUDA_ERROR_INVALID_VALUE;
	*toolsNodeId = (unsigned long long)node->graph->id << 32 | node->number;
	return CUDA_SUCCESS;
}
