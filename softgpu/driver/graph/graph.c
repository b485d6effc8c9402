/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: nodes, what they wait for, and how they are changed.
 */
#include "softgpu/driver/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static unsigned last_mark;

struct op *graph_op_copy(const struct op *op)
{
	struct op *copy = malloc(op->bytes);

	if (!copy)
		return NULL;
	memcpy(copy, op, op->bytes);
	copy->next = NULL;
	copy->stream = NULL;
	copy->deps = NULL;
	copy->dep_count = copy->dep_room = copy->dep_done = 0;
	if (copy->copied)
		copy->copied(copy);
	return copy;
}

struct CUgraph_st *soft_graph_new(void)
{
	struct CUgraph_st *graph = calloc(1, sizeof(*graph));

	if (graph && !object_add(graph, OBJECT_GRAPH)) {
		free(graph);
		return NULL;
	}
	if (graph)
		graph->number = work_graph_number();
	return graph;
}

static void node_free(struct CUgraphNode_st *node)
{
	object_remove(node);
	if (node->op)
		node->op->drop(node->op);
	if (node->event)
		event_let(node->event);
	if (node->child)
		soft_graph_free(node->child);
	for (unsigned i = 0; i < node->body_count; i++)
		soft_graph_free(node->bodies[i]);
	free(node->bodies);
	if (node->condition)
		condition_put(node->condition);
	node_set_free(&node->after);
	free(node);
}

void soft_graph_free(struct CUgraph_st *graph)
{
	object_remove(graph);
	for (size_t i = 0; i < graph->count; i++)
		node_free(graph->nodes[i]);
	graph_objects_drop(graph->objects, graph->object_count);
	conditions_drop(graph->conditions, graph->condition_count);
	free(graph->nodes);
	free(graph);
}

struct CUgraphNode_st *graph_add(struct CUgraph_st *graph, CUgraphNodeType type,
	const struct node_set *after, struct op *op, CUevent event)
{
	struct CUgraphNode_st *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	if (graph->count == graph->room) {
		size_t room = graph->room ? 2 * graph->room : 16;
		struct CUgraphNode_st **nodes = realloc(graph->nodes, room * sizeof(*nodes));

		if (!nodes) {
			free(node);
			return NULL;
		}
		graph->nodes = nodes;
		graph->room = room;
	}
	if ((after && !node_set_copy(&node->after, after)) || !object_add(node, OBJECT_NODE)) {
		node_set_free(&node->after);
		free(node);
		return NULL;
	}
	node->graph = graph;
	node->type = type;
	node->op = op;
	node->event = event;
	if (event)
		event_hold(event);
	node->index = graph->count;
	graph->nodes[graph->count++] = node;
	return node;
}

void graph_remove(struct CUgraphNode_st *node)
{
	struct CUgraph_st *graph = node->graph;

	capture_forget_node(node);
	for (size_t i = node->index + 1; i < graph->count; i++) {
		graph->nodes[i - 1] = graph->nodes[i];
		graph->nodes[i - 1]->index = i - 1;
	}
	graph->count--;
	for (size_t i = 0; i < graph->count; i++)
		node_set_remove(&graph->nodes[i]->after, node);
	node_free(node);
}

unsigned graph_mark(const struct node_set *set)
{
	struct node_set walk = {0};
	unsigned mark = ++last_mark;

	/* Without memory some stay unmarked: the capture counts as unjoined. */
	for (size_t i = 0; i < set->count; i++)
		if (!node_set_add(&walk, set->item[i]))
			break;
	while (walk.count) {
		struct CUgraphNode_st *node = walk.item[--walk.count];

		if (node->mark == mark)
			continue;
		node->mark = mark;
		for (size_t i = 0; i < node->after.count; i++)
			if (node->after.item[i]->mark != mark &&
				!node_set_add(&walk, node->after.item[i]))
				break;
	}
	node_set_free(&walk);
	return mark;
}

struct CUgraphNode_st *soft_graph_find(
	struct CUgraph_st *graph, const struct CUgraphNode_st *original)
{
	for (size_t i = 0; i < graph->count; i++) {
		struct CUgraphNode_st *node = graph->nodes[i], *inside;

		if (node == original || node->original == original)
			return node;
		inside = node->child ? soft_graph_find(node->child, original) : NULL;
		if (inside)
			return inside;
	}
	return NULL;
}

static bool clone_bodies(struct CUgraphNode_st *copy, const struct CUgraphNode_st *node)
{
	copy->branch_type = node->branch_type;
	copy->condition = condition_get(node->condition);
	copy->bodies = calloc(node->body_count, sizeof(struct CUgraph_st *));
	if (!copy->bodies)
		return false;
	for (unsigned i = 0; i < node->body_count; i++) {
		copy->bodies[i] = graph_clone(node->bodies[i]);
		if (!copy->bodies[i])
			return false;
		copy->bodies[i]->parent = copy;
		copy->body_count++;
	}
	return true;
}

static bool clone_node(struct CUgraph_st *clone, const struct CUgraphNode_st *node)
{
	struct op *op = node->op ? graph_op_copy(node->op) : NULL;
	struct CUgraphNode_st *copy;

	if (node->op && !op)
		return false;
	copy = graph_add(clone, node->type, NULL, op, node->event);
	if (!copy) {
		if (op)
			op->drop(op);
		return false;
	}
	copy->original = node;
	if (node->child) {
		copy->child = graph_clone(node->child);
		if (!copy->child)
			return false;
		copy->child->parent = copy;
	}
	return !node->condition || clone_bodies(copy, node);
}

struct CUgraph_st *graph_clone(const struct CUgraph_st *graph)
{
	struct CUgraph_st *clone = soft_graph_new();
	bool whole = clone != NULL;

	for (size_t i = 0; whole && i < graph->count; i++)
		whole = clone_node(clone, graph->nodes[i]);
	for (size_t i = 0; whole && i < graph->count; i++)
		for (size_t d = 0; whole && d < graph->nodes[i]->after.count; d++)
			whole = node_set_add_edge(&clone->nodes[i]->after,
				clone->nodes[graph->nodes[i]->after.item[d]->index],
				&graph->nodes[i]->after.data[d]);
	if (whole)
		whole = !graph_objects_copy(graph->objects, graph->object_count,
			&clone->objects, &clone->object_count);
	if (whole)
		whole = !conditions_copy(graph->conditions, graph->condition_count,
			&clone->conditions, &clone->condition_count);
	if (!whole && clone) {
		soft_graph_free(clone);
		clone = NULL;
	}
	return clone;
}

/* ---- the calls ---- */

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!phGraph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*phGraph = soft_graph_new();
	return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&queue_lock);
	if (!object_is(hGraph, OBJECT_GRAPH) || hGraph->parent || hGraph->capture)
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		soft_graph_free(hGraph);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (phGraphClone && object_is(originalGraph, OBJECT_GRAPH)) {
		*phGraphClone = NULL;
		ret = CUDA_ERROR_NOT_SUPPORTED;
		if (!originalGraph->condition_count) {
			*phGraphClone = graph_clone(originalGraph);
			ret = *phGraphClone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphNodeFindInClone(
	CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (phNode && object_is(hOriginalNode, OBJECT_NODE) &&
		object_is(hClonedGraph, OBJECT_GRAPH)) {
		*phNode = soft_graph_find(hClonedGraph, hOriginalNode);
		if (*phNode)
			ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

static bool edge_plain(const CUgraphEdgeData *data)
{
	return !data->from_port && !data->to_port && !data->type;
}

/* Between kernels, from one of their ports. */
bool graph_edge_valid(
	const struct CUgraphNode_st *from, CUgraphNodeType to, const CUgraphEdgeData *data)
{
	if (edge_plain(data))
		return true;
	return data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && !data->to_port &&
	       (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
		       data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) &&
	       from->type == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
}

static CUresult edges_check(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *data, size_t n)
{
	if (!object_is(graph, OBJECT_GRAPH) || (n && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (!object_is(from[i], OBJECT_NODE) || !object_is(to[i], OBJECT_NODE) ||
			from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i] ||
			(data && !graph_edge_valid(from[i], to[i]->type, &data[i])))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static bool edge_there(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
	for (size_t d = 0; d < to->after.count; d++)
		if (to->after.item[d] == from)
			return true;
	return false;
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	CUresult ret;

	pthread_mutex_lock(&queue_lock);
	ret = edges_check(hGraph, from, to, edgeData, numDependencies);
	for (size_t i = 0; i < numDependencies && !ret; i++)
		if (edge_there(from[i], to[i]))
			ret = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && !ret; i++)
		if (!node_set_add_edge(&to[i]->after, from[i], edgeData ? &edgeData[i] : NULL))
			ret = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphAddDependencies(
	CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
	return cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	CUresult ret;

	pthread_mutex_lock(&queue_lock);
	ret = edges_check(hGraph, from, to, edgeData, numDependencies);
	for (size_t i = 0; i < numDependencies && !ret; i++)
		if (!edge_there(from[i], to[i]))
			ret = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && !ret; i++)
		node_set_remove(&to[i]->after, from[i]);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphRemoveDependencies(
	CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
	return cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&queue_lock);
	if (!object_is(hNode, OBJECT_NODE) || hNode->graph->capture)
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		graph_remove(hNode);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}
