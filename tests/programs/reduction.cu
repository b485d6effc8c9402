// SPDX-License-Identifier: Apache-2.0
/* A sum and a maximum: shuffles within a warp, shared memory in a block, one atomic a block. */
#include "check.h"

#include <vector>

__inline__ __device__ int warp_sum(int value)
{
	for (int distance = 16; distance; distance /= 2)
		value += __shfl_down_sync(0xffffffffu, value, distance);
	return value;
}

__inline__ __device__ int warp_max(int value)
{
	for (int distance = 16; distance; distance /= 2)
		value = max(value, __shfl_xor_sync(0xffffffffu, value, distance));
	return value;
}

__global__ void reduce(const int *in, int n, unsigned long long *total, int *greatest)
{
	__shared__ int sums[32], maxima[32];
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
	int sum = 0, most = INT32_MIN;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		sum += in[i];
		most = max(most, in[i]);
	}
	sum = warp_sum(sum);
	most = warp_max(most);
	if (lane == 0) {
		sums[warp] = sum;
		maxima[warp] = most;
	}
	__syncthreads();

	if (warp == 0) {
		sum = warp_sum(lane < warps ? sums[lane] : 0);
		most = warp_max(lane < warps ? maxima[lane] : INT32_MIN);
		if (lane == 0) {
			atomicAdd(total, (unsigned long long)(long long)sum);
			atomicMax(greatest, most);
		}
	}
}

int main()
{
	unsigned long long *total, got_total, no_total = 0;
	int *in, *greatest, got_greatest, least = INT32_MIN;
	uint32_t seed = 7;

	for (int n : {1, 31, 32, 1000, 500000}) {
		std::vector<int> values(n);
		long long want = 0;
		int most = INT32_MIN;
		for (int &value : values) {
			value = (int)(next_random(&seed) % 20001) - 10000;
			want += value;
			most = value > most ? value : most;
		}

		CUDA(cudaMalloc(&in, n * sizeof(int)));
		CUDA(cudaMalloc(&total, sizeof(*total)));
		CUDA(cudaMalloc(&greatest, sizeof(*greatest)));
		CUDA(cudaMemcpy(in, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
		CUDA(cudaMemcpy(total, &no_total, sizeof(no_total), cudaMemcpyHostToDevice));
		CUDA(cudaMemcpy(greatest, &least, sizeof(least), cudaMemcpyHostToDevice));

		reduce<<<40, 256>>>(in, n, total, greatest);
		LAUNCHED();
		CUDA(cudaMemcpy(&got_total, total, sizeof(got_total), cudaMemcpyDeviceToHost));
		CUDA(cudaMemcpy(
			&got_greatest, greatest, sizeof(got_greatest), cudaMemcpyDeviceToHost));
		CHECK_EQ((long long)got_total, want);
		CHECK_EQ(got_greatest, most);

		CUDA(cudaFree(in));
		CUDA(cudaFree(total));
		CUDA(cudaFree(greatest));
	}
	printf("sums and maxima are right\n");
	return 0;
}
