/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: address ranges in the device's window, memory that is named before
 * it has a place.  Such memory comes into being when it is mapped (vcudaMemMap puts fresh
 * memory there), so it can be mapped once at a time and only as a whole, and what it held is
 * gone when it is unmapped: CUDA keeps it as long as the handle lives.  What needs that is
 * refused.  A handle may ask to be shareable (PyTorch's allocator does); sharing it is refused.
 */
#include <pthread.h>
#include <stdlib.h>

#include "protocol/generated/cuda_hand.h"
#include "shim/context.h"
#include "shim/engine.h"
#include "shim/handle.h"
#include "shim/memory.h"

struct vmm_memory {
	uint64_t handle;
	size_t size;
	int device;
	unsigned references; /* the app's: create, retain */
	CUdeviceptr mapped;  /* 0: nowhere */
	bool was_mapped;     /* a second time would show other contents */
	CUmemAllocationProp prop;
	struct vmm_memory *next; /* of the mapped ones */
};

static pthread_mutex_t vmm_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vmm_memory *mapped;

static struct vmm_memory *memory_of(CUmemGenericAllocationHandle handle)
{
	return shim_object_of(handle, KIND_CUmemGenericAllocationHandle);
}

static struct vmm_memory *mapped_at(CUdeviceptr address)
{
	struct vmm_memory *m = mapped;

	while (m && address - m->mapped >= m->size)
		m = m->next;
	return m;
}

static CUresult prop_check(const CUmemAllocationProp *prop)
{
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
		prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		prop->requestedHandleTypes &
			~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return device_of(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult hand_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
	CUdeviceptr addr, unsigned long long flags)
{
	struct context *context = context_current();
	int device = context ? context->device : 0;
	CUresult status;

	if (!ptr || flags || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment > devices[device].open.granularity)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* The window decides which device's memory fits there: the current one's. */
	memory_in_window(addr, &device);
	status = memory_reserve(device, size, addr, ptr);
	return status;
}

CUresult hand_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&vmm_lock);
	for (struct vmm_memory *m = mapped; m; m = m->next)
		if (m->mapped - ptr < size)
			status = CUDA_ERROR_INVALID_VALUE; /* unmap first */
	pthread_mutex_unlock(&vmm_lock);
	return status ? status : memory_unreserve(ptr, size);
}

CUresult hand_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct vmm_memory *m;
	CUresult status = prop_check(prop);

	if (!handle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (status)
		return status;
	if (!size || size % devices[prop->location.id].open.granularity)
		return CUDA_ERROR_INVALID_VALUE;
	/* PyTorch expects to be told here, not by cuMemMap. */
	status = memory_promise(prop->location.id, size);
	if (status)
		return status;
	m = calloc(1, sizeof(*m));
	if (!m) {
		memory_unpromise(prop->location.id, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->size = size;
	m->device = prop->location.id;
	m->references = 1;
	m->prop = *prop;
	m->handle = shim_mint(KIND_CUmemGenericAllocationHandle, m);
	if (!m->handle) {
		memory_unpromise(m->device, size);
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*handle = m->handle;
	return CUDA_SUCCESS;
}

/* With the lock held. */
static void memory_done(struct vmm_memory *m)
{
	if (m->references || m->mapped)
		return;
	if (!m->was_mapped)
		memory_unpromise(m->device, m->size);
	shim_unmint(m->handle);
	free(m);
}

CUresult hand_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *m;
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&vmm_lock);
	m = memory_of(handle);
	if (!m || !m->references) {
		status = CUDA_ERROR_INVALID_VALUE;
	} else {
		m->references--;
		memory_done(m);
	}
	pthread_mutex_unlock(&vmm_lock);
	return status;
}

CUresult hand_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct memory_range range;
	struct vmm_memory *m;
	CUresult status;

	if (flags || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	m = memory_of(handle);
	if (!m || !memory_find(ptr, &range) || ptr + size < ptr ||
		ptr + size > range.base + range.bytes ||
		ptr % devices[range.device].open.granularity) {
		status = CUDA_ERROR_INVALID_VALUE;
	} else if (offset || size != m->size || m->mapped || m->was_mapped ||
		   range.device != m->device) {
		status = CUDA_ERROR_NOT_SUPPORTED; /* see the top of this file */
	} else {
		status = CUDA_SUCCESS;
		for (const struct vmm_memory *o = mapped; o; o = o->next)
			if (o->mapped < ptr + size && ptr < o->mapped + o->size)
				status = CUDA_ERROR_INVALID_VALUE;
		if (!status)
			status = memory_map(m->device, ptr, size);
		if (!status) {
			m->mapped = ptr;
			m->was_mapped = true;
			m->next = mapped;
			mapped = m;
		}
	}
	pthread_mutex_unlock(&vmm_lock);
	return status;
}

/* One or more whole mappings. */
CUresult hand_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult status = CUDA_SUCCESS;
	size_t covered = 0;

	if (!size || ptr + size < ptr)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	for (const struct vmm_memory *m = mapped; m; m = m->next) {
		if (m->mapped >= ptr + size || m->mapped + m->size <= ptr)
			continue;
		if (m->mapped < ptr || m->mapped + m->size > ptr + size)
			status = CUDA_ERROR_INVALID_VALUE;
		covered += m->size;
	}
	if (covered != size)
		status = CUDA_ERROR_INVALID_VALUE;
	for (struct vmm_memory **at = &mapped; !status && *at;) {
		struct vmm_memory *m = *at;

		if (m->mapped < ptr || m->mapped >= ptr + size) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		status = memory_unmap(m->mapped, m->size);
		m->mapped = 0;
		memory_done(m);
	}
	pthread_mutex_unlock(&vmm_lock);
	return status;
}

/* The worker maps for the memory's own device, read and write; nothing else can be had. */
CUresult hand_cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult status = CUDA_SUCCESS;
	const struct vmm_memory *m;

	if (!desc || !count || !size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	m = mapped_at(ptr);
	if (!m)
		status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !status && i < count; i++)
		if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			desc[i].location.id != m->device ||
			desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			status = CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_unlock(&vmm_lock);
	return status;
}

CUresult hand_cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct memory_range range;

	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
		!memory_find(ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = range.device == location->id ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
					      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

CUresult hand_cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	CUresult status = prop_check(prop);

	if (!granularity || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!status)
		*granularity = devices[prop->location.id].open.granularity;
	return status;
}

CUresult hand_cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *m = memory_of(handle);

	if (!prop || !m)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = m->prop;
	return CUDA_SUCCESS;
}

CUresult hand_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct vmm_memory *m;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm_lock);
	m = mapped_at((CUdeviceptr)(uintptr_t)addr);
	if (m) {
		m->references++;
		*handle = m->handle;
	}
	pthread_mutex_unlock(&vmm_lock);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
