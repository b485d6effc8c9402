// SPDX-License-Identifier: Apache-2.0
/*
 * Executable graphs that are changed: a whole new capture of the same shape, single nodes, nodes
 * switched off; and what is no update.
 */
#include "check.h"

static const int N = 256;

__global__ void add(int *to, const int *from, int by)
{
	to[threadIdx.x] = from[threadIdx.x] + by;
}

__global__ void twice(int *to, const int *from, int by)
{
	to[threadIdx.x] = 2 * from[threadIdx.x] + by;
}

static int *a, *b, *pinned_in, *pinned_out, *other_in;

typedef void (*Kernel)(int *, const int *, int);

static cudaGraph_t capture(cudaStream_t stream, Kernel kernel, int by, const int *from, bool more)
{
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaMemcpyAsync(a, from, N * sizeof(int), cudaMemcpyHostToDevice, stream));
	kernel<<<1, N, 0, stream>>>(b, a, by);
	LAUNCHED();
	if (more)
		CUDA(cudaMemsetAsync(a, 0, 4, stream));
	CUDA(cudaMemcpyAsync(pinned_out, b, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	return graph;
}

static void expect(cudaGraphExec_t exec, cudaStream_t stream, int factor, int by, int first)
{
	memset(pinned_out, 0xff, N * sizeof(int));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, pinned_out[i], factor * (first + i) + by);
}

static void whole(cudaStream_t stream)
{
	cudaGraph_t first = capture(stream, add, 1, pinned_in, false), next;
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiateWithFlags(&exec, first, 0));
	expect(exec, stream, 1, 1, 0);
	for (int by = 2; by < 6; by++) {
		next = capture(stream, by % 2 ? twice : add, by, by % 2 ? other_in : pinned_in,
			false);
		CUDA(cudaGraphExecUpdate(exec, next, &info));
		CHECK(info.result == cudaGraphExecUpdateSuccess);
		CUDA(cudaGraphDestroy(next));
		expect(exec, stream, by % 2 ? 2 : 1, by, by % 2 ? 5000 : 0);
	}
	/* Another shape: it says so, and stays what it was. */
	next = capture(stream, add, 9, pinned_in, true);
	CUDA_IS(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, next, &info));
	(void)cudaGetLastError();
	CHECK(info.result != cudaGraphExecUpdateSuccess);
	expect(exec, stream, 2, 5, 5000);
	CUDA(cudaGraphDestroy(next));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(first));
}

static void nodes(cudaStream_t stream)
{
	cudaGraph_t graph = capture(stream, add, 1, pinned_in, true);
	cudaGraphNode_t list[8], kernel = NULL, in = NULL, fill = NULL;
	cudaKernelNodeParams params = {};
	cudaGraphExec_t exec;
	size_t count = 8;
	int by = 30;
	unsigned enabled = 0;

	CUDA(cudaGraphGetNodes(graph, list, &count));
	CHECK_EQ(count, 4u);
	for (size_t i = 0; i < count; i++) {
		cudaGraphNodeType type;
		size_t before = 0;

		CUDA(cudaGraphNodeGetType(list[i], &type));
		if (type == cudaGraphNodeTypeKernel)
			kernel = list[i];
		if (type == cudaGraphNodeTypeMemset)
			fill = list[i];
#if CUDART_VERSION >= 13000
		CUDA(cudaGraphNodeGetDependencies(list[i], NULL, NULL, &before));
#else
		CUDA(cudaGraphNodeGetDependencies(list[i], NULL, &before));
#endif
		if (type == cudaGraphNodeTypeMemcpy && !before)
			in = list[i];
	}
	CHECK(kernel && in && fill);
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	expect(exec, stream, 1, 1, 0);

	void *args[] = {&b, &a, &by};
	CUDA(cudaGraphKernelNodeGetParams(kernel, &params));
	CHECK(params.func == (void *)add);
	CHECK_EQ(*(int *)params.kernelParams[2], 1);
	params.kernelParams = args;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
	expect(exec, stream, 1, 30, 0);
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, in, a, other_in, N * sizeof(int), cudaMemcpyHostToDevice));
	expect(exec, stream, 1, 30, 5000);
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, in, a, pinned_in, N * sizeof(int), cudaMemcpyHostToDevice));
	expect(exec, stream, 1, 30, 0);

	/* Without the kernel the last result stays. */
	CUDA(cudaGraphNodeSetEnabled(exec, kernel, 0));
	CUDA(cudaGraphNodeGetEnabled(exec, kernel, &enabled));
	CHECK(!enabled);
	CUDA(cudaMemset(b, 0, N * sizeof(int)));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, pinned_out[i], 0);
	CUDA(cudaGraphNodeSetEnabled(exec, kernel, 1));
	expect(exec, stream, 1, 30, 0);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* What copies and fills that were captured keep: which kinds of memory, how many rows. It is told
 * at once, and what was refused changes nothing. */
static void captured_keep(cudaStream_t stream)
{
	cudaGraphNode_t nodes[4];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t count = 4;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaMemsetAsync(a, 1, 16, stream));
	CUDA(cudaMemset2DAsync(a + 16, 32, 2, 16, 3, stream));
	CUDA(cudaMemcpyAsync(b, a, 64, cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaMemcpyAsync(pinned_out, b, 64, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	CHECK_EQ(count, 4);

	cudaMemsetParams fill = {};
	fill.dst = a;
	fill.value = 7;
	fill.elementSize = 4;
	fill.width = 2;
	fill.pitch = 64;
	fill.height = 2;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &fill));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, nodes[1], &fill));
	fill.height = 1;
	CUDA(cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &fill));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[2],
					       pinned_out, a, 64, cudaMemcpyDeviceToHost));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[3], b, a,
					       64, cudaMemcpyDeviceToDevice));
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, nodes[2], b + 1, a, 16, cudaMemcpyDeviceToDevice));
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, nodes[3], other_in, b, 16, cudaMemcpyDeviceToHost));
	CUDA(cudaMemset(a, 0, 64));
	CUDA(cudaMemset(b, 0, 64));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fills */
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(other_in[0], 0);
	CHECK_EQ(other_in[1], 7);
	CHECK_EQ(other_in[2], 7);
	CHECK_EQ(other_in[3], 0);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&a, N * sizeof(int)));
	CUDA(cudaMalloc(&b, N * sizeof(int)));
	CUDA(cudaMallocHost(&pinned_in, N * sizeof(int)));
	CUDA(cudaMallocHost(&pinned_out, N * sizeof(int)));
	CUDA(cudaMallocHost(&other_in, N * sizeof(int)));
	for (int i = 0; i < N; i++) {
		pinned_in[i] = i;
		other_in[i] = 5000 + i;
	}
	whole(stream);
	nodes(stream);
	captured_keep(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
