// SPDX-License-Identifier: Apache-2.0
/*
 * Adds two vectors of a million numbers on a GPU, wherever it is, and checks the sums.
 *
 * An ordinary CUDA program: nothing in it knows of vcuda.
 */
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define CUDA(call)                                                                               \
	do {                                                                                     \
		cudaError_t status = (call);                                                     \
		if (status != cudaSuccess) {                                                     \
			fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));          \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

int main()
{
	const int n = 1 << 20;
	const size_t bytes = n * sizeof(float);
	std::vector<float> a(n), b(n), c(n);
	float *da, *db, *dc, milliseconds;
	cudaDeviceProp device;
	cudaEvent_t start, end;

	for (int i = 0; i < n; i++) {
		a[i] = (float)i;
		b[i] = 2.0f * (float)i;
	}
	CUDA(cudaGetDeviceProperties(&device, 0));
	printf("device: %s, %zu MiB, compute capability %d.%d\n", device.name,
		device.totalGlobalMem >> 20, device.major, device.minor);

	CUDA(cudaMalloc(&da, bytes));
	CUDA(cudaMalloc(&db, bytes));
	CUDA(cudaMalloc(&dc, bytes));
	CUDA(cudaMemcpy(da, a.data(), bytes, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(db, b.data(), bytes, cudaMemcpyHostToDevice));

	CUDA(cudaEventCreate(&start));
	CUDA(cudaEventCreate(&end));
	CUDA(cudaEventRecord(start));
	add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	CUDA(cudaGetLastError());
	CUDA(cudaEventRecord(end));
	CUDA(cudaMemcpy(c.data(), dc, bytes, cudaMemcpyDeviceToHost));
	CUDA(cudaEventElapsedTime(&milliseconds, start, end));

	for (int i = 0; i < n; i++)
		if (c[i] != a[i] + b[i]) {
			fprintf(stderr, "sum %d is %g, not %g\n", i, c[i], a[i] + b[i]);
			return 1;
		}
	printf("%d sums are right; the kernel took %.3f ms\n", n, milliseconds);

	CUDA(cudaEventDestroy(start));
	CUDA(cudaEventDestroy(end));
	CUDA(cudaFree(da));
	CUDA(cudaFree(db));
	CUDA(cudaFree(dc));
	return 0;
}
