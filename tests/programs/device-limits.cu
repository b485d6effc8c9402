// SPDX-License-Identifier: Apache-2.0
/*
 * Limits of a device: what is read back, what kernels see of them (a heap and a stack of the size
 * asked for), which cannot be set, and that a reset ends them.
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static const size_t MIB = 1 << 20;

static size_t limit(cudaLimit which)
{
	size_t value = 0;

	CUDA(cudaDeviceGetLimit(&value, which));
	return value;
}

static __device__ char *volatile taken;

/* SIZE bytes of the heap, written at both ends; 1 if there were so many. */
__global__ void take(size_t size, int *had)
{
	char *p = (char *)malloc(size);

	taken = p;
	*had = p != NULL;
	if (!p)
		return;
	p[0] = 1;
	p[size - 1] = 2;
}

__global__ void give_back()
{
	free(taken);
}

/* DEPTH calls that each keep 256 bytes. */
__device__ __noinline__ int deep(int depth, volatile int *to)
{
	volatile int kept[64];

	for (int i = 0; i < 64; i++)
		kept[i] = depth + i;
	if (depth > 0) {
		int below = deep(depth - 1, to);

		*to += below - kept[63];
	}
	return kept[depth % 64] + kept[63] - kept[0] - depth;
}

__global__ void descend(int depth, int *to)
{
	*to = 0;
	int all = deep(depth, to);
	*to += all;
}

static int heap_gives(int *flag, size_t size)
{
	int had = -1;

	take<<<1, 1>>>(size, flag);
	LAUNCHED();
	CUDA(cudaMemcpy(&had, flag, sizeof(had), cudaMemcpyDeviceToHost));
	give_back<<<1, 1>>>();
	LAUNCHED();
	return had;
}

static const cudaLimit limits[] = {cudaLimitStackSize, cudaLimitPrintfFifoSize,
	cudaLimitMallocHeapSize, cudaLimitDevRuntimePendingLaunchCount,
	cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize};

/* Each is another, as the device rounds it, and each is as it was behind a reset. */
static void reset_all()
{
	size_t before[6];

	for (int i = 0; i < 6; i++)
		before[i] = limit(limits[i]);
	CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 3));
	CHECK_EQ(limit(cudaLimitStackSize), 16u);
	CUDA(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 16 * MIB));
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 * MIB));
	CUDA(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
	CUDA(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 0));
	CUDA(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
	for (int i = 0; i < 6; i++)
		CHECK(limit(limits[i]) != before[i]);
	CUDA(cudaDeviceReset());
	for (int i = 0; i < 6; i++)
		CHECK_EQ_AT(i, limit(limits[i]), before[i]);
}

int main()
{
	size_t value;
	int *flag, sum = 0;

	reset_all();
	CHECK_EQ(limit(cudaLimitMallocHeapSize), 8 * MIB);
	CHECK_EQ(limit(cudaLimitStackSize), 1024);
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 * MIB));
	CHECK_EQ(limit(cudaLimitMallocHeapSize), 32 * MIB);
	CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));
	CHECK_EQ(limit(cudaLimitStackSize), 16 << 10);
	CUDA_IS(cudaErrorUnsupportedLimit, cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 4));
	CUDA_IS(cudaErrorUnsupportedLimit,
		cudaDeviceGetLimit(&value, cudaLimitDevRuntimeSyncDepth));
	CUDA_IS(cudaErrorInvalidValue, cudaDeviceGetLimit(NULL, cudaLimitStackSize));
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 * MIB));
	CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 * MIB));

	CUDA(cudaMalloc(&flag, sizeof(*flag)));
	CHECK_EQ(heap_gives(flag, 20 * MIB), 1);
	CHECK_EQ(heap_gives(flag, 20 * MIB), 1); /* it was given back */
	CHECK_EQ(heap_gives(flag, 40 * MIB), 0);
	CHECK_EQ(heap_gives(flag, 64), 1);

	/* It keeps its size from then on, also one that it had before. */
	CUDA_IS(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * MIB));
	CUDA_IS(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 * MIB));
	CUDA_IS(cudaErrorInvalidValue, cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 * MIB));
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	CHECK_EQ(limit(cudaLimitMallocHeapSize), 32 * MIB);

	/* 24 calls of over 256 bytes are beyond the stack of before. */
	descend<<<1, 1>>>(24, flag);
	LAUNCHED();
	CUDA(cudaMemcpy(&sum, flag, sizeof(sum), cudaMemcpyDeviceToHost));
	CHECK_EQ(sum, 63); /* 24 + 63 of the outermost, less 1 of each below it */

	CUDA(cudaFree(flag));
	CUDA(cudaDeviceReset());
	/* In front of NVIDIA's driver the agent's own context stays, and with it a heap that was
	 * used (docs/SHIM.md). */
	cudaDeviceProp properties;
	CUDA(cudaGetDeviceProperties(&properties, 0));
	bool stays = !getenv("VCUDA_TEST_NATIVE") && !strstr(properties.name, "software GPU");
	CHECK_EQ(limit(cudaLimitMallocHeapSize), stays ? 32 * MIB : 8 * MIB);
	CHECK_EQ(limit(cudaLimitStackSize), 1024);
	printf("the limits hold\n");
	return 0;
}
