/* SPDX-License-Identifier: Apache-2.0
 *
 * Device and pinned host memory, and what a pointer is.  The driver allocates; the runtime's
 * own are the cases of size 0 and NULL, and pointers that CUDA has never heard of.
 */
#include "shim/runtime/runtime.h"

cudaError_t hand_cudaMalloc(void **devPtr, size_t size)
{
	CUdeviceptr address = 0;
	cudaError_t error;

	if (!devPtr)
		return cudaErrorInvalidValue;
	error = runtime_enter();
	if (!error && size)
		error = runtime_status(cuMemAlloc(&address, size));
	*devPtr = (void *)address; /* NULL where it failed, as natively */
	return error;
}

cudaError_t hand_cudaFree(void *devPtr)
{
	cudaError_t error = runtime_enter();

	if (error)
		return error;
	/* Programs ask by it whether the device still serves: any call that a fault stops. */
	return runtime_status(devPtr ? cuMemFree((CUdeviceptr)devPtr)
				     : cuCtxGetStreamPriorityRange(NULL, NULL));
}

#define PITCH_UNIT 512u /* cuMemAllocPitch's, on every device */

/* 4: the runtime does not know the element size; the pitch is a multiple of the device's
 * alignment anyway. */
static cudaError_t pitched(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	CUdeviceptr address = 0;
	cudaError_t error = runtime_enter();

	*pitch = 0;
	if (!error && width && height)
		error = runtime_status(cuMemAllocPitch(&address, pitch, width, height, 4));
	if (error == cudaErrorStreamCaptureUnsupported)
		*pitch = (width + PITCH_UNIT - 1) / PITCH_UNIT *
			 PITCH_UNIT; /* told all the same */
	if (!error || error == cudaErrorStreamCaptureUnsupported)
		*devPtr = (void *)address;
	return error;
}

cudaError_t hand_cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
	return devPtr && pitch ? pitched(devPtr, pitch, width, height) : cudaErrorInvalidValue;
}

cudaError_t hand_cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
	size_t rows;
	cudaError_t error;

	if (!pitchedDevPtr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudaErrorInvalidValue;
	error = pitched(&pitchedDevPtr->ptr, &pitchedDevPtr->pitch, extent.width, rows);
	if (!error) {
		pitchedDevPtr->xsize = extent.width;
		pitchedDevPtr->ysize = extent.height;
	}
	return error;
}

_Static_assert(cudaHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE &&
		       cudaHostAllocMapped == CU_MEMHOSTALLOC_DEVICEMAP &&
		       cudaHostAllocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED,
	"host allocation flags");
_Static_assert(cudaHostRegisterMapped == CU_MEMHOSTREGISTER_DEVICEMAP &&
		       cudaHostRegisterReadOnly == CU_MEMHOSTREGISTER_READ_ONLY,
	"host registration flags");

cudaError_t hand_cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
	cudaError_t error;

	error = runtime_enter();
	if (error)
		return error;
	if (pHost)
		*pHost = NULL;
	return size || !pHost ? runtime_status(cuMemHostAlloc(pHost, size, flags))
			      : cudaSuccess;
}

cudaError_t hand_cudaFreeHost(void *ptr)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuMemFreeHost(ptr));
}

cudaError_t hand_cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
	CUdeviceptr address;
	cudaError_t error;

	if (!pDevice || !pHost)
		return cudaErrorInvalidValue;
	error = runtime_enter();
	*pDevice = NULL;
	if (!error)
		error = runtime_status(cuMemHostGetDevicePointer(&address, pHost, flags));
	if (!error)
		*pDevice = (void *)address;
	return error;
}

cudaError_t hand_cudaPointerGetAttributes(
	struct cudaPointerAttributes *attributes, const void *ptr)
{
	CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED};
	unsigned type = 0;
	int ordinal = cudaInvalidDeviceId;
	CUdeviceptr device = 0;
	void *host = NULL;
	unsigned managed = 0;
	void *answers[] = {&type, &ordinal, &device, &host, &managed};
	CUresult status;
	cudaError_t error;

	if (!attributes)
		return cudaErrorInvalidValue;
	error = runtime_init();
	if (error)
		return error;

	*attributes = (struct cudaPointerAttributes){
		.type = cudaMemoryTypeUnregistered,
		.device = cudaInvalidDeviceId,
		.hostPointer = (void *)ptr,
	};
	status = cuPointerGetAttributes(
		sizeof(asked) / sizeof(asked[0]), asked, answers, (CUdeviceptr)ptr);
	/* Unknown to CUDA: zeroes from one driver, "invalid value" from another; to the runtime
	 * it is plain host memory and no error. */
	if (status == CUDA_ERROR_INVALID_VALUE || (!status && !type))
		return cudaSuccess;
	if (status)
		return runtime_status(status);

	attributes->type = managed & 1			? cudaMemoryTypeManaged
			   : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
							: cudaMemoryTypeDevice;
	attributes->device = ordinal;
	attributes->devicePointer = (void *)device;
	attributes->hostPointer = host;
	return cudaSuccess;
}
