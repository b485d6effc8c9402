// SPDX-License-Identifier: Apache-2.0
/* Kernels that programs load by themselves, as PTX text and as fat binaries; C names, so that
 * they can be asked for. */

struct pair {
	short factor;
	double add;
};

extern "C" {

__device__ int calls = 7;
__constant__ float offsets[8] = {1, 2, 3, 4, 5, 6, 7, 8};

/* out[i] = in[i] * factor + add + offsets[i % 8] */
__global__ void scale(const float *in, float *out, int n, pair by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = in[i] * (float)by.factor + (float)by.add + offsets[i % 8];
	if (i == 0)
		atomicAdd(&calls, 1);
}

/* Reverses each block's part through dynamic shared memory. */
__global__ void reverse(int *data)
{
	extern __shared__ int part[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = data[i];
	__syncthreads();
	data[i] = part[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(64) nothing(char a, long long b, short c)
{
}
}
