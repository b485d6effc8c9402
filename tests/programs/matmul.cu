// SPDX-License-Identifier: Apache-2.0
/*
 * Tiled matrix product, once with static and once with dynamic shared memory.  The elements are
 * small integers, so that every order of summing gives the same float and the check is exact.
 */
#include "check.h"

#include <vector>

enum { TILE = 16 };

__global__ void product_static(const float *a, const float *b, float *c, int m, int n, int k)
{
	__shared__ float sa[TILE][TILE], sb[TILE][TILE + 1];
	int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int at = 0; at < k; at += TILE) {
		int ak = at + threadIdx.x, bk = at + threadIdx.y;
		sa[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0.0f;
		sb[threadIdx.y][threadIdx.x] = bk < k && column < n ? b[bk * n + column] : 0.0f;
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += sa[threadIdx.y][i] * sb[i][threadIdx.x];
		__syncthreads();
	}
	if (row < m && column < n)
		c[row * n + column] = sum;
}

/* The tile is as wide as the block, which only the launch knows. */
__global__ void product_dynamic(const float *a, const float *b, float *c, int m, int n, int k)
{
	extern __shared__ float shared[];
	int tile = blockDim.x, x = threadIdx.x, y = threadIdx.y;
	float *sa = shared, *sb = shared + tile * tile;
	int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
	float sum = 0;

	for (int at = 0; at < k; at += tile) {
		sa[y * tile + x] = row < m && at + x < k ? a[row * k + at + x] : 0.0f;
		sb[y * tile + x] = at + y < k && column < n ? b[(at + y) * n + column] : 0.0f;
		__syncthreads();
		for (int i = 0; i < tile; i++)
			sum += sa[y * tile + i] * sb[i * tile + x];
		__syncthreads();
	}
	if (row < m && column < n)
		c[row * n + column] = sum;
}

static std::vector<float> small_integers(int n, uint32_t seed)
{
	std::vector<float> values(n);

	for (float &value : values)
		value = (float)(int)(next_random(&seed) % 17) - 8.0f;
	return values;
}

static void check_product(int m, int n, int k, int dynamic_tile)
{
	std::vector<float> a = small_integers(m * k, 1), b = small_integers(k * n, 2);
	std::vector<float> c(m * n), want(m * n, 0.0f);
	float *da, *db, *dc;

	for (int i = 0; i < m; i++)
		for (int l = 0; l < k; l++)
			for (int j = 0; j < n; j++)
				want[i * n + j] += a[i * k + l] * b[l * n + j];

	CUDA(cudaMalloc(&da, a.size() * sizeof(float)));
	CUDA(cudaMalloc(&db, b.size() * sizeof(float)));
	CUDA(cudaMalloc(&dc, c.size() * sizeof(float)));
	CUDA(cudaMemcpy(da, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(db, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
	CUDA(cudaMemset(dc, 0xff, c.size() * sizeof(float)));

	int tile = dynamic_tile ? dynamic_tile : TILE;
	dim3 block(tile, tile), grid((n + tile - 1) / tile, (m + tile - 1) / tile);
	if (dynamic_tile)
		product_dynamic<<<grid, block, 2 * tile * tile * sizeof(float)>>>(
			da, db, dc, m, n, k);
	else
		product_static<<<grid, block>>>(da, db, dc, m, n, k);
	LAUNCHED();
	CUDA(cudaMemcpy(c.data(), dc, c.size() * sizeof(float), cudaMemcpyDeviceToHost));

	for (size_t i = 0; i < c.size(); i++)
		CHECK_EQ_AT((long long)i, c[i], want[i]);
	CUDA(cudaFree(da));
	CUDA(cudaFree(db));
	CUDA(cudaFree(dc));
}

int main()
{
	check_product(192, 192, 192, 0);
	check_product(130, 70, 91, 0);
	check_product(128, 128, 128, 32);
	check_product(65, 33, 40, 8);
	printf("4 products are right\n");
	return 0;
}
