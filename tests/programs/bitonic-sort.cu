// SPDX-License-Identifier: Apache-2.0
/* Pairs of keys and values, sorted by a bitonic network: the short distances in one block's
 * shared memory, the long ones from global memory, up and down, as many batches as there are.
 */
#include "check.h"

#include <algorithm>
#include <vector>

constexpr unsigned SHARED = 512;

__device__ void in_order(unsigned &a, unsigned &av, unsigned &b, unsigned &bv, bool up)
{
	if ((a > b) == up) {
		unsigned key = a, value = av;

		a = b;
		av = bv;
		b = key;
		bv = value;
	}
}

/* Sorts SHARED pairs, each other block the other way round, for what is merged behind it. */
__global__ void sort_shared(unsigned *keys, unsigned *values, bool alone, bool up)
{
	__shared__ unsigned k[SHARED], v[SHARED];
	unsigned base = blockIdx.x * SHARED, t = threadIdx.x;

	for (unsigned i = t; i < SHARED; i += SHARED / 2) {
		k[i] = keys[base + i];
		v[i] = values[base + i];
	}
	for (unsigned size = 2; size <= SHARED; size *= 2) {
		bool way = size == SHARED ? (alone ? up : !(blockIdx.x & 1)) : !(t & size / 2);

		for (unsigned stride = size / 2; stride; stride /= 2) {
			unsigned at = 2 * t - (t & (stride - 1));

			__syncthreads();
			in_order(k[at], v[at], k[at + stride], v[at + stride], way);
		}
	}
	__syncthreads();
	for (unsigned i = t; i < SHARED; i += SHARED / 2) {
		keys[base + i] = k[i];
		values[base + i] = v[i];
	}
}

__global__ void merge_global(unsigned *keys, unsigned *values, unsigned length, unsigned size,
	unsigned stride, bool up)
{
	unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned at = 2 * t - (t & (stride - 1)), inside = t & (length / 2 - 1);
	bool way = size == length ? up : !(inside & size / 2);

	in_order(keys[at], values[at], keys[at + stride], values[at + stride], way);
}

static void sorts(unsigned batches, unsigned length, bool up)
{
	size_t n = (size_t)batches * length, bytes = n * sizeof(unsigned);
	std::vector<unsigned> keys(n), values(n), got_keys(n), got_values(n);
	unsigned *k, *v;
	uint32_t seed = length + up;

	for (size_t i = 0; i < n; i++) {
		keys[i] = next_random(&seed) % (length * 4);
		values[i] = (unsigned)i;
	}
	CUDA(cudaMalloc(&k, bytes));
	CUDA(cudaMalloc(&v, bytes));
	CUDA(cudaMemcpy(k, keys.data(), bytes, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(v, values.data(), bytes, cudaMemcpyHostToDevice));
	sort_shared<<<n / SHARED, SHARED / 2>>>(k, v, length == SHARED, up);
	for (unsigned size = 2 * SHARED; size <= length; size *= 2)
		for (unsigned stride = size / 2; stride; stride /= 2)
			merge_global<<<n / 512, 256>>>(k, v, length, size, stride, up);
	LAUNCHED();
	CUDA(cudaMemcpy(got_keys.data(), k, bytes, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(got_values.data(), v, bytes, cudaMemcpyDeviceToHost));
	for (unsigned b = 0; b < batches; b++) {
		unsigned *first = &keys[(size_t)b * length];
		std::vector<bool> seen(length);

		for (unsigned i = 0; i < length; i++) {
			size_t at = (size_t)b * length + i;
			unsigned from = got_values[at] - b * length;

			CHECK(from < length && !seen[from]);
			seen[from] = true;
			CHECK_EQ_AT(at, got_keys[at], first[from]);
		}
		std::sort(first, first + length);
		if (!up)
			std::reverse(first, first + length);
		for (unsigned i = 0; i < length; i++)
			CHECK_EQ_AT(i, got_keys[(size_t)b * length + i], first[i]);
	}
	CUDA(cudaFree(k));
	CUDA(cudaFree(v));
}

int main()
{
	for (bool up : {true, false}) {
		sorts(1, SHARED, up);
		sorts(7, SHARED, up);
		sorts(3, 2 * SHARED, up);
		sorts(1, 16 * SHARED, up);
	}
	return 0;
}
