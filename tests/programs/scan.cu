// SPDX-License-Identifier: Apache-2.0
/* Inclusive prefix sums of a long array in three kernels: within blocks, of the blocks' sums,
 * and adding these back. */
#include "check.h"

#include <vector>

enum { BLOCK = 256 };

__global__ void scan_blocks(const uint32_t *in, uint32_t *out, uint32_t *block_sums, int n)
{
	__shared__ uint32_t warp_sums[BLOCK / 32];
	int i = blockIdx.x * BLOCK + threadIdx.x, lane = threadIdx.x % 32;
	uint32_t sum = i < n ? in[i] : 0;

	for (int distance = 1; distance < 32; distance *= 2) {
		uint32_t below = __shfl_up_sync(0xffffffffu, sum, distance);
		if (lane >= distance)
			sum += below;
	}
	if (lane == 31)
		warp_sums[threadIdx.x / 32] = sum;
	__syncthreads();

	/* The eight warps' sums: few enough to add one by one. */
	for (int warp = 0; warp < (int)threadIdx.x / 32; warp++)
		sum += warp_sums[warp];
	if (i < n)
		out[i] = sum;
	if (block_sums && threadIdx.x == BLOCK - 1)
		block_sums[blockIdx.x] = sum;
}

__global__ void add_blocks(uint32_t *out, const uint32_t *scanned_sums, int n)
{
	int i = blockIdx.x * BLOCK + threadIdx.x;

	if (blockIdx.x && i < n)
		out[i] += scanned_sums[blockIdx.x - 1];
}

/* Scans any length: the blocks' sums are scanned the same way. */
static void scan(const uint32_t *in, uint32_t *out, int n)
{
	int blocks = (n + BLOCK - 1) / BLOCK;
	uint32_t *sums;

	if (blocks == 1) {
		scan_blocks<<<1, BLOCK>>>(in, out, nullptr, n);
		LAUNCHED();
		return;
	}
	CUDA(cudaMalloc(&sums, 2 * blocks * sizeof(uint32_t)));
	scan_blocks<<<blocks, BLOCK>>>(in, out, sums, n);
	LAUNCHED();
	scan(sums, sums + blocks, blocks);
	add_blocks<<<blocks, BLOCK>>>(out, sums + blocks, n);
	LAUNCHED();
	CUDA(cudaFree(sums));
}

int main()
{
	uint32_t seed = 3;

	for (int n : {1, 33, 256, 257, 200000}) {
		std::vector<uint32_t> values(n), got(n);
		uint32_t *in, *out, want = 0;

		for (uint32_t &value : values)
			value = next_random(&seed);
		CUDA(cudaMalloc(&in, n * sizeof(uint32_t)));
		CUDA(cudaMalloc(&out, n * sizeof(uint32_t)));
		CUDA(cudaMemcpy(in, values.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
		scan(in, out, n);
		CUDA(cudaMemcpy(got.data(), out, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
		for (int i = 0; i < n; i++) {
			want += values[i];
			CHECK_EQ_AT(i, got[i], want);
		}
		CUDA(cudaFree(in));
		CUDA(cudaFree(out));
	}
	printf("prefix sums are right\n");
	return 0;
}
