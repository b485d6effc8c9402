/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs and executable graphs: the driver's own objects under the runtime's names.
 */
#include "shim/runtime/runtime.h"

cudaError_t hand_cudaGraphDestroy(cudaGraph_t graph)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuGraphDestroy((CUgraph)graph));
}

cudaError_t hand_cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	return RUNTIME_DRIVER(
		cuGraphInstantiateWithFlags((CUgraphExec *)pGraphExec, (CUgraph)graph, flags));
}

cudaError_t hand_cudaGraphInstantiate(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	return hand_cudaGraphInstantiateWithFlags(pGraphExec, graph, flags);
}

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) &&
		       offsetof(cudaGraphInstantiateParams, result_out) ==
			       offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out),
	"instantiation");

cudaError_t hand_cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
	cudaGraphInstantiateParams *instantiateParams, cudaStream_t null_stream)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params;
	cudaError_t error = runtime_enter();

	if (!instantiateParams)
		return cudaErrorInvalidValue;
	if (error)
		return error;
	params.flags = instantiateParams->flags;
	params.hUploadStream =
		(CUstream)(instantiateParams->uploadStream ? instantiateParams->uploadStream
							   : null_stream);
	error = runtime_status(cuGraphInstantiateWithParams(
		(CUgraphExec *)pGraphExec, (CUgraph)graph, &params));
	instantiateParams->errNode_out = (cudaGraphNode_t)params.hErrNode_out;
	instantiateParams->result_out = (cudaGraphInstantiateResult)params.result_out;
	return error;
}

cudaError_t hand_cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return RUNTIME_DRIVER(cuGraphLaunch((CUgraphExec)graphExec, (CUstream)stream));
}

cudaError_t hand_cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	return RUNTIME_DRIVER(cuGraphUpload((CUgraphExec)graphExec, (CUstream)stream));
}

cudaError_t hand_cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuGraphExecDestroy((CUgraphExec)graphExec));
}

/* ---- executable graphs that are changed ---- */

cudaError_t hand_cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
	cudaGraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	cudaError_t error = runtime_enter();

	if (!resultInfo)
		return cudaErrorInvalidValue;
	if (error)
		return error;
	error = runtime_status(
		cuGraphExecUpdate((CUgraphExec)hGraphExec, (CUgraph)hGraph, &info));
	resultInfo->result = (enum cudaGraphExecUpdateResult)info.result;
	resultInfo->errorNode = (cudaGraphNode_t)info.errorNode;
	resultInfo->errorFromNode = (cudaGraphNode_t)info.errorFromNode;
	return error;
}

cudaError_t hand_cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
	cuuint64_t found = 0;
	cudaError_t error = runtime_enter();

	if (!flags)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphExecGetFlags((CUgraphExec)graphExec, &found));
	if (!error)
		*flags = found;
	return error;
}

cudaError_t hand_cudaGraphExecChildGraphNodeSetParams(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t node, cudaGraph_t childGraph)
{
	return RUNTIME_DRIVER(cuGraphExecChildGraphNodeSetParams(
		(CUgraphExec)hGraphExec, (CUgraphNode)node, (CUgraph)childGraph));
}

cudaError_t hand_cudaGraphNodeSetEnabled(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled)
{
	return RUNTIME_DRIVER(
		cuGraphNodeSetEnabled((CUgraphExec)hGraphExec, (CUgraphNode)hNode, isEnabled));
}

cudaError_t hand_cudaGraphNodeGetEnabled(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int *isEnabled)
{
	return RUNTIME_DRIVER(
		cuGraphNodeGetEnabled((CUgraphExec)hGraphExec, (CUgraphNode)hNode, isEnabled));
}

/* ---- memory of graphs ---- */

cudaError_t hand_cudaDeviceGraphMemTrim(int device)
{
	CUdevice dev;
	cudaError_t error = runtime_device(device, &dev);

	return error ? error : runtime_status(cuDeviceGraphMemTrim(dev));
}

cudaError_t hand_cudaDeviceGetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType attr, void *value)
{
	CUdevice dev;
	cudaError_t error = runtime_device(device, &dev);

	if (error)
		return error;
	return runtime_status(
		cuDeviceGetGraphMemAttribute(dev, (CUgraphMem_attribute)attr, value));
}

cudaError_t hand_cudaDeviceSetGraphMemAttribute(
	int device, enum cudaGraphMemAttributeType attr, void *value)
{
	CUdevice dev;
	cudaError_t error = runtime_device(device, &dev);

	if (error)
		return error;
	return runtime_status(
		cuDeviceSetGraphMemAttribute(dev, (CUgraphMem_attribute)attr, value));
}
