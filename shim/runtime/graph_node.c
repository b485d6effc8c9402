/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of graphs.  The runtime's structs become the driver's; a kernel is named by its address
 * in the program, a copy by how it is described to cudaMemcpy3D.
 */
#include <string.h>

#include "shim/runtime/forms.h"
#include "shim/runtime/copy.h"
#include "shim/runtime/register.h"

/* ---- events ---- */

/* That there is none is told before a context is made current. */
static cudaError_t event_enter(cudaEvent_t event)
{
	return event ? runtime_enter() : runtime_init() ?: cudaErrorInvalidValue;
}

cudaError_t hand_cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, cudaEvent_t event)
{
	return event_enter(event)
		       ?: runtime_status(cuGraphAddEventRecordNode((CUgraphNode *)pGraphNode,
				  (CUgraph)graph, (const CUgraphNode *)pDependencies,
				  numDependencies, (CUevent)event));
}

cudaError_t hand_cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	return event_enter(event)
		       ?: runtime_status(cuGraphEventRecordNodeSetEvent(
				  (CUgraphNode)node, (CUevent)event));
}

cudaError_t hand_cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, cudaEvent_t event)
{
	return event_enter(event)
		       ?: runtime_status(cuGraphAddEventWaitNode((CUgraphNode *)pGraphNode,
				  (CUgraph)graph, (const CUgraphNode *)pDependencies,
				  numDependencies, (CUevent)event));
}

cudaError_t hand_cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	return event_enter(event)
		       ?: runtime_status(cuGraphEventWaitNodeSetEvent(
				  (CUgraphNode)node, (CUevent)event));
}

/* ---- kernels ---- */

/* After runtime_enter. */
static cudaError_t kernel_params(CUDA_KERNEL_NODE_PARAMS *to, const void *func, dim3 grid,
	dim3 block, unsigned shared, void **params, void **extra)
{
	*to = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = grid.x,
		.gridDimY = grid.y,
		.gridDimZ = grid.z,
		.blockDimX = block.x,
		.blockDimY = block.y,
		.blockDimZ = block.z,
		.sharedMemBytes = shared,
		.kernelParams = params,
		.extra = extra};
	return register_function(func, &to->func);
}

static cudaError_t kernel_of(
	CUDA_KERNEL_NODE_PARAMS *to, const struct cudaKernelNodeParams *from)
{
	cudaError_t error = from ? runtime_enter() : runtime_init();

	if (error)
		return error;
	if (!from)
		return cudaErrorInvalidValue;
	return kernel_params(to, from->func, from->gridDim, from->blockDim,
		from->sharedMemBytes, from->kernelParams, from->extra);
}

cudaError_t hand_cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params;
	cudaError_t error = kernel_of(&params, pNodeParams);

	if (error)
		return error;
	return runtime_status(cuGraphAddKernelNode((CUgraphNode *)pGraphNode, (CUgraph)graph,
		(const CUgraphNode *)pDependencies, numDependencies, &params));
}

/* A kernel that the program does not know by an address is a library's. */
cudaError_t hand_cudaGraphKernelNodeGetParams(
	cudaGraphNode_t node, struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params;
	const void *host;
	cudaError_t error = runtime_enter();

	if (!pNodeParams)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphKernelNodeGetParams((CUgraphNode)node, &params));
	if (error)
		return error;
	host = params.func ? register_host(params.func) : NULL;
	if (!host)
		return cudaErrorInvalidDeviceFunction;
	*pNodeParams = (struct cudaKernelNodeParams){.func = (void *)(uintptr_t)host,
		.gridDim = {params.gridDimX, params.gridDimY, params.gridDimZ},
		.blockDim = {params.blockDimX, params.blockDimY, params.blockDimZ},
		.sharedMemBytes = params.sharedMemBytes,
		.kernelParams = params.kernelParams};
	return cudaSuccess;
}

cudaError_t hand_cudaGraphKernelNodeSetParams(
	cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params;
	cudaError_t error = kernel_of(&params, pNodeParams);

	return error ? error
		     : runtime_status(cuGraphKernelNodeSetParams((CUgraphNode)node, &params));
}

/* Those that NVIDIA's header names after kernels' nodes. */
static bool attribute_of_nodes(cudaLaunchAttributeID attr)
{
	switch ((int)attr) {
	case cudaLaunchAttributeAccessPolicyWindow:
	case cudaLaunchAttributeCooperative:
	case cudaLaunchAttributePriority:
	case cudaLaunchAttributeClusterDimension:
	case cudaLaunchAttributeClusterSchedulingPolicyPreference:
	case cudaLaunchAttributeMemSyncDomainMap:
	case cudaLaunchAttributeMemSyncDomain:
	case cudaLaunchAttributePreferredSharedMemoryCarveout:
	case cudaLaunchAttributeDeviceUpdatableKernelNode: return true;
	default: return false;
	}
}

/* Another one makes no context current, as natively. */
cudaError_t hand_cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode,
	cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value)
{
	cudaError_t error = attribute_of_nodes(attr) ? runtime_enter() : runtime_init();

	return error ? error
		     : runtime_status(cuGraphKernelNodeSetAttribute((CUgraphNode)hNode,
			       (CUkernelNodeAttrID)attr, (const CUkernelNodeAttrValue *)value));
}

cudaError_t hand_cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS params;
	cudaError_t error = kernel_of(&params, pNodeParams);

	if (error)
		return error;
	return runtime_status(cuGraphExecKernelNodeSetParams(
		(CUgraphExec)hGraphExec, (CUgraphNode)node, &params));
}

/* ---- fills ---- */

_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS) &&
		       offsetof(struct cudaMemsetParams, height) ==
			       offsetof(CUDA_MEMSET_NODE_PARAMS, height),
	"fills");

static CUDA_MEMSET_NODE_PARAMS fill_of(const struct cudaMemsetParams *from)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = (CUdeviceptr)from->dst,
		.pitch = from->pitch,
		.value = from->value,
		.elementSize = from->elementSize,
		.width = from->width,
		.height = from->height};
}

/* NULL: the thread's context. */
cudaError_t hand_cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaMemsetParams *pMemsetParams)
{
	CUDA_MEMSET_NODE_PARAMS params;
	cudaError_t error = runtime_enter();

	if (!pMemsetParams)
		return cudaErrorInvalidValue;
	if (error)
		return error;
	params = fill_of(pMemsetParams);
	return runtime_status(cuGraphAddMemsetNode((CUgraphNode *)pGraphNode, (CUgraph)graph,
		(const CUgraphNode *)pDependencies, numDependencies, &params,
		runtime_thread.bound));
}

cudaError_t hand_cudaGraphMemsetNodeSetParams(
	cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams)
{
	CUDA_MEMSET_NODE_PARAMS params;
	cudaError_t error = runtime_enter();

	if (!pNodeParams)
		return cudaErrorInvalidValue;
	if (error)
		return error;
	params = fill_of(pNodeParams);
	return runtime_status(cuGraphMemsetNodeSetParams((CUgraphNode)node, &params));
}

cudaError_t hand_cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams)
{
	CUDA_MEMSET_NODE_PARAMS params;
	cudaError_t error = runtime_enter();

	if (!pNodeParams)
		return cudaErrorInvalidValue;
	if (error)
		return error;
	params = fill_of(pNodeParams);
	return runtime_status(cuGraphExecMemsetNodeSetParams(
		(CUgraphExec)hGraphExec, (CUgraphNode)node, &params, runtime_thread.bound));
}

/* ---- host functions: the structs are the same ---- */

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS) &&
		       offsetof(struct cudaHostNodeParams, userData) ==
			       offsetof(CUDA_HOST_NODE_PARAMS, userData),
	"host functions");

/* ---- nodes of whatever type ---- */

static cudaError_t node_of(CUgraphNodeParams *to, const struct cudaGraphNodeParams *from)
{
	CUDA_KERNEL_NODE_PARAMS kernel;
	cudaError_t error = runtime_enter();

	if (error)
		return error;
	if (!from)
		return cudaErrorInvalidValue;
	memset(to, 0, sizeof(*to));
	to->type = (CUgraphNodeType)from->type;
	switch ((int)from->type) {
	case cudaGraphNodeTypeKernel:
		error = kernel_params(&kernel, from->kernel.func, from->kernel.gridDim,
			from->kernel.blockDim, from->kernel.sharedMemBytes,
			from->kernel.kernelParams, from->kernel.extra);
		memcpy(&to->kernel, &kernel, sizeof(kernel));
		return error;
	case cudaGraphNodeTypeMemcpy:
		to->memcpy.flags = from->memcpy.flags;
		to->memcpy.copyCtx = runtime_thread.bound;
		return copy_parms(&to->memcpy.copyParams, &from->memcpy.copyParams);
	case cudaGraphNodeTypeMemset:
		to->memset.dst = (CUdeviceptr)from->memset.dst;
		to->memset.pitch = from->memset.pitch;
		to->memset.value = from->memset.value;
		to->memset.elementSize = from->memset.elementSize;
		to->memset.width = from->memset.width;
		to->memset.height = from->memset.height;
		to->memset.ctx = runtime_thread.bound;
		return cudaSuccess;
	case cudaGraphNodeTypeHost:
		to->host.fn = (CUhostFn)from->host.fn;
		to->host.userData = from->host.userData;
		return cudaSuccess;
	case cudaGraphNodeTypeGraph:
		to->graph.graph = (CUgraph)from->graph.graph;
		to->graph.ownership = (CUgraphChildGraphNodeOwnership)from->graph.ownership;
		return cudaSuccess;
	case cudaGraphNodeTypeWaitEvent:
		to->eventWait.event = (CUevent)from->eventWait.event;
		return cudaSuccess;
	case cudaGraphNodeTypeEventRecord:
		to->eventRecord.event = (CUevent)from->eventRecord.event;
		return cudaSuccess;
	case cudaGraphNodeTypeMemAlloc:
		/* The structs are the same: pool.c. */
		memcpy(&to->alloc, &from->alloc, sizeof(to->alloc));
		return cudaSuccess;
	case cudaGraphNodeTypeMemFree:
		to->free.dptr = (CUdeviceptr)from->free.dptr;
		return cudaSuccess;
	case cudaGraphNodeTypeConditional:
		to->conditional.handle = from->conditional.handle;
		to->conditional.type = (CUgraphConditionalNodeType)from->conditional.type;
		to->conditional.size = from->conditional.size;
		to->conditional.ctx = runtime_thread.bound;
		return cudaSuccess;
	default: return cudaSuccess; /* the driver says what it does not serve */
	}
}

cudaError_t runtime_graph_add_node(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, const cudaGraphEdgeData *dependencyData,
	size_t numDependencies, struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams params;
	cudaError_t error = node_of(&params, nodeParams);

	if (error)
		return error;
	error = runtime_status(cuGraphAddNode_v2((CUgraphNode *)pGraphNode, (CUgraph)graph,
		(const CUgraphNode *)pDependencies, (const CUgraphEdgeData *)dependencyData,
		numDependencies, &params));
	/* What the driver says of it. */
	if (!error && nodeParams->type == cudaGraphNodeTypeMemAlloc)
		nodeParams->alloc.dptr = (void *)params.alloc.dptr;
	if (!error && nodeParams->type == cudaGraphNodeTypeConditional)
		nodeParams->conditional.phGraph_out =
			(cudaGraph_t *)params.conditional.phGraph_out;
	return error;
}

/* Of no context it is the current one's: it makes none current. */
static cudaError_t conditional_handle(cudaGraphConditionalHandle *pHandle_out,
	cudaGraph_t graph, CUcontext context, unsigned int defaultLaunchValue,
	unsigned int flags)
{
	CUgraphConditionalHandle handle;
	cudaError_t error = runtime_init();

	if (!pHandle_out)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphConditionalHandleCreate(
			&handle, (CUgraph)graph, context, defaultLaunchValue, flags));
	if (!error)
		*pHandle_out = handle;
	return error;
}

cudaError_t hand_cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
	cudaGraph_t graph, unsigned int defaultLaunchValue, unsigned int flags)
{
	return conditional_handle(pHandle_out, graph, NULL, defaultLaunchValue, flags);
}

#if CUDART_VERSION >= 13000
cudaError_t hand_cudaGraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *pHandle_out,
	cudaGraph_t graph, cudaExecutionContext_t ctx, unsigned int defaultLaunchValue,
	unsigned int flags)
{
	CUcontext context = NULL;
	cudaError_t error = ctx ? execution_context(ctx, &context) : cudaSuccess;

	return error ? error
		     : conditional_handle(
			       pHandle_out, graph, context, defaultLaunchValue, flags);
}
#endif

/* As NVIDIA's: nodes of values have no type here, and conditional ones none in CUDA 12. */
cudaError_t hand_cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
	CUgraphNodeType type;
	cudaError_t error = runtime_enter();

	if (!pType)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphNodeGetType((CUgraphNode)node, &type));
	if (error)
		return error;
	if (type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ||
		(CUDART_VERSION < 13000 && type == CU_GRAPH_NODE_TYPE_CONDITIONAL))
		return cudaErrorUnknown;
	*pType = (enum cudaGraphNodeType)type;
	return cudaSuccess;
}

cudaError_t hand_cudaGraphNodeSetParams(
	cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams params;
	cudaError_t error = node_of(&params, nodeParams);

	return error ? error : runtime_status(cuGraphNodeSetParams((CUgraphNode)node, &params));
}

cudaError_t hand_cudaGraphExecNodeSetParams(
	cudaGraphExec_t graphExec, cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams params;
	cudaError_t error = node_of(&params, nodeParams);

	if (error)
		return error;
	return runtime_status(
		cuGraphExecNodeSetParams((CUgraphExec)graphExec, (CUgraphNode)node, &params));
}

#if CUDART_VERSION >= 13000
/* What the driver says, in the runtime's struct. */
static void node_from(struct cudaGraphNodeParams *to, const CUgraphNodeParams *from)
{
	switch ((int)from->type) {
	case CU_GRAPH_NODE_TYPE_MEMSET:
		to->memset.dst = (void *)from->memset.dst;
		to->memset.pitch = from->memset.pitch;
		to->memset.value = from->memset.value;
		to->memset.elementSize = from->memset.elementSize;
		to->memset.width = from->memset.width;
		to->memset.height = from->memset.height;
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		to->host.fn = from->host.fn;
		to->host.userData = from->host.userData;
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH: to->graph.graph = (cudaGraph_t)from->graph.graph; break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		to->eventWait.event = (cudaEvent_t)from->eventWait.event;
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		to->eventRecord.event = (cudaEvent_t)from->eventRecord.event;
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		memcpy(&to->alloc, &from->alloc, sizeof(to->alloc));
		break;
	case CU_GRAPH_NODE_TYPE_MEM_FREE: to->free.dptr = (void *)from->free.dptr; break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		to->conditional.handle = from->conditional.handle;
		to->conditional.type =
			(enum cudaGraphConditionalNodeType)from->conditional.type;
		to->conditional.size = from->conditional.size;
		to->conditional.phGraph_out = (cudaGraph_t *)from->conditional.phGraph_out;
		break;
	default: break;
	}
}

/* Kernels and copies are asked for as the runtime names them. */
cudaError_t hand_cudaGraphNodeGetParams(
	cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	struct cudaKernelNodeParams kernel;
	CUgraphNodeParams params;
	CUgraphNodeType type;
	cudaError_t error = runtime_enter();

	if (!nodeParams)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuGraphNodeGetType((CUgraphNode)node, &type));
	if (error)
		return error;
	memset(nodeParams, 0, sizeof(*nodeParams));
	nodeParams->type = (enum cudaGraphNodeType)type;
	if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
		error = hand_cudaGraphKernelNodeGetParams(node, &kernel);
		if (error)
			return error;
		nodeParams->kernel.func = kernel.func;
		nodeParams->kernel.gridDim = kernel.gridDim;
		nodeParams->kernel.blockDim = kernel.blockDim;
		nodeParams->kernel.sharedMemBytes = kernel.sharedMemBytes;
		nodeParams->kernel.kernelParams = kernel.kernelParams;
		return cudaSuccess;
	}
	if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
		return hand_cudaGraphMemcpyNodeGetParams(node, &nodeParams->memcpy.copyParams);
	error = runtime_status(cuGraphNodeGetParams((CUgraphNode)node, &params));
	if (!error)
		node_from(nodeParams, &params);
	return error;
}
#endif
