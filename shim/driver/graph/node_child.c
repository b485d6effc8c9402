/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes with a graph inside: adding them, and giving them another one.  What a graph has of the
 * program's side is known apart for each of its child graphs (struct part_place), so that it
 * goes and comes with them.
 */
#include "protocol/generated/vcuda_ops.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/generated/cuda_hand.h"

CUresult hand_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUgraph childGraph)
{
	struct node_params p = {0};

	return node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_child(&p, childGraph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE));
}

/* A launch of an executable graph that was captured has no number yet: whose its parts are in
 * PARTS, those of the graph HANDLE or of one made of it, is not known. */
static bool parts_apart(const struct parts *parts, uint64_t handle)
{
	for (size_t i = 0; i < parts->count; i++)
		if (parts->places[i].inside == GRAPH_NO_NODE &&
			parts->places[i].graph != handle)
			return false;
	return true;
}

/* Only a name for what is inside of another graph, which has its parts. */
static bool graph_inner(const struct graph *graph)
{
	return graph->parent && !graph->body && graph->parent->parts.count;
}

CUresult hand_cuGraphExecChildGraphNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	const struct graph_node *node = graph_node_find(hNode);
	struct graph_exec *exec = graph_exec_find(hGraphExec);
	struct graph *child = graph_find(childGraph);
	/* Its own node, not one of a graph inside it. */
	bool own = node && exec && node->graph->handle == exec->graph;
	struct node_params p = {0};
	CUresult status;
	bool awaited;

	status = node_params_child(&p, childGraph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE);
	if (child && (graph_inner(child) || (own ? !parts_apart(&exec->parts, exec->graph)
						 : child->parts.count > 0)))
		status = CUDA_ERROR_NOT_SUPPORTED;
	/* It must have the nodes and edges of the one that is there. */
	p.awaited = awaited = !own || !child || child->context != exec->context ||
			      !shapes_same(&exec->shapes, node->number, child);
	status = node_set(hNode, &hGraphExec, &p, status);
	if (status || !awaited || !own)
		return status;
	if (!parts_set_child(&exec->parts, node->number, child))
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The driver took it, so that is the shape; the next captured one brings its own. */
	shapes_put(&exec->shapes, node->number, child);
	if (child->captured)
		captures.listed = true;
	return CUDA_SUCCESS;
}

/* The graph that was moved into that node, with parts of its own. */
static bool node_moved(const struct graph_node *node)
{
	for (const struct graph *child = node->graph->children; child; child = child->sibling)
		if (child->parent_node == node->number && child->body)
			return true;
	return false;
}

CUresult node_set_child(CUgraphNode hNode, const CUDA_CHILD_GRAPH_NODE_PARAMS *params)
{
	struct graph_node *node = graph_node_find(hNode);
	struct graph *child = graph_find(params->graph), *graph;
	struct node_params p = {0};
	CUgraphNodeType type;
	CUresult status = hand_cuGraphNodeGetType(hNode, &type);

	if (status)
		return status;
	if (type != CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_INVALID_VALUE;
	graph = node->graph;
	status = node_params_child(&p, params->graph, params->ownership);
	if (!status && (p.move || node_moved(node) || graph_inner(child) ||
			       !parts_apart(&graph->parts, graph->handle)))
		status = CUDA_ERROR_NOT_SUPPORTED;
	p.awaited = true;
	status = node_set(hNode, NULL, &p, status);
	if (status)
		return status;
	if (!parts_set_child(&graph->parts, node->number, child))
		return CUDA_ERROR_OUT_OF_MEMORY;
	shapes_drop(&graph->shapes, node->number);
	shapes_put(&graph->shapes, node->number, child);
	graph_child_gone(graph, node->number);
	return CUDA_SUCCESS;
}
