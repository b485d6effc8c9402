/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of a graph's nodes and edges, for the program.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

static CUgraphEdgeData edge_data(
	const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
	for (size_t i = 0; i < to->after.count; i++)
		if (to->after.item[i] == from)
			return to->after.data[i];
	return (CUgraphEdgeData){0};
}

/* As all of these calls have it: without an array the count is told, with one it is filled. */
static CUresult list_out(
	CUgraphNode *nodes, size_t *count, struct CUgraphNode_st **from, size_t n)
{
	if (!nodes) {
		*count = n;
		return CUDA_SUCCESS;
	}
	for (size_t i = 0; i < *count; i++)
		nodes[i] = i < n ? from[i] : NULL;
	if (*count > n)
		*count = n;
	return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (numNodes && object_is(hGraph, OBJECT_GRAPH))
		ret = list_out(nodes, numNodes, hGraph->nodes, hGraph->count);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	struct node_set roots = {0};
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (numRootNodes && object_is(hGraph, OBJECT_GRAPH)) {
		ret = CUDA_SUCCESS;
		for (size_t i = 0; i < hGraph->count && !ret; i++)
			if (!hGraph->nodes[i]->after.count &&
				!node_set_add(&roots, hGraph->nodes[i]))
				ret = CUDA_ERROR_OUT_OF_MEMORY;
		if (!ret)
			ret = list_out(rootNodes, numRootNodes, roots.item, roots.count);
	}
	pthread_mutex_unlock(&queue_lock);
	node_set_free(&roots);
	return ret;
}

struct edge {
	CUgraphNode from, to;
	size_t at; /* among those of the node that it leads to */
};

static int edge_compare(const void *one, const void *two)
{
	const struct edge *a = one, *b = two;

	if (a->from != b->from)
		return a->from->index < b->from->index ? -1 : 1;
	if (a->to != b->to)
		return a->to->index < b->to->index ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

/* As natively by the nodes that they come from; malloc'ed. */
static struct edge *edges_of(const struct CUgraph_st *graph, size_t *count)
{
	struct edge *edges;
	size_t n = 0;

	for (size_t i = 0; i < graph->count; i++)
		n += graph->nodes[i]->after.count;
	edges = malloc((n + 1) * sizeof(*edges));
	*count = n;
	n = 0;
	for (size_t i = 0; edges && i < graph->count; i++)
		for (size_t d = 0; d < graph->nodes[i]->after.count; d++)
			edges[n++] = (struct edge){
				graph->nodes[i]->after.item[d], graph->nodes[i], d};
	if (edges)
		qsort(edges, n, sizeof(*edges), edge_compare);
	return edges;
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edgeData, size_t *numEdges)
{
	struct edge *edges = NULL;
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	size_t n = 0;

	if (!numEdges || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&queue_lock);
	if (object_is(hGraph, OBJECT_GRAPH)) {
		edges = edges_of(hGraph, &n);
		ret = edges ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t i = 0; !ret && from && i < n && i < *numEdges; i++) {
		from[i] = edges[i].from;
		to[i] = edges[i].to;
		if (edgeData)
			edgeData[i] = edge_data(from[i], to[i]);
	}
	if (!ret && (!from || *numEdges > n))
		*numEdges = n;
	pthread_mutex_unlock(&queue_lock);
	free(edges);
	return ret;
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
	CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (numDependencies && object_is(hNode, OBJECT_NODE))
		ret = list_out(
			dependencies, numDependencies, hNode->after.item, hNode->after.count);
	for (size_t i = 0; !ret && dependencies && edgeData && i < *numDependencies; i++)
		edgeData[i] = edge_data(dependencies[i], hNode);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphNodeGetDependencies(
	CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
	CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
	struct node_set behind = {0};
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (numDependentNodes && object_is(hNode, OBJECT_NODE)) {
		struct CUgraph_st *graph = hNode->graph;

		ret = CUDA_SUCCESS;
		for (size_t i = 0; i < graph->count; i++)
			for (size_t d = 0; d < graph->nodes[i]->after.count; d++)
				if (graph->nodes[i]->after.item[d] == hNode &&
					!node_set_add(&behind, graph->nodes[i]))
					ret = CUDA_ERROR_OUT_OF_MEMORY;
		if (!ret)
			ret = list_out(
				dependentNodes, numDependentNodes, behind.item, behind.count);
	}
	for (size_t i = 0; !ret && dependentNodes && edgeData && i < *numDependentNodes; i++)
		edgeData[i] = edge_data(hNode, dependentNodes[i]);
	pthread_mutex_unlock(&queue_lock);
	node_set_free(&behind);
	return ret;
}

CUresult cuGraphNodeGetDependentNodes(
	CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}
