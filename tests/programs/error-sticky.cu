// SPDX-License-Identifier: Apache-2.0
/* What a kernel does wrong stays with its process: every later call gives that error, and other
 * processes notice nothing.  Each fault is made in a child. */
#include "check.h"

#include <assert.h>

__global__ void write(int *address)
{
	*address = 1;
}

__global__ void misaligned(char *memory)
{
	*(volatile int *)(memory + 2) = 1;
}

__global__ void asserts(int number)
{
	assert(number == 5);
}

__global__ void traps()
{
	asm volatile("trap;");
}

__global__ void beyond_shared(int *out, int index)
{
	__shared__ int part[32];

	part[threadIdx.x] = 1;
	__syncthreads();
	*out = *(volatile int *)((char *)part + (size_t)index * 4096);
}

/* A pointer to a function that is none. */
__global__ void astray(int *out, size_t address)
{
	*out = ((int (*)(int))address)(*out);
}

struct fault {
	const char *name;
	cudaError_t first, other; /* OTHER is as good */
};

static const fault faults[] = {
	{"illegal-address", cudaErrorIllegalAddress, cudaErrorIllegalAddress},
	{"null-pointer", cudaErrorIllegalAddress, cudaErrorIllegalAddress},
	{"misaligned-address", cudaErrorMisalignedAddress, cudaErrorMisalignedAddress},
	{"assert", cudaErrorAssert, cudaErrorAssert},
	{"trap", cudaErrorLaunchFailure, cudaErrorIllegalInstruction},
	{"beyond-shared", cudaErrorIllegalAddress, cudaErrorLaunchFailure},
	{"astray", cudaErrorIllegalAddress, cudaErrorIllegalAddress},
};

static int child(const char *name)
{
	int *device, value = 0;
	cudaEvent_t event;
	const fault *fault = faults;

	while (strcmp(fault->name, name))
		fault++;
	CUDA(cudaMalloc(&device, 256));
	CUDA(cudaEventCreate(&event));

	if (!strcmp(name, "illegal-address"))
		write<<<1, 1>>>((int *)0x500000000000ull);
	else if (!strcmp(name, "null-pointer"))
		write<<<1, 32>>>(NULL);
	else if (!strcmp(name, "misaligned-address"))
		misaligned<<<1, 1>>>((char *)device);
	else if (!strcmp(name, "assert"))
		asserts<<<2, 32>>>(6);
	else if (!strcmp(name, "trap"))
		traps<<<1, 1>>>();
	else if (!strcmp(name, "astray"))
		astray<<<1, 1>>>(device, 0x123456780);
	else
		beyond_shared<<<1, 32>>>(device, 1 << 8); /* 1 MiB on */
	LAUNCHED(); /* the launch itself was fine */

	cudaError_t got = cudaDeviceSynchronize();
	if (got != fault->first && got != fault->other)
		FAIL("%s gave %s, not %s", name, cudaGetErrorName(got),
			cudaGetErrorName(fault->first));

	/* From here on nothing else is to be had. */
	CUDA_IS(got, cudaPeekAtLastError());
	CUDA_IS(got, cudaMalloc(&device, 16));
	CUDA_IS(got, cudaFree(NULL));
	CUDA_IS(got, cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
	CUDA_IS(got, cudaEventRecord(event, 0));
	write<<<1, 1>>>(device);
	CUDA_IS(got, cudaGetLastError());
	CUDA_IS(got, cudaDeviceSynchronize());
	CUDA_IS(got, cudaStreamSynchronize(0));
	CUDA_IS(got, cudaGetLastError());
	return 0;
}

int main(int argc, char **argv)
{
	int *device, value = 0, passing = 5;

	if (argc > 1)
		return child(argv[1]);
	CUDA(cudaMalloc(&device, sizeof(int)));
	for (const fault &fault : faults) {
		int status = wait_exit(start_self(fault.name));
		if (status)
			FAIL("%s: the child ended with %d", fault.name, status);
		CUDA(cudaMemset(device, 0, sizeof(int)));
		asserts<<<1, 32>>>(passing);
		write<<<1, 1>>>(device);
		LAUNCHED();
		CUDA(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
		CHECK_EQ(value, 1);
	}
	CUDA(cudaFree(device));
	printf("faults stay where they were made\n");
	return 0;
}
