/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies in graphs: by a descriptor, in one row, from and to variables.
 */
#include "shim/runtime/array.h"
#include "shim/runtime/copy.h"

/* ERROR: what describing the copy said. NULL: the thread's context. */
static cudaError_t copy_add(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, const CUDA_MEMCPY3D *copy,
	cudaError_t error)
{
	if (error)
		return error;
	return runtime_status(cuGraphAddMemcpyNode((CUgraphNode *)pGraphNode, (CUgraph)graph,
		(const CUgraphNode *)pDependencies, numDependencies, copy,
		runtime_thread.bound));
}

static cudaError_t copy_set(cudaGraphNode_t node, const CUDA_MEMCPY3D *copy, cudaError_t error)
{
	return error ? error
		     : runtime_status(cuGraphMemcpyNodeSetParams((CUgraphNode)node, copy));
}

static cudaError_t copy_set_exec(cudaGraphExec_t exec, cudaGraphNode_t node,
	const CUDA_MEMCPY3D *copy, cudaError_t error)
{
	if (error)
		return error;
	return runtime_status(cuGraphExecMemcpyNodeSetParams(
		(CUgraphExec)exec, (CUgraphNode)node, copy, runtime_thread.bound));
}

/* A node copies something, of which it is asked first. */
static cudaError_t copy_box(CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DParms *p)
{
	cudaError_t error = runtime_enter();

	if (!error && (!p || !p->extent.width || !p->extent.height || !p->extent.depth))
		error = cudaErrorInvalidValue;
	return error ? error : copy_parms(copy, p);
}

/* Of a variable even a copy of nothing has to go one of the ways that there are. */
static cudaError_t copy_row_ways(
	CUDA_MEMCPY3D *copy, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	return (unsigned)kind > cudaMemcpyDefault ? cudaErrorInvalidMemcpyDirection
						  : copy_row(copy, dst, src, count, kind);
}

/* To and from a variable. */
static cudaError_t copy_to(CUDA_MEMCPY3D *copy, const void *symbol, const void *src,
	size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *address;
	cudaError_t error =
		copy_symbol(symbol, offset, count, kind, cudaMemcpyDeviceToHost, &address);

	return error ? error : copy_row_ways(copy, address, src, count, kind);
}

static cudaError_t copy_from(CUDA_MEMCPY3D *copy, void *dst, const void *symbol, size_t count,
	size_t offset, enum cudaMemcpyKind kind)
{
	void *address;
	cudaError_t error =
		copy_symbol(symbol, offset, count, kind, cudaMemcpyHostToDevice, &address);

	return error ? error : copy_row_ways(copy, dst, address, count, kind);
}

cudaError_t hand_cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_box(&copy, pNodeParams);

	return copy_add(pGraphNode, graph, pDependencies, numDependencies, &copy, error);
}

cudaError_t hand_cudaGraphMemcpyNodeSetParams(
	cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_box(&copy, pNodeParams);

	return copy_set(node, &copy, error);
}

cudaError_t hand_cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_box(&copy, pNodeParams);

	return copy_set_exec(hGraphExec, node, &copy, error);
}

cudaError_t hand_cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
	const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_row(&copy, dst, src, count, kind);

	return copy_add(pGraphNode, graph, pDependencies, numDependencies, &copy, error);
}

cudaError_t hand_cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst,
	const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_row(&copy, dst, src, count, kind);

	return copy_set(node, &copy, error);
}

cudaError_t hand_cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, void *dst, const void *src, size_t count,
	enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = runtime_enter() ?: copy_row(&copy, dst, src, count, kind);

	return copy_set_exec(hGraphExec, node, &copy, error);
}

cudaError_t hand_cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, const void *symbol,
	const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_to(&copy, symbol, src, count, offset, kind);

	return copy_add(pGraphNode, graph, pDependencies, numDependencies, &copy, error);
}

cudaError_t hand_cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
	const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_to(&copy, symbol, src, count, offset, kind);

	return copy_set(node, &copy, error);
}

cudaError_t hand_cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const void *symbol, const void *src, size_t count, size_t offset,
	enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_to(&copy, symbol, src, count, offset, kind);

	return copy_set_exec(hGraphExec, node, &copy, error);
}

cudaError_t hand_cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode,
	cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
	void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_from(&copy, dst, symbol, count, offset, kind);

	return copy_add(pGraphNode, graph, pDependencies, numDependencies, &copy, error);
}

cudaError_t hand_cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
	const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_from(&copy, dst, symbol, count, offset, kind);

	return copy_set(node, &copy, error);
}

cudaError_t hand_cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_from(&copy, dst, symbol, count, offset, kind);

	return copy_set_exec(hGraphExec, node, &copy, error);
}

/* NVIDIA's runtime keeps no width. */
static struct cudaPitchedPtr copy_end(
	CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch, size_t rows)
{
	return (struct cudaPitchedPtr){
		.ptr = type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)host : (void *)device,
		.pitch = pitch,
		.ysize = rows};
}

static enum cudaMemcpyKind copy_kind(const CUDA_MEMCPY3D *copy)
{
	bool from = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
	bool to = copy->dstMemoryType == CU_MEMORYTYPE_HOST;

	if (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED ||
		copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (from)
		return to ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
	return to ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t hand_cudaGraphMemcpyNodeGetParams(
	cudaGraphNode_t node, struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = runtime_enter();

	if (!pNodeParams)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphMemcpyNodeGetParams((CUgraphNode)node, &copy));
	if (error)
		return error;
	*pNodeParams =
		(struct cudaMemcpy3DParms){.srcPos = {copy.srcXInBytes, copy.srcY, copy.srcZ},
			.srcPtr = copy_end(copy.srcMemoryType, copy.srcHost, copy.srcDevice,
				copy.srcPitch, copy.srcHeight),
			.dstPos = {copy.dstXInBytes, copy.dstY, copy.dstZ},
			.dstPtr = copy_end(copy.dstMemoryType, copy.dstHost, copy.dstDevice,
				copy.dstPitch, copy.dstHeight),
			.extent = {copy.WidthInBytes, copy.Height, copy.Depth},
			.kind = copy_kind(&copy)};
	return array_parms_back(pNodeParams, &copy);
}
