// SPDX-License-Identifier: Apache-2.0
/*
 * Streams that do not wait for a host function go on while it is outstanding, however much they
 * are given: the function itself waits until they are done.
 */
#include "check.h"

#include <atomic>
#include <unistd.h>
#include <vector>

enum { LAUNCHES = 3000, N = 8 << 20, SECONDS = 30 };

static std::atomic<bool> done;
static std::atomic<int> late;

static void CUDART_CB until_done(void *)
{
	for (int i = 0; !done && i < SECONDS * 1000; i++)
		usleep(1000);
	late += !done;
}

__global__ void add(int *sum)
{
	++*sum;
}

/* Many launches, each behind the one before it. */
static void launches(cudaStream_t stream, int *sum)
{
	int got;

	CUDA(cudaMemsetAsync(sum, 0, sizeof(*sum), stream));
	for (int i = 0; i < LAUNCHES; i++)
		add<<<1, 1, 0, stream>>>(sum);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(&got, sum, sizeof(got), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(got, LAUNCHES);
}

/* To the device and back, in one piece and in many. */
static void copies(cudaStream_t stream, unsigned char *device, unsigned char *sent,
	unsigned char *got, size_t piece)
{
	memset(got, 0, N);
	for (size_t at = 0; at < N; at += piece)
		CUDA(cudaMemcpyAsync(
			device + at, sent + at, piece, cudaMemcpyHostToDevice, stream));
	for (size_t at = 0; at < N; at += piece)
		CUDA(cudaMemcpyAsync(
			got + at, device + at, piece, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK(!memcmp(sent, got, N));
}

int main()
{
	std::vector<unsigned char> sent(N), got(N);
	unsigned char *device, *pinned;
	cudaStream_t first, second;
	cudaEvent_t event;
	int *sum;

	for (size_t i = 0; i < N; i++)
		sent[i] = (unsigned char)(i * 7 + i / 4096);
	CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaMalloc(&device, N + 4096));
	CUDA(cudaMalloc(&sum, sizeof(*sum)));
	CUDA(cudaMallocHost(&pinned, 2 * N + 4096));
	memcpy(pinned, sent.data(), N);
	launches(second, sum); /* loads the kernel, which would wait for the function */

	CUDA(cudaLaunchHostFunc(first, until_done, NULL));
	CUDA(cudaMemcpyAsync(pinned + 2 * N, device, 4096, cudaMemcpyDeviceToHost, first));
	CUDA(cudaMemcpyAsync(device + N, sent.data(), 4096, cudaMemcpyHostToDevice, first));
	launches(second, sum);
	for (size_t piece : {(size_t)4096, (size_t)65536, (size_t)N}) {
		copies(second, device, sent.data(), got.data(), piece);
		memcpy(pinned, sent.data(), N);
		copies(second, device, pinned, pinned + N, piece);
	}
	CUDA(cudaEventRecord(event, second));
	CUDA(cudaEventSynchronize(event));
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(first));
	done = true;
	CUDA(cudaStreamSynchronize(first));
	CHECK_EQ(late.load(), 0);

	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(sum));
	CUDA(cudaFree(device));
	printf("the other stream went on\n");
	return 0;
}
