/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs and executable graphs: the driver's own objects under the runtime's names.
 */
#include "shim/runtime/runtime.h"

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
	/* What a refused call does not answer stays as it was. */
	params = (CUDA_GRAPH_INSTANTIATE_PARAMS){.flags = instantiateParams->flags,
		.hUploadStream = (CUstream)(instantiateParams->uploadStream
						    ? instantiateParams->uploadStream
						    : null_stream),
		.hErrNode_out = (CUgraphNode)instantiateParams->errNode_out,
		.result_out = (CUgraphInstantiateResult)instantiateParams->result_out};
	error = runtime_status(cuGraphInstantiateWithParams(
		(CUgraphExec *)pGraphExec, (CUgraph)graph, &params));
	instantiateParams->errNode_out = (cudaGraphNode_t)params.hErrNode_out;
	instantiateParams->result_out = (cudaGraphInstantiateResult)params.result_out;
	return error;
}

/* ---- executable graphs that are changed ---- */

cudaError_t hand_cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
	cudaGraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	cudaError_t error = hGraphExec ? runtime_enter() : runtime_init();

	if (error)
		return error;
	error = runtime_status(
		cuGraphExecUpdate((CUgraphExec)hGraphExec, (CUgraph)hGraph, &info));
	if (!resultInfo || (error && error != cudaErrorGraphExecUpdateFailure))
		return error;
	resultInfo->result = (enum cudaGraphExecUpdateResult)info.result;
	resultInfo->errorNode = (cudaGraphNode_t)info.errorNode;
	resultInfo->errorFromNode = (cudaGraphNode_t)info.errorFromNode;
	return error;
}

/* Without an event they make no context current. */
cudaError_t hand_cudaGraphExecEventRecordNodeSetEvent(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event)
{
	cudaError_t error = event ? runtime_enter() : runtime_init();

	return error ? error
		     : runtime_status(cuGraphExecEventRecordNodeSetEvent(
			       (CUgraphExec)hGraphExec, (CUgraphNode)hNode, (CUevent)event));
}

cudaError_t hand_cudaGraphExecEventWaitNodeSetEvent(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event)
{
	cudaError_t error = event ? runtime_enter() : runtime_init();

	return error ? error
		     : runtime_status(cuGraphExecEventWaitNodeSetEvent(
			       (CUgraphExec)hGraphExec, (CUgraphNode)hNode, (CUevent)event));
}

/* ---- memory of graphs ---- */
