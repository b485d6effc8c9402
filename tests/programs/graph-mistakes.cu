// SPDX-License-Identifier: Apache-2.0
/*
 * Wrong arguments of graph calls: a node behind another one twice, parameters of another type of
 * node, an executable graph of another graph, a list without room, an edge that is there; and what
 * such a call leaves in the program's variables. The call itself tells, and no later one.
 */
#include "driver.h"

#if CUDART_VERSION >= 13000
#define EDGE_DATA NULL,
#else
#define EDGE_DATA
#endif

__global__ void one(int *at)
{
	*at = 1;
}

static int *data;

static void CUDART_CB nothing(void *)
{
}

static cudaGraphNode_t host_node(cudaGraph_t graph, const cudaGraphNode_t *after, size_t count)
{
	cudaHostNodeParams host = {nothing, NULL};
	cudaGraphNode_t node;

	CUDA(cudaGraphAddHostNode(&node, graph, after, count, &host));
	return node;
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph)
{
	cudaKernelNodeParams kernel = {};
	void *arguments[] = {&data};
	cudaGraphNode_t node, none;

	kernel.func = (void *)one;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = arguments;
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	kernel.blockDim = dim3(4096);
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddKernelNode(&none, graph, NULL, 0, &kernel));
	return node;
}

/* Behind many, and behind the first of them again. */
static void many_times(cudaGraphNode_t foreign)
{
	enum { MANY = 100 };
	cudaGraphNode_t nodes[MANY + 1], added;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	for (int i = 0; i < MANY; i++)
		CUDA(cudaGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
	CUDA(cudaGraphAddEmptyNode(&added, graph, nodes, MANY));
	nodes[MANY] = nodes[0];
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&added, graph, nodes, MANY + 1));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&added, graph, &foreign, 1));
	CUDA(cudaGraphDestroy(graph));
}

static void adding(cudaGraph_t graph, cudaGraphNode_t node)
{
	cudaHostNodeParams host = {nothing, NULL};
	cudaGraphNode_t twice[2] = {node, node}, added;
	size_t count;

	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&added, graph, twice, 2));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddHostNode(&added, graph, twice, 2, &host));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&added, graph, NULL, 1));
	many_times(node);
	CUDA(cudaGraphGetNodes(graph, NULL, &count));
	CHECK(count == 2);
}

static void types(cudaGraph_t graph, cudaGraphNode_t kernel, cudaGraphNode_t host)
{
	cudaHostNodeParams params = {nothing, NULL};
	cudaMemsetParams fill = {data, 0, 0, 4, 1, 1};
	cudaEvent_t event;

	CUDA(cudaEventCreate(&event));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphHostNodeSetParams(kernel, &params));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphMemsetNodeSetParams(kernel, &fill));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphEventRecordNodeSetEvent(host, event));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphEventWaitNodeSetEvent(host, event));
	CUDA(cudaGraphHostNodeSetParams(host, &params));
	CUDA(cudaEventDestroy(event));
}

static void lists(cudaGraph_t graph, cudaGraphNode_t kernel, cudaGraphNode_t host)
{
	cudaGraphNode_t nodes[3] = {kernel, kernel, kernel};
	cudaGraph_t other;
	size_t none = 0, count = 3;

	CUDA_IS(cudaErrorInvalidValue, cudaGraphGetNodes(graph, nodes, &none));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphGetRootNodes(graph, nodes, &none));
	CHECK(nodes[0] == kernel && !none);
	CUDA(cudaGraphGetRootNodes(graph, nodes, &count));
	CHECK(count == 2 && nodes[0] && nodes[1] && !nodes[2]);
	CUDA(cudaGraphCreate(&other, 0));
	nodes[0] = kernel;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphNodeFindInClone(nodes, host, other));
	CHECK(!nodes[0]);
	CUDA(cudaGraphDestroy(other));
}

static void executables(cudaGraph_t graph, cudaGraphNode_t kernel, cudaGraphNode_t host)
{
	cudaHostNodeParams params = {nothing, NULL};
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec, foreign;
	cudaGraphNode_t node;
	cudaGraph_t other;
	unsigned enabled;
	unsigned long long flags;

	CUDA_IS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 1u << 20));
	CUDA(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	CUDA(cudaGraphExecGetFlags(exec, &flags));
	CHECK(flags == cudaGraphInstantiateFlagAutoFreeOnLaunch);
	CUDA(cudaGraphCreate(&other, 0));
	node = host_node(other, NULL, 0);
	CUDA(cudaGraphInstantiate(&foreign, other, 0));
	CUDA(cudaGraphExecHostNodeSetParams(exec, host, &params));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecHostNodeSetParams(exec, node, &params));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecHostNodeSetParams(foreign, host, &params));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(foreign, kernel, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphNodeGetEnabled(exec, host, &enabled));
	CUDA(cudaGraphNodeGetEnabled(exec, kernel, &enabled));
	CHECK(enabled == 1);
	memset(&info, 0x5a, sizeof(info));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecUpdate(NULL, graph, &info));
	CHECK((int)info.result == 0x5a5a5a5a);
	CUDA_IS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
	CHECK(info.result != cudaGraphExecUpdateSuccess && (int)info.result != 0x5a5a5a5a);
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphExecDestroy(foreign));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(other));
}

static void edges()
{
	cudaGraphNode_t a, b, ends[2], from[2], to[2];
	size_t count = 0;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEmptyNode(&a, graph, NULL, 0));
	CUDA(cudaGraphAddEmptyNode(&b, graph, &a, 1));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, &a, &b, EDGE_DATA 1));
	CUDA(cudaDeviceSynchronize());
	ends[0] = a;
	ends[1] = b;
	CUDA(cudaGraphAddEmptyNode(&b, graph, NULL, 0));
	from[0] = ends[0];
	from[1] = ends[1];
	to[0] = to[1] = b;
	CUDA(cudaGraphAddDependencies(graph, from, to, EDGE_DATA 2));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddDependencies(graph, from, to, EDGE_DATA 2));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphGetEdges(graph, NULL, NULL, EDGE_DATA &count));
	CHECK_EQ(count, 3u);
	CUDA(cudaGraphDestroy(graph));
}

/* A fill of 4 bytes an element, at an address or of a pitch that they do not fit. */
static void fills()
{
	cudaMemsetParams fill = {};
	cudaGraphNode_t node;
	cudaGraph_t graph;
	char *memory;

	CUDA(cudaMalloc(&memory, 256));
	CUDA(cudaGraphCreate(&graph, 0));
	fill.dst = memory + 2;
	fill.elementSize = 4;
	fill.width = 4;
	fill.height = 1;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	CUDA(cudaDeviceSynchronize());
	fill.dst = memory;
	fill.height = 2;
	fill.pitch = 34;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	CUDA(cudaDeviceSynchronize());
	fill.pitch = 36;
	CUDA(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(memory));
}

/* Another child for an executable graph must have the nodes of the one that it has. */
static void children()
{
	cudaGraph_t graph, child, same, larger;
	cudaGraphNode_t node, more;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&child, 0));
	kernel_node(child);
	CUDA(cudaGraphClone(&same, child));
	CUDA(cudaGraphClone(&larger, child));
	CUDA(cudaGraphAddEmptyNode(&more, larger, NULL, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, same));
	CUDA_IS(cudaErrorGraphExecUpdateFailure,
		cudaGraphExecChildGraphNodeSetParams(exec, node, larger));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphExecDestroy(exec));
	for (cudaGraph_t one : {graph, child, same, larger})
		CUDA(cudaGraphDestroy(one));
}

/* A clone's nodes are of the types that the others are, and the call itself says so. */
static void clones(cudaGraph_t graph, cudaGraphNode_t kernel)
{
	cudaHostNodeParams host = {nothing, NULL};
	cudaGraphNode_t node;
	cudaGraph_t clone;

	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphNodeFindInClone(&node, kernel, clone));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphHostNodeSetParams(node, &host));
	(void)cudaGetLastError();
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphDestroy(clone));
}

/* What an executable graph with an upload asks: its stream, not whether something captures. */
static void uploads(cudaGraph_t graph)
{
	ENTRY(cuGraphInstantiateWithParams);
	ENTRY(cuGraphExecGetFlags);
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {};
	cudaStream_t capturing, other;
	cudaGraph_t captured;
	CUgraphExec exec;
	cuuint64_t flags;

	CUDA(cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeGlobal));
	params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	params.hUploadStream = (CUstream)other;
	DRIVER(p_cuGraphInstantiateWithParams(&exec, (CUgraph)graph, &params));
	CHECK_EQ((int)params.result_out, (int)CUDA_GRAPH_INSTANTIATE_SUCCESS);
	DRIVER(p_cuGraphExecGetFlags(exec, &flags));
	CHECK_EQ(flags, 0u);
	CUDA(cudaStreamEndCapture(capturing, &captured));
	CUDA(cudaGraphDestroy(captured));
	CUDA(cudaGraphExecDestroy((cudaGraphExec_t)exec));
	/* The stream that captures is none for it, and no executable graph is left. */
	CUDA(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeGlobal));
	params.hUploadStream = (CUstream)capturing;
	exec = NULL;
	DRIVER_IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
		p_cuGraphInstantiateWithParams(&exec, (CUgraph)graph, &params));
	CHECK(!exec && params.result_out == CUDA_GRAPH_INSTANTIATE_ERROR);
	CUDA_IS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(capturing, &captured));
	CUDA(cudaStreamDestroy(capturing));
	CUDA(cudaStreamDestroy(other));
}

/* Memory of a device that there is not, and an address that nobody learns. */
static void memory(cudaGraph_t graph)
{
	ENTRY(cuGraphAddMemAllocNode);
	CUDA_MEM_ALLOC_NODE_PARAMS params = {};
	CUgraphNode node, nowhere = NULL;

	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.poolProps.location.id = 99;
	params.bytesize = 4096;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuGraphAddMemAllocNode(&node, (CUgraph)graph, NULL, 0, &params));
	params.poolProps.location.id = 0;
	params.dptr = 7;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuGraphAddMemAllocNode(&node, (CUgraph)graph, &nowhere, 1, &params));
	CHECK_EQ(params.dptr, 7u);
	params.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	DRIVER_IS(CUDA_ERROR_NOT_SUPPORTED,
		p_cuGraphAddMemAllocNode(&node, (CUgraph)graph, NULL, 0, &params));
}

/* Memory that a node fills is gone by the time its graph is to be executable. */
static void filled_and_freed()
{
	cudaGraphInstantiateParams params = {};
	cudaMemsetParams fill = {};
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *memory;

	CUDA(cudaMalloc(&memory, 1 << 20));
	CUDA(cudaGraphCreate(&graph, 0));
	fill.dst = memory;
	fill.elementSize = 4;
	fill.width = 100;
	fill.height = 1;
	CUDA(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(memory));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph, &params));
	CHECK_EQ(params.result_out, cudaGraphInstantiateError);
	CHECK(params.errNode_out == NULL);
	CUDA_IS(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
	fill.dst = data;
	fill.width = 1;
	CUDA(cudaGraphMemsetNodeSetParams(node, &fill));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	cudaGraphNode_t kernel, host;
	cudaGraph_t graph;

	CUDA(cudaMalloc(&data, 4));
	CUDA(cudaGraphCreate(&graph, 0));
	kernel = kernel_node(graph);
	host = host_node(graph, NULL, 0);
	adding(graph, kernel);
	types(graph, kernel, host);
	lists(graph, kernel, host);
	executables(graph, kernel, host);
	edges();
	fills();
	filled_and_freed();
	children();
	clones(graph, kernel);
	uploads(graph);
	memory(graph);
	(void)cudaGetLastError();
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
	return 0;
}
