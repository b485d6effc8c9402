// SPDX-License-Identifier: Apache-2.0
/* A graph over two devices: each node is in the context that it names, whichever is current when it
 * is added or changed, and a kernel in that of its function. */
#include "driver.h"

#include <stdint.h>
#include <string.h>

static const int N = 1000;

__global__ void add(int *out, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] += value;
}

static CUcontext contexts[2];
static int *values[2], *beside;

static CUDA_MEMSET_NODE_PARAMS fill(int *at, unsigned value)
{
	CUDA_MEMSET_NODE_PARAMS params;

	memset(&params, 0, sizeof(params));
	params.dst = (CUdeviceptr)at;
	params.value = value;
	params.elementSize = sizeof(int);
	params.width = N;
	params.height = 1;
	return params;
}

static void all_are(const int *device, int value)
{
	static int host[N];

	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, host[i], value);
}

int main()
{
	int devices, n = N, one = 1;
	void *arguments[] = {&values[1], &n, &one};
	CUDA_KERNEL_NODE_PARAMS kernel;
	CUDA_MEMSET_NODE_PARAMS set;
	CUDA_MEMCPY3D copy;
	CUgraphNodeParams any;
	CUgraphNode filled, copied, added, more;
	CUgraph graph;
	CUgraphExec exec;
	CUfunction function;

	ENTRY(cuDevicePrimaryCtxRetain);
	ENTRY(cuDevicePrimaryCtxRelease);
	ENTRY(cuGraphCreate);
	ENTRY(cuGraphAddMemsetNode);
	ENTRY(cuGraphAddMemcpyNode);
	ENTRY(cuGraphAddKernelNode);
	ENTRY(cuGraphExecMemsetNodeSetParams);
	ENTRY(cuGraphExecMemcpyNodeSetParams);
	ENTRY(cuGraphInstantiateWithFlags);
	ENTRY(cuGraphLaunch);
	ENTRY(cuGraphExecDestroy);
	ENTRY(cuGraphDestroy);

	CUDA(cudaGetDeviceCount(&devices));
	if (devices < 2)
		SKIP("one device only");
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMalloc(&values[i], N * sizeof(int)));
		CUDA(cudaMemset(values[i], 0, N * sizeof(int)));
		DRIVER(p_cuDevicePrimaryCtxRetain(&contexts[i], i));
	}
	CUDA(cudaMalloc(&beside, N * sizeof(int)));
	CUDA(cudaGetFuncBySymbol((cudaFunction_t *)&function, (const void *)add));

	/* The second device is current; the first one fills and copies. */
	DRIVER(p_cuGraphCreate(&graph, 0));
	set = fill(values[0], 7);
	DRIVER(p_cuGraphAddMemsetNode(&filled, graph, NULL, 0, &set, contexts[0]));
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = (CUdeviceptr)values[0];
	copy.dstDevice = (CUdeviceptr)values[1];
	copy.WidthInBytes = N * sizeof(int);
	copy.Height = copy.Depth = 1;
	DRIVER(p_cuGraphAddMemcpyNode(&copied, graph, &filled, 1, &copy, contexts[0]));
	/* The kernel is the second device's, whatever is said beside it; the first is current. */
	memset(&kernel, 0, sizeof(kernel));
	kernel.func = function;
	kernel.gridDimX = (N + 255) / 256;
	kernel.blockDimX = 256;
	kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
	kernel.kernelParams = arguments;
	kernel.ctx = (CUcontext)(uintptr_t)0x1234; /* cuda.h: ignored if func is set */
	CUDA(cudaSetDevice(0));
	DRIVER(p_cuGraphAddKernelNode(&added, graph, &copied, 1, &kernel));
	memset(&any, 0, sizeof(any));
	any.type = CU_GRAPH_NODE_TYPE_MEMSET;
	any.memset.dst = (CUdeviceptr)beside;
	any.memset.value = 5;
	any.memset.elementSize = sizeof(int);
	any.memset.width = N;
	any.memset.height = 1;
	any.memset.ctx = contexts[1];
#if CUDA_VERSION >= 13000
	ENTRY(cuGraphAddNode);
	DRIVER(p_cuGraphAddNode(&more, graph, NULL, NULL, 0, &any));
#else
	set = fill(beside, any.memset.value);
	DRIVER(p_cuGraphAddMemsetNode(&more, graph, NULL, 0, &set, contexts[1]));
#endif
	DRIVER(p_cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int current = 0; current < 2; current++) {
		CUDA(cudaSetDevice(current));
		DRIVER(p_cuGraphLaunch(exec, NULL));
		CUDA(cudaDeviceSynchronize());
		all_are(values[1], 8);
		all_are(beside, 5);
	}
	set = fill(values[0], 9);
	DRIVER(p_cuGraphExecMemsetNodeSetParams(exec, filled, &set, contexts[0]));
	DRIVER(p_cuGraphExecMemcpyNodeSetParams(exec, copied, &copy, contexts[0]));
	DRIVER(p_cuGraphLaunch(exec, NULL));
	CUDA(cudaDeviceSynchronize());
	all_are(values[1], 10);
	DRIVER(p_cuGraphExecDestroy(exec));
	DRIVER(p_cuGraphDestroy(graph));
	for (int i = 0; i < 2; i++)
		DRIVER(p_cuDevicePrimaryCtxRelease(i));
	printf("each node is in its context\n");
	return 0;
}
