/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name of the program's machine is not served: Windows maps a file at no address
 * that is reserved. Nobody has any, so that none of these but the first two is called.
 */
#include "shim/driver/memory/virtual/vmm_host.h"

_Atomic uint32_t vmm_host_mappings;

bool vmm_host_served(void)
{
	return false;
}

struct vmm_host *vmm_host_new(size_t bytes, const CUmemAllocationProp *prop)
{
	(void)bytes, (void)prop;
	return NULL;
}

CUresult vmm_host_import(
	int fd, struct vmm_host **memory, CUmemAllocationProp *prop, size_t *bytes)
{
	(void)fd, (void)memory, (void)prop, (void)bytes;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult vmm_host_export(const struct vmm_host *memory, int *fd)
{
	(void)memory, (void)fd;
	return CUDA_ERROR_NOT_SUPPORTED;
}

void vmm_host_free(struct vmm_host *memory)
{
	(void)memory;
}

CUresult vmm_host_map(struct vmm_host *memory, CUdeviceptr at, int device)
{
	(void)memory, (void)at, (void)device;
	return CUDA_ERROR_NOT_SUPPORTED;
}

void vmm_host_unmap(const struct vmm_host *memory, CUdeviceptr at, int device)
{
	(void)memory, (void)at, (void)device;
}

bool vmm_host_there(CUdeviceptr address)
{
	(void)address;
	return false;
}

CUresult vmm_host_reach(const struct host_piece *piece)
{
	(void)piece;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult vmm_host_let(const struct host_piece *piece, struct vmm_access access)
{
	(void)piece, (void)access;
	return CUDA_ERROR_NOT_SUPPORTED;
}

void vmm_host_leave(const struct host_piece *piece)
{
	(void)piece;
}
