/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: address ranges in the device's window, and memory with a name.
 * Everything is a post: addresses and names are chosen here, and cuMemCreate says out of
 * memory, from the lease.  vmm_map.c maps the memory into ranges, share.c passes it on to other
 * processes.
 */
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/memory/virtual/vmm_host.h"
#include "shim/driver/memory/virtual/vmm_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/engine/lock.h"

struct vmm vmm = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(vmm, vmm.lock, LOCK_VMM);

struct vmm_memory *vmm_memory_of(CUmemGenericAllocationHandle handle)
{
	return shim_object_of(handle, KIND_CUmemGenericAllocationHandle);
}

void vmm_memory_done(struct vmm_memory *m)
{
	struct session_visit visit;

	if (m->references || m->mappings)
		return;
	if (m->host) {
		vmm_host_free(m->host);
		shim_unmint(m->handle);
		free(m);
		return;
	}
	visit = device_visit(m->device);
	send_vcudaVmmRelease(m->handle);
	session_leave(visit);
	/* What is made next comes to the worker after this. */
	if (!m->unleased)
		memory_unlease(m->device, m->size);
	shim_unmint(m->handle);
	free(m);
}

static CUresult prop_check(const CUmemAllocationProp *prop)
{
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE && !device_of(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return prop->requestedHandleTypes & ~share_handles ? CUDA_ERROR_NOT_SUPPORTED
								   : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
		if (prop->requestedHandleTypes)
			return CUDA_ERROR_INVALID_VALUE;
		return vmm_host_served() ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if (!host_numa(prop->location.id))
			return CUDA_ERROR_INVALID_VALUE;
		return prop->requestedHandleTypes & ~share_handles || !vmm_host_served()
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static bool prop_host(const CUmemAllocationProp *prop)
{
	return prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult hand_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
	CUdeviceptr addr, unsigned long long flags)
{
	struct context *context = context_current();
	int device = context ? context->device : 0;

	if (!ptr || flags || alignment & (alignment - 1) || !size ||
		size % devices.at[device].open.granularity ||
		addr % devices.at[device].open.granularity || (alignment && addr % alignment))
		return CUDA_ERROR_INVALID_VALUE;
	/* The window decides which device's memory fits there: the current one's. */
	memory_in_window(addr, &device);
	return memory_reserve(device, size, alignment, addr, ptr);
}

CUresult hand_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE; /* unmap first */
	size_t i;

	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(ptr);
	if (i == vmm.mapping_count || vmm.mappings[i].base - ptr >= size)
		status = memory_unreserve(ptr, size);
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

/* The app's side of memory that the worker is to have: leased, with a handle. */
static CUresult memory_new(
	int device, size_t size, const CUmemAllocationProp *prop, struct vmm_memory **out)
{
	struct vmm_memory *m = calloc(1, sizeof(*m));
	CUresult status;

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->size = size;
	m->device = device;
	m->references = 1;
	m->prop = *prop;
	status = memory_lease(device, size);
	if (status) {
		free(m);
		return status;
	}
	m->handle = shim_mint(KIND_CUmemGenericAllocationHandle, m);
	if (!m->handle) {
		memory_unlease(device, size);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = m;
	return CUDA_SUCCESS;
}

/* The worker has it, or (STATUS) has not. */
static void memory_made(
	struct vmm_memory *m, CUresult status, CUmemGenericAllocationHandle *handle)
{
	if (status) {
		memory_unlease(m->device, m->size);
		shim_unmint(m->handle);
		free(m);
		return;
	}
	*handle = m->handle;
}

/* A handle for HOST, which is the caller's no more. */
static CUresult host_memory_new(struct vmm_host *host, size_t size,
	const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *handle)
{
	struct vmm_memory *m = host ? calloc(1, sizeof(*m)) : NULL;

	if (m) {
		m->size = size;
		m->references = 1;
		m->prop = *prop;
		m->host = host;
		m->handle = host->handle = shim_mint(KIND_CUmemGenericAllocationHandle, m);
		if (m->handle) {
			*handle = m->handle;
			return CUDA_SUCCESS;
		}
	}
	free(m);
	if (host)
		vmm_host_free(host);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hand_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct session_visit visit;
	struct vmm_memory *m;
	CUresult status = prop_check(prop);

	if (!handle || flags || !size || size % devices.at[0].open.granularity)
		return CUDA_ERROR_INVALID_VALUE;
	if (status)
		return status;
	if (prop_host(prop))
		return host_memory_new(vmm_host_new(size, prop), size, prop, handle);
	status = memory_new(prop->location.id, size, prop, &m);
	if (status)
		return status;
	visit = device_visit(m->device);
	status = send_vcudaVmmCreate(m->handle, device_wire(m->device),
		prop->requestedHandleTypes != 0,
		(prop->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) != 0, size);
	session_leave(visit);
	memory_made(m, status, handle);
	return status;
}

CUresult vmm_import(
	int device, const uint8_t name[16], size_t bytes, CUmemGenericAllocationHandle *handle)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	struct vmm_memory *m;
	CUresult status;

	if (!bytes || bytes % devices.at[device].open.granularity)
		return CUDA_ERROR_INVALID_VALUE;
	status = memory_new(device, bytes, &prop, &m);
	if (status)
		return status;
	status = share_import(m->handle, device, name, bytes);
	memory_made(m, status, handle);
	return status;
}

CUresult vmm_import_host(int fd, CUmemGenericAllocationHandle *handle)
{
	struct vmm_host *host;
	CUmemAllocationProp prop;
	size_t bytes;
	CUresult status = vmm_host_import(fd, &host, &prop, &bytes);

	return status ? status : host_memory_new(host, bytes, &prop, handle);
}

bool vmm_export_host(CUmemGenericAllocationHandle handle, int *fd, CUresult *status)
{
	struct vmm_memory *m;
	bool host;

	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	host = m && m->references && m->host;
	if (host)
		*status = vmm_host_export(m->host, fd);
	pthread_mutex_unlock(&vmm.lock);
	return host;
}

uint64_t vmm_tensor_new(int device)
{
	struct vmm_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return 0;
	m->device = device;
	m->references = 1;
	m->unleased = true;
	m->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	m->handle = shim_mint(KIND_CUmemGenericAllocationHandle, m);
	if (m->handle)
		return m->handle;
	free(m);
	return 0;
}

void vmm_tensor_size(uint64_t handle, size_t bytes)
{
	struct vmm_memory *m;

	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	if (m)
		m->size = bytes;
	pthread_mutex_unlock(&vmm.lock);
}

void vmm_tensor_none(uint64_t handle)
{
	struct vmm_memory *m;

	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	if (m) {
		shim_unmint(handle);
		free(m);
	}
	pthread_mutex_unlock(&vmm.lock);
}

CUresult vmm_hold(CUmemGenericAllocationHandle handle, int device, struct vmm_memory **memory)
{
	struct vmm_memory *m;

	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	if (m && (!m->references || m->device != device ||
			 !(m->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL)))
		m = NULL;
	if (m)
		m->mappings++;
	pthread_mutex_unlock(&vmm.lock);
	*memory = m;
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void vmm_let_go(struct vmm_memory *memory)
{
	pthread_mutex_lock(&vmm.lock);
	memory->mappings--;
	vmm_memory_done(memory);
	pthread_mutex_unlock(&vmm.lock);
}

uint64_t vmm_handle(const struct vmm_memory *memory)
{
	return memory->handle;
}

bool vmm_about(CUmemGenericAllocationHandle handle, CUmemAllocationProp *prop, size_t *bytes)
{
	struct vmm_memory *m;

	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	if (m && !m->references)
		m = NULL;
	if (m) {
		*prop = m->prop;
		*bytes = m->size;
	}
	pthread_mutex_unlock(&vmm.lock);
	return m != NULL;
}

CUresult hand_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *m;
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	if (!m || !m->references) {
		status = CUDA_ERROR_INVALID_VALUE;
	} else {
		m->references--;
		vmm_memory_done(m);
	}
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

CUresult hand_cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	/* It is the same everywhere, and NVIDIA's driver does not look where that is. */
	if (!granularity || !prop || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity =
		devices.at[!prop_host(prop) && device_of(prop->location.id) ? prop->location.id
									    : 0]
			.open.granularity;
	return CUDA_SUCCESS;
}

CUresult hand_cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *m = vmm_memory_of(handle);

	if (!prop || !m)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = m->prop;
	return CUDA_SUCCESS;
}
