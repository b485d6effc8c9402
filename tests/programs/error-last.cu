// SPDX-License-Identifier: Apache-2.0
/* The last error: kept until it is asked for, not cleared by success, one to a thread; and what
 * errors are called. */
#include "check.h"

#include <thread>

__global__ void nothing()
{
}

int main()
{
	int *device;

	CUDA(cudaGetLastError());
	CUDA(cudaPeekAtLastError());
	CUDA(cudaMalloc(&device, 64));

	CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 1));
	CUDA(cudaMemset(device, 0, 64)); /* success does not clear it */
	CUDA_IS(cudaErrorInvalidValue, cudaPeekAtLastError());
	CUDA_IS(cudaErrorInvalidValue, cudaPeekAtLastError());
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	CUDA(cudaGetLastError());

	/* That of this one does, as natively. */
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 1));
	CUDA(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 64));
	CUDA(cudaPeekAtLastError());
	CUDA_IS(cudaErrorInvalidValue,
		cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());

	/* The later of two is the one kept. */
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 1));
	CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
	CUDA_IS(cudaErrorInvalidDevice, cudaGetLastError());
	CUDA(cudaGetLastError());

	/* A bad launch leaves its error; work goes on. */
	nothing<<<1, 5000>>>();
	CUDA(cudaDeviceSynchronize());
	CUDA_IS(BAD_CONFIGURATION, cudaGetLastError());
	nothing<<<1, 1>>>();
	CUDA(cudaGetLastError());
	CUDA(cudaDeviceSynchronize());

	CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 1));
	std::thread([] {
		CUDA(cudaGetLastError());
		CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
	}).join();
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());

	CHECK(!strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess"));
	CHECK(!strcmp(cudaGetErrorString(cudaSuccess), "no error"));
	CHECK(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
	CHECK(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"));
	CHECK(!strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument"));
	CHECK(!strcmp(cudaGetErrorString(cudaErrorInvalidConfiguration),
		"invalid configuration argument"));
	CHECK(!strcmp(cudaGetErrorString(cudaErrorIllegalAddress),
		"an illegal memory access was encountered"));
	CHECK(!strcmp(cudaGetErrorName((cudaError_t)54321), "unrecognized error code"));
	CHECK(!strcmp(cudaGetErrorString((cudaError_t)54321), "unrecognized error code"));
	CUDA(cudaFree(device));
	printf("the last error is kept as it should be\n");
	return 0;
}
