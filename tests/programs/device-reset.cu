// SPDX-License-Identifier: Apache-2.0
/* cudaDeviceReset gives everything back; after it the program starts anew, variables included.
 */
#include "check.h"

__device__ int counter = 10;

__global__ void add(int *data)
{
	data[threadIdx.x] += 1;
	if (threadIdx.x == 0)
		counter++;
}

int main()
{
	int *device, got[32], number;
	unsigned flags;
	cudaStream_t stream;
	cudaEvent_t event;

	for (int life = 0; life < 3; life++) {
		CUDA(cudaStreamCreate(&stream));
		CUDA(cudaEventCreate(&event));
		CUDA(cudaMalloc(&device, sizeof(got)));
		CUDA(cudaMemset(device, life, sizeof(got)));
		add<<<1, 32, 0, stream>>>(device);
		LAUNCHED();
		CUDA(cudaEventRecord(event, stream));
		CUDA(cudaEventSynchronize(event));
		CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 32; i++)
			CHECK_EQ_AT(i, got[i], life * 0x01010101 + 1);
		CUDA(cudaMemcpyFromSymbol(&number, counter, sizeof(number)));
		CHECK_EQ(number, 11);
		CUDA(cudaDeviceReset());
	}
	/* Nothing of the life before is left. */
	CUDA_IS(cudaErrorInvalidValue, cudaFree(device));
	(void)cudaGetLastError();
	/* Nor are flags. */
	CUDA(cudaSetDeviceFlags(cudaDeviceScheduleYield));
	CUDA(cudaFree(0));
	CUDA(cudaGetDeviceFlags(&flags));
	CHECK_EQ(flags & cudaDeviceScheduleMask, (unsigned)cudaDeviceScheduleYield);
	CUDA(cudaDeviceReset());
	CUDA(cudaFree(0));
	CUDA(cudaGetDeviceFlags(&flags));
	CHECK_EQ(flags & cudaDeviceScheduleMask, 0u);
	CUDA(cudaDeviceReset());
	printf("reset starts anew\n");
	return 0;
}
