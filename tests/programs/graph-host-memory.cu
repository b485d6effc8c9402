// SPDX-License-Identifier: Apache-2.0
/*
 * A graph that copies to the host and back from there: what it reads is what it wrote before,
 * at every launch, from pageable and pinned memory, whole or in part; and each form of an
 * asynchronous copy with pageable memory is a node.
 */
#include "check.h"

#include <vector>

enum { N = 1000 };

static cudaStream_t stream;

__global__ void numbers(int *data, int *round)
{
	for (int i = 0; i < N; i++)
		data[i] = i + 1000 * *round;
	++*round;
}

static int *device_ints(int count)
{
	int *p;

	CUDA(cudaMalloc(&p, count * sizeof(int)));
	CUDA(cudaMemset(p, 0, count * sizeof(int)));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	return p;
}

static cudaGraphExec_t ended()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	return exec;
}

static void launch(cudaGraphExec_t exec)
{
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
}

/* Device to host, and from there, FROM ints on, COUNT of them, back to another place. */
static void and_back(int *host, int from, int count)
{
	int *a = device_ints(N), *b = device_ints(N), *round = device_ints(1);
	std::vector<int> got(N);
	cudaGraphExec_t exec;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	numbers<<<1, 1, 0, stream>>>(a, round);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(host, a, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaMemcpyAsync(
		b, host + from, count * sizeof(int), cudaMemcpyHostToDevice, stream));
	exec = ended();
	for (int r = 0; r < 3; r++) {
		for (int i = 0; i < N; i++)
			host[i] = -1;
		launch(exec);
		CUDA(cudaMemcpy(got.data(), b, N * sizeof(int), cudaMemcpyDeviceToHost));
		for (int i = 0; i < count; i++)
			CHECK_EQ_AT(i, got[i], from + i + 1000 * r);
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, host[i], i + 1000 * r);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(round));
}

/* The second half of what is read was copied there by the graph, the first half was not. */
static void in_part(int *host)
{
	int *a = device_ints(N), *b = device_ints(2 * N), *round = device_ints(1);
	std::vector<int> got(2 * N);
	cudaGraphExec_t exec;

	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	numbers<<<1, 1, 0, stream>>>(a, round);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(host + N, a, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaMemcpyAsync(b, host, 2 * N * sizeof(int), cudaMemcpyHostToDevice, stream));
	exec = ended();
	for (int r = 0; r < 3; r++) {
		for (int i = 0; i < N; i++)
			host[i] = -7 * r - i;
		launch(exec);
		CUDA(cudaMemcpy(got.data(), b, 2 * N * sizeof(int), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i++) {
			CHECK_EQ_AT(i, got[i], -7 * r - i);
			CHECK_EQ_AT(i, got[N + i], i + 1000 * r);
		}
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(round));
}

/* The same with nodes. */
static void with_nodes(int *host)
{
	int *a = device_ints(N), *b = device_ints(N), *round = device_ints(1);
	std::vector<int> got(N);
	cudaKernelNodeParams kernel = {};
	cudaMemcpy3DParms read = {};
	cudaGraphNode_t first, out, in;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *args[] = {&a, &round};

	kernel.func = (void *)numbers;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(&first, graph, NULL, 0, &kernel));
	CUDA(cudaGraphAddMemcpyNode1D(
		&out, graph, &first, 1, host, a, N * sizeof(int), cudaMemcpyDeviceToHost));
	CUDA(cudaGraphAddMemcpyNode1D(
		&in, graph, &out, 1, b, host, N * sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaGraphMemcpyNodeGetParams(in, &read));
	CHECK(read.srcPtr.ptr == host && read.dstPtr.ptr == b);
	CUDA(cudaGraphMemcpyNodeGetParams(out, &read));
	CHECK(read.srcPtr.ptr == a && read.dstPtr.ptr == host);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int r = 0; r < 3; r++) {
		launch(exec);
		CUDA(cudaMemcpy(got.data(), b, N * sizeof(int), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, got[i], i + 1000 * r);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(round));
}

__device__ int symbol[16];

/* Each form, to pageable memory and from it, 8 rows of 8 ints in the middle of wider ones. */
static void every_form()
{
	enum { ROW = 16, ROWS = 8, WIDE = 8 * sizeof(int), PITCH = ROW * sizeof(int) };
	static int in[ROW * ROWS], out[ROW * ROWS], cube[ROW * ROWS], named[16], back[16];
	int *a = device_ints(ROW * ROWS), *b = device_ints(ROW * ROWS);
	cudaMemcpy3DParms to = {}, from = {};
	cudaGraphExec_t exec;

	to.srcPtr = make_cudaPitchedPtr(in, PITCH, ROW, 4);
	to.dstPtr = make_cudaPitchedPtr(b, PITCH, ROW, 4);
	to.extent = make_cudaExtent(WIDE, 4, 2);
	to.kind = cudaMemcpyHostToDevice;
	from = to;
	from.srcPtr.ptr = b;
	from.dstPtr.ptr = cube;
	from.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemsetAsync(a, 0x11, ROWS * PITCH, stream));
	CUDA(cudaMemset2DAsync(b, PITCH, 0x22, PITCH, ROWS, stream));
	CUDA(cudaMemcpy2DAsync(
		a, PITCH, in, PITCH, WIDE, ROWS, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpy2DAsync(out, PITCH, a, PITCH, WIDE, ROWS, cudaMemcpyDefault, stream));
	CUDA(cudaMemcpy3DAsync(&to, stream));
	CUDA(cudaMemcpy3DAsync(&from, stream));
	CUDA(cudaMemcpyToSymbolAsync(
		symbol, named, sizeof(named), 0, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyFromSymbolAsync(
		back, symbol, sizeof(back), 0, cudaMemcpyDeviceToHost, stream));
	exec = ended();
	for (int r = 0; r < 3; r++) {
		for (int i = 0; i < ROW * ROWS; i++) {
			in[i] = i + 500 * r;
			out[i] = cube[i] = -1;
		}
		for (int i = 0; i < 16; i++)
			named[i] = r - i;
		launch(exec);
		for (int i = 0; i < ROW * ROWS; i++) {
			CHECK_EQ_AT(i, out[i], i % ROW < 8 ? in[i] : -1);
			CHECK_EQ_AT(i, cube[i], i % ROW < 8 ? in[i] : -1);
		}
		for (int i = 0; i < 16; i++)
			CHECK_EQ_AT(i, back[i], r - i);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* The stream that launched it last captures, when another one launches it: the two launches keep
 * their order, and the capture has nothing of it. */
static void beside_a_capture()
{
	int *data = device_ints(1), host[2] = {7, -1};
	cudaStream_t other;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t nodes;

	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaMemcpyAsync(data, &host[0], sizeof(int), cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyAsync(&host[1], data, sizeof(int), cudaMemcpyDeviceToHost, stream));
	exec = ended();
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaGraphLaunch(exec, other));
	CUDA(cudaStreamSynchronize(other));
	CHECK_EQ(host[1], 7);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	CHECK_EQ(nodes, 0u);
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaStreamDestroy(other));
	CUDA(cudaFree(data));
}

__global__ void one_more(int *data, int count)
{
	for (int i = 0; i < count; i++)
		data[i]++;
}

/* A node fills pinned memory and a kernel behind it adds to that, at every launch; then it fills
 * another part, with another value. */
static void fills(int *pinned)
{
	cudaMemsetParams fill = {}, got;
	cudaKernelNodeParams params = {};
	cudaGraphNode_t filled, added;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int count = 2 * N;
	void *args[] = {&pinned, &count};

	fill.dst = pinned + 10;
	fill.elementSize = sizeof(int);
	fill.width = 5;
	fill.height = 1;
	fill.value = 7;
	params.func = (void *)one_more;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemsetNode(&filled, graph, NULL, 0, &fill));
	CUDA(cudaGraphAddKernelNode(&added, graph, &filled, 1, &params));
	CUDA(cudaGraphMemsetNodeGetParams(filled, &got));
	CHECK(got.dst == pinned + 10);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < count; i++)
		pinned[i] = 100;
	for (int round = 1; round <= 2; round++) {
		launch(exec);
		for (int i = 0; i < count; i++)
			CHECK_EQ(pinned[i], i >= 10 && i < 15 ? 8 : 100 + round);
	}
	fill.dst = pinned + N;
	fill.value = 50;
	CUDA(cudaGraphExecMemsetNodeSetParams(exec, filled, &fill));
	launch(exec);
	for (int i = 0; i < count; i++)
		CHECK_EQ(pinned[i], i >= N && i < N + 5 ? 51 : i >= 10 && i < 15 ? 9 : 103);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	std::vector<int> pageable(2 * N);
	int *pinned;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&pinned, 2 * N * sizeof(int)));
	and_back(pinned, 0, N);
	and_back(pinned, 10, 100);
	and_back(pageable.data(), 0, N);
	and_back(pageable.data(), 10, 100);
	in_part(pinned);
	in_part(pageable.data());
	with_nodes(pinned);
	with_nodes(pageable.data());
	every_form();
	beside_a_capture();
	fills(pinned);
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
