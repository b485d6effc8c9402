// SPDX-License-Identifier: Apache-2.0
/*
 * Wrong arguments of graph calls: a node behind another one twice, parameters of another type of
 * node, an executable graph of another graph, a list without room; and what such a call leaves in
 * the program's variables.
 */
#include "check.h"

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
	(void)cudaGetLastError();
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
	return 0;
}
