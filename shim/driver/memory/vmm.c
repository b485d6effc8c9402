/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: address ranges in the device's window, and memory with a name,
 * which can be mapped into them again, and more than once.  Everything is a post:
 * addresses and names are chosen here, and out of memory is told by cuMemCreate, from the
 * lease.  The worker maps for the memory's own device, read and write, and lets other devices
 * to a mapping when it is told so.  share.c passes it on to
 * other processes.
 */
#include "shim/driver/memory/vmm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/peer.h"
#include "shim/engine/lock.h"

struct vmm_memory {
	uint64_t handle;
	size_t size;
	int device;
	unsigned references; /* the app's: create, retain */
	unsigned mappings;
	bool unleased; /* a tensor's */
	CUmemAllocationProp prop;
};

struct vmm_mapping {
	CUdeviceptr base;
	size_t size;
	struct vmm_memory *memory;
	int device;	 /* whose window it is in */
	bool accessible; /* to that one: the app has said so; the worker's mapping is anyway */
	uint64_t peers;	 /* other devices that have access, a bit for each CUdevice */
};

static struct {
	pthread_mutex_t lock;
	struct vmm_mapping *mappings; /* by address */
	size_t mapping_count, mapping_room;
} vmm = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(vmm, vmm.lock, LOCK_VMM);

static struct vmm_memory *memory_of(CUmemGenericAllocationHandle handle)
{
	return shim_object_of(handle, KIND_CUmemGenericAllocationHandle);
}

/* The first mapping that ends behind ADDRESS. */
static size_t mapping_from(CUdeviceptr address)
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
	size_t i = mapping_from(address);

	return i < vmm.mapping_count && vmm.mappings[i].base <= address ? vmm.mappings[i].memory
									: NULL;
}

/* The mappings from the I-th on that cover [ptr, ptr + size) without a gap; 0: they do not.
 * WHOLE: and reach no further. */
static size_t covering(size_t i, CUdeviceptr ptr, size_t size, bool whole)
{
	CUdeviceptr at = ptr;
	size_t n = 0;

	for (; i + n < vmm.mapping_count && at < ptr + size; n++) {
		const struct vmm_mapping *m = &vmm.mappings[i + n];

		if (m->base > at || (whole && (m->base < at || m->base + m->size > ptr + size)))
			return 0;
		at = m->base + m->size;
	}
	return at >= ptr + size ? n : 0;
}

bool vmm_mapped(CUdeviceptr address, size_t bytes)
{
	bool mapped;

	pthread_mutex_lock(&vmm.lock);
	mapped = covering(mapping_from(address), address, bytes, false) != 0;
	pthread_mutex_unlock(&vmm.lock);
	return mapped;
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

/* With the lock held. */
static void memory_done(struct vmm_memory *m)
{
	struct session_visit visit;

	if (m->references || m->mappings)
		return;
	visit = device_visit(m->device);
	send_vcudaVmmRelease(m->handle);
	session_leave(visit);
	/* What is made next comes to the worker after this. */
	if (!m->unleased)
		memory_unlease(m->device, m->size);
	shim_unmint(m->handle);
	free(m);
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
		memory_done(m);
	}
	vmm.mapping_count = n;
	pthread_mutex_unlock(&vmm.lock);
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
		return prop->requestedHandleTypes &
				       ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
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
	i = mapping_from(ptr);
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
	m = memory_of(handle);
	if (m)
		m->size = bytes;
	pthread_mutex_unlock(&vmm.lock);
}

void vmm_tensor_none(uint64_t handle)
{
	struct vmm_memory *m;

	pthread_mutex_lock(&vmm.lock);
	m = memory_of(handle);
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
	m = memory_of(handle);
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
	memory_done(memory);
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
	m = memory_of(handle);
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
	m = memory_of(handle);
	if (!m || !m->references) {
		status = CUDA_ERROR_INVALID_VALUE;
	} else {
		m->references--;
		memory_done(m);
	}
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

/* With the lock held, and everything checked. */
static CUresult map(CUdeviceptr ptr, size_t size, struct vmm_memory *m, int device, size_t i)
{
	struct session_visit visit;
	CUresult status;

	if (!mapping_insert(i, &(struct vmm_mapping){ptr, size, m, device, false, 0}))
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

	if (!flags && offset && memory_of(handle))
		return CUDA_ERROR_NOT_SUPPORTED; /* as natively, wherever it is to be */
	if (flags || !size || ptr + size < ptr || !memory_find(ptr, &range) ||
		!range.reserved || ptr + size > range.base + range.bytes ||
		(ptr | size) % devices.at[range.device].open.granularity)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	m = memory_of(handle);
	i = mapping_from(ptr);
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

/* One or more whole mappings, or a part of a reservation where nothing is mapped. */
CUresult hand_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct memory_range range;
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	size_t i, n;

	if (!size || ptr + size < ptr || !memory_find(ptr, &range) || !range.reserved)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	i = mapping_from(ptr);
	n = covering(i, ptr, size, true);
	if ((i == vmm.mapping_count || vmm.mappings[i].base >= ptr + size) &&
		ptr + size <= range.base + range.bytes)
		status = CUDA_SUCCESS;
	if (n) {
		status = post_unmap(vmm.mappings[i].device, ptr, size);
		for (size_t k = i; k < i + n; k++) {
			vmm.mappings[k].memory->mappings--;
			memory_done(vmm.mappings[k].memory);
		}
		vmm.mapping_count -= n;
		memmove(vmm.mappings + i, vmm.mappings + i + n,
			(vmm.mapping_count - i) * sizeof(*vmm.mappings));
	}
	pthread_mutex_unlock(&vmm.lock);
	return status;
}

/* Mapped is readable and writable for the device whose window it is in; others can be let to
 * the same. */
static CUresult access_check(const CUmemAccessDesc *desc, const struct vmm_mapping *mapping)
{
	bool own = desc->location.id == mapping->device;
	int where = mapping->memory->device;

	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!device_of(desc->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return own || desc->location.id == where || peer_can(desc->location.id, where)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_SUPPORTED;
	return !own && desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? CUDA_SUCCESS
								    : CUDA_ERROR_NOT_SUPPORTED;
}

/* With the lock held, and DESC checked. */
static CUresult access_set(struct vmm_mapping *mapping, const CUmemAccessDesc *desc)
{
	CUdevice by = desc->location.id;
	uint64_t bit = 1ull << by;
	CUresult status;

	if (by == mapping->device) {
		mapping->accessible = true;
		return CUDA_SUCCESS;
	}
	if (desc->flags == (mapping->peers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						 : CU_MEM_ACCESS_FLAGS_PROT_NONE))
		return CUDA_SUCCESS;
	status = peer_mapping(mapping->device, mapping->base, mapping->size, by, desc->flags);
	if (!status)
		mapping->peers ^= bit;
	return status;
}

CUresult hand_cuMemSetAccess(
	CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult status = CUDA_SUCCESS;
	size_t i, n;

	if (!desc || !count || !size || ptr + size < ptr)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&vmm.lock);
	i = mapping_from(ptr);
	n = covering(i, ptr, size, false);
	if (!n)
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

/* Whether a device, or the host (-1), has been let to the mapping there; false: nothing is
 * mapped. */
static bool mapping_access(CUdeviceptr ptr, int device, unsigned long long *flags)
{
	size_t i;
	bool mapped;

	pthread_mutex_lock(&vmm.lock);
	i = mapping_from(ptr);
	mapped = i < vmm.mapping_count && vmm.mappings[i].base <= ptr;
	if (mapped && (vmm.mappings[i].device == device
				      ? vmm.mappings[i].accessible
				      : device >= 0 && vmm.mappings[i].peers >> device & 1))
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
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

CUresult hand_cuMemGetAllocationGranularity(size_t *granularity,
	const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	/* It is the same everywhere, and NVIDIA's driver does not look where that is. */
	if (!granularity || !prop || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = devices.at[device_of(prop->location.id) ? prop->location.id : 0]
			       .open.granularity;
	return CUDA_SUCCESS;
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
	pthread_mutex_lock(&vmm.lock);
	m = mapped_at((CUdeviceptr)(uintptr_t)addr);
	if (m) {
		m->references++;
		*handle = m->handle;
	}
	pthread_mutex_unlock(&vmm.lock);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
