// SPDX-License-Identifier: Apache-2.0
// For runtime.c: nvcc makes a fat binary with PTX of it, as it lies in a program.
__constant__ unsigned step;

extern "C" __global__ void add_step(unsigned *numbers, unsigned n, unsigned times)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		numbers[i] += step * times;
}

extern "C" __global__ void block_sums(const unsigned *numbers, unsigned n, unsigned long long *sums)
{
	__shared__ unsigned long long part[256];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = i < n ? numbers[i] : 0;
	__syncthreads();
	for (unsigned half = 128; half; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (!threadIdx.x)
		sums[blockIdx.x] = part[0];
}
