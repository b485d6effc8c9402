/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may use what is mapped (vmm_map.c).  The worker maps for the device whose window it is
 * in, read and write, and lets that one do less, and other devices read or write, when it is
 * told so; of memory of the program's machine pinned/ tells it, once kernels reach it.
 */
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/memory/virtual/vmm_host.h"
#include "shim/driver/memory/virtual/vmm_state.h"
#include <pthread.h>
#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/engine/engine.h"

/* A device in its own window may have less than all where the worker knows of it; others reach
 * the memory if they reach its device. */
static CUresult access_check(const CUmemAccessDesc *desc, const struct vmm_mapping *mapping)
{
	bool own = desc->location.id == mapping->device;
	int where = mapping->memory->device;

	if (desc->location.type < CU_MEM_LOCATION_TYPE_DEVICE ||
		desc->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA ||
		(desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			!device_of(desc->location.id)) ||
		(desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
			desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
		return CUDA_ERROR_INVALID_VALUE;
	/* Also by a node to memory of none, and by one that there is not, as natively. */
	if (mapping->memory->host)
		return CUDA_SUCCESS;
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (own)
		return desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
				       devices.info.features & OPEN_FEATURE_ACCESS
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_SUPPORTED;
	return desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || desc->location.id == where ||
			       peer_can(desc->location.id, where)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

static CUmemAccess_flags peer_has(const struct vmm_mapping *mapping, CUdevice by)
{
	if (!(mapping->peers >> by & 1))
		return CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return mapping->readers >> by & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ
					  : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/* A device's, as told; what it is at the worker is pinned/'s to know. */
static void access_note(struct vmm_mapping *mapping, CUdevice by, CUmemAccess_flags flags)
{
	const uint64_t bit = 1ull << by;

	if (by == mapping->device) {
		mapping->own = mapping->worker = flags;
		return;
	}
	mapping->peers &= ~bit;
	mapping->readers &= ~bit;
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		mapping->peers |= bit;
	if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
		mapping->readers |= bit;
}

/* Of memory of the program's machine. */
static CUresult host_access_set(struct vmm_mapping *mapping, const CUmemAccessDesc *desc)
{
	const uint64_t own = 1ull << mapping->device;
	struct vmm_access access;

	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		mapping->host = desc->flags;
	else
		access_note(mapping, desc->location.id, desc->flags);
	access = (struct vmm_access){
		.readers = mapping->peers,
		.writers = mapping->peers & ~mapping->readers,
		.host = mapping->host != CU_MEM_ACCESS_FLAGS_PROT_NONE,
	};
	if (mapping->own != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		access.readers |= own;
	if (mapping->own == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		access.writers |= own;
	return host_map_access(mapping->base, access);
}

/* With the lock held, and DESC checked. */
static CUresult access_set(struct vmm_mapping *mapping, const CUmemAccessDesc *desc)
{
	CUdevice by = desc->location.id;
	CUresult status = CUDA_SUCCESS;

	if (mapping->memory->host)
		return host_access_set(mapping, desc);
	if (desc->flags != (by == mapping->device ? mapping->worker : peer_has(mapping, by)))
		status = peer_mapping(
			mapping->device, mapping->base, mapping->size, by, desc->flags);
	if (!status)
		access_note(mapping, by, desc->flags);
	return status;
}

/* How many mappings from the I-th on make up [ptr, ptr + size), each as a whole; 0: they do
 * not. It does not matter what is not mapped between them, as natively. */
static size_t whole_mappings(size_t i, CUdeviceptr ptr, size_t size)
{
	CUdeviceptr end = 0;
	size_t n = 0;

	if (i == vmm.mapping_count || vmm.mappings[i].base != ptr)
		return 0;
	for (; i + n < vmm.mapping_count && vmm.mappings[i + n].base < ptr + size; n++)
		end = vmm.mappings[i + n].base + vmm.mappings[i + n].size;
	return end == ptr + size ? n : 0;
}

CUresult hand_cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult status = CUDA_SUCCESS;
	struct memory_range range;
	bool reserved;
	size_t i, n;

	if (!desc || !count || !size || ptr + size < ptr)
		return CUDA_ERROR_INVALID_VALUE;
	/* As a whole: where nothing is mapped it is part of it too. */
	reserved = memory_reserved(ptr, &range) && ptr + size <= range.base + range.bytes;
	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(ptr);
	n = whole_mappings(i, ptr, size);
	if (!n || (!reserved && !vmm_covering(i, ptr, size)))
		status = CUDA_ERROR_INVALID_VALUE;
	for (size_t k = 0; !status && k < count; k++)
		for (size_t m = i; !status && m < i + n; m++)
			status = access_check(&desc[k], &vmm.mappings[m]);
	for (size_t k = 0; !status && k < count; k++)
		for (size_t m = i; !status && m < i + n; m++)
			status = access_set(&vmm.mappings[m], &desc[k]);
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

/* What a device, or the host (-1), has been let to do with the mapping there; false: nothing is
 * mapped. */
static bool mapping_access(CUdeviceptr ptr, int device, unsigned long long *flags)
{
	size_t i;
	bool mapped;

	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(ptr);
	mapped = i < vmm.mapping_count && vmm.mappings[i].base <= ptr;
	if (mapped && device >= 0)
		*flags = vmm.mappings[i].device == device ? vmm.mappings[i].own
							  : peer_has(&vmm.mappings[i], device);
	else if (mapped)
		*flags = vmm.mappings[i].host;
	pthread_mutex_unlock(&vmm.lock);
	return mapped;
}

CUresult hand_cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct memory_range range;
	bool on_host;

	if (!flags || !location || !ptr)
		return CUDA_ERROR_INVALID_VALUE;
	on_host = location->type == CU_MEM_LOCATION_TYPE_HOST ||
		  location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
	if (!on_host &&
		(location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_of(location->id)))
		return CUDA_ERROR_INVALID_DEVICE;
	/* Of memory that nobody has set it for NVIDIA's driver answers none. */
	*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	if (!memory_reserved(ptr, &range))
		return memory_find(ptr, &range) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return mapping_access(ptr, on_host ? -1 : location->id, flags)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}
