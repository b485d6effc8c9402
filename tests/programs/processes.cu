// SPDX-License-Identifier: Apache-2.0
/* Many processes at once, each with the device to itself as far as it can tell.  `--count N`
 * starts N beside the first instead of eight. */
#include "check.h"

#include <vector>

enum { N = 4096 };

__device__ int mine = 1;

__global__ void add(int *data, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] += value;
	if (i == 0)
		mine += value;
}

static int child(int value)
{
	std::vector<int> host(N);
	int *device, number;

	CUDA(cudaMalloc(&device, N * sizeof(int)));
	CUDA(cudaMemset(device, 0, N * sizeof(int)));
	for (int round = 0; round < 50; round++)
		add<<<N / 256, 256>>>(device, value);
	LAUNCHED();
	CUDA(cudaMemcpy(host.data(), device, N * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, host[i], 50 * value);
	CUDA(cudaMemcpyFromSymbol(&number, mine, sizeof(number)));
	CHECK_EQ(number, 1 + 50 * value);
	CUDA(cudaFree(device));
	return 0;
}

int main(int argc, char **argv)
{
	std::vector<pid_t> children(8);
	char number[16];

	if (argc == 3 && !strcmp(argv[1], "--count"))
		children.resize((size_t)atoi(argv[2]));
	else if (argc > 1)
		return child(atoi(argv[1]));
	for (size_t i = 0; i < children.size(); i++) {
		snprintf(number, sizeof(number), "%zu", i + 1);
		children[i] = start_self(number);
	}
	child(100);
	for (size_t i = 0; i < children.size(); i++)
		CHECK_EQ_AT((long long)i, wait_exit(children[i]), 0);
	printf("%zu processes kept apart\n", children.size() + 1);
	return 0;
}
