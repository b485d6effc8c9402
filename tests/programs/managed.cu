// SPDX-License-Identifier: Apache-2.0
/* Managed memory: kernels and the program write to it in turns, in one piece and page by page. */
#include "check.h"

__global__ void add(int *data, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += value;
}

static void add_all(int *data, int n, int value, cudaStream_t stream)
{
	add<<<(n + 255) / 256, 256, 0, stream>>>(data, n, value);
	LAUNCHED();
}

/* What is new on either side is seen on the other, round after round. */
static void turns(int *data, int n, cudaStream_t stream)
{
	for (int i = 0; i < n; i++)
		data[i] = i;
	for (int round = 1; round <= 3; round++) {
		add_all(data, n, 10, stream);
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < n; i++)
			CHECK_EQ_AT(i, data[i], i + 11 * round - 1);
		for (int i = 0; i < n; i++)
			data[i]++;
	}
}

/* What a fill left and the program has touched in one place. */
static void filled(int n)
{
	int *data;

	CUDA(cudaMallocManaged(&data, n * sizeof(int)));
	CUDA(cudaMemset(data, 0, n * sizeof(int)));
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(data + n - 1, 0, 2 * sizeof(int)));
	(void)cudaGetLastError();
	CUDA(cudaDeviceSynchronize());
	data[n / 2] = 5;
	add_all(data, n, 1, 0);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(data[n / 2], 6);
	CHECK_EQ(data[0], 1);
	CHECK_EQ(data[n - 1], 1);
	CUDA(cudaFree(data));
}

/* Copies and fills are the device's. */
static void copies(int n)
{
	size_t bytes = n * sizeof(int);
	int *data, *other, *host = (int *)malloc(bytes);

	CUDA(cudaMallocManaged(&data, bytes));
	CUDA(cudaMalloc(&other, bytes));
	for (int i = 0; i < n; i++)
		data[i] = 2 * i;
	CUDA(cudaMemcpy(other, data, bytes, cudaMemcpyDefault));
	add_all(other, n, 1, 0);
	CUDA(cudaMemcpy(host, other, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i], 2 * i + 1);
	CUDA(cudaMemcpy(data, host, bytes, cudaMemcpyDefault));
	CUDA(cudaMemset(data, 0, bytes / 2));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, data[i], i < n / 2 ? 0 : 2 * i + 1);
	CUDA(cudaFree(other));
	CUDA(cudaFree(data));
	free(host);
}

int main()
{
	const int n = 300000;
	cudaStream_t stream;
	int *data;

	if (!device_attribute(cudaDevAttrManagedMemory))
		SKIP("no managed memory");
	data = NULL;
	CUDA(cudaMallocManaged(&data, 0));
	CUDA(cudaFree(data));
	CUDA_IS(cudaErrorInvalidValue, cudaMallocManaged(&data, 4, 7));
	(void)cudaGetLastError();
	CUDA(cudaMallocManaged(&data, n * sizeof(int)));
	turns(data, n, 0);
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	turns(data, n, stream);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(data));
	CUDA_IS(cudaErrorInvalidValue, cudaFree(data));
	(void)cudaGetLastError();
	filled(n);
	copies(n);

	/* A reset takes all of it, and there is more. */
	CUDA(cudaMallocManaged(&data, n * sizeof(int)));
	data[5] = 5;
	CUDA(cudaDeviceReset());
	filled(n);
	filled(100);
	return 0;
}
