// SPDX-License-Identifier: Apache-2.0
/*
 * What a capture says to other calls, before these look at their arguments: on the stream that
 * captures, on the legacy stream beside it, and wherever the capture's mode forbids unsafe calls.
 */
#include "driver.h"

#include <thread>

__global__ void one(int *at)
{
	*at = 1;
}

static int *data;
static cudaMemPool_t pool;

static cudaStream_t capturing(cudaStreamCaptureMode mode, unsigned flags = cudaStreamNonBlocking)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, flags));
	CUDA(cudaStreamBeginCapture(stream, mode));
	one<<<1, 1, 0, stream>>>(data);
	LAUNCHED();
	return stream;
}

static void launch_with_config(cudaStream_t stream)
{
	cudaLaunchConfig_t config = {};

	config.gridDim = config.blockDim = dim3(1);
	config.stream = stream;
	CUDA(cudaLaunchKernelEx(&config, one, data));
}

static void ends(cudaStream_t stream, cudaError_t want)
{
	cudaGraph_t graph = NULL;

	(void)cudaGetLastError();
	CUDA_IS(want, cudaStreamEndCapture(stream, &graph));
	(void)cudaGetLastError();
	if (graph)
		CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamDestroy(stream));
}

/* Questions about a stream, and launches of graphs: no stream that captures takes them. */
static void never()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed);
	unsigned long long id;
	unsigned flags;
	int priority;

	CUDA(cudaStreamGetPriority(stream, &priority));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamGetFlags(stream, &flags));
	CUDA_IS(cudaErrorStreamCaptureInvalidated, cudaStreamGetPriority(stream, &priority));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamGetId(stream, &id));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaGraphLaunch(NULL, stream));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaGraphUpload(NULL, stream));
	CUDA_IS(cudaErrorIllegalState, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	ends(stream, cudaErrorStreamCaptureInvalidated);
	CUDA_IS(cudaErrorInvalidValue, cudaGraphLaunch(NULL, 0));
	(void)cudaGetLastError();
}

static void legacy()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed, cudaStreamDefault);
	cudaStreamCaptureStatus status;
	cudaGraph_t graph = NULL;
	unsigned flags;

	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaStreamGetFlags(0, &flags));
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(NULL, 0, 4, 0));
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaEventRecord(NULL, 0));
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaGraphLaunch(NULL, 0));
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing(0, &status));
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaStreamEndCapture(0, &graph));
	CUDA_IS(cudaErrorStreamCaptureInvalidated, cudaMemsetAsync(NULL, 0, 4, stream));
	ends(stream, cudaErrorStreamCaptureInvalidated);

	/* To ask the legacy stream ends no capture. */
	stream = capturing(cudaStreamCaptureModeRelaxed, cudaStreamDefault);
	CUDA_IS(cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing(0, &status));
	CUDA(cudaMemsetAsync(data, 0, 4, stream));
	ends(stream, cudaSuccess);

	/* What a launch by attributes names is the stream that captures, not the legacy one. */
	stream = capturing(cudaStreamCaptureModeRelaxed, cudaStreamDefault);
	launch_with_config(stream);
	ends(stream, cudaSuccess);

	/* What captured ends with its stream, whatever was put on it before. */
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMemsetAsync(data, 0, 4, stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaMemsetAsync(data, 1, 4, stream));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaMemsetAsync(data, 2, 4, 0));
	CUDA(cudaStreamSynchronize(0));

	/* A stream that waits for nobody lets the legacy stream alone. */
	stream = capturing(cudaStreamCaptureModeRelaxed);
	CUDA(cudaStreamGetFlags(0, &flags));
	CUDA(cudaMemsetAsync(data, 0, 4, 0));
	ends(stream, cudaSuccess);
}

static void unsafe_here(cudaError_t want, cudaEvent_t event)
{
	unsigned long long bytes = 0;

	CUDA_IS(want, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
	CUDA_IS(want, cudaEventQuery(event));
	CUDA_IS(want, cudaEventSynchronize(event));
	if (want)
		CUDA_IS(want, cudaMemPoolTrimTo(NULL, 0));
	(void)cudaGetLastError();
}

static void unsafe()
{
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	const cudaError_t forbidden = cudaErrorStreamCaptureUnsupported;
	cudaStream_t stream;
	cudaEvent_t event;

	CUDA(cudaEventCreate(&event));
	CUDA(cudaEventRecord(event, 0));
	CUDA(cudaEventSynchronize(event));
	stream = capturing(cudaStreamCaptureModeRelaxed);
	unsafe_here(cudaSuccess, event);
	ends(stream, cudaSuccess);

	/* A capture that such a call spoiled forbids them until it ends. */
	stream = capturing(cudaStreamCaptureModeGlobal);
	unsafe_here(forbidden, event);
	std::thread(unsafe_here, forbidden, event).join();
	CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == cudaStreamCaptureModeGlobal);
	unsafe_here(cudaSuccess, event);
	CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
	ends(stream, cudaErrorStreamCaptureInvalidated);

	stream = capturing(cudaStreamCaptureModeThreadLocal);
	std::thread(unsafe_here, cudaSuccess, event).join();
	unsafe_here(forbidden, event);
	ends(stream, cudaErrorStreamCaptureInvalidated);
	unsafe_here(cudaSuccess, event);
	CUDA(cudaEventDestroy(event));
}

/* A launch that cannot be spoils the capture; a copy that cannot be does not. */
static void mistakes()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeRelaxed);
	void *arguments[] = {&data};
	cudaFunction_t function;

	ENTRY(cuLaunchKernel);
	CUDA(cudaGetFuncBySymbol(&function, (const void *)one));
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpyAsync(NULL, data, 4, cudaMemcpyDeviceToDevice, stream));
	ends(stream, cudaSuccess);
	stream = capturing(cudaStreamCaptureModeRelaxed);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuLaunchKernel(
			function, 1, 1, 1, 4096, 1, 1, 0, stream, arguments, NULL));
	ends(stream, cudaErrorStreamCaptureInvalidated);
}

/* An event of a graph's own needs a graph. */
static void external()
{
	cudaStream_t stream;
	cudaEvent_t event;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, stream));
	CUDA_IS(cudaErrorIllegalState,
		cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
	CUDA_IS(cudaErrorIllegalState, cudaStreamWaitEvent(stream, event, cudaEventWaitExternal));
	(void)cudaGetLastError();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaStreamDestroy(stream));
}

/* Whoever ends an invalid capture is told that it is, also from another thread. */
static void ended_by_another()
{
	cudaStream_t stream = capturing(cudaStreamCaptureModeGlobal);

	CUDA_IS(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
	(void)cudaGetLastError();
	std::thread(ends, stream, cudaErrorStreamCaptureInvalidated).join();
}

int main()
{
	CUDA(cudaMalloc(&data, sizeof(*data)));
	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA(cudaDeviceSynchronize());
	never();
	legacy();
	unsafe();
	mistakes();
	external();
	ended_by_another();
	CUDA(cudaFree(data));
	return 0;
}
