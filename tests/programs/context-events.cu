// SPDX-License-Identifier: Apache-2.0
/* Events of a whole context: one stands for everything that its streams have, and everything that
 * its streams get later waits for one, in streams that wait for nothing else too. */
#include "driver.h"

enum { STREAMS = 3, SLOW = 20000000 };

__global__ void slow(int *value, int to, long long clocks)
{
	long long until = clock64() + clocks;

	while (clock64() < until)
		;
	*value = to;
}

__global__ void copy(const int *from, int *to)
{
	*to = *from;
}

static int read(const int *device)
{
	cudaStream_t stream;
	int value;

	/* Of its own, so that the read waits for nothing. */
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMemcpyAsync(&value, device, sizeof(value), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamDestroy(stream));
	return value;
}

int main(void)
{
	cudaStream_t stream[STREAMS], later;
	cudaEvent_t event;
	CUcontext context;
	cudaGraph_t graph;
	int *value, *seen;

	CUDA(cudaFree(0));
	ENTRY(cuCtxGetCurrent);
	ENTRY(cuCtxRecordEvent);
	ENTRY(cuCtxWaitEvent);
	DRIVER(p_cuCtxGetCurrent(&context));
	for (int i = 0; i < STREAMS; i++)
		CUDA(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaMalloc(&value, (STREAMS + 1) * sizeof(int)));
	CUDA(cudaMalloc(&seen, (STREAMS + 1) * sizeof(int)));
	CUDA(cudaMemset(value, 0, (STREAMS + 1) * sizeof(int)));
	CUDA(cudaMemset(seen, 0, (STREAMS + 1) * sizeof(int)));
	CUDA(cudaDeviceSynchronize());

	/* It is done when all of them are. */
	for (int i = 0; i < STREAMS; i++)
		slow<<<1, 1, 0, stream[i]>>>(value + i, 10 + i, SLOW);
	DRIVER(p_cuCtxRecordEvent(context, event));
	CUDA(cudaEventSynchronize(event));
	for (int i = 0; i < STREAMS; i++)
		CHECK_EQ_AT(i, read(value + i), 10 + i);
	CUDA(cudaEventQuery(event));

	/* Streams that know nothing of stream 0 see what it wrote, and so does one made later. */
	slow<<<1, 1, 0, stream[0]>>>(value, 77, SLOW);
	CUDA(cudaEventRecord(event, stream[0]));
	DRIVER(p_cuCtxWaitEvent(context, event));
	CUDA(cudaStreamCreateWithFlags(&later, cudaStreamNonBlocking));
	for (int i = 1; i < STREAMS; i++)
		copy<<<1, 1, 0, stream[i]>>>(value, seen + i);
	copy<<<1, 1, 0, later>>>(value, seen + STREAMS);
	CUDA(cudaDeviceSynchronize());
	for (int i = 1; i <= STREAMS; i++)
		CHECK_EQ_AT(i, read(seen + i), 77);

	/* Neither goes with a capture, which ends by it. */
	for (int wait = 0; wait < 2; wait++) {
		CUDA(cudaStreamBeginCapture(stream[1], cudaStreamCaptureModeRelaxed));
		DRIVER_IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
			wait ? p_cuCtxWaitEvent(context, event) : p_cuCtxRecordEvent(context, event));
		CHECK_EQ(cudaStreamEndCapture(stream[1], &graph), cudaErrorStreamCaptureInvalidated);
		(void)cudaGetLastError();
	}
	DRIVER(p_cuCtxRecordEvent(context, event));
	CUDA(cudaEventSynchronize(event));
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE, p_cuCtxRecordEvent(context, NULL));
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE, p_cuCtxWaitEvent(context, NULL));
	return 0;
}
