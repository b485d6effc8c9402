// SPDX-License-Identifier: Apache-2.0
/* The other half of two-files.cu. */
#include "../check.h"

static __device__ int state = 2000;

static __global__ void bump(int *out)
{
	*out = state;
	state += 10;
}

int second_bump(int *device)
{
	int got = 0;

	bump<<<1, 1>>>(device);
	LAUNCHED();
	CUDA(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
	return got;
}
