// SPDX-License-Identifier: Apache-2.0
/*
 * Attributes of kernel nodes: what is set is read back, copied between nodes, kept by clones
 * and while the parameters change, and does what it says: a kernel with the cooperative
 * attribute can wait for its whole grid.
 */
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void count_all(int *sum, int *seen)
{
	cg::grid_group grid = cg::this_grid();

	atomicAdd(sum, 1);
	grid.sync();
	if (threadIdx.x == 0)
		seen[blockIdx.x] = *sum;
}

__global__ void one(int *at)
{
	*at = 1;
}

static int *data;

static cudaGraphNode_t kernel_node(cudaGraph_t graph)
{
	void *args[] = {&data};
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = (void *)one;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	return node;
}

static int priority_of(cudaGraphNode_t node)
{
	cudaLaunchAttributeValue value;

	memset(&value, 0x55, sizeof(value));
	CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &value));
	return value.priority;
}

static void set_priority(cudaGraphNode_t node, int priority)
{
	cudaLaunchAttributeValue value = {};

	value.priority = priority;
	CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value));
}

/* The runtime of CUDA 12 takes the destination first too, whatever its parameters are called. */
static cudaError_t copy_attributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
	return cudaGraphKernelNodeCopyAttributes(to, from);
}

static void kept()
{
	int least, greatest;
	cudaGraph_t graph, clone;
	cudaGraphNode_t a, b, cloned;
	cudaKernelNodeParams params = {};
	cudaLaunchAttributeValue value;

	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CUDA(cudaGraphCreate(&graph, 0));
	a = kernel_node(graph);
	b = kernel_node(graph);
	CHECK_EQ(priority_of(a), 0);
	set_priority(a, greatest);
	CHECK_EQ(priority_of(a), greatest);
	CHECK_EQ(priority_of(b), 0);
	CUDA(copy_attributes(b, a));
	CHECK_EQ(priority_of(b), greatest);
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphNodeFindInClone(&cloned, a, clone));
	CHECK_EQ(priority_of(cloned), greatest);
	set_priority(cloned, least);
	CHECK_EQ(priority_of(a), greatest);
	CUDA(cudaGraphKernelNodeGetParams(a, &params));
	CUDA(cudaGraphKernelNodeSetParams(a, &params));
	CHECK_EQ(priority_of(a), greatest);
	memset(&value, 0x55, sizeof(value));
	CUDA(cudaGraphKernelNodeGetAttribute(a, cudaLaunchAttributeCooperative, &value));
	CHECK_EQ(value.cooperative, 0);
	CUDA(cudaGraphDestroy(clone));
	CUDA(cudaGraphDestroy(graph));
}

static void mistakes()
{
	cudaLaunchAttributeValue value = {};
	cudaGraph_t graph;
	cudaGraphNode_t empty, kernel;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
	kernel = kernel_node(graph);
	CUDA_IS(cudaErrorInvalidValue,
		cudaGraphKernelNodeSetAttribute(empty, cudaLaunchAttributePriority, &value));
	CUDA_IS(cudaErrorInvalidValue,
		cudaGraphKernelNodeGetAttribute(empty, cudaLaunchAttributePriority, &value));
	CUDA_IS(cudaErrorInvalidValue, copy_attributes(kernel, empty));
	CUDA_IS(cudaErrorInvalidValue,
		cudaGraphKernelNodeSetAttribute(
			kernel, cudaLaunchAttributeSynchronizationPolicy, &value));
	(void)cudaGetLastError();
	CUDA(cudaGraphDestroy(graph));
}

static void cooperative()
{
	enum { BLOCKS = 2, THREADS = 32 };
	int *sum, *seen, got[BLOCKS];
	cudaLaunchAttributeValue value = {};
	cudaKernelNodeParams params = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CUDA(cudaMalloc(&sum, sizeof(int)));
	CUDA(cudaMalloc(&seen, BLOCKS * sizeof(int)));
	CUDA(cudaMemset(sum, 0, sizeof(int)));
	void *args[] = {&sum, &seen};
	params.func = (void *)count_all;
	params.gridDim = dim3(BLOCKS);
	params.blockDim = dim3(THREADS);
	params.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	value.cooperative = 1;
	CUDA(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeCooperative, &value));
	value.cooperative = 0;
	CUDA(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeCooperative, &value));
	CHECK_EQ(value.cooperative, 1);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaMemcpy(got, seen, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BLOCKS; i++)
		CHECK_EQ_AT(i, got[i], BLOCKS * THREADS);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(sum));
	CUDA(cudaFree(seen));
}

int main()
{
	if (!device_attribute(cudaDevAttrCooperativeLaunch))
		SKIP("no cooperative launches here");
	CUDA(cudaMalloc(&data, sizeof(int)));
	kept();
	mistakes();
	cooperative();
	CUDA(cudaFree(data));
	return 0;
}
