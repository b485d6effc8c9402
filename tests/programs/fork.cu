// SPDX-License-Identifier: Apache-2.0
/* fork without exec: before the first CUDA call both sides may use CUDA; after it the child gets
 * an error from every call that needs the device, and the parent goes on undisturbed. */
#include "check.h"

__global__ void add(int *data, int value)
{
	data[threadIdx.x] += value;
}

static void use_device(int value)
{
	int *device, got[64];

	CUDA(cudaMalloc(&device, sizeof(got)));
	CUDA(cudaMemset(device, 0, sizeof(got)));
	add<<<1, 64>>>(device, value);
	LAUNCHED();
	CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		CHECK_EQ_AT(i, got[i], value);
	CUDA(cudaFree(device));
}

static void child_after_use(int *parents)
{
	int *device = NULL, value = 7;

	CHECK(cudaMalloc(&device, 64) != cudaSuccess);
	CHECK(cudaMemcpy(parents, &value, sizeof(value), cudaMemcpyHostToDevice) != cudaSuccess);
	CHECK(cudaDeviceSynchronize() != cudaSuccess);
	add<<<1, 1>>>(parents, 5);
	CHECK(cudaGetLastError() != cudaSuccess);
	_exit(0);
}

int main()
{
	int *device, value = 41;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		use_device(3);
		_exit(0);
	}
	use_device(4);
	CHECK_EQ(wait_exit(pid), 0);

	CUDA(cudaMalloc(&device, 64 * sizeof(int)));
	CUDA(cudaMemcpy(device, &value, sizeof(value), cudaMemcpyHostToDevice));
	for (int i = 0; i < 3; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			child_after_use(device);
		add<<<1, 1>>>(device, 1);
		LAUNCHED();
		CHECK_EQ(wait_exit(pid), 0);
		use_device(i);
	}
	CUDA(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
	CHECK_EQ(value, 44);
	CUDA(cudaFree(device));
	printf("fork is as CUDA says\n");
	return 0;
}
