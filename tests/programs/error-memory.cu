// SPDX-License-Identifier: Apache-2.0
/* Running out of device memory is an error of that one call: what was freed can be had again. */
#include "check.h"

#include <vector>

__global__ void touch(char *data, size_t n)
{
	data[0] = 1;
	data[n - 1] = 2;
}

static void touch_ends(char *data, size_t n)
{
	char first = 0, last = 0;

	touch<<<1, 1>>>(data, n);
	LAUNCHED();
	CUDA(cudaMemcpy(&first, data, 1, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&last, data + n - 1, 1, cudaMemcpyDeviceToHost));
	CHECK(first == (n > 1 ? 1 : 2) && last == 2);
}

int main()
{
	size_t free_before, free_now, total;
	std::vector<char *> blocks;
	char *block = (char *)0x77;
	cudaError_t status = cudaSuccess;

	CUDA(cudaMemGetInfo(&free_before, &total));
	CHECK(free_before <= total);
	CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc(&block, total * 2));
	CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
	CUDA(cudaGetLastError());
	CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc(&block, (size_t)1 << 60));
	(void)cudaGetLastError();

	/* Eighths of the device until no more can be had. */
	size_t eighth = total / 8;
	while (status == cudaSuccess && blocks.size() < 9) {
		status = cudaMalloc(&block, eighth);
		if (status == cudaSuccess) {
			blocks.push_back(block);
			touch_ends(block, eighth);
		}
	}
	CUDA_IS(cudaErrorMemoryAllocation, status);
	CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
	CHECK(blocks.size() >= 1 && blocks.size() <= 8);
	CUDA(cudaMemGetInfo(&free_now, &total));
	CHECK(free_now <= total - blocks.size() * eighth);

	/* With one given back, one of the same size can be had. */
	CUDA(cudaFree(blocks.back()));
	blocks.pop_back();
	CUDA(cudaMalloc(&block, eighth));
	touch_ends(block, eighth);
	blocks.push_back(block);
	for (char *each : blocks)
		CUDA(cudaFree(each));

	for (int i = 0; i < 50; i++) {
		CUDA(cudaMalloc(&block, eighth / 2));
		CUDA(cudaFree(block));
	}
	CUDA(cudaMalloc(&block, 1));
	touch_ends(block, 1);
	CUDA(cudaFree(block));
	printf("out of memory passes\n");
	return 0;
}
