/* SPDX-License-Identifier: Apache-2.0
 *
 * ncclMemAlloc: memory that other processes can map, as NCCL does with a window's, and that the
 * other devices of the process reach.
 */
#include "shim/libraries/nccl/nccl.h"

static CUresult memory_prop(CUmemAllocationProp *prop, size_t *granularity)
{
	CUdevice device;
	CUresult status = cuCtxGetDevice(&device);

	*prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	return status ? status
		      : cuMemGetAllocationGranularity(
				granularity, prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
}

/* For the device itself, and those that reach it. */
static CUresult memory_open(CUdeviceptr at, size_t bytes, CUdevice device)
{
	CUmemAccessDesc access = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	int count = 0, reaches;
	CUresult status = cuDeviceGetCount(&count);

	for (int i = 0; i < count && !status; i++) {
		reaches = i == device;
		if (!reaches && cuDeviceCanAccessPeer(&reaches, i, device))
			continue;
		access.location.id = i;
		if (reaches)
			status = cuMemSetAccess(at, bytes, &access, 1);
	}
	return status;
}

static CUresult memory_map(CUdeviceptr *at, size_t bytes, const CUmemAllocationProp *prop)
{
	CUmemGenericAllocationHandle memory;
	CUresult status = cuMemCreate(&memory, bytes, prop, 0);

	if (status)
		return status;
	status = cuMemAddressReserve(at, bytes, 0, 0, 0);
	if (!status) {
		status = cuMemMap(*at, bytes, 0, memory, 0);
		if (!status) {
			status = memory_open(*at, bytes, prop->location.id);
			if (status)
				cuMemUnmap(*at, bytes);
		}
		if (status)
			cuMemAddressFree(*at, bytes);
	}
	cuMemRelease(memory); /* the mapping has it */
	return status;
}

STUB_EXPORT ncclResult_t ncclMemAlloc(void **ptr, size_t size)
{
	CUmemAllocationProp prop;
	size_t granularity;
	CUdeviceptr address = 0;
	CUresult status;

	COUNT(ncclMemAlloc);
	if (!ptr || !size)
		return nccl_fault(ncclInvalidArgument, "no place for memory, or 0 bytes of it");
	status = vcuda_front_context();
	if (!status)
		status = memory_prop(&prop, &granularity);
	if (!status && size > SIZE_MAX - granularity)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!status)
		status = memory_map(
			&address, (size + granularity - 1) / granularity * granularity, &prop);
	/* A GPU without it has memory all the same. */
	if (status == CUDA_ERROR_NOT_SUPPORTED || status == CUDA_ERROR_NOT_PERMITTED)
		status = cuMemAlloc(&address, size);
	if (status)
		return nccl_fault(front_status(&nccl_front, status), "no device memory");
	*ptr = (void *)(uintptr_t)address;
	return ncclSuccess;
}

STUB_EXPORT ncclResult_t ncclMemFree(void *ptr)
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)ptr, base;
	CUresult status;
	size_t bytes;

	COUNT(ncclMemFree);
	if (!ptr)
		return ncclSuccess;
	if (cuMemRetainAllocationHandle(&memory, ptr)) {
		status = cuMemFree(at);
	} else {
		cuMemRelease(memory);
		status = cuMemGetAddressRange(&base, &bytes, at);
		if (!status && base != at)
			status = CUDA_ERROR_INVALID_VALUE;
		if (!status)
			status = cuMemUnmap(at, bytes);
		if (!status)
			status = cuMemAddressFree(at, bytes);
	}
	return status ? nccl_fault(ncclInvalidArgument, "no memory of ncclMemAlloc's")
		      : ncclSuccess;
}

SECOND(ncclMemAlloc)
SECOND(ncclMemFree)
