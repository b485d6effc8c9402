/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory: the driver does it, and the runtime of CUDA 12 names devices where that of 13
 * names locations.
 */
#include "shim/runtime/runtime.h"

static CUmemLocation location_of(struct cudaMemLocation location)
{
	return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

static cudaError_t prefetch(const void *at, size_t count, CUmemLocation location,
	unsigned flags, cudaStream_t stream)
{
	return RUNTIME_DRIVER(
		cuMemPrefetchAsync_v2((CUdeviceptr)at, count, location, flags, stream));
}

static cudaError_t advise(
	const void *at, size_t count, enum cudaMemoryAdvise advice, CUmemLocation location)
{
	return RUNTIME_DRIVER(
		cuMemAdvise_v2((CUdeviceptr)at, count, (CUmem_advise)advice, location));
}

cudaError_t hand_cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
	CUdeviceptr address = 0;
	cudaError_t error;

	if (!devPtr)
		return cudaErrorInvalidValue;
	/* The driver refuses to allocate nothing, NVIDIA's runtime does not. */
	error = size ? RUNTIME_DRIVER(cuMemAllocManaged(&address, size, flags))
		     : runtime_enter();
	/* Nothing where it failed, as NVIDIA's. */
	*devPtr = (void *)address;
	return error;
}

#if CUDART_VERSION >= 13000

cudaError_t hand_cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
	struct cudaMemLocation location)
{
	return advise(devPtr, count, advice, location_of(location));
}

cudaError_t hand_cudaMemPrefetchAsync(const void *devPtr, size_t count,
	struct cudaMemLocation location, unsigned int flags, cudaStream_t stream)
{
	return prefetch(devPtr, count, location_of(location), flags, stream);
}

_Static_assert(sizeof(CUmemLocation) == sizeof(struct cudaMemLocation), "locations");

cudaError_t hand_cudaMemPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
	struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, cudaStream_t stream)
{
	return RUNTIME_DRIVER(cuMemPrefetchBatchAsync((CUdeviceptr *)dptrs, sizes, count,
		(CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
		stream));
}

cudaError_t hand_cudaMemDiscardBatchAsync(void **dptrs, size_t *sizes, size_t count,
	unsigned long long flags, cudaStream_t stream)
{
	return RUNTIME_DRIVER(
		cuMemDiscardBatchAsync((CUdeviceptr *)dptrs, sizes, count, flags, stream));
}

cudaError_t hand_cudaMemDiscardAndPrefetchBatchAsync(void **dptrs, size_t *sizes, size_t count,
	struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, cudaStream_t stream)
{
	return RUNTIME_DRIVER(cuMemDiscardAndPrefetchBatchAsync((CUdeviceptr *)dptrs, sizes,
		count, (CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
		stream));
}

#else

static CUmemLocation location_of_device(int device)
{
	return (CUmemLocation){.type = device == cudaCpuDeviceId ? CU_MEM_LOCATION_TYPE_HOST
								 : CU_MEM_LOCATION_TYPE_DEVICE,
		.id = device};
}

cudaError_t hand_cudaMemAdvise(
	const void *devPtr, size_t count, enum cudaMemoryAdvise advice, int device)
{
	return RUNTIME_DRIVER(
		cuMemAdvise((CUdeviceptr)devPtr, count, (CUmem_advise)advice, device));
}

cudaError_t hand_cudaMemAdvise_v2(const void *devPtr, size_t count,
	enum cudaMemoryAdvise advice, struct cudaMemLocation location)
{
	return advise(devPtr, count, advice, location_of(location));
}

cudaError_t hand_cudaMemPrefetchAsync(
	const void *devPtr, size_t count, int dstDevice, cudaStream_t stream)
{
	return prefetch(devPtr, count, location_of_device(dstDevice), 0, stream);
}

cudaError_t hand_cudaMemPrefetchAsync_v2(const void *devPtr, size_t count,
	struct cudaMemLocation location, unsigned int flags, cudaStream_t stream)
{
	return prefetch(devPtr, count, location_of(location), flags, stream);
}

#endif

/* As natively, what ranges are is asked in the context that there is. */
cudaError_t hand_cudaMemRangeGetAttribute(void *data, size_t dataSize,
	enum cudaMemRangeAttribute attribute, const void *devPtr, size_t count)
{
	return RUNTIME_ANYWHERE(cuMemRangeGetAttribute(
		data, dataSize, (CUmem_range_attribute)attribute, (CUdeviceptr)devPtr, count));
}

_Static_assert(sizeof(enum cudaMemRangeAttribute) == sizeof(CUmem_range_attribute), "enums");

cudaError_t hand_cudaMemRangeGetAttributes(void **data, size_t *dataSizes,
	enum cudaMemRangeAttribute *attributes, size_t numAttributes, const void *devPtr,
	size_t count)
{
	return RUNTIME_ANYWHERE(
		cuMemRangeGetAttributes(data, dataSizes, (CUmem_range_attribute *)attributes,
			numAttributes, (CUdeviceptr)devPtr, count));
}

cudaError_t hand_cudaStreamAttachMemAsync(
	cudaStream_t stream, void *devPtr, size_t length, unsigned int flags)
{
	return RUNTIME_DRIVER(
		cuStreamAttachMemAsync(stream, (CUdeviceptr)devPtr, length, flags));
}
