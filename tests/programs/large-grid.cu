// SPDX-License-Identifier: Apache-2.0
/* Grids larger than 16 bits can count, and a launch for each of many grids. */
#include "check.h"

__global__ void tick(unsigned long long *sum, unsigned *last)
{
	if (threadIdx.x == 0 && (blockIdx.x % 1000 == 0 || blockIdx.x == gridDim.x - 1)) {
		atomicAdd(sum, (unsigned long long)blockIdx.x);
		atomicMax(last, blockIdx.x);
	}
}

__global__ void plane(unsigned *count, unsigned y_last)
{
	if (blockIdx.y == y_last && threadIdx.x == 0)
		atomicAdd(count, gridDim.y);
}

__global__ void one(unsigned *count)
{
	atomicAdd(count, 1u);
}

int main()
{
	unsigned long long *sum, got_sum, want = 0;
	unsigned *last, got;
	const unsigned blocks = 200001;

	CUDA(cudaMalloc(&sum, sizeof(*sum)));
	CUDA(cudaMalloc(&last, sizeof(*last)));
	CUDA(cudaMemset(sum, 0, sizeof(*sum)));
	CUDA(cudaMemset(last, 0, sizeof(*last)));
	tick<<<blocks, 32>>>(sum, last);
	LAUNCHED();
	for (unsigned i = 0; i < blocks; i++)
		want += i % 1000 == 0 || i == blocks - 1 ? i : 0;
	CUDA(cudaMemcpy(&got_sum, sum, sizeof(got_sum), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&got, last, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got_sum, want);
	CHECK_EQ(got, blocks - 1);

	CUDA(cudaMemset(last, 0, sizeof(*last)));
	plane<<<dim3(2, 65535), 1>>>(last, 65534);
	LAUNCHED();
	CUDA(cudaMemcpy(&got, last, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 2 * 65535u);

	CUDA(cudaMemset(last, 0, sizeof(*last)));
	for (int i = 0; i < 5000; i++)
		one<<<1, 32>>>(last);
	LAUNCHED();
	CUDA(cudaMemcpy(&got, last, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 5000 * 32u);
	CUDA(cudaFree(sum));
	CUDA(cudaFree(last));
	printf("large grids ran whole\n");
	return 0;
}
