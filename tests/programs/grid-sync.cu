// SPDX-License-Identifier: Apache-2.0
/* A cooperative launch whose blocks all meet between steps: numbers spread around a ring that is
 * longer than a block, which no block could do alone. */
#include "check.h"

#include <cooperative_groups.h>
#include <vector>

enum { BLOCKS = 6, THREADS = 64, N = BLOCKS * THREADS, STEPS = 30 };

__global__ void spread(volatile int *a, volatile int *b, int *sizes)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	for (int step = 0; step < STEPS; step++) {
		volatile int *from = step % 2 ? b : a, *to = step % 2 ? a : b;
		to[i] = from[i] + from[(i + THREADS) % N] * (step + 1);
		grid.sync();
	}
	if (i == 0) {
		sizes[0] = (int)grid.size();
		sizes[1] = grid.is_valid();
	}
}

int main()
{
	std::vector<int> host(N), next(N), got(N);
	int *a, *b, *sizes, got_sizes[2], per_sm = 0;

	if (!device_attribute(cudaDevAttrCooperativeLaunch))
		SKIP("the device has no cooperative launch");
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, spread, THREADS, 0));
	int most = per_sm * device_attribute(cudaDevAttrMultiProcessorCount);
	if (most < BLOCKS)
		SKIP("only %d blocks at once", most);

	CUDA(cudaMalloc(&a, N * sizeof(int)));
	CUDA(cudaMalloc(&b, N * sizeof(int)));
	CUDA(cudaMalloc(&sizes, sizeof(got_sizes)));
	for (int i = 0; i < N; i++)
		host[i] = i * i % 17;
	CUDA(cudaMemcpy(a, host.data(), N * sizeof(int), cudaMemcpyHostToDevice));
	void *arguments[] = {&a, &b, &sizes};
	CUDA(cudaLaunchCooperativeKernel(
		(const void *)spread, dim3(BLOCKS), dim3(THREADS), arguments, 0, 0));
	CUDA(cudaMemcpy(got.data(), STEPS % 2 ? b : a, N * sizeof(int), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(got_sizes, sizes, sizeof(got_sizes), cudaMemcpyDeviceToHost));

	for (unsigned step = 0; step < STEPS; step++) {
		for (int i = 0; i < N; i++)
			next[i] = (int)((unsigned)host[i] +
				(unsigned)host[(i + THREADS) % N] * (step + 1));
		host.swap(next);
	}
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], host[i]);
	CHECK_EQ(got_sizes[0], (int)N);
	CHECK_EQ(got_sizes[1], 1);

	/* More blocks than can be there at once are refused. */
	CUDA_IS(cudaErrorCooperativeLaunchTooLarge,
		cudaLaunchCooperativeKernel((const void *)spread, dim3((unsigned)most + 1),
			dim3(THREADS), arguments, 0, 0));
	(void)cudaGetLastError();
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
	CUDA(cudaFree(sizes));
	printf("the grid met %d times\n", STEPS);
	return 0;
}
