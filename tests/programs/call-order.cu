// SPDX-License-Identifier: Apache-2.0
/*
 * Which of several mistakes a call tells: a context that is not there, a pitch before a direction,
 * an array that is not there, a copy of nothing; which calls make no context current; and what happens to a
 * context that is reset.
 */
#include "driver.h"

#include <thread>

static void without_a_context()
{
	ENTRY(cuMemAlloc);
	ENTRY(cuMemcpyHtoD);
	ENTRY(cuMemsetD8);
	ENTRY(cuCtxGetLimit);
	ENTRY(cuCtxSetCacheConfig);
	ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor);
	ENTRY(cuTensorMapReplaceAddress);
	alignas(64) CUtensorMap map = {};
	CUdeviceptr memory = 1;
	size_t limit;
	int blocks;

	/* All of them have other mistakes too. */
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuMemAlloc(&memory, 0));
	CHECK_EQ(memory, 0u);
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuMemcpyHtoD(0, NULL, 16));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuMemsetD8(0, 0, 16));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuCtxGetLimit(&limit, (CUlimit)4711));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuCtxSetCacheConfig((CUfunc_cache)4711));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT,
		p_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 32, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuTensorMapReplaceAddress(&map, (void *)1));
}

static bool has_context()
{
	ENTRY(cuCtxGetCurrent);
	CUcontext current;

	DRIVER(p_cuCtxGetCurrent(&current));
	return current != NULL;
}

/* Calls of the runtime after which a thread without a context still has none. */
static void none_made_current()
{
	cudaMemPoolPtrExportData data = {};
	cudaArraySparseProperties sparse;
	cudaArrayMemoryRequirements needed;
	cudaPointerAttributes attributes;
	cudaGraphNode_t node;
	cudaMemPool_t pool;
	cudaStream_t stream;
	cudaGraph_t graph;
	int devices[] = {0};
	void *memory;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaStreamCreate(&stream));
	CHECK(has_context());
	CUDA(cudaSetValidDevices(devices, 1));
	CHECK(!has_context());
	CUDA(cudaPointerGetAttributes(&attributes, NULL));
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&data, NULL));
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolImportPointer(&memory, NULL, &data));
	CHECK(cudaMemPoolImportFromShareableHandle(&pool, (void *)-1,
		      cudaMemHandleTypePosixFileDescriptor, 0) != cudaSuccess);
	CUDA_IS(cudaErrorInvalidValue, cudaArrayGetSparseProperties(&sparse, NULL));
	CUDA_IS(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(&needed, NULL, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaMipmappedArrayGetSparseProperties(&sparse, NULL));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMipmappedArrayGetMemoryRequirements(&needed, NULL, 0));
	CUDA_IS(cudaErrorInvalidValue,
		cudaGraphAddEventRecordNode(&node, graph, NULL, 0, NULL));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphAddEventWaitNode(&node, graph, NULL, 0, NULL));
	(void)cudaGetLastError();
	CHECK(!has_context());
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaMalloc(&memory, 64));
	CHECK(has_context());
	CUDA(cudaFree(memory));
}

static void copies()
{
	const cudaMemcpyKind none = (cudaMemcpyKind)99;
	const size_t rows = 4, row = 64;
	char host[256] = {};
	char *device;

	CUDA(cudaMalloc(&device, sizeof(host)));
	/* Nothing to copy is never wrong, and one row has no distance to the next. */
	CUDA(cudaMemcpy(NULL, NULL, 0, none));
	CUDA(cudaMemcpy2D(device, 1, host, 1, row, 0, none));
	CUDA_IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 16, host, row, row, rows, none));
	CUDA_IS(cudaErrorInvalidMemcpyDirection,
		cudaMemcpy2D(device, row, host, row, row, rows, none));
	CUDA_IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, host, row, none));
	(void)cudaGetLastError();
	CUDA(cudaFree(device));
}

/* Two allocations that touch are two. */
static void neighbours()
{
	char *at[16];

	for (char *&one : at)
		CUDA(cudaMalloc(&one, 65536));
	for (char *one : at) {
		CUDA(cudaMemset(one, 1, 65536));
		CUDA_IS(cudaErrorInvalidValue, cudaMemset(one, 1, 65536 + 512));
		CUDA_IS(cudaErrorInvalidValue,
			cudaMemcpy(one + 65536 - 4, at[0], 8, cudaMemcpyDeviceToDevice));
	}
	(void)cudaGetLastError();
	for (char *one : at)
		CUDA(cudaFree(one));
}

static void arrays()
{
	const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	const cudaChannelFormatDesc odd = {7, 0, 0, 0, cudaChannelFormatKindSigned};
	unsigned char bytes[64], back[64] = {};
	cudaChannelFormatDesc desc = floats;
	cudaArray_t array = (cudaArray_t)1;
	cudaExtent extent = {1, 1, 1};
	unsigned flags = 7;

	CUDA_IS(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &odd, 16, 4, 0));
	CHECK(array == NULL);
	CUDA_IS(cudaErrorInvalidValue, cudaMallocArray(&array, &odd, 0, 4, 0));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaArrayGetInfo(&desc, &extent, &flags, NULL));
	CHECK_EQ(desc.x, 0);
	CHECK_EQ(extent.width, 0u);
	CHECK_EQ(flags, 0u);
	(void)cudaGetLastError();

	/* Copies may begin and end within an element. */
	for (int i = 0; i < 64; i++)
		bytes[i] = (unsigned char)(i * 3);
	CUDA(cudaMallocArray(&array, &floats, 16, 4, 0));
	CUDA(cudaMemcpy2DToArray(array, 1, 0, bytes, 13, 13, 4, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DFromArray(back, 13, array, 1, 0, 13, 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 4 * 13; i++)
		CHECK_EQ_AT(i, back[i], bytes[i]);
	CUDA_IS(cudaErrorInvalidPitchValue,
		cudaMemcpy2DToArray(NULL, 0, 0, bytes, 4, 16, 4, (cudaMemcpyKind)99));
	CUDA_IS(cudaErrorInvalidMemcpyDirection,
		cudaMemcpy2DToArray(NULL, 0, 0, bytes, 16, 16, 4, (cudaMemcpyKind)99));
	CUDA_IS(cudaErrorInvalidResourceHandle,
		cudaMemcpy2DToArray(NULL, 0, 0, bytes, 16, 16, 4, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DToArray(NULL, 0, 0, NULL, 0, 0, 4, cudaMemcpyHostToDevice));
	(void)cudaGetLastError();
	CUDA(cudaFreeArray(array));
}

/* The primary context is reset behind the runtime's back. */
static void resets()
{
	ENTRY(cuDevicePrimaryCtxReset);
	ENTRY(cuDevicePrimaryCtxGetState);
	ENTRY(cuCtxGetCacheConfig);
	CUfunc_cache cache;
	unsigned flags;
	int active = -1;
	int *data;

	CUDA(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	DRIVER(p_cuDevicePrimaryCtxReset(0));
	DRIVER(p_cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 0);
	DRIVER_IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, p_cuCtxGetCacheConfig(&cache));
	/* The runtime takes it anew, as it was at first. */
	CUDA(cudaMalloc(&data, 64));
	DRIVER(p_cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK_EQ(active, 1);
	DRIVER(p_cuCtxGetCacheConfig(&cache));
	CHECK_EQ((int)cache, (int)CU_FUNC_CACHE_PREFER_NONE);
	CUDA(cudaMemset(data, 0, 64));
	CUDA(cudaFree(data));
}

int main()
{
	CUDA(cudaFree(0));
	std::thread(without_a_context).join();
	std::thread(none_made_current).join();
	copies();
	neighbours();
	arrays();
	resets();
	return 0;
}
