// SPDX-License-Identifier: Apache-2.0
/* Built so that every thread has a default stream of its own: a long kernel of one thread does
 * not hold up another's copies, and each thread's own work stays in order. */
#include "check.h"

#include <atomic>
#include <thread>
#include <vector>

enum { N = 1024 };

/* clang's <<<>>> takes the legacy stream whatever its flags say; its calls take the right one. */
#ifdef __clang__
#define OWN cudaStreamPerThread
#else
#define OWN 0
#endif

/* Runs until *go is not 0; 20 s of the GPU's clock are for a test that has failed. */
__global__ void wait_for(volatile int *go, int *result)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (!*go && now - start < 20000000000ull);
	*result = *go;
}

__global__ void twice(int *data)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

static void compute(int which)
{
	std::vector<int> host(N);
	int *device;

	CUDA(cudaMalloc(&device, N * sizeof(int)));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < N; i++)
			host[i] = i + which + round;
		CUDA(cudaMemcpy(device, host.data(), N * sizeof(int), cudaMemcpyHostToDevice));
		twice<<<N / 256, 256, 0, OWN>>>(device);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(
			host.data(), device, N * sizeof(int), cudaMemcpyDeviceToHost, 0));
		CUDA(cudaStreamSynchronize(0));
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, host[i], 2 * (i + which + round));
	}
	CUDA(cudaStreamSynchronize(cudaStreamPerThread));
	CUDA(cudaFree(device));
}

int main()
{
	std::vector<std::thread> threads;
	int *go, *result, got = -1;

	for (int i = 0; i < 4; i++)
		threads.emplace_back(compute, i * 1000);
	for (std::thread &thread : threads)
		thread.join();

	/* This thread's kernel waits for a number that another thread's copy brings. */
	CUDA(cudaMalloc(&go, sizeof(int)));
	CUDA(cudaMalloc(&result, sizeof(int)));
	CUDA(cudaMemset(go, 0, sizeof(int)));
	CUDA(cudaMemset(result, 0, sizeof(int)));
	CUDA(cudaStreamSynchronize(0));
	wait_for<<<1, 1, 0, OWN>>>(go, result);
	LAUNCHED();
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(0));
	(void)cudaGetLastError();
	std::thread([&] {
		int one = 1;
		CUDA(cudaMemcpyAsync(go, &one, sizeof(one), cudaMemcpyHostToDevice, 0));
		CUDA(cudaStreamSynchronize(0));
	}).join();
	CUDA(cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 1);
	CUDA(cudaFree(go));
	CUDA(cudaFree(result));
	printf("every thread has its own default stream\n");
	return 0;
}
