/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of CUDA 3.1 that tell a 32-bit address or size.  They want a context of that API,
 * which nobody can make any more; what they would have told is 0 all the same, as NVIDIA's
 * driver has it.
 */
#include "shim/driver/array/array.h"
#include "shim/driver/module/module.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/generated/cuda_hand.h"

static CUresult narrow(unsigned *first, unsigned *second)
{
	CUresult status = context_missing();

	if (first)
		*first = 0;
	if (second)
		*second = 0;
	return status ? status : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult hand_cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	return narrow(free, total);
}

CUresult hand_cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	(void)bytesize;
	return narrow(dptr, NULL);
}

CUresult hand_cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
	unsigned int WidthInBytes, unsigned int Height, unsigned int ElementSizeBytes)
{
	(void)WidthInBytes;
	(void)Height;
	(void)ElementSizeBytes;
	return narrow(dptr, pPitch);
}

CUresult hand_cuMemGetAddressRange(
	CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr)
{
	(void)dptr;
	return narrow(pbase, psize);
}

CUresult hand_cuMemHostGetDevicePointer(CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags)
{
	(void)p;
	(void)Flags;
	return narrow(pdptr, NULL);
}

CUresult hand_cuMemAllocHost(void **pp, unsigned int bytesize)
{
	(void)bytesize;
	if (pp)
		*pp = NULL;
	return narrow(NULL, NULL);
}

CUresult hand_cuModuleGetGlobal(
	CUdeviceptr_v1 *dptr, unsigned int *bytes, CUmodule hmod, const char *name)
{
	CUresult status = narrow(dptr, bytes);

	(void)name;
	return shim_object_of((uint64_t)(uintptr_t)hmod, KIND_CUmodule)
		       ? status
		       : CUDA_ERROR_INVALID_HANDLE;
}

CUresult hand_cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
	(void)pArrayDescriptor;
	return array_find((uint64_t)(uintptr_t)hArray, false) ? narrow(NULL, NULL)
							      : CUDA_ERROR_INVALID_HANDLE;
}

CUresult hand_cuArray3DGetDescriptor(
	CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
	(void)pArrayDescriptor;
	return array_find((uint64_t)(uintptr_t)hArray, false) ? narrow(NULL, NULL)
							      : CUDA_ERROR_INVALID_HANDLE;
}
