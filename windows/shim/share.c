/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory cannot be passed on: the handles of Windows are not served, and descriptors are none.
 */
#include "shim/driver/memory/pools/pool_file.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/generated/cuda_hand.h"

const unsigned share_handles;

bool pool_file_make(struct pool *pool)
{
	(void)pool;
	return false;
}

CUresult pool_file_get(struct pool_piece *piece)
{
	(void)piece;
	return CUDA_ERROR_NOT_SUPPORTED;
}

void pool_file_put(const struct pool_piece *piece)
{
	(void)piece;
}

void pool_file_leave(struct pool *pool)
{
	(void)pool;
}

CUresult hand_cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	(void)shareableHandle, (void)handle, (void)handleType, (void)flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	(void)handle, (void)osHandle, (void)shHandleType;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	(void)handle_out, (void)pool, (void)handleType, (void)flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	(void)pool_out, (void)handle, (void)handleType, (void)flags;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	(void)shareData_out, (void)ptr;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_cuMemPoolImportPointer(
	CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	(void)ptr_out, (void)pool, (void)shareData;
	return CUDA_ERROR_NOT_SUPPORTED;
}
