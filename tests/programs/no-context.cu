// SPDX-License-Identifier: Apache-2.0
/* Calls of the runtime that leave a thread without a context, as NVIDIA's do, and one that takes it away. */
#include "driver.h"

#include <thread>

__device__ int counter = 40;

/* What CALL answers in a new thread, and whether that has a context then. */
template <typename F> static void leaves(cudaError_t want, bool with, F call)
{
	ENTRY(cuCtxGetCurrent);

	std::thread([&] {
		CUcontext current = NULL;

		CUDA_IS(want, call());
		DRIVER(p_cuCtxGetCurrent(&current));
		CHECK_EQ(current != NULL, with);
	}).join();
}

int main()
{
	cudaArrayMemoryRequirements requirements;
	cudaArraySparseProperties sparse;
	cudaMemPoolPtrExportData data = {};
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaArray_t array;
	cudaMemPool_t pool;
	int number = 1, first = 0;
	void *pointer;
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaEvent_t event;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaEventCreate(&event));
	CUDA(cudaMallocArray(&array, &floats, 16, 4));
	leaves(cudaSuccess, true, [&] { return cudaMemcpyToSymbol(counter, &number, sizeof(number)); });
	/* A copy of nothing looks at none of its arguments. */
	leaves(cudaSuccess, false, [&] { return cudaMemcpyToSymbol(counter, &number, 0, 4096); });
	leaves(cudaSuccess, false, [&] {
		return cudaMemcpyFromSymbolAsync(NULL, (const void *)&number, 0, 0, (cudaMemcpyKind)77);
	});
	leaves(cudaErrorInvalidValue, false, [&] { return cudaArrayGetMemoryRequirements(&requirements, array, 0); });
	leaves(cudaErrorInvalidValue, false, [&] { return cudaArrayGetSparseProperties(&sparse, array); });
	leaves(cudaErrorInvalidValue, false, [&] {
		return cudaMemPoolExportToShareableHandle(&number, NULL, cudaMemHandleTypePosixFileDescriptor, 0);
	});
	leaves(cudaErrorInvalidValue, false, [&] {
		return cudaMemPoolImportFromShareableHandle(
			&pool, NULL, cudaMemHandleTypePosixFileDescriptor, 1);
	});
	leaves(cudaErrorInvalidValue, false, [&] { return cudaMemPoolImportPointer(&pointer, NULL, &data); });
	leaves(cudaErrorInvalidValue, false, [&] { return cudaMemPoolExportPointer(&data, NULL); });
	leaves(cudaErrorInvalidValue, false, [&] { return cudaGraphEventRecordNodeSetEvent(NULL, NULL); });
	leaves(cudaErrorInvalidValue, false,
		[&] { return cudaGraphAddEventWaitNode(&node, graph, NULL, 0, NULL); });
	leaves(cudaErrorInvalidValue, true, [&] { return cudaGraphEventWaitNodeSetEvent(NULL, event); });
	leaves(cudaSuccess, false, [&] {
		CUDA(cudaFree(0));
		return cudaSetValidDevices(&first, 1);
	});
	leaves(cudaSuccess, true, [&] {
		CUDA(cudaSetValidDevices(&first, 1));
		return cudaFree(0);
	});
	CUDA(cudaFreeArray(array));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(event));
	return 0;
}
