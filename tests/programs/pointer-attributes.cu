// SPDX-License-Identifier: Apache-2.0
/* What a pointer tells of the memory behind it: the pool that it was allocated from, whether that
 * is the device's current one or not, the handles that it can be exported as, the access that the
 * device has, whether cudaIpcGetMemHandle takes it, and what the program has set. */
#include "driver.h"

struct told {
	CUmemoryPool pool;
	unsigned long long handles;
	unsigned access;
	bool ipc;
};

static struct told tell(const void *pointer)
{
	ENTRY(cuPointerGetAttribute);
	CUdeviceptr at = (CUdeviceptr)pointer;
	struct told t;
	unsigned ipc = ~0u;

	DRIVER(p_cuPointerGetAttribute(&t.pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at));
	DRIVER(p_cuPointerGetAttribute(
		&t.handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
	DRIVER(p_cuPointerGetAttribute(&t.access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at));
	DRIVER(p_cuPointerGetAttribute(
		&ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at));
	CHECK(ipc <= 1); /* all of it is written, as natively */
	t.ipc = ipc;
	return t;
}

/* Whether it can be shared is told and done alike. */
static void shares(void *pointer, bool can)
{
	cudaIpcMemHandle_t handle;

	CHECK_EQ(tell(pointer).ipc, can);
	CUDA_IS(can ? cudaSuccess : cudaErrorInvalidValue, cudaIpcGetMemHandle(&handle, pointer));
}

static void pools(void)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t own, plain;
	void *from_own, *from_default, *allocated;

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CUDA(cudaMemPoolCreate(&own, &props));
	CUDA(cudaDeviceGetDefaultMemPool(&plain, 0));
	CUDA(cudaMallocFromPoolAsync(&from_own, 1 << 20, own, 0));
	CUDA(cudaMallocAsync(&from_default, 1 << 20, 0));
	CUDA(cudaMalloc(&allocated, 1 << 20));
	CHECK(tell(from_own).pool == (CUmemoryPool)own);
	CHECK(tell((char *)from_own + 4096).pool == (CUmemoryPool)own);
	CHECK(tell(from_default).pool == (CUmemoryPool)plain);
	/* Nor does it change with the pool that the device allocates from. */
	CUDA(cudaDeviceSetMemPool(0, own));
	CHECK(tell(from_default).pool == (CUmemoryPool)plain);
	CUDA(cudaDeviceSetMemPool(0, plain));
	CHECK(tell(allocated).pool == NULL);
	CHECK_EQ(tell(allocated).access, 3u);
	shares(from_own, false);
	shares(allocated, true);
	CUDA(cudaFreeAsync(from_own, 0));
	CUDA(cudaFreeAsync(from_default, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemPoolDestroy(own));
	CUDA(cudaFree(allocated));
}

static void mapped(void)
{
	ENTRY(cuMemGetAllocationGranularity);
	ENTRY(cuMemCreate);
	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemMap);
	ENTRY(cuMemSetAccess);
	ENTRY(cuMemUnmap);
	ENTRY(cuMemRelease);
	ENTRY(cuMemAddressFree);
	ENTRY(cuMemGetAddressRange);
	ENTRY(cuPointerGetAttribute);
	CUmemAllocationProp prop = {};
	CUmemAccessDesc access = {};
	CUmemGenericAllocationHandle plain, shared;
	CUdeviceptr at, base;
	size_t size, length;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	DRIVER(p_cuMemGetAllocationGranularity(&size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	DRIVER(p_cuMemCreate(&plain, size, &prop, 0));
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	DRIVER(p_cuMemCreate(&shared, size, &prop, 0));
	DRIVER(p_cuMemAddressReserve(&at, 2 * size, 0, 0, 0));
	DRIVER(p_cuMemMap(at, size, 0, plain, 0));
	DRIVER(p_cuMemMap(at + size, size, 0, shared, 0));
	CHECK_EQ(tell((void *)at).access, 0u);
	DRIVER(p_cuMemSetAccess(at + size, size, &access, 1));
	CHECK_EQ(tell((void *)at).access, 0u);
	CHECK_EQ(tell((void *)(at + size)).access, 3u);
	CHECK_EQ(tell((void *)at).handles, 0ull);
	CHECK_EQ(tell((void *)(at + size + 256)).handles,
		(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CHECK(tell((void *)at).pool == NULL);
	shares((void *)(at + size), false);
	DRIVER(p_cuMemUnmap(at, 2 * size));
	/* Reserved addresses are nothing. */
	CHECK(p_cuPointerGetAttribute(&length, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at) ==
		CUDA_ERROR_INVALID_VALUE);
	CHECK(p_cuMemGetAddressRange(&base, &length, at) == CUDA_ERROR_NOT_FOUND);
	CUDA_IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister((void *)at));
	(void)cudaGetLastError();
	DRIVER(p_cuMemRelease(plain));
	DRIVER(p_cuMemRelease(shared));
	DRIVER(p_cuMemAddressFree(at, 2 * size));
}

/* Memory is shared for the first time behind all work, for which a capture is not ended: natively it
 * is shared then, and over the network only once the capture is over. */
static void captured(void)
{
	cudaIpcMemHandle_t handle;
	cudaError_t error;
	cudaStream_t stream;
	cudaGraph_t graph;
	void *shared, *fresh;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&shared, 4 << 20));
	CUDA(cudaMalloc(&fresh, 4 << 20));
	CUDA(cudaIpcGetMemHandle(&handle, shared));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA(cudaMemsetAsync(shared, 1, 4096, stream));
	CUDA(cudaIpcGetMemHandle(&handle, shared));
	error = cudaIpcGetMemHandle(&handle, fresh);
	CHECK(error == cudaSuccess || error == cudaErrorStreamCaptureUnsupported);
	(void)cudaGetLastError();
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaIpcGetMemHandle(&handle, fresh));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(shared));
	CUDA(cudaFree(fresh));
	CUDA(cudaStreamDestroy(stream));
}

/* What was set is told, of all that the allocation has. */
static void set_and_told(void *pointer, bool managed)
{
	ENTRY(cuPointerGetAttribute);
	ENTRY(cuPointerSetAttribute);
	const CUdeviceptr at = (CUdeviceptr)pointer;
	const CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_SYNC_MEMOPS;
	unsigned told = ~0u;

	DRIVER(p_cuPointerGetAttribute(&told, attribute, at));
	CHECK_EQ(told, (unsigned)managed);
	for (unsigned set : {1u, 0u, 1u}) {
		DRIVER(p_cuPointerSetAttribute(&set, attribute, at));
		DRIVER(p_cuPointerGetAttribute(&told, attribute, at + 100));
		CHECK_EQ(told, set);
	}
}

/* What it says of a graph's memory is the driver's own; it says something. */
static void of_a_graph(void)
{
	ENTRY(cuPointerGetAttribute);
	cudaMemAllocNodeParams params = {};
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	CUmemoryPool pool;

	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.bytesize = 1 << 20;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	(void)p_cuPointerGetAttribute(
		&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)params.dptr);
	CUDA(cudaFree(params.dptr));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main(void)
{
	void *managed, *device, *other;

	CUDA(cudaFree(0));
	captured();
	pools();
	of_a_graph();
	mapped();
	CUDA(cudaMallocManaged(&managed, 4096));
	shares(managed, false);
	set_and_told(managed, true);
	CUDA(cudaFree(managed));
	CUDA(cudaMalloc(&device, 4096));
	CUDA(cudaMalloc(&other, 4096));
	set_and_told(device, false);
	set_and_told(other, false); /* of its own */
	CUDA(cudaFree(device));
	CUDA(cudaFree(other));
	return 0;
}
