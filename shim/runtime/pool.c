/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered allocation and memory pools: the driver's, under the runtime's names.
 */
#include "shim/runtime/runtime.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps) &&
		       offsetof(struct cudaMemPoolProps, maxSize) ==
			       offsetof(CUmemPoolProps, maxSize) &&
		       offsetof(struct cudaMemPoolProps, location) ==
			       offsetof(CUmemPoolProps, location),
	"pool properties");
_Static_assert(
	sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "access description");
_Static_assert(
	(int)cudaMemPoolAttrUsedMemHigh == CU_MEMPOOL_ATTR_USED_MEM_HIGH, "pool attributes");

cudaError_t hand_cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
	CUdeviceptr address = 0;
	cudaError_t error;

	if (!devPtr)
		return cudaErrorInvalidValue;
	error = runtime_enter_for(hStream);
	if (!error)
		error = runtime_status(cuMemAllocAsync(&address, size, (CUstream)hStream));
	*devPtr = (void *)address; /* NULL where it failed, as natively */
	return error;
}

cudaError_t hand_cudaMallocFromPoolAsync(
	void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
	CUdeviceptr address = 0;
	cudaError_t error;

	if (!ptr)
		return cudaErrorInvalidValue;
	error = runtime_enter_for(stream);
	if (!error)
		error = runtime_status(cuMemAllocFromPoolAsync(
			&address, size, (CUmemoryPool)memPool, (CUstream)stream));
	*ptr = (void *)address;
	return error;
}

cudaError_t hand_cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
	cudaError_t error = runtime_enter_for(hStream);

	return error ?: runtime_status(cuMemFreeAsync((CUdeviceptr)devPtr, (CUstream)hStream));
}
