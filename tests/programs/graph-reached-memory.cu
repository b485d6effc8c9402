// SPDX-License-Identifier: Apache-2.0
/* A graph whose kernels and copies have the same pinned memory: each finds there what the node
 * before it left, whichever of them names the memory first; captured, and built node by node. */
#include "check.h"

#include <vector>

enum { N = 1 << 14, THREADS = 256, LAUNCHES = 3 };

__global__ void fill(int *data, const int *base)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] = *base + i;
}

__global__ void add(int *to, const int *from, int more)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = from[i] + more;
}

struct memory {
	int *base;     /* the device's: what the launch begins with */
	int *device, *out;
	int *pinned, *other;
};

static memory get(void)
{
	memory m;

	CUDA(cudaMalloc(&m.base, sizeof(int)));
	CUDA(cudaMalloc(&m.device, N * sizeof(int)));
	CUDA(cudaMalloc(&m.out, N * sizeof(int)));
	CUDA(cudaMallocHost(&m.pinned, N * sizeof(int)));
	CUDA(cudaMallocHost(&m.other, N * sizeof(int)));
	memset(m.pinned, 0, N * sizeof(int));
	memset(m.other, 0, N * sizeof(int));
	return m;
}

static void put(memory m)
{
	CUDA(cudaFree(m.base));
	CUDA(cudaFree(m.device));
	CUDA(cudaFree(m.out));
	CUDA(cudaFreeHost(m.pinned));
	CUDA(cudaFreeHost(m.other));
}

static void check(const int *data, int value)
{
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, data[i], value + i);
}

/* fill device; device -> pinned; out = pinned + 1; pinned = out + 1; pinned -> device;
 * other = device + 1; other -> out */
static void launches(cudaGraph_t graph, memory m, cudaStream_t stream)
{
	std::vector<int> got(N);
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int k = 1; k <= LAUNCHES; k++) {
		int base = 1000 * k;

		CUDA(cudaMemcpy(m.base, &base, sizeof(base), cudaMemcpyHostToDevice));
		CUDA(cudaDeviceSynchronize()); /* a small copy may end behind its call */
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		check(m.pinned, base + 2);
		check(m.other, base + 3);
		CUDA(cudaMemcpy(got.data(), m.device, N * sizeof(int), cudaMemcpyDeviceToHost));
		check(got.data(), base + 2);
		CUDA(cudaMemcpy(got.data(), m.out, N * sizeof(int), cudaMemcpyDeviceToHost));
		check(got.data(), base + 3);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void captured(cudaStream_t stream)
{
	const size_t bytes = N * sizeof(int);
	memory m = get();
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	fill<<<N / THREADS, THREADS, 0, stream>>>(m.device, m.base);
	CUDA(cudaMemcpyAsync(m.pinned, m.device, bytes, cudaMemcpyDeviceToHost, stream));
	add<<<N / THREADS, THREADS, 0, stream>>>(m.out, m.pinned, 1);
	add<<<N / THREADS, THREADS, 0, stream>>>(m.pinned, m.out, 1);
	CUDA(cudaMemcpyAsync(m.device, m.pinned, bytes, cudaMemcpyHostToDevice, stream));
	add<<<N / THREADS, THREADS, 0, stream>>>(m.other, m.device, 1);
	CUDA(cudaMemcpyAsync(m.out, m.other, bytes, cudaMemcpyHostToDevice, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	launches(graph, m, stream);
	put(m);
}

static void then_kernel(cudaGraph_t graph, cudaGraphNode_t *last, void *function, void **arguments)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = dim3(N / THREADS);
	params.blockDim = dim3(THREADS);
	params.kernelParams = arguments;
	CUDA(cudaGraphAddKernelNode(&node, graph, last, *last ? 1 : 0, &params));
	*last = node;
}

static void then_add(cudaGraph_t graph, cudaGraphNode_t *last, int *to, int *from)
{
	int one = 1;
	void *arguments[] = {&to, &from, &one};

	then_kernel(graph, last, (void *)add, arguments);
}

static void then_copy(cudaGraph_t graph, cudaGraphNode_t *last, int *to, int *from)
{
	cudaGraphNode_t node;

	CUDA(cudaGraphAddMemcpyNode1D(
		&node, graph, last, 1, to, from, N * sizeof(int), cudaMemcpyDefault));
	*last = node;
}

static cudaGraph_t build(memory &m)
{
	void *arguments[] = {&m.device, &m.base};
	cudaGraphNode_t last = NULL;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	then_kernel(graph, &last, (void *)fill, arguments);
	then_copy(graph, &last, m.pinned, m.device);
	then_add(graph, &last, m.out, m.pinned);
	then_add(graph, &last, m.pinned, m.out);
	then_copy(graph, &last, m.device, m.pinned);
	then_add(graph, &last, m.other, m.device);
	then_copy(graph, &last, m.out, m.other);
	return graph;
}

static void built(cudaStream_t stream)
{
	memory m = get();

	launches(build(m), m, stream);
	put(m);
}

/* As the child of another graph. */
static void inside(cudaStream_t stream)
{
	memory m = get();
	cudaGraph_t child = build(m), graph;
	cudaGraphNode_t node;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	CUDA(cudaGraphDestroy(child));
	launches(graph, m, stream);
	put(m);
}

/* Copies of an executable graph change to memory that kernels have, and have not, reached. */
static void changed(cudaStream_t stream)
{
	memory one = get(), two = get();
	cudaGraphNode_t last = NULL, out, back;
	void *arguments[] = {&one.device, &one.base};
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int base = 50;

	CUDA(cudaMemcpy(one.base, &base, sizeof(base), cudaMemcpyHostToDevice));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphCreate(&graph, 0));
	then_kernel(graph, &last, (void *)fill, arguments);
	then_copy(graph, &last, one.pinned, one.device);
	out = last;
	then_add(graph, &last, one.pinned, one.pinned);
	then_copy(graph, &last, one.other, one.device);
	back = last;
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	check(one.pinned, 51);
	check(one.other, 50);
	/* The first copy's memory is reached, the second's is not; then the other way round. */
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, out, two.pinned, one.device, N * sizeof(int), cudaMemcpyDefault));
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, back, two.other, one.device, N * sizeof(int), cudaMemcpyDefault));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	check(two.pinned, 50);
	check(two.other, 50);
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, back, one.pinned, one.device, N * sizeof(int), cudaMemcpyDefault));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	check(one.pinned, 50);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	put(one);
	put(two);
}

int main(void)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	captured(stream);
	built(stream);
	inside(stream);
	changed(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
