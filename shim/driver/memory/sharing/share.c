/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharing by file descriptors, which programs pass on over their own sockets.  The descriptor
 * is a sealed file in memory with the name under which the agent knows the memory, for programs
 * of the same pod on the same GPU of the same agent.
 */
#include "shim/driver/memory/sharing/share.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/driver/context/context.h"
#include "shim/driver/memory/pools/pool_file.h"
#include "shim/driver/memory/pools/pool_state.h"
#include "shim/driver/memory/sharing/sealed_file.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/generated/cuda_hand.h"

const unsigned share_handles = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static const char memory_magic[8] = "vcudaVMM", pool_magic[8] = "vcudaPOL",
		  pointer_magic[8] = "vcudaPTR";

static CUresult token_write(const struct share_token *token, int *out)
{
	int fd = sealed_file_make("vcuda", token, sizeof(*token), sizeof(*token), false,
		F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_WRITE);

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*out = fd;
	return CUDA_SUCCESS;
}

static CUresult token_read(
	void *handle, const char magic[8], struct share_token *token, int *device)
{
	int fd = (int)(uintptr_t)handle;

	/* What NVIDIA's driver says of a descriptor that is none of its own. */
	if (!sealed_file_read(fd, magic, token, sizeof(*token)))
		return CUDA_ERROR_UNKNOWN;
	for (*device = 0; *device < devices.count; ++*device)
		if (!memcmp(token->uuid, devices.at[*device].open.uuid, sizeof(token->uuid)))
			return CUDA_SUCCESS;
	return CUDA_ERROR_INVALID_DEVICE;
}

static void token_begin(struct share_token *token, const char magic[8], int device)
{
	memset(token, 0, sizeof(*token));
	memcpy(token->magic, magic, sizeof(token->magic));
	memcpy(token->uuid, devices.at[device].open.uuid, sizeof(token->uuid));
}

/* ---- named memory ---- */

CUresult hand_cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	struct share_token token;
	CUmemAllocationProp prop;
	CUresult status;
	size_t bytes;

	if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (!vmm_about(handle, &prop, &bytes) ||
		!(prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_INVALID_VALUE;
	if (vmm_export_host(handle, shareableHandle, &status))
		return status;
	token_begin(&token, memory_magic, prop.location.id);
	token.bytes = bytes;
	status = share_name(handle, token.name);
	return status ? status : token_write(&token, shareableHandle);
}

CUresult hand_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
	void *osHandle, CUmemAllocationHandleType shHandleType)
{
	struct share_token token;
	CUresult status;
	int device;

	if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	status = vmm_import_host((int)(uintptr_t)osHandle, handle);
	if (status != CUDA_ERROR_UNKNOWN)
		return status;
	status = token_read(osHandle, memory_magic, &token, &device);
	return status ? status : vmm_import(device, token.name, token.bytes, handle);
}

/* ---- pools ---- */

CUresult hand_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct share_token token;
	bool shareable, imported;
	CUresult status;
	int device;

	if (!handle_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		!pool_sharing(pool, &device, &shareable, &imported) || !shareable)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool_file_is(pool)) {
		status = pool_file_export(pool, handle_out);
	} else {
		token_begin(&token, pool_magic, device);
		share_pool_name(pool, token.name);
		status = token_write(&token, handle_out);
	}
	if (!status)
		pool_shared(pool);
	return status;
}

CUresult hand_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
	CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct share_token token;
	struct pool_place place;
	CUresult status;
	int device;

	if (!pool_out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*pool_out = NULL;
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	status = pool_file_import((int)(uintptr_t)handle, pool_out);
	if (status != CUDA_ERROR_UNKNOWN)
		return status;
	status = token_read(handle, pool_magic, &token, &device);
	if (status)
		return status;
	place = pool_place_on(device);
	return pool_import(&place, token.name, pool_out);
}

CUresult hand_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	uint8_t name[16];
	CUmemoryPool pool;

	if (!shareData_out || !pool_shares(ptr, &pool))
		return CUDA_ERROR_INVALID_VALUE;
	if (pool_file_is(pool))
		return pool_file_tell(pool, ptr, shareData_out);
	share_pool_name(pool, name);
	return share_pointer(ptr, pointer_magic, name, shareData_out);
}

CUresult hand_cuMemPoolImportPointer(
	CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	bool shareable, imported;
	uint8_t name[16];
	int device;

	if (!ptr_out || !shareData || !pool_sharing(pool, &device, &shareable, &imported))
		return CUDA_ERROR_INVALID_VALUE;
	*ptr_out = 0;
	if (!imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool_file_is(pool))
		return pool_file_open(pool, shareData, ptr_out);
	pool_imported_name(pool, name);
	return share_open_pointer(device, pointer_magic, name, shareData, ptr_out);
}
