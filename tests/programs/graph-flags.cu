// SPDX-License-Identifier: Apache-2.0
/*
 * A context whose graphs have kernels keeps the memory that those needed: its flags say so from
 * the moment that the first is made executable.  Added, captured, in a child graph and in a clone.
 */
#include "driver.h"

__global__ void add_one(int *at)
{
	atomicAdd(at, 1);
}

static int *data;

static bool keeps()
{
	unsigned flags;

	CUDA(cudaGetDeviceFlags(&flags));
	CHECK_EQ(flags & ~(unsigned)cudaDeviceLmemResizeToMax, (unsigned)cudaDeviceMapHost);
	return flags & cudaDeviceLmemResizeToMax;
}

/* Whether the context keeps it once GRAPH, which goes, was made executable. */
static bool keeps_behind(cudaGraph_t graph)
{
	ENTRY(cuCtxSetFlags);
	cudaGraphExec_t exec;

	DRIVER(p_cuCtxSetFlags(0));
	CHECK(!keeps());
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	return keeps();
}

static cudaGraph_t filled()
{
	cudaMemsetParams fill = {};
	cudaGraphNode_t node;
	cudaGraph_t graph;

	fill.dst = data;
	fill.elementSize = 4;
	fill.width = fill.height = 1;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	return graph;
}

static cudaGraph_t added()
{
	void *arguments[] = {&data};
	cudaKernelNodeParams kernel = {};
	cudaGraph_t graph = filled();
	cudaGraphNode_t node;

	kernel.func = (void *)add_one;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = arguments;
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
	return graph;
}

static cudaGraph_t captured(bool kernel)
{
	cudaStream_t stream;
	cudaGraph_t graph;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemsetAsync(data, 0, 4, stream));
	if (kernel)
		add_one<<<1, 1, 0, stream>>>(data);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaStreamDestroy(stream));
	return graph;
}

static cudaGraph_t around(cudaGraph_t child)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	CUDA(cudaGraphDestroy(child));
	return graph;
}

static cudaGraph_t cloned(cudaGraph_t from)
{
	cudaGraph_t graph;

	CUDA(cudaGraphClone(&graph, from));
	CUDA(cudaGraphDestroy(from));
	return graph;
}

int main()
{
	ENTRY(cuDevicePrimaryCtxGetState);
	unsigned flags;
	int active;

	CUDA(cudaMalloc(&data, 4));
	CHECK(!keeps());
	CHECK(!keeps_behind(filled()));
	CHECK(keeps_behind(added()));
	CHECK(!keeps_behind(captured(false)));
	CHECK(keeps_behind(captured(true)));
	CHECK(!keeps_behind(around(captured(false))));
	CHECK(keeps_behind(around(added())));
	CHECK(keeps_behind(cloned(captured(true))));
	/* The device's, that the next context begins with, are what the program says. */
	DRIVER(p_cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(flags, 0u);
	CUDA(cudaDeviceReset());
	CUDA(cudaFree(0));
	CHECK(!keeps());
	return 0;
}
