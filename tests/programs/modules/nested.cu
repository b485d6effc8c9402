// SPDX-License-Identifier: Apache-2.0
/* Kernels that launch kernels, for a program that loads them as a module. */
#include <cuda_runtime.h>

struct many {
	char head;
	double values[20];
	short tail;
};

extern "C" {

__global__ void fill(unsigned *at, unsigned value)
{
	at[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void add(unsigned *at, unsigned value)
{
	at[blockIdx.x * blockDim.x + threadIdx.x] += value;
}

__global__ void sum(const unsigned *from, unsigned n, unsigned *to)
{
	unsigned total = 0;

	for (unsigned i = 0; i < n; i++)
		total += from[i];
	*to = total;
}

/* In one stream, one after the other. */
__global__ void in_order(unsigned *at)
{
	unsigned *mine = at + 64 * blockIdx.x;

	if (threadIdx.x)
		return;
	fill<<<2, 32>>>(mine, blockIdx.x);
	add<<<2, 32>>>(mine, 7);
	add<<<1, 32>>>(mine + 32, 100);
}

/* Every thread one of its own; the least of many threads' work is enough to see that all run.
 */
__global__ void each_thread(unsigned *at)
{
	unsigned me = blockIdx.x * blockDim.x + threadIdx.x;

	fill<<<1, 1>>>(at + me, 3 * me + 1);
}

/* Halves its part until one element is left: each level is launched by the one above. */
__global__ void halve(unsigned *at, unsigned n, unsigned level)
{
	if (n == 1) {
		*at = level;
		return;
	}
	halve<<<1, 1>>>(at, n / 2, level + 1);
	halve<<<1, 1>>>(at + n / 2, n / 2, level + 1);
}

/* Behind all that the grid has launched, also what its children have. */
__global__ void with_tail(unsigned *at, unsigned *total)
{
	sum<<<1, 1, 0, cudaStreamTailLaunch>>>(at, 64, total);
	halve<<<1, 1>>>(at, 32, 0);
	fill<<<1, 32, 0, cudaStreamFireAndForget>>>(at + 32, 2);
}

/* Launches itself again behind itself. */
__global__ void again(unsigned *count, unsigned left)
{
	++*count;
	if (left)
		again<<<1, 1, 0, cudaStreamTailLaunch>>>(count, left - 1);
}

__global__ void in_streams(unsigned *at)
{
	cudaStream_t one, two;
	cudaEvent_t event;

	cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
	cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	fill<<<1, 32, 0, one>>>(at, 5);
	cudaEventRecord(event, one);
	cudaStreamWaitEvent(two, event, 0);
	add<<<1, 32, 0, two>>>(at, 6);
	cudaEventDestroy(event);
	cudaStreamDestroy(one);
	cudaStreamDestroy(two);
}

/* Copies and fills are in a stream's order too; what each of them answers. */
__global__ void copies(unsigned *at)
{
	fill<<<1, 32>>>(at, 9);
	at[100] = cudaMemcpyAsync(at + 32, at, 128, cudaMemcpyDeviceToDevice, 0);
	at[101] = cudaMemsetAsync(at, 0x11, 64, 0);
	add<<<2, 32>>>(at, 1);
	at[102] = cudaMemcpy2DAsync(at + 64, 16, at, 32, 8, 4, cudaMemcpyDeviceToDevice, 0);
	at[103] = cudaGetLastError();
}

__global__ void take(unsigned *at, struct many many, unsigned value)
{
	extern __shared__ double shared[];

	shared[threadIdx.x] = many.values[threadIdx.x];
	__syncthreads();
	at[threadIdx.x] = many.head + (unsigned)shared[19 - threadIdx.x] + many.tail + value;
}

__global__ void arguments(unsigned *at, struct many many)
{
	take<<<1, 20, 20 * sizeof(double)>>>(at, many, 1000);
}

__global__ void questions(int *at)
{
	cudaFuncAttributes attributes;
	unsigned *memory;

	at[0] = cudaGetDevice(&at[1]);
	at[2] = cudaDeviceGetAttribute(&at[3], cudaDevAttrMaxThreadsPerBlock, at[1]);
	at[4] = cudaFuncGetAttributes(&attributes, (const void *)fill);
	at[5] = attributes.maxThreadsPerBlock;
	at[6] = cudaMalloc((void **)&memory, 128);
	*memory = 77;
	at[7] = (int)*memory;
	at[8] = cudaFree(memory);
	at[9] = cudaGetLastError();
}

/* Boxes of 3 rows in 2 slices, of bytes among others; and boxes that there cannot be. */
__global__ void boxes(unsigned *at)
{
	unsigned char *from = (unsigned char *)(at + 200), *to = (unsigned char *)(at + 300);
	cudaMemcpy3DParms copy = {};

	for (int k = 0; k < 256; k++)
		from[k] = (unsigned char)(k + 1);
	for (int k = 160; k < 208; k++)
		to[k] = 0x33;
	copy.srcPtr = {from, 16, 16, 5};
	copy.srcPos = {2, 1, 1};
	copy.dstPtr = {to, 20, 20, 4};
	copy.dstPos = {1, 0, 0};
	copy.extent = {7, 3, 2};
	copy.kind = cudaMemcpyDeviceToDevice;
	at[0] = cudaMemcpy3DAsync(&copy, 0);
	copy.extent = {0, 3, 2};
	at[1] = cudaMemcpy3DAsync(&copy, 0);
	at[2] = cudaMemset3DAsync({to + 160, 8, 8, 3}, 0x22, {5, 2, 2}, 0);
}

/* The blocks of a multiprocessor, as the host counts them; and what the device prefers. */
__global__ void occupancy(int *at)
{
	cudaSharedMemConfig banks;
	cudaFuncCache cache;

	at[0] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at[1], fill, 256, 0);
	at[2] = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&at[3], take, 512, 40000, cudaOccupancyDisableCachingOverride);
	at[4] = cudaRuntimeGetVersion(&at[5]);
	at[6] = cudaDeviceGetCacheConfig(&cache);
	at[7] = cache;
#pragma nv_diag_suppress 1215 /* it is deprecated, and there */
	at[8] = cudaDeviceGetSharedMemConfig(&banks);
#pragma nv_diag_default 1215
	at[9] = banks;
	at[10] = cudaGetLastError();
}
}
