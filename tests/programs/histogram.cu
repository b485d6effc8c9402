// SPDX-License-Identifier: Apache-2.0
/* Counts bytes: atomics on shared memory within a block, on global memory between blocks. */
#include "check.h"

#include <vector>

__global__ void count_shared(const unsigned char *in, int n, unsigned *bins)
{
	__shared__ unsigned local[256];

	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		local[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&local[in[i]], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		if (local[i])
			atomicAdd(&bins[i], local[i]);
}

__global__ void count_global(const unsigned char *in, int n, unsigned *bins)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&bins[in[i]], 1u);
}

int main()
{
	const int n = 300007;
	std::vector<unsigned char> values(n);
	std::vector<unsigned> want(256, 0), got(256);
	unsigned char *in;
	unsigned *bins;
	uint32_t seed = 11;

	/* A third of them the same, so that many threads meet on one counter. */
	for (unsigned char &value : values) {
		uint32_t number = next_random(&seed);
		value = number % 3 ? (unsigned char)(number >> 8) : 42;
		want[value]++;
	}

	CUDA(cudaMalloc(&in, n));
	CUDA(cudaMalloc(&bins, 256 * sizeof(unsigned)));
	CUDA(cudaMemcpy(in, values.data(), n, cudaMemcpyHostToDevice));
	for (int global = 0; global < 2; global++) {
		CUDA(cudaMemset(bins, 0, 256 * sizeof(unsigned)));
		if (global)
			count_global<<<24, 128>>>(in, n, bins);
		else
			count_shared<<<24, 192>>>(in, n, bins);
		LAUNCHED();
		CUDA(cudaMemcpy(
			got.data(), bins, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 256; i++)
			CHECK_EQ_AT(i, got[i], want[i]);
	}
	CUDA(cudaFree(in));
	CUDA(cudaFree(bins));
	printf("counts are right\n");
	return 0;
}
