// SPDX-License-Identifier: Apache-2.0
/* Many processes at once, each with the device to itself as far as it can tell. */
#include "check.h"

#include <vector>

enum { PROCESSES = 8, N = 4096 };

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
	pid_t children[PROCESSES];
	char number[16];

	if (argc > 1)
		return child(atoi(argv[1]));
	for (int i = 0; i < PROCESSES; i++) {
		snprintf(number, sizeof(number), "%d", i + 1);
		children[i] = start_self(number);
	}
	child(100);
	for (int i = 0; i < PROCESSES; i++)
		CHECK_EQ_AT(i, wait_exit(children[i]), 0);
	printf("%d processes kept apart\n", PROCESSES + 1);
	return 0;
}
