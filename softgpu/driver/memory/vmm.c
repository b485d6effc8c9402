/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: physical memory is a stretch of one sparse memory file, so that it
 * can be mapped at several addresses; what is released has its pages punched out, so that it
 * reads as zeroes to the next owner.
 */
#include "softgpu/driver/memory/vmm_core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Offsets are handed out in the file; it is far larger than any device, so never fragmented. */
#define FILE_SIZE ((uint64_t)1 << 45)

/* Under memory_lock. */
int soft_memory_file = -1;
static struct ranges file_ranges;

static bool file_open(void)
{
	if (soft_memory_file >= 0)
		return true;
	soft_memory_file = memfd_create("vcuda-softgpu", MFD_CLOEXEC);
	if (soft_memory_file >= 0 && ftruncate(soft_memory_file, (off_t)FILE_SIZE) == 0)
		return true;
	soft_log_problem("memory file: %s", strerror(errno));
	if (soft_memory_file >= 0)
		close(soft_memory_file);
	soft_memory_file = -1;
	return false;
}

static CUresult prop_check(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: break;
	case CU_MEM_LOCATION_TYPE_HOST:
		return prop->requestedHandleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	/* One node, whatever the machine has. */
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if (prop->location.id)
			return CUDA_ERROR_INVALID_VALUE;
		return prop->requestedHandleTypes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (!device_get(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return prop->requestedHandleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	CUresult ret = vmm_initialised();

	if (!ret)
		ret = prop_check(prop);
	if (ret)
		return ret;
	if (!granularity || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
				    option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GRANULE;
	return CUDA_SUCCESS;
}

/* ---- addresses ---- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
	unsigned long long flags)
{
	uint64_t base = memory_window.base, end = base + memory_window.span, at = 0;
	struct block *block;
	CUresult ret = vmm_initialised();

	if (ret)
		return ret;
	if (!ptr || !size || !vmm_granular(size) || flags || (alignment & (alignment - 1)) ||
		!vmm_granular(addr))
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULE)
		alignment = GRANULE;
	block = calloc(1, sizeof(*block));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->kind = BLOCK_RESERVATION;
	block->size = block->span = size;
	pthread_rwlock_wrlock(&memory_lock);
	/* A wish is granted where the place is free, as on a GPU; it is no more than a wish. */
	if (addr > base && memory_in_window(addr) && size <= end - addr &&
		addr % alignment == 0 && ranges_free(&memory_blocks, addr, size))
		at = addr;
	/* Own choices from the upper half: below is for allocations and for those who name one.
	 */
	if (!at)
		at = ranges_gap(
			&memory_blocks, size, alignment, base + memory_window.span / 2, end);
	if (!at)
		at = ranges_gap(&memory_blocks, size, alignment, base + GRANULE, end);
	block->start = at;
	if (!at || !ranges_insert(&memory_blocks, at, size, block)) {
		free(block);
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		*ptr = at;
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct range *range;
	struct block *block;
	CUresult ret = vmm_initialised();

	if (ret)
		return ret;
	pthread_rwlock_wrlock(&memory_lock);
	range = ranges_find(&memory_blocks, ptr);
	block = range ? range->owner : NULL;
	if (!block || block->kind != BLOCK_RESERVATION || block->start != ptr ||
		block->size != size || vmm_mapped_anywhere(ptr, size)) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		ranges_remove(&memory_blocks, ptr);
		free(block);
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

/* ---- physical memory ---- */

void soft_physical_unref(struct physical *physical)
{
	if (--physical->refs)
		return;
	if (physical->own_file >= 0) {
		/* Who else has it keeps the memory. */
		close(physical->own_file);
	} else {
		fallocate(soft_memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)physical->offset, (off_t)physical->size);
		ranges_remove(&file_ranges, physical->offset);
	}
	if (physical->device)
		memory_uncharge(physical->device, physical->size);
	free(physical);
}

struct physical *soft_physical_of(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = vmm_pointer(handle);

	return object_is(physical, OBJECT_PHYSICAL) ? physical : NULL;
}

/* memory_lock held for writing. FILE: an imported one, or -1. */
static CUresult physical_place(struct physical *physical, int file)
{
	bool shared = file >= 0 || physical->prop.requestedHandleTypes;

	physical->own_file = -1;
	if ((!shared && !file_open()) ||
		(physical->device && !memory_charge(physical->device, physical->size)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (shared) {
		physical->own_file =
			file >= 0 ? file : memfd_create("vcuda-softgpu-shared", MFD_CLOEXEC);
		if (physical->own_file >= 0 &&
			(file >= 0 || !ftruncate(physical->own_file, (off_t)physical->size)) &&
			object_add(physical, OBJECT_PHYSICAL))
			return CUDA_SUCCESS;
		if (file < 0 && physical->own_file >= 0)
			close(physical->own_file);
	} else {
		physical->offset =
			ranges_gap(&file_ranges, physical->size, GRANULE, GRANULE, FILE_SIZE);
		if (physical->offset &&
			ranges_insert(
				&file_ranges, physical->offset, physical->size, physical) &&
			object_add(physical, OBJECT_PHYSICAL))
			return CUDA_SUCCESS;
		ranges_remove(&file_ranges, physical->offset);
	}
	if (physical->device)
		memory_uncharge(physical->device, physical->size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult physical_new(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, int file)
{
	struct physical *physical = calloc(1, sizeof(*physical));
	CUresult ret;

	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		physical->device = device_get(prop->location.id);
	physical->size = size;
	physical->refs = physical->handles = 1;
	physical->prop = *prop;
	pthread_rwlock_wrlock(&memory_lock);
	ret = physical_place(physical, file);
	pthread_rwlock_unlock(&memory_lock);
	if (ret)
		free(physical);
	else
		*handle = (uintptr_t)physical;
	return ret;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult ret = vmm_initialised();

	if (!ret)
		ret = prop_check(prop);
	if (ret)
		return ret;
	if (!handle || !size || !vmm_granular(size) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return physical_new(handle, size, prop, -1);
}

/* ---- shared with other processes, by descriptor ---- */

CUresult cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	struct physical *physical;
	CUresult ret = vmm_initialised();
	int file = -1;

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	physical = soft_physical_of(handle);
	if (!shareableHandle || !physical || flags ||
		handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
		physical->own_file < 0)
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		file = fcntl(physical->own_file, F_DUPFD_CLOEXEC, 0);
	pthread_rwlock_unlock(&memory_lock);
	if (!ret && file < 0)
		ret = CUDA_ERROR_OPERATING_SYSTEM;
	if (!ret)
		*(int *)shareableHandle = file;
	return ret;
}

/* On the current context's device, which the descriptor does not say. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
	CUmemAllocationHandleType shHandleType)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	};
	CUdevice device;
	CUresult ret = cuCtxGetDevice(&device);
	off_t size;
	int file;

	if (ret)
		return ret;
	if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	file = fcntl((int)(intptr_t)osHandle, F_DUPFD_CLOEXEC, 0);
	if (file < 0 && errno != EBADF)
		return CUDA_ERROR_OUT_OF_MEMORY; /* the process has no descriptor left */
	size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
	if (size <= 0 || !vmm_granular((uint64_t)size)) {
		if (file >= 0)
			close(file);
		return CUDA_ERROR_INVALID_VALUE;
	}
	prop.location.id = device;
	ret = physical_new(handle, (size_t)size, &prop, file);
	if (ret)
		close(file);
	return ret;
}

/* The memory itself lives on while it is mapped. */
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	CUresult ret = vmm_initialised();

	if (ret)
		return ret;
	pthread_rwlock_wrlock(&memory_lock);
	physical = soft_physical_of(handle);
	if (!physical) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		if (--physical->handles == 0)
			object_remove(physical);
		soft_physical_unref(physical);
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct range *range;
	CUresult ret = vmm_initialised();

	if (ret)
		return ret;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&memory_lock);
	range = ranges_find(&memory_mappings, (uintptr_t)addr);
	if (!range) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		struct physical *physical = ((struct mapping *)range->owner)->physical;

		if (physical->handles == 0 && !object_add(physical, OBJECT_PHYSICAL)) {
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			physical->handles++;
			physical->refs++;
			*handle = (uintptr_t)physical;
		}
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	CUresult ret = vmm_initialised();

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	physical = soft_physical_of(handle);
	if (!prop || !physical)
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		*prop = physical->prop;
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}
