// SPDX-License-Identifier: Apache-2.0
/* Blocks and grids of one, two and three dimensions: every thread runs once, knows its place,
 * and meets its block at the barrier. */
#include "check.h"

#include <vector>

struct place {
	unsigned linear, warp_sum, dims;
};

__global__ void report(place *out)
{
	__shared__ unsigned total;
	unsigned in_block = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	unsigned threads = blockDim.x * blockDim.y * blockDim.z;
	unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	unsigned lane;

	asm("mov.u32 %0, %%laneid;" : "=r"(lane));
	if (in_block == 0)
		total = 0;
	__syncthreads();
	atomicAdd(&total, in_block);
	__syncthreads();
	place *mine = &out[block * threads + in_block];
	mine->linear = block * threads + in_block;
	mine->warp_sum = total;
	mine->dims = lane == in_block % warpSize ? blockDim.x * 10000 + blockDim.y * 100 + blockDim.z : 0;
}

static void shape(dim3 grid, dim3 block)
{
	unsigned threads = block.x * block.y * block.z, blocks = grid.x * grid.y * grid.z;
	std::vector<place> got(threads * blocks);
	place *out;

	CUDA(cudaMalloc(&out, got.size() * sizeof(place)));
	CUDA(cudaMemset(out, 0xff, got.size() * sizeof(place)));
	report<<<grid, block>>>(out);
	LAUNCHED();
	CUDA(cudaMemcpy(
		got.data(), out, got.size() * sizeof(place), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < got.size(); i++) {
		CHECK_EQ_AT(i, got[i].linear, i);
		CHECK_EQ_AT(i, got[i].warp_sum, threads * (threads - 1) / 2);
		CHECK_EQ_AT(i, got[i].dims, block.x * 10000 + block.y * 100 + block.z);
	}
	CUDA(cudaFree(out));
}

int main()
{
	shape(dim3(1), dim3(1));
	shape(dim3(7), dim3(33));
	shape(dim3(3, 5, 7), dim3(4, 3, 5));
	shape(dim3(2, 1, 3), dim3(1, 1, 64));
	shape(dim3(1, 9), dim3(1, 1024));
	shape(dim3(4, 4), dim3(32, 32));
	shape(dim3(5), dim3(17, 3, 11));
	printf("every thread ran once\n");
	return 0;
}
