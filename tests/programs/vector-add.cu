// SPDX-License-Identifier: Apache-2.0
/* The first CUDA program of all: c = a + b, with a tail that does not fill a block. */
#include "check.h"

#include <vector>

__global__ void add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

int main()
{
	const int n = 100003;
	std::vector<float> a(n), b(n), c(n, -1.0f);
	float *da, *db, *dc;

	for (int i = 0; i < n; i++) {
		a[i] = (float)i * 0.5f;
		b[i] = (float)(n - i) * 0.25f;
	}

	CUDA(cudaMalloc(&da, n * sizeof(float)));
	CUDA(cudaMalloc(&db, n * sizeof(float)));
	CUDA(cudaMalloc(&dc, n * sizeof(float)));
	CUDA(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));

	add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	LAUNCHED();
	CUDA(cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost));

	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, c[i], a[i] + b[i]);

	CUDA(cudaFree(da));
	CUDA(cudaFree(db));
	CUDA(cudaFree(dc));
	printf("%d sums are right\n", n);
	return 0;
}
