/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph inside of a node: asking for it, and putting another one in its place.
 */
#include "softgpu/driver/graph/graph.h"

/* A clone of what the graph is now, which may have the node itself inside. */
static CUresult child_set(CUgraphNode node, CUgraph graph)
{
	struct CUgraph_st *fresh = NULL, *old;
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (object_is(node, OBJECT_NODE) && node->child && object_is(graph, OBJECT_GRAPH)) {
		fresh = graph_clone(graph);
		ret = fresh ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!ret) {
		old = node->child;
		node->child = fresh;
		fresh->parent = node;
		soft_graph_free(old);
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* Nodes of other types have calls of their own, which the agent uses. */
CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	return nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH
		       ? child_set(hNode, nodeParams->graph.graph)
		       : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (phGraph && object_is(hNode, OBJECT_NODE) && hNode->child) {
		*phGraph = hNode->child;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}
