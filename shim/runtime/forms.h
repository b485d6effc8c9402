/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stubs of shim/generated/ may name: runtime functions that hand on to the driver or
 * to another one, as their as() in cudart.api says.
 */
#ifndef VCUDA_RUNTIME_FORMS_H
#define VCUDA_RUNTIME_FORMS_H

#include "shim/runtime/newer.h"
#include "shim/runtime/register.h"
#include "shim/runtime/runtime.h"

/* Between two events, as the driver's function of since CUDA 12.8 answers. */
cudaError_t runtime_elapsed(float *ms, cudaEvent_t start, cudaEvent_t end);
cudaError_t runtime_properties(struct cudaDeviceProp *prop, int ordinal);
/* As programs built before CUDA 12 call it. */
cudaError_t runtime_properties_11(struct cudaDeviceProp *prop, int ordinal);
cudaError_t runtime_entry_point(const char *symbol, void **funcPtr, unsigned version,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus,
	cudaStream_t null_stream);

cudaError_t runtime_copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t null_stream);
cudaError_t runtime_copy_async(void *dst, const void *src, size_t count,
	enum cudaMemcpyKind kind, cudaStream_t stream);

/* The driver's, newer than the header that we compile with. */
CUresult cuGraphNodeGetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams);
CUresult cuGraphNodeGetContainingGraph(CUgraphNode hNode, CUgraph *phGraph);
CUresult cuGraphNodeGetLocalId(CUgraphNode hNode, unsigned int *nodeId);
CUresult cuGraphNodeGetToolsId(CUgraphNode hNode, unsigned long long *toolsNodeId);
CUresult cuGraphGetId(CUgraph hGraph, unsigned int *graphId);
CUresult cuGraphExecGetId(CUgraphExec hGraphExec, unsigned int *graphId);

#if CUDART_VERSION >= 13000
/* A batch of one. */
cudaError_t runtime_copy_with_attributes(void *dst, const void *src, size_t size,
	struct cudaMemcpyAttributes *attr, cudaStream_t stream);
cudaError_t runtime_copy_3d_with_attributes(
	struct cudaMemcpy3DBatchOp *op, unsigned long long flags, cudaStream_t stream);
#endif

cudaError_t runtime_fill(void *devPtr, int value, size_t count, bool wait, cudaStream_t stream);
cudaError_t runtime_fill_2d(void *devPtr, size_t pitch, int value, size_t width, size_t height,
	bool wait, cudaStream_t stream);
cudaError_t runtime_fill_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
	bool wait, cudaStream_t stream);
/* The waiting forms take the driver's waiting forms, except in the thread's own stream: those
 * exist only under other names and a memset of device memory does not wait anyway. */
static inline bool runtime_fill_waits(cudaStream_t null_stream)
{
	return null_stream != cudaStreamPerThread;
}

/* What is NULL is not told. */
cudaError_t runtime_capture_info(cudaStream_t stream,
	enum cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out,
	cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out,
	const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out);
cudaError_t runtime_graph_add_node(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, const cudaGraphEdgeData *dependencyData,
	size_t numDependencies, struct cudaGraphNodeParams *nodeParams);

#endif
