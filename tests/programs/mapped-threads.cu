// SPDX-License-Identifier: Apache-2.0
/* Threads that each map small memory, use it by kernels and copies on a stream of their own, and
 * give it back, side by side. */
#include "check.h"

#include <thread>
#include <vector>

enum { THREADS = 6, ROUNDS = 30, MOST = 900 };

__global__ void add(int *data, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += by;
}

static void one_round(int *host, int n, int first, bool events, cudaStream_t stream)
{
	int blocks = (n + 127) / 128, *device;
	cudaEvent_t done;

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	for (int i = 0; i < n; i++)
		host[i] = i + first;
	add<<<blocks, 128, 0, stream>>>(host, n, 1);
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		host[i] += 1000;
	add<<<blocks, 128, 0, stream>>>(host, n, 2);
	CUDA(cudaMemcpyAsync(device, host, n * sizeof(int), cudaMemcpyDefault, stream));
	add<<<blocks, 128, 0, stream>>>(device, n, 100);
	CUDA(cudaMemcpyAsync(host, device, n * sizeof(int), cudaMemcpyDefault, stream));
	add<<<blocks, 128, 0, stream>>>(host, n, 3);
	LAUNCHED();
	if (events) {
		CUDA(cudaEventCreate(&done));
		CUDA(cudaEventRecord(done, stream));
		while (cudaEventQuery(done) == cudaErrorNotReady)
			;
		(void)cudaGetLastError();
		CUDA(cudaEventDestroy(done));
	} else {
		CUDA(cudaStreamSynchronize(stream));
	}
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i], i + first + 1106);
	CUDA(cudaFree(device));
}

static void work(int thread)
{
	cudaStream_t stream;
	int *host;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int round = 0; round < ROUNDS; round++) {
		int n = 1 + (thread * 37 + round * 101) % MOST;

		CUDA(cudaHostAlloc(&host, n * sizeof(int),
			round & 1 ? cudaHostAllocMapped : cudaHostAllocDefault));
		one_round(host, n, thread, round % 3 == 0, stream);
		CUDA(cudaFreeHost(host));
	}
	CUDA(cudaStreamDestroy(stream));
}

/* Memory that is registered in two parts and copied as one. */
static void in_parts()
{
	const int n = 4096;
	size_t half = n * sizeof(int) / 2;
	int *host = (int *)aligned_alloc(4096, 2 * half), *device;

	CUDA(cudaHostRegister(host, half, cudaHostRegisterMapped));
	CUDA(cudaHostRegister((char *)host + half, half, cudaHostRegisterMapped));
	CUDA(cudaMalloc(&device, 2 * half));
	for (int i = 0; i < n; i++)
		host[i] = i;
	add<<<n / 128, 128>>>(host, n, 1);
	for (int i = 0; i < 2; i++)
		CUDA(cudaMemcpy((char *)device + i * half, (char *)host + i * half, half,
			cudaMemcpyDefault));
	add<<<n / 128, 128>>>(device, n, 1);
	for (int i = 0; i < 2; i++)
		CUDA(cudaMemcpy((char *)host + i * half, (char *)device + i * half, half,
			cudaMemcpyDefault));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i], i + 2);
	CUDA(cudaHostUnregister(host));
	CUDA(cudaHostUnregister((char *)host + half));
	CUDA(cudaFree(device));
	free(host);
}

int main()
{
	std::vector<std::thread> threads;
	cudaDeviceProp properties;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	if (!properties.canMapHostMemory || !properties.canUseHostPointerForRegisteredMem)
		SKIP("the device does not reach host memory at its own address");
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work, i);
	for (std::thread &thread : threads)
		thread.join();
	in_parts();
	printf("threads with mapped memory are right\n");
	return 0;
}
