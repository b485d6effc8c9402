/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name in ranges of addresses, more than once if the app wants: mapped, unmapped,
 * and who has access.  The worker maps for the device whose window it is in, read and write,
 * and lets that one do less, and other devices read or write, when it is told so.
 */
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/memory/virtual/vmm_state.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/device/peer.h"
#include "shim/engine/lock.h"

size_t vmm_mapping_from(CUdeviceptr address)
{
	size_t low = 0, high = vmm.mapping_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (vmm.mappings[middle].base + vmm.mappings[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct vmm_memory *mapped_at(CUdeviceptr address)
{
	size_t i = vmm_mapping_from(address);

	return i < vmm.mapping_count && vmm.mappings[i].base <= address ? vmm.mappings[i].memory
									: NULL;
}

/* The mappings from the I-th on that cover [ptr, ptr + size) without a gap; 0: they do not. */
static size_t covering(size_t i, CUdeviceptr ptr, size_t size)
{
	CUdeviceptr at = ptr;
	size_t n = 0;

	for (; i + n < vmm.mapping_count && at < ptr + size; n++) {
		const struct vmm_mapping *m = &vmm.mappings[i + n];

		if (m->base > at)
			return 0;
		at = m->base + m->size;
	}
	return at >= ptr + size ? n : 0;
}

bool vmm_mapped(CUdeviceptr address, size_t bytes)
{
	bool mapped;

	pthread_mutex_lock(&vmm.lock);
	mapped = covering(vmm_mapping_from(address), address, bytes) != 0;
	pthread_mutex_unlock(&vmm.lock);
	return mapped;
}

bool vmm_accessible(CUdeviceptr address, size_t bytes)
{
	size_t i, n;

	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(address);
	n = covering(i, address, bytes);
	for (size_t k = i; k < i + n; k++)
		if (!vmm.mappings[k].own && !vmm.mappings[k].peers)
			n = 0;
	pthread_mutex_unlock(&vmm.lock);
	return n != 0;
}

static bool mapping_insert(size_t i, const struct vmm_mapping *mapping)
{
	if (vmm.mapping_count == vmm.mapping_room) {
		size_t room = vmm.mapping_room ? 2 * vmm.mapping_room : 64;
		struct vmm_mapping *list = realloc(vmm.mappings, room * sizeof(*list));

		if (!list)
			return false;
		vmm.mappings = list;
		vmm.mapping_room = room;
	}
	memmove(vmm.mappings + i + 1, vmm.mappings + i,
		(vmm.mapping_count - i) * sizeof(*vmm.mappings));
	vmm.mappings[i] = *mapping;
	vmm.mapping_count++;
	return true;
}

static CUresult post_unmap(int device, CUdeviceptr ptr, size_t size)
{
	struct session_visit visit = device_visit(device);
	CUresult status;

	status = send_vcudaVmmUnmap(device_wire(device), ptr, size);
	session_leave(visit);
	return status;
}

void vmm_reset(int device)
{
	size_t n = 0;

	pthread_mutex_lock(&vmm.lock);
	for (size_t i = 0; i < vmm.mapping_count; i++) {
		const struct vmm_mapping *mapping = &vmm.mappings[i];
		struct vmm_memory *m = mapping->memory;

		if (m->device != device && mapping->device != device) {
			vmm.mappings[n++] = *mapping;
			continue;
		}
		post_unmap(mapping->device, mapping->base, mapping->size);
		m->mappings--;
		vmm_memory_done(m);
	}
	vmm.mapping_count = n;
	pthread_mutex_unlock(&vmm.lock);
}

/* With the lock held, and everything checked. */
static CUresult map(CUdeviceptr ptr, size_t size, struct vmm_memory *m, int device, size_t i)
{
	struct session_visit visit;
	CUresult status;

	const struct vmm_mapping mapping = {.base = ptr,
		.size = size,
		.memory = m,
		.device = device,
		.worker = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	if (!mapping_insert(i, &mapping))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->mappings++;
	visit = device_visit(m->device);
	status = send_vcudaVmmMap(m->handle, ptr, size);
	session_leave(visit);
	return status;
}

CUresult hand_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct memory_range range;
	struct vmm_memory *m;
	CUresult status;
	size_t i;

	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	/* A part of it, as natively, wherever it is to be. */
	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	status = !flags && m && (offset || size != m->size) ? CUDA_ERROR_NOT_SUPPORTED
							    : CUDA_SUCCESS;
	pthread_mutex_unlock(&vmm.lock);
	if (status)
		return status;
	if (flags || !size || ptr + size < ptr || !memory_find(ptr, &range) ||
		!range.reserved || ptr + size > range.base + range.bytes ||
		(ptr | size) % devices.at[range.device].open.granularity)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	i = vmm_mapping_from(ptr);
	if (!m || !m->references || size > m->size ||
		(i < vmm.mapping_count && vmm.mappings[i].base < ptr + size))
		status = CUDA_ERROR_INVALID_VALUE;
	else if (range.device != m->device && !peer_can(range.device, m->device))
		status = CUDA_ERROR_NOT_SUPPORTED; /* the window of a device without access */
	else if (offset)
		status = CUDA_ERROR_INVALID_VALUE;
	else
		status = map(ptr, size, m, range.device, i);
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

/* With the lock held: those of the mappings [i, end) that lie side by side, in one frame. */
static CUresult unmap_run(size_t *i, size_t end)
{
	struct vmm_mapping *first = &vmm.mappings[*i];
	CUdeviceptr at = first->base;
	CUresult status;
	size_t last = *i;

	for (; last < end && vmm.mappings[last].base == at &&
		vmm.mappings[last].device == first->device;
		last++)
		at += vmm.mappings[last].size;
	status = post_unmap(first->device, first->base, at - first->base);
	for (; *i < last; ++*i) {
		vmm.mappings[*i].memory->mappings--;
		vmm_memory_done(vmm.mappings[*i].memory);
	}
	return status;
}

/* Whole mappings from a reservation on; what is not mapped between and behind them does not
 * matter, as natively. */
CUresult hand_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct memory_range range;
	CUresult status = CUDA_SUCCESS;
	size_t i, end;

	if (!size || ptr + size < ptr || !memory_find(ptr, &range) || !range.reserved)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	i = end = vmm_mapping_from(ptr);
	for (; !status && end < vmm.mapping_count && vmm.mappings[end].base < ptr + size; end++)
		if (vmm.mappings[end].base < ptr ||
			vmm.mappings[end].base + vmm.mappings[end].size > ptr + size)
			status = CUDA_ERROR_INVALID_VALUE; /* a part of it */
	if (!status) {
		for (size_t at = i; at < end;)
			status = unmap_run(&at, end) ?: status;
		memmove(vmm.mappings + i, vmm.mappings + end,
			(vmm.mapping_count - end) * sizeof(*vmm.mappings));
		vmm.mapping_count -= end - i;
	}
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

/* A device in its own window may have less than all where the worker knows of it; others reach
 * the memory if they reach its device. */
static CUresult access_check(const CUmemAccessDesc *desc, const struct vmm_mapping *mapping)
{
	bool own = desc->location.id == mapping->device;
	int where = mapping->memory->device;

	if (desc->location.type < CU_MEM_LOCATION_TYPE_DEVICE ||
		desc->location.type > CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ||
		(desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
			!device_of(desc->location.id)) ||
		(desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
			desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
			desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
		return CUDA_ERROR_INVALID_VALUE;
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

/* With the lock held, and DESC checked. */
static CUresult access_set(struct vmm_mapping *mapping, const CUmemAccessDesc *desc)
{
	CUdevice by = desc->location.id;
	uint64_t bit = 1ull << by;
	CUresult status = CUDA_SUCCESS;

	if (desc->flags != (by == mapping->device ? mapping->worker : peer_has(mapping, by)))
		status = peer_mapping(
			mapping->device, mapping->base, mapping->size, by, desc->flags);
	if (status)
		return status;
	if (by == mapping->device) {
		mapping->own = mapping->worker = desc->flags;
		return CUDA_SUCCESS;
	}
	mapping->peers &= ~bit;
	mapping->readers &= ~bit;
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		mapping->peers |= bit;
	if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
		mapping->readers |= bit;
	return CUDA_SUCCESS;
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
	reserved = memory_find(ptr, &range) && range.reserved &&
		   ptr + size <= range.base + range.bytes;
	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(ptr);
	n = whole_mappings(i, ptr, size);
	if (!n || (!reserved && !covering(i, ptr, size)))
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
	if (!memory_find(ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	return !range.reserved || mapping_access(ptr, on_host ? -1 : location->id, flags)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

bool vmm_about_mapped(CUdeviceptr address, CUmemAllocationProp *prop)
{
	const struct vmm_memory *m;

	pthread_mutex_lock(&vmm.lock);
	m = mapped_at(address);
	if (m)
		*prop = m->prop;
	pthread_mutex_unlock(&vmm.lock);
	return m != NULL;
}

bool vmm_mapping_at(uint64_t address, uint64_t *base, uint64_t *bytes)
{
	const struct vmm_mapping *m;
	size_t i;

	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(address);
	m = i < vmm.mapping_count && vmm.mappings[i].base <= address ? &vmm.mappings[i] : NULL;
	if (m) {
		*base = m->base;
		*bytes = m->size;
	}
	pthread_mutex_unlock(&vmm.lock);
	return m != NULL;
}

CUresult hand_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct vmm_memory *m;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	m = mapped_at((CUdeviceptr)(uintptr_t)addr);
	if (m) {
		m->references++;
		*handle = m->handle;
	}
	pthread_mutex_unlock(&vmm.lock);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
