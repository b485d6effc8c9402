/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pointer is: answered from the tables of memory.c and host.c.
 */
#include <stdatomic.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/device/peer.h"

/* Copies that CUDA calls synchronous are ordered anyway, so SYNC_MEMOPS changes nothing here;
 * what a program has set is told, of so many allocations, the last ones. */
#define SYNC_MEMOPS_MOST 256u

static struct {
	_Atomic uint64_t at[SYNC_MEMOPS_MOST]; /* a buffer's id, which no other ever has, << 1 |
						  the value */
	_Atomic unsigned count;		       /* that were ever added */
} sync_memops;

static void sync_memops_set(uint64_t id, bool value)
{
	for (unsigned i = 0; i < SYNC_MEMOPS_MOST && i < sync_memops.count; i++) {
		uint64_t was = sync_memops.at[i];

		if (was >> 1 == id && atomic_compare_exchange_strong(
					      &sync_memops.at[i], &was, id << 1 | value))
			return;
	}
	sync_memops.at[atomic_fetch_add(&sync_memops.count, 1) % SYNC_MEMOPS_MOST] =
		id << 1 | value;
}

static bool sync_memops_get(uint64_t id, bool unset)
{
	for (unsigned i = 0; i < SYNC_MEMOPS_MOST && i < sync_memops.count; i++) {
		uint64_t is = sync_memops.at[i];

		if (is >> 1 == id)
			return is & 1;
	}
	return unset;
}

/* What is known about an address: device memory, host memory, or neither. */
struct pointer {
	bool device, host;
	bool managed; /* and device */
	bool pooled;  /* from a pool, or a graph's */
	struct memory_range range;
	struct host_range pinned;
};

static struct pointer pointer_look(CUdeviceptr ptr)
{
	struct pointer p = {0};
	struct managed_range managed;

	p.device = memory_find(ptr, &p.range);
	p.managed = managed_find(ptr, &managed);
	if (p.managed && !managed.variable) {
		p.device = true;
		p.range = (struct memory_range){.base = managed.base,
			.bytes = managed.bytes,
			.id = managed.id,
			.device = managed.context->device,
			.context = managed.context->number};
	} else if (p.device && !p.managed) {
		/* Reserved alone, or behind the end of managed memory, it is nothing. */
		p.device = p.range.reserved ? vmm_mapped(ptr, 1) : !p.range.managed;
	}
	if (!p.device)
		p.host = host_find((const void *)(uintptr_t)ptr, &p.pinned);
	p.pooled = p.managed  ? managed.pooled
		   : p.device ? p.range.async
			      : p.host && p.pinned.pooled;
	return p;
}

CUresult hand_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct pointer p = pointer_look(dptr);
	CUresult status = context_missing();

	if (pbase)
		*pbase = 0;
	if (psize)
		*psize = 0;
	if (status)
		return status;
	if (!p.device && (!p.host || p.pooled))
		return CUDA_ERROR_NOT_FOUND;
	/* In a reservation it is the mapping's. */
	if (p.device && p.range.reserved)
		(void)vmm_mapping_at(dptr, &p.range.base, &p.range.bytes);
	/* Kernels reach pinned memory at its own address. */
	if (pbase)
		*pbase = p.device ? p.range.base : (uint64_t)(uintptr_t)p.pinned.base;
	if (psize)
		*psize = p.device ? p.range.bytes : p.pinned.bytes;
	return CUDA_SUCCESS;
}

struct number_wanted {
	uint16_t number;
	uint64_t handle;
};

static void number_matches(void *object, void *argument)
{
	struct context *context = object;
	struct number_wanted *wanted = argument;

	if (context->number == wanted->number && atomic_load(&context->live))
		wanted->handle = context->handle;
}

uint64_t pointer_context_by_number(uint16_t number)
{
	struct number_wanted wanted = {number, 0};

	handle_each(KIND_CUcontext, number_matches, &wanted);
	return wanted.handle;
}

static int pointer_device(const struct pointer *p)
{
	uint16_t number;

	if (p->device)
		return p->range.device;
	number = p->pinned.context;
	return number && number <= CONTEXT_CREATED ? device_of_primary(number) : 0;
}

/* By cuMemMap. */
static bool pointer_mapped(const struct pointer *p)
{
	return p->device ? p->range.reserved : p->host && p->pinned.mapped;
}

/* Of the current context's device; mappings have only what cuMemSetAccess gave. */
static CUresult pointer_access(unsigned *flags, CUdeviceptr ptr, const struct pointer *p)
{
	struct context *context = context_current();
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.id = context ? context->device : pointer_device(p)};
	unsigned long long access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CUresult status = CUDA_SUCCESS;

	if (pointer_mapped(p))
		status = hand_cuMemGetAccess(&access, &device, ptr);
	else if (p->device && !p->managed && context && !peer_reaches(context, ptr))
		access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	if (!status)
		*flags = (unsigned)access;
	return status;
}

static CUresult pointer_attribute(
	void *data, CUpointer_attribute attribute, CUdeviceptr ptr, const struct pointer *p)
{
	uint64_t base = p->device ? p->range.base : (uint64_t)(uintptr_t)p->pinned.base;
	size_t bytes = p->device ? p->range.bytes : p->pinned.bytes;
	uint64_t granule = devices.at[pointer_device(p)].open.granularity;
	CUmemAllocationProp prop;
	bool reached;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (p->pooled || (p->host && p->pinned.mapped))
			*(CUcontext *)data = NULL;
		else
			*(CUcontext *)data = (CUcontext)(uintptr_t)pointer_context_by_number(
				p->device ? p->range.context : p->pinned.context);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = p->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		/* With unified addressing a kernel finds pinned memory at its own address, and
		 * no other device's that it has no access to. */
		reached = p->device ? p->managed || !context_current() ||
					      peer_reaches(context_current(), ptr)
				    : mirror_served();
		*(CUdeviceptr *)data = reached ? ptr : 0;
		return reached ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*(void **)data = p->host || p->managed ? (void *)(uintptr_t)ptr : NULL;
		return p->host || p->managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		/* NVIDIA's driver does not say it of a pool's. */
		*(bool *)data = p->managed && !p->pooled;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(bool *)data = p->device && !p->managed && !p->range.async &&
				!p->range.global && !p->range.reserved && !share_opened(ptr);
		return CUDA_SUCCESS;
	/* What is managed begins with it, and host memory has it not. */
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(bool *)data = p->device && sync_memops_get(p->range.id, p->managed);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*(bool *)data = false;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)data = p->device || mirror_served();
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data =
			p->device ? p->range.id << 1 : (p->pinned.id << 1 | 1);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = pointer_device(p);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(uint64_t *)data = base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)data = bytes; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)data = pointer_mapped(p) && vmm_about_mapped(ptr, &prop)
					    ? (uint64_t)prop.requestedHandleTypes
					    : 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return pointer_access(data, ptr, p);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = p->pooled ? pool_holding(base) : NULL;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = (base % granule + bytes + granule - 1) / granule * granule;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = base - base % granule;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = p->device ? p->range.id : p->pinned.id;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* NVIDIA's driver writes four bytes of these, which cuda.h calls boolean. */
static bool attribute_boolean(CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return true;
	default: return false;
	}
}

CUresult hand_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct pointer p = pointer_look(ptr);

	if (!data || (!p.device && !p.host))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute_boolean(attribute))
		memset(data, 0, sizeof(uint32_t));
	return pointer_attribute(data, attribute, ptr, &p);
}

static bool attribute_known(CUpointer_attribute attribute)
{
	return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
	       attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
}

/* The null value of an attribute, for pointers that CUDA does not know. */
static CUresult pointer_null(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(unsigned *)data = 0; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)data = -2; return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(bool *)data = false;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(uint64_t *)data = 0; return CUDA_SUCCESS;
	/* What is of no device is the program's. */
	case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(uint64_t *)data = ptr; return CUDA_SUCCESS;
	/* They have none: NVIDIA's driver leaves what is there. */
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return CUDA_SUCCESS;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult hand_cuPointerGetAttributes(unsigned int numAttributes,
	CUpointer_attribute *attributes, void **data, CUdeviceptr ptr)
{
	struct pointer p = pointer_look(ptr);

	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numAttributes; i++) {
		CUresult status;

		if (!data[i] || !attribute_known(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
		if (attribute_boolean(attributes[i]))
			memset(data[i], 0, sizeof(uint32_t));
		if (p.device || p.host)
			status = pointer_attribute(data[i], attributes[i], ptr, &p);
		else
			status = pointer_null(data[i], attributes[i], ptr);
		/* Host memory has no device pointer and so on: null, not an error here. */
		if (status && status != CUDA_ERROR_INVALID_VALUE)
			return status;
	}
	return CUDA_SUCCESS;
}

CUresult hand_cuPointerSetAttribute(
	const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct pointer p = pointer_look(ptr);
	unsigned on;

	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !p.device)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&on, value, sizeof(on));
	sync_memops_set(p.range.id, on);
	return CUDA_SUCCESS;
}
