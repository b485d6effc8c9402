// SPDX-License-Identifier: Apache-2.0
/*
 * What a capture does not allow, and that it ends with an error then: each mistake, the state
 * of the stream behind it, and that the stream is as good as new once the capture has ended.
 */
#include "check.h"

#include <thread>

__global__ void one(int *at)
{
	*at = 1;
}

static int *data;

static cudaStreamCaptureStatus state(cudaStream_t stream)
{
	cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

	CUDA(cudaStreamIsCapturing(stream, &status));
	return status;
}

static cudaStream_t capturing(cudaStreamCaptureMode mode)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(stream, mode));
	one<<<1, 1, 0, stream>>>(data);
	LAUNCHED();
	return stream;
}

/* The capture ends with WANT, gives no graph, and the stream works. */
static void ends(cudaStream_t stream, cudaError_t want)
{
	cudaGraph_t graph = (cudaGraph_t)1;

	CUDA_IS(want, cudaStreamEndCapture(stream, &graph));
	CHECK(!graph);
	(void)cudaGetLastError();
	CHECK(state(stream) == cudaStreamCaptureStatusNone);
	one<<<1, 1, 0, stream>>>(data);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamDestroy(stream));
}

static void invalidated(cudaStream_t stream)
{
	(void)cudaGetLastError();
	CHECK(state(stream) == cudaStreamCaptureStatusInvalidated);
	ends(stream, cudaErrorStreamCaptureInvalidated);
}

static void begin_and_end()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeGlobal), other;
	cudaGraph_t graph;

	CUDA_IS(cudaErrorStreamCaptureUnsupported,
		cudaStreamBeginCapture(0, cudaStreamCaptureModeRelaxed));
	(void)cudaGetLastError();
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA_IS(cudaErrorIllegalState, cudaStreamEndCapture(other, &graph));
	(void)cudaGetLastError();
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(other));
	CUDA(cudaStreamDestroy(stream));
}

static void waiting()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed);

	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
	invalidated(stream);
	stream = capturing(cudaStreamCaptureModeRelaxed);
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
	invalidated(stream);
	stream = capturing(cudaStreamCaptureModeRelaxed);
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
	invalidated(stream);
}

static void events()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed);
	cudaEvent_t event, before;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, stream));
	CUDA_IS(cudaErrorCapturedEvent, cudaEventSynchronize(event));
	(void)cudaGetLastError();
	{
		cudaGraph_t graph = NULL;
		cudaError_t ended = cudaStreamEndCapture(stream, &graph);

		/* Whether that mistake spoils the capture is left open. */
		CHECK(ended == cudaSuccess || ended == cudaErrorStreamCaptureInvalidated);
		if (graph)
			CUDA(cudaGraphDestroy(graph));
		(void)cudaGetLastError();
		/* Of a capture that has come to nothing it is no event at all. */
		if (ended)
			CUDA_IS(cudaErrorInvalidValue, cudaEventQuery(event));
		(void)cudaGetLastError();
	}
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaStreamDestroy(stream));

	/* What was recorded outside cannot be waited for inside. */
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaEventRecord(before, stream));
	CUDA(cudaStreamDestroy(stream));
	stream = capturing(cudaStreamCaptureModeRelaxed);
	CUDA_IS(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, before, 0));
	invalidated(stream);
	CUDA(cudaEventDestroy(event));
	CUDA(cudaEventDestroy(before));
}

static void not_joined()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed), fork;
	cudaEvent_t event;

	CUDA(cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaStreamWaitEvent(fork, event, 0));
	one<<<1, 1, 0, fork>>>(data);
	LAUNCHED();
	CHECK(state(fork) == cudaStreamCaptureStatusActive);
	ends(stream, cudaErrorStreamCaptureUnjoined);
	CHECK(state(fork) == cudaStreamCaptureStatusNone);
	CUDA(cudaStreamDestroy(fork));
	CUDA(cudaEventDestroy(event));
}

/* The stream that began must end it. */
static void other_stream_ends()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed), fork;
	cudaEvent_t event;
	cudaGraph_t graph;

	CUDA(cudaStreamCreateWithFlags(&fork, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaStreamWaitEvent(fork, event, 0));
	CUDA_IS(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(fork, &graph));
	(void)cudaGetLastError();
	(void)cudaStreamEndCapture(stream, &graph);
	(void)cudaGetLastError();
	CHECK(state(stream) == cudaStreamCaptureStatusNone);
	CUDA(cudaStreamDestroy(fork));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaEventDestroy(event));
}

/* Two captures cannot become one. */
static void merged()
{
	cudaStream_t first = capturing(cudaStreamCaptureModeRelaxed);
	cudaStream_t second = capturing(cudaStreamCaptureModeRelaxed);
	cudaEvent_t event;
	cudaGraph_t graph;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, first));
	CUDA_IS(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(second, event, 0));
	(void)cudaGetLastError();
	ends(second, cudaErrorStreamCaptureInvalidated);
	(void)cudaStreamEndCapture(first, &graph);
	(void)cudaGetLastError();
	CUDA(cudaStreamDestroy(first));
	CUDA(cudaEventDestroy(event));
}

/* A blocking stream that captures takes the legacy stream along. */
static void legacy()
{
	cudaStreamCaptureStatus status;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing(0, &status));
	(void)cudaGetLastError();
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(data, 0, 4, 0));
	invalidated(stream);
}

/* Calls that are not safe, by mode: forbidden in the thread and, when global, in every thread.
 */
static void modes()
{
	cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
	cudaStream_t stream = capturing(cudaStreamCaptureModeGlobal);
	cudaGraph_t graph;
	void *more = NULL;

	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaMalloc(&more, 1 << 20));
	invalidated(stream);

	stream = capturing(cudaStreamCaptureModeGlobal);
	CUDA(cudaThreadExchangeStreamCaptureMode(&relaxed));
	CHECK(relaxed == cudaStreamCaptureModeGlobal);
	CUDA(cudaMalloc(&more, 1 << 20));
	CUDA(cudaThreadExchangeStreamCaptureMode(&relaxed));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(more));

	stream = capturing(cudaStreamCaptureModeThreadLocal);
	std::thread([&] {
		void *theirs;

		CUDA(cudaMalloc(&theirs, 1 << 20));
		CUDA(cudaFree(theirs));
		CUDA_IS(cudaErrorStreamCaptureWrongThread,
			cudaStreamEndCapture(stream, &graph));
	}).join();
	/* That has ended it. */
	CUDA_IS(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
	CUDA(cudaStreamDestroy(stream));
}

int main()
{
	CUDA(cudaMalloc(&data, 4));
	begin_and_end();
	waiting();
	events();
	not_joined();
	other_stream_ends();
	merged();
	legacy();
	modes();
	CUDA(cudaDeviceSynchronize());
	return 0;
}
