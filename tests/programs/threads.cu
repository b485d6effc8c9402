// SPDX-License-Identifier: Apache-2.0
/* Many threads of one process on one device: each has its own stream, memory and last error. */
#include "check.h"

#include <atomic>
#include <thread>
#include <vector>

enum { THREADS = 12, ROUNDS = 25, N = 2000 };

__global__ void step(int *data, int n, int add)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = data[i] * 2 + add;
}

__global__ void count(int *counter)
{
	atomicAdd(counter, 1);
}

static void one_thread(int which, int *counter)
{
	cudaStream_t stream;
	std::vector<int> host(N);
	int *device;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int round = 0; round < ROUNDS; round++) {
		CUDA(cudaMalloc(&device, N * sizeof(int)));
		for (int i = 0; i < N; i++)
			host[i] = i + which;
		CUDA(cudaMemcpyAsync(
			device, host.data(), N * sizeof(int), cudaMemcpyHostToDevice, stream));
		step<<<(N + 127) / 128, 128, 0, stream>>>(device, N, which);
		step<<<(N + 127) / 128, 128, 0, stream>>>(device, N, round);
		count<<<1, 32, 0, stream>>>(counter);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(
			host.data(), device, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, host[i], ((i + which) * 2 + which) * 2 + round);
		CUDA(cudaFree(device));

		/* Odd threads make an error; even ones never see it. */
		if (which % 2) {
			CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 1, 4));
			CUDA_IS(cudaErrorInvalidValue, cudaPeekAtLastError());
			std::this_thread::yield();
			CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
		}
		CUDA(cudaGetLastError());
	}
	CUDA(cudaStreamDestroy(stream));
}

int main()
{
	std::vector<std::thread> threads;
	int *counter, got = 0;

	CUDA(cudaMalloc(&counter, sizeof(int)));
	CUDA(cudaMemset(counter, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(one_thread, i, counter);
	for (std::thread &thread : threads)
		thread.join();
	CUDA(cudaMemcpy(&got, counter, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, THREADS * ROUNDS * 32);
	CUDA(cudaFree(counter));
	printf("%d threads kept apart\n", THREADS);
	return 0;
}
