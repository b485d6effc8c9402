// SPDX-License-Identifier: Apache-2.0
/* Memory that kernels reach comes and goes while a host function is under way, which changes such
 * memory itself. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

#define N 4096
#define TURNS 10

__global__ void add(int *at, int value)
{
	at[blockIdx.x * blockDim.x + threadIdx.x] += value;
}

static void CUDART_CB changes(void *argument)
{
	int *at = (int *)argument;

	usleep(20000);
	for (int i = 0; i < N; i++)
		at[i]++;
}

static int *registered(void *memory)
{
	int *device;

	CUDA(cudaHostRegister(memory, N * sizeof(int), cudaHostRegisterMapped));
	CUDA(cudaHostGetDevicePointer((void **)&device, memory, 0));
	return device;
}

int main()
{
	int *kept = (int *)aligned_alloc(4096, N * sizeof(int)), *at;
	int *others[2] = {(int *)aligned_alloc(4096, N * sizeof(int)),
		(int *)aligned_alloc(4096, N * sizeof(int))};
	cudaStream_t stream;

	if (!device_attribute(cudaDevAttrCanMapHostMemory))
		SKIP("the GPU reaches no host memory");
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < N; i++)
		kept[i] = others[0][i] = others[1][i] = 0;
	at = registered(kept);
	for (int turn = 0; turn < TURNS; turn++) {
		int *first = registered(others[0]), *second;
		cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
		cudaArray_t array;

		CUDA(cudaMallocArray(&array, &desc, 64, 64));

		add<<<N / 256, 256, 0, stream>>>(first, 1);
		CUDA(cudaStreamSynchronize(stream));
		add<<<N / 256, 256, 0, stream>>>(at, 1);
		CUDA(cudaLaunchHostFunc(stream, changes, kept));
		/* At the agent these wait for the function, and what comes behind them too. */
		CUDA(cudaFreeArray(array));
		second = registered(others[1]);
		add<<<N / 256, 256, 0, stream>>>(second, 1);
		add<<<N / 256, 256, 0, stream>>>(at, 1);
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i++) {
			CHECK_EQ_AT(i, others[0][i], turn + 1);
			CHECK_EQ_AT(i, others[1][i], turn + 1);
			CHECK_EQ_AT(i, kept[i], 3 * (turn + 1));
		}
		CUDA(cudaHostUnregister(others[0]));
		CUDA(cudaHostUnregister(others[1]));
	}
	CUDA(cudaHostUnregister(kept));
	CUDA(cudaStreamDestroy(stream));
	for (int *memory : {kept, others[0], others[1]})
		free(memory);
	return 0;
}
