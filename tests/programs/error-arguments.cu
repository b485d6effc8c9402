// SPDX-License-Identifier: Apache-2.0
/* Calls with bad arguments: each gives its own error, and the device is none the worse. */
#include "check.h"

__global__ void add(int *data)
{
	data[threadIdx.x]++;
}

static void memory()
{
	int *device, host[64] = {};

	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA_IS(cudaErrorInvalidValue, cudaMalloc((void **)NULL, 16));
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(NULL, 0, 16));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpy((void *)0x1234, host, sizeof(host), cudaMemcpyHostToDevice));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpy(NULL, host, sizeof(host), cudaMemcpyHostToDevice));
	CUDA_IS(cudaErrorInvalidMemcpyDirection,
		cudaMemcpy(device, host, sizeof(host), (cudaMemcpyKind)99));
	/* 8 GiB from a block of 256 bytes. */
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpy(host, device, (size_t)8 << 30, cudaMemcpyDeviceToHost));
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(device, 0, (size_t)1 << 46));

	CUDA(cudaFree(NULL));
	CUDA(cudaFreeHost(NULL));
	CUDA_IS(cudaErrorInvalidValue, cudaFree(host));
	CUDA_IS(cudaErrorInvalidValue, cudaFree(device + 1));
	CUDA_IS(cudaErrorInvalidValue, cudaFreeHost(host));
	CUDA(cudaFree(device));
	CUDA_IS(cudaErrorInvalidValue, cudaFree(device));
	(void)cudaGetLastError();
}

static void devices()
{
	int count = 0, value;
	cudaDeviceProp properties;

	CUDA(cudaGetDeviceCount(&count));
	CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(count));
	CUDA_IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
	CUDA_IS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, count));
	CUDA_IS(cudaErrorInvalidDevice,
		cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count + 3));
	CUDA_IS(cudaErrorInvalidValue,
		cudaDeviceGetAttribute(&value, (cudaDeviceAttr)100000, 0));
	CUDA(cudaGetDevice(&value));
	CHECK_EQ(value, 0);
	(void)cudaGetLastError();
}

static void handles()
{
	cudaEvent_t event;
	float elapsed;

	CUDA(cudaEventCreate(&event));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, 0));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventSynchronize(NULL));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventQuery(NULL));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&elapsed, event, NULL));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
	CUDA_IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, 0xf000));
	CUDA_IS(cudaErrorInvalidValue, cudaStreamCreate(NULL));
	CUDA(cudaEventDestroy(event));
	(void)cudaGetLastError();
}

static void functions()
{
	cudaFuncAttributes attributes;
	cudaFunction_t function;
	int not_a_kernel = 0;
	void *arguments[] = {&not_a_kernel};

	/* An address that is no kernel is taken for a handle. */
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaFuncGetAttributes(&attributes, &not_a_kernel));
	CUDA_IS(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, NULL));
	CUDA_IS(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&function, &not_a_kernel));
	CUDA_IS(cudaErrorInvalidResourceHandle,
		cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(1), arguments, 0, 0));
	(void)cudaGetLastError();
}

int main()
{
	int *device, value = 0;

	memory();
	devices();
	handles();
	functions();

	CUDA(cudaMalloc(&device, 64 * sizeof(int)));
	CUDA(cudaMemset(device, 0, 64 * sizeof(int)));
	add<<<1, 64>>>(device);
	LAUNCHED();
	CUDA(cudaMemcpy(&value, device + 63, sizeof(value), cudaMemcpyDeviceToHost));
	CHECK_EQ(value, 1);
	CUDA(cudaFree(device));
	printf("bad arguments are told apart\n");
	return 0;
}
