/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that the tests of the software GPU's driver load in every form. */

__device__ int counter = 7;
__constant__ float factors[4] = {1.0f, 2.0f, 3.0f, 4.0f};

extern "C" __global__ void add(int *to, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] += value + counter;
}

extern "C" __global__ void scale(float *to, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] *= factors[i % 4];
}

extern "C" __global__ void mixed(char a, double b, short c, int *out)
{
	out[0] = a;
	out[1] = (int)b;
	out[2] = c;
}

extern "C" __global__ void sum_shared(const int *from, int *to)
{
	extern __shared__ int part[];
	__shared__ int fixed[32];

	part[threadIdx.x] = from[threadIdx.x];
	if (threadIdx.x < 32)
		fixed[threadIdx.x] = 0;
	__syncthreads();
	if (threadIdx.x == 0) {
		int sum = fixed[5];

		for (int i = 0; i < blockDim.x; i++)
			sum += part[i];
		*to = sum;
	}
}

extern "C" __global__ void __launch_bounds__(64) small(int *to)
{
	to[threadIdx.x] = 1;
}

extern "C" __global__ void wild(int *to)
{
	*to = 1;
}

extern "C" __global__ void trap()
{
	__trap();
}

extern "C" __global__ void forever(volatile int *stop)
{
	while (!*stop)
		;
}
