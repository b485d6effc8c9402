// SPDX-License-Identifier: Apache-2.0
/* Events: what they say about order, and the times that they measure. */
#include "check.h"

#include <time.h>

/* Works for this many nanoseconds of the GPU's own clock. */
__global__ void spin(unsigned long long nanoseconds, int *out)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - start < nanoseconds);
	*out = 1;
}

/* Runs until *go is not 0; 20 s of the GPU's clock are for a test that has failed. */
__global__ void wait_for(volatile int *go)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (!*go && now - start < 20000000000ull);
}

static double milliseconds_now()
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void timing(cudaStream_t stream, int *out)
{
	cudaEvent_t start, middle, end;
	float first, second, both;
	double began, took;

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreateWithFlags(&middle, cudaEventBlockingSync));
	CUDA(cudaEventCreate(&end));
	began = milliseconds_now();
	CUDA(cudaEventRecord(start, stream));
	spin<<<1, 1, 0, stream>>>(3000000, out);
	CUDA(cudaEventRecord(middle, stream));
	spin<<<1, 1, 0, stream>>>(1000000, out);
	CUDA(cudaEventRecord(end, stream));
	LAUNCHED();
	CUDA(cudaEventSynchronize(middle));
	CUDA(cudaEventSynchronize(end));
	took = milliseconds_now() - began;

	CUDA(cudaEventElapsedTime(&first, start, middle));
	CUDA(cudaEventElapsedTime(&second, middle, end));
	CUDA(cudaEventElapsedTime(&both, start, end));
	if (first < 2.9f || second < 0.9f)
		FAIL("3 ms and 1 ms of work measured as %g and %g ms", first, second);
	if (both < first || both < second || both > first + second + 0.1f)
		FAIL("%g ms and %g ms make %g ms", first, second, both);
	if (both > took + 1.0)
		FAIL("the device measured %g ms, the host %g ms", both, took);
	CUDA(cudaEventElapsedTime(&first, end, start));
	CHECK(first < 0.0f);
	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(middle));
	CUDA(cudaEventDestroy(end));
}

static void states(cudaStream_t stream, int *out)
{
	cudaEvent_t event, untimed;
	cudaStream_t other;
	float elapsed;

	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));

	/* Never recorded: nothing to wait for, nothing to measure. */
	CUDA(cudaEventQuery(event));
	CUDA(cudaEventSynchronize(event));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&elapsed, event, event));
	(void)cudaGetLastError();

	/* Not done before we say so, however long this takes. */
	CUDA(cudaMemsetAsync(out, 0, sizeof(int), stream));
	wait_for<<<1, 1, 0, stream>>>(out);
	LAUNCHED();
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaEventRecord(untimed, stream));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	CUDA_IS(cudaErrorNotReady, cudaEventElapsedTime(&elapsed, event, event));
	CUDA(cudaGetLastError()); /* no failure, and it leaves one of before alone */
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 1));
	CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	CUDA(cudaMemsetAsync(out, 1, sizeof(int), other));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaEventQuery(event));
	CUDA(cudaStreamQuery(stream));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&elapsed, event, untimed));
	(void)cudaGetLastError();

	/* Recorded again, it stands for the later point. */
	CUDA(cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault));
	CUDA(cudaEventSynchronize(event));
	CUDA(cudaEventElapsedTime(&elapsed, event, event));
	CHECK_EQ(elapsed, 0.0f);
	CUDA(cudaEventDestroy(event));
	CUDA(cudaEventDestroy(untimed));
	CUDA(cudaStreamDestroy(other));
}

/* An event destroyed while it is pending still keeps its place in the order. */
static void destroyed_while_pending(cudaStream_t stream, int *out)
{
	cudaStream_t other;
	cudaEvent_t event;
	int got = 0;

	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaMemsetAsync(out, 0, sizeof(int), stream));
	spin<<<1, 1, 0, stream>>>(2000000, out);
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaEventRecord(event, stream));
	CUDA(cudaStreamWaitEvent(other, event, 0));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaMemcpyAsync(&got, out, sizeof(int), cudaMemcpyDeviceToHost, other));
	CUDA(cudaStreamSynchronize(other));
	CHECK_EQ(got, 1);
	CUDA(cudaStreamDestroy(other));
}

int main()
{
	cudaStream_t stream;
	int *out;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&out, sizeof(int)));
	timing(stream, out);
	states(stream, out);
	destroyed_while_pending(stream, out);
	timing(0, out);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(out));
	printf("events are right\n");
	return 0;
}
