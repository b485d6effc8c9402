// SPDX-License-Identifier: Apache-2.0
/* Two sources, each with a module of its own, in one program; both have a kernel and a static
 * variable of the same name. */
#include "check.h"

static __device__ int state = 100;

static __global__ void bump(int *out)
{
	*out = state++;
}

int second_bump(int *device); /* parts/two-files-second.cu */

int main()
{
	int *device, got;

	CUDA(cudaMalloc(&device, sizeof(int)));
	for (int i = 0; i < 5; i++) {
		bump<<<1, 1>>>(device);
		LAUNCHED();
		CUDA(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
		CHECK_EQ(got, 100 + i);
		CHECK_EQ(second_bump(device), 2000 + 10 * i);
	}
	CUDA(cudaFree(device));
	printf("two modules kept apart\n");
	return 0;
}
