// SPDX-License-Identifier: Apache-2.0
/*
 * Stream capture: one stream, a fork and a join, launches with changing input, what is captured
 * is not run, and the questions that a program asks meanwhile.
 */
#include "check.h"

#include <vector>

static const int N = 4096;

__global__ void add(int *to, const int *from, int by)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < N)
		to[i] = from[i] + by;
}

__global__ void sum(int *to, const int *a, const int *b)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < N)
		to[i] = a[i] + b[i];
}

struct Buffers {
	int *in, *a, *b, *out;
};

static Buffers buffers()
{
	Buffers d;

	CUDA(cudaMalloc(&d.in, N * sizeof(int)));
	CUDA(cudaMalloc(&d.a, N * sizeof(int)));
	CUDA(cudaMalloc(&d.b, N * sizeof(int)));
	CUDA(cudaMalloc(&d.out, N * sizeof(int)));
	CUDA(cudaMemset(d.out, 0, N * sizeof(int)));
	return d;
}

static void give(const Buffers &d, int first)
{
	std::vector<int> host(N);

	for (int i = 0; i < N; i++)
		host[(size_t)i] = first + i;
	CUDA(cudaMemcpy(d.in, host.data(), N * sizeof(int), cudaMemcpyHostToDevice));
	/* A copy from pageable memory may be staged only, and streams that do not block are not
	 * held up by it. */
	CUDA(cudaDeviceSynchronize());
}

static void expect(const Buffers &d, int factor, int first, int more)
{
	std::vector<int> host(N);

	CUDA(cudaMemcpy(host.data(), d.out, N * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		int want = factor * (first + i) + more;

		if (host[(size_t)i] != want)
			FAIL("out[%d] is %d, not %d", i, host[(size_t)i], want);
	}
}

static cudaStreamCaptureStatus state(cudaStream_t stream)
{
	cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;

	CUDA(cudaStreamIsCapturing(stream, &status));
	return status;
}

static void one_stream(cudaStreamCaptureMode mode, unsigned flags)
{
	Buffers d = buffers();
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamCreateWithFlags(&stream, flags));
	give(d, 10);
	CHECK(state(stream) == cudaStreamCaptureStatusNone);
	CUDA(cudaStreamBeginCapture(stream, mode));
	CHECK(state(stream) == cudaStreamCaptureStatusActive);
	add<<<N / 256, 256, 0, stream>>>(d.a, d.in, 1);
	LAUNCHED();
	CUDA(cudaMemsetAsync(d.b, 0, N * sizeof(int), stream));
	sum<<<N / 256, 256, 0, stream>>>(d.out, d.a, d.b);
	LAUNCHED();
	CUDA(cudaStreamEndCapture(stream, &graph));
	CHECK(state(stream) == cudaStreamCaptureStatusNone);
	expect(d, 0, 0, 0); /* nothing has run */
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	expect(d, 1, 10, 1);
	for (int round = 0; round < 5; round++) {
		give(d, 100 * round);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		expect(d, 1, 100 * round, 1);
	}
	/* The executable graph needs neither the graph nor the stream that made it. */
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
	give(d, -7);
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaDeviceSynchronize());
	expect(d, 1, -7, 1);
	CUDA(cudaGraphExecDestroy(exec));
}

static void fork_and_join(unsigned flags)
{
	Buffers d = buffers();
	cudaStream_t one, two;
	cudaEvent_t fork, join;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamCreateWithFlags(&one, flags));
	CUDA(cudaStreamCreateWithFlags(&two, flags));
	CUDA(cudaMemsetAsync(d.a, 0, N * sizeof(int), two)); /* not done when it joins */
	CUDA(cudaMemsetAsync(d.b, 0, N * sizeof(int), 0));
	CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
	CUDA(cudaEventRecord(fork, one));
	CHECK(state(two) == cudaStreamCaptureStatusNone);
	CUDA(cudaStreamWaitEvent(two, fork, 0));
	CHECK(state(two) == cudaStreamCaptureStatusActive);
	add<<<N / 256, 256, 0, one>>>(d.a, d.in, 3);
	LAUNCHED();
	add<<<N / 256, 256, 0, two>>>(d.b, d.in, 4);
	LAUNCHED();
	CUDA(cudaEventRecord(join, two));
	CUDA(cudaStreamWaitEvent(one, join, 0));
	sum<<<N / 256, 256, 0, one>>>(d.out, d.a, d.b);
	LAUNCHED();
	CUDA(cudaStreamEndCapture(one, &graph));
	CHECK(state(two) == cudaStreamCaptureStatusNone);
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 10; round++) {
		give(d, 3 * round);
		CUDA(cudaGraphLaunch(exec, round % 2 ? one : two));
		CUDA(cudaStreamSynchronize(round % 2 ? one : two));
		expect(d, 2, 3 * round, 7);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(one));
	CUDA(cudaStreamDestroy(two));
}

/* A stream whose work was joined may go before the capture ends; one whose was not spoils it. */
static void stream_gone(bool joined)
{
	Buffers d = buffers();
	cudaStream_t one, two;
	cudaEvent_t fork, join;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&fork));
	CUDA(cudaEventCreate(&join));
	CUDA(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
	CUDA(cudaEventRecord(fork, one));
	CUDA(cudaStreamWaitEvent(two, fork, 0));
	add<<<N / 256, 256, 0, two>>>(d.out, d.in, 4);
	LAUNCHED();
	CUDA(cudaEventRecord(join, two));
	if (joined)
		CUDA(cudaStreamWaitEvent(one, join, 0));
	CUDA(cudaStreamDestroy(two));
	CUDA(cudaEventDestroy(fork));
	CUDA(cudaEventDestroy(join));
	if (!joined) {
		CHECK(cudaStreamEndCapture(one, &graph) != cudaSuccess);
		(void)cudaGetLastError();
		CUDA(cudaStreamDestroy(one));
		return;
	}
	CHECK(state(one) == cudaStreamCaptureStatusActive);
	CUDA(cudaStreamEndCapture(one, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	give(d, 30);
	CUDA(cudaGraphLaunch(exec, one));
	CUDA(cudaStreamSynchronize(one));
	expect(d, 1, 30, 4);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(one));
}

/* Launches, work before and work behind stay in the stream's order. */
static void in_order()
{
	Buffers d = buffers();
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add<<<N / 256, 256, 0, stream>>>(d.in, d.in, 1);
	LAUNCHED();
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphUpload(exec, stream));
	give(d, 0);
	for (int round = 0; round < 100; round++) {
		CUDA(cudaGraphLaunch(exec, stream));
		add<<<N / 256, 256, 0, stream>>>(d.in, d.in, 10);
		LAUNCHED();
	}
	add<<<N / 256, 256, 0, stream>>>(d.out, d.in, 0);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	expect(d, 1, 0, 1100);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
}

int main()
{
	one_stream(cudaStreamCaptureModeGlobal, cudaStreamNonBlocking);
	one_stream(cudaStreamCaptureModeThreadLocal, cudaStreamNonBlocking);
	one_stream(cudaStreamCaptureModeRelaxed, cudaStreamDefault);
	fork_and_join(cudaStreamNonBlocking);
	fork_and_join(cudaStreamDefault);
	stream_gone(true);
	stream_gone(false);
	in_order();
	return 0;
}
