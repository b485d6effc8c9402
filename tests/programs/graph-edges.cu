// SPDX-License-Identifier: Apache-2.0
/*
 * Edges that say more than before and behind: a kernel that may begin while the one before it
 * runs.  What an edge says is told by the calls that have room for it, and the others refuse to
 * leave it out.
 */
#include "check.h"

static int *data;

__global__ void first(int *at)
{
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
	at[0] = 1;
}

/* Needs nothing of the first. */
__global__ void second(int *at)
{
	at[1] = 2;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, void *function)
{
	void *args[] = {&data};
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	return node;
}

/* The same calls have other names in CUDA 12, and what has these names there knows no data. */
#if CUDART_VERSION >= 13000
#define WITH_DATA(name) name
#else
#define WITH_DATA(name) name##_v2
#endif

static void check_data(const cudaGraphEdgeData &got)
{
	CHECK_EQ((int)got.from_port, (int)cudaGraphKernelNodePortProgrammatic);
	CHECK_EQ((int)got.to_port, 0);
	CHECK_EQ((int)got.type, (int)cudaGraphDependencyTypeProgrammatic);
}

int main()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t a, b, from[4], to[4];
	cudaGraphEdgeData edge = {}, got[4] = {};
	size_t count = 4;
	int host[2];

	if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 8)
		SKIP("no such edges here");
	CUDA(cudaMalloc(&data, 2 * sizeof(int)));
	CUDA(cudaMemset(data, 0, 2 * sizeof(int)));
	CUDA(cudaGraphCreate(&graph, 0));
	a = kernel(graph, (void *)first);
	b = kernel(graph, (void *)second);
	edge.from_port = cudaGraphKernelNodePortProgrammatic;
	edge.type = cudaGraphDependencyTypeProgrammatic;
	CUDA(WITH_DATA(cudaGraphAddDependencies)(graph, &a, &b, &edge, 1));
	CUDA(WITH_DATA(cudaGraphGetEdges)(graph, from, to, got, &count));
	CHECK_EQ(count, (size_t)1);
	CHECK(from[0] == a && to[0] == b);
	check_data(got[0]);
	memset(got, 0, sizeof(got));
	count = 4;
	CUDA(WITH_DATA(cudaGraphNodeGetDependencies)(b, from, got, &count));
	CHECK(count == 1 && from[0] == a);
	check_data(got[0]);
	count = 4;
	CUDA_IS(cudaErrorLossyQuery,
		WITH_DATA(cudaGraphGetEdges)(graph, from, to, NULL, &count));
	(void)cudaGetLastError();
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host[0], 1);
	CHECK_EQ(host[1], 2);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
	return 0;
}
