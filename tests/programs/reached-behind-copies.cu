// SPDX-License-Identifier: Apache-2.0
/* A kernel that is the first to reach pinned memory finds what the copies before it, not yet done,
 * bring there: on its own stream, and on one that it waits for. */
#include "check.h"

#include <vector>

enum { N = 1 << 16, THREADS = 256, SLOW = 50000000 };

__global__ void slow(long long clocks)
{
	long long until = clock64() + clocks;

	while (clock64() < until)
		;
}

__global__ void fill(int *data, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] = value + i;
}

__global__ void add(int *to, const int *from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = from[i] + 1;
}

static void check(const int *data, int value)
{
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, data[i], value + i);
}

/* From the device to pinned memory on COPIES, behind a kernel that takes a while; read by a kernel
 * on READS. */
static void reads(cudaStream_t copies, cudaStream_t reads, int value)
{
	std::vector<int> got(N);
	int *device, *out, *pinned;
	cudaEvent_t copied;

	CUDA(cudaMalloc(&device, N * sizeof(int)));
	CUDA(cudaMalloc(&out, N * sizeof(int)));
	CUDA(cudaMallocHost(&pinned, N * sizeof(int)));
	CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
	memset(pinned, 0, N * sizeof(int));
	fill<<<N / THREADS, THREADS, 0, copies>>>(device, value);
	slow<<<1, 1, 0, copies>>>(SLOW);
	CUDA(cudaMemcpyAsync(pinned, device, N * sizeof(int), cudaMemcpyDeviceToHost, copies));
	CUDA(cudaEventRecord(copied, copies));
	CUDA(cudaStreamWaitEvent(reads, copied, 0));
	add<<<N / THREADS, THREADS, 0, reads>>>(out, pinned);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(reads));
	CUDA(cudaMemcpy(got.data(), out, N * sizeof(int), cudaMemcpyDeviceToHost));
	check(got.data(), value + 1);
	check(pinned, value);
	CUDA(cudaEventDestroy(copied));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(device));
	CUDA(cudaFree(out));
}

/* What a kernel writes there behind the copy stays. */
static void writes(cudaStream_t stream)
{
	int *device, *pinned;

	CUDA(cudaMalloc(&device, N * sizeof(int)));
	CUDA(cudaMallocHost(&pinned, N * sizeof(int)));
	memset(pinned, 0, N * sizeof(int));
	fill<<<N / THREADS, THREADS, 0, stream>>>(device, 300);
	slow<<<1, 1, 0, stream>>>(SLOW);
	CUDA(cudaMemcpyAsync(pinned, device, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	fill<<<N / THREADS, THREADS, 0, stream>>>(pinned, 400);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	check(pinned, 400);
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(device));
}

int main(void)
{
	cudaStream_t one, other;

	CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	reads(one, one, 100);
	reads(one, other, 200);
	reads(NULL, NULL, 500);
	writes(one);
	CUDA(cudaStreamDestroy(one));
	CUDA(cudaStreamDestroy(other));
	return 0;
}
