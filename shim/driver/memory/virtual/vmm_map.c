/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name in ranges of addresses, more than once if the app wants: mapped, unmapped,
 * and what is where.  vmm_access.c has who may use it.
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
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/pinned/host.h"
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

size_t vmm_covering(size_t i, CUdeviceptr ptr, size_t size)
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
	mapped = vmm_covering(vmm_mapping_from(address), address, bytes) != 0;
	pthread_mutex_unlock(&vmm.lock);
	return mapped;
}

bool vmm_accessible(CUdeviceptr address, size_t bytes)
{
	size_t i, n;

	pthread_mutex_lock(&vmm.lock);
	i = vmm_mapping_from(address);
	n = vmm_covering(i, address, bytes);
	for (size_t k = i; k < i + n; k++)
		if (vmm.mappings[k].memory->host ||
			(!vmm.mappings[k].own && !vmm.mappings[k].peers))
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

/* [i, end) of them. */
static void mapping_remove(size_t i, size_t end)
{
	memmove(vmm.mappings + i, vmm.mappings + end,
		(vmm.mapping_count - end) * sizeof(*vmm.mappings));
	vmm.mapping_count -= end - i;
}

static CUresult post_unmap(int device, CUdeviceptr ptr, size_t size)
{
	struct session_visit visit = device_visit(device);
	CUresult status;

	status = send_vcudaVmmUnmap(device_wire(device), ptr, size);
	session_leave(visit);
	return status;
}

/* Of memory that the program's machine has; else the worker unmaps it. */
static CUresult unmap_one(const struct vmm_mapping *mapping)
{
	if (!mapping->memory->host)
		return post_unmap(mapping->device, mapping->base, mapping->size);
	vmm_host_unmap(mapping->memory->host, mapping->base, mapping->device);
	return CUDA_SUCCESS;
}

void vmm_reset(int device)
{
	size_t n = 0;

	pthread_mutex_lock(&vmm.lock);
	for (size_t i = 0; i < vmm.mapping_count; i++) {
		const struct vmm_mapping *mapping = &vmm.mappings[i];
		struct vmm_memory *m = mapping->memory;

		if ((m->host || m->device != device) && mapping->device != device) {
			vmm.mappings[n++] = *mapping;
			continue;
		}
		unmap_one(mapping);
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
	if (m->host) {
		status = vmm_host_map(m->host, ptr, device);
		if (status) {
			m->mappings--;
			mapping_remove(i, i + 1);
		}
		return status;
	}
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
	if (flags || !size || ptr + size < ptr || !memory_reserved(ptr, &range) ||
		ptr + size > range.base + range.bytes ||
		(ptr | size) % devices.at[range.device].open.granularity)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	m = vmm_memory_of(handle);
	i = vmm_mapping_from(ptr);
	if (!m || !m->references || size > m->size ||
		(i < vmm.mapping_count && vmm.mappings[i].base < ptr + size))
		status = CUDA_ERROR_INVALID_VALUE;
	else if (!m->host && range.device != m->device && !peer_can(range.device, m->device))
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

	if (first->memory->host) {
		status = unmap_one(first);
		first->memory->mappings--;
		vmm_memory_done(first->memory);
		++*i;
		return status;
	}
	for (; last < end && vmm.mappings[last].base == at &&
		vmm.mappings[last].device == first->device && !vmm.mappings[last].memory->host;
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

	if (!size || ptr + size < ptr || !memory_reserved(ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	/* What kernels wrote is the program's, and whoever else has the memory. */
	if (vmm_host_mappings)
		status = host_unmap_drain(ptr, size);
	if (status)
		return status;
	pthread_mutex_lock(&vmm.lock);
	i = end = vmm_mapping_from(ptr);
	for (; !status && end < vmm.mapping_count && vmm.mappings[end].base < ptr + size; end++)
		if (vmm.mappings[end].base < ptr ||
			vmm.mappings[end].base + vmm.mappings[end].size > ptr + size)
			status = CUDA_ERROR_INVALID_VALUE; /* a part of it */
	if (!status) {
		for (size_t at = i; at < end;)
			status = unmap_run(&at, end) ?: status;
		mapping_remove(i, end);
	}
	pthread_mutex_unlock(&vmm.lock);
	return status;
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
