/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at a graph and changing its edges: the driver's calls.  CUDA 13 has edge data in
 * every call; CUDA 12 has the forms with and without.
 */
#include "shim/runtime/runtime.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edges");

cudaError_t hand_cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	return RUNTIME_DRIVER(cuGraphCreate((CUgraph *)pGraph, flags));
}

cudaError_t hand_cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
	return RUNTIME_DRIVER(cuGraphClone((CUgraph *)pGraphClone, (CUgraph)originalGraph));
}

cudaError_t hand_cudaGraphNodeFindInClone(
	cudaGraphNode_t *pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph)
{
	return RUNTIME_DRIVER(cuGraphNodeFindInClone(
		(CUgraphNode *)pNode, (CUgraphNode)originalNode, (CUgraph)clonedGraph));
}

cudaError_t hand_cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
	return RUNTIME_DRIVER(cuGraphGetNodes((CUgraph)graph, (CUgraphNode *)nodes, numNodes));
}

cudaError_t hand_cudaGraphGetRootNodes(
	cudaGraph_t graph, cudaGraphNode_t *pRootNodes, size_t *pNumRootNodes)
{
	return RUNTIME_DRIVER(
		cuGraphGetRootNodes((CUgraph)graph, (CUgraphNode *)pRootNodes, pNumRootNodes));
}

cudaError_t hand_cudaGraphDestroyNode(cudaGraphNode_t node)
{
	return RUNTIME_DRIVER(cuGraphDestroyNode((CUgraphNode)node));
}

cudaError_t hand_cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
	return RUNTIME_DRIVER(cuGraphDebugDotPrint((CUgraph)graph, path, flags));
}

cudaError_t hand_cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
	CUgraphNodeType type;
	cudaError_t error = runtime_enter();

	if (!pType)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphNodeGetType((CUgraphNode)node, &type));
	if (!error)
		*pType = (enum cudaGraphNodeType)type;
	return error;
}

/* In 13 the forms with edge data took the plain names. */
#if CUDART_VERSION < 13000
#define WITH_EDGES(name) name##_v2

cudaError_t hand_cudaGraphGetEdges(
	cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *numEdges)
{
	return RUNTIME_DRIVER(cuGraphGetEdges(
		(CUgraph)graph, (CUgraphNode *)from, (CUgraphNode *)to, numEdges));
}

cudaError_t hand_cudaGraphNodeGetDependencies(
	cudaGraphNode_t node, cudaGraphNode_t *pDependencies, size_t *pNumDependencies)
{
	return RUNTIME_DRIVER(cuGraphNodeGetDependencies(
		(CUgraphNode)node, (CUgraphNode *)pDependencies, pNumDependencies));
}

cudaError_t hand_cudaGraphNodeGetDependentNodes(
	cudaGraphNode_t node, cudaGraphNode_t *pDependentNodes, size_t *pNumDependentNodes)
{
	return RUNTIME_DRIVER(cuGraphNodeGetDependentNodes(
		(CUgraphNode)node, (CUgraphNode *)pDependentNodes, pNumDependentNodes));
}

cudaError_t hand_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
	const cudaGraphNode_t *to, size_t numDependencies)
{
	return RUNTIME_DRIVER(cuGraphAddDependencies((CUgraph)graph, (const CUgraphNode *)from,
		(const CUgraphNode *)to, numDependencies));
}

cudaError_t hand_cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
	const cudaGraphNode_t *to, size_t numDependencies)
{
	return RUNTIME_DRIVER(cuGraphRemoveDependencies((CUgraph)graph,
		(const CUgraphNode *)from, (const CUgraphNode *)to, numDependencies));
}
#else
#define WITH_EDGES(name) name
#endif

cudaError_t WITH_EDGES(hand_cudaGraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t *from,
	cudaGraphNode_t *to, cudaGraphEdgeData *edgeData, size_t *numEdges)
{
	return RUNTIME_DRIVER(cuGraphGetEdges_v2((CUgraph)graph, (CUgraphNode *)from,
		(CUgraphNode *)to, (CUgraphEdgeData *)edgeData, numEdges));
}

cudaError_t WITH_EDGES(hand_cudaGraphNodeGetDependencies)(cudaGraphNode_t node,
	cudaGraphNode_t *pDependencies, cudaGraphEdgeData *edgeData, size_t *pNumDependencies)
{
	return RUNTIME_DRIVER(cuGraphNodeGetDependencies_v2((CUgraphNode)node,
		(CUgraphNode *)pDependencies, (CUgraphEdgeData *)edgeData, pNumDependencies));
}

cudaError_t WITH_EDGES(hand_cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node,
	cudaGraphNode_t *pDependentNodes, cudaGraphEdgeData *edgeData,
	size_t *pNumDependentNodes)
{
	return RUNTIME_DRIVER(cuGraphNodeGetDependentNodes_v2((CUgraphNode)node,
		(CUgraphNode *)pDependentNodes, (CUgraphEdgeData *)edgeData,
		pNumDependentNodes));
}

cudaError_t WITH_EDGES(hand_cudaGraphAddDependencies)(cudaGraph_t graph,
	const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	const cudaGraphEdgeData *edgeData, size_t numDependencies)
{
	return RUNTIME_DRIVER(cuGraphAddDependencies_v2((CUgraph)graph,
		(const CUgraphNode *)from, (const CUgraphNode *)to,
		(const CUgraphEdgeData *)edgeData, numDependencies));
}

cudaError_t WITH_EDGES(hand_cudaGraphRemoveDependencies)(cudaGraph_t graph,
	const cudaGraphNode_t *from, const cudaGraphNode_t *to,
	const cudaGraphEdgeData *edgeData, size_t numDependencies)
{
	return RUNTIME_DRIVER(cuGraphRemoveDependencies_v2((CUgraph)graph,
		(const CUgraphNode *)from, (const CUgraphNode *)to,
		(const CUgraphEdgeData *)edgeData, numDependencies));
}
