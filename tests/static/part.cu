// SPDX-License-Identifier: Apache-2.0
/* A library with kernels and variables of its own, built with the CUDA runtime linked in and
 * not, and with relocatable device code (-DPARTS, together with part-device.cu). */
#include "part.h"

#include <cuda_runtime.h>

/* All that has a name is this library's alone: there are several in one process. */
#ifdef PARTS
extern __device__ int runs;
extern __device__ int step(int number);
#else
static __device__ int runs;
static __device__ int step(int number)
{
	return number + PART_ADDS;
}
#endif

static __global__ void add(int *numbers, int n)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < n)
		numbers[i] = step(numbers[i]);
	if (i == 0)
		runs++;
}

/* Constructors may use CUDA, too. */
namespace
{
struct constructed {
	cudaError_t status;
	constructed()
	{
		int *memory;

		status = cudaMalloc((void **)&memory, sizeof(*memory));
		if (status == cudaSuccess)
			status = cudaFree(memory);
	}
} constructed;
} // namespace

int part_constructed(void)
{
	return constructed.status;
}

int part_add(int *numbers, int n)
{
	add<<<(n + 63) / 64, 64>>>(numbers, n);
	cudaError_t status = cudaGetLastError();

	return status ? status : cudaDeviceSynchronize();
}

int part_runs(int *count)
{
	return cudaMemcpyFromSymbol(count, runs, sizeof(*count));
}

/* In these two the call must come from the library: as the last thing that a function does it
 * would be a jump, and come from the library's caller. */
int part_fail(void)
{
	volatile cudaError_t status = cudaSetDevice(1000);

	return status;
}

int part_last(void)
{
	volatile cudaError_t status = cudaGetLastError();

	return status;
}
