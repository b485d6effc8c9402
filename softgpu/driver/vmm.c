/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: physical memory is a stretch of one sparse memory file, so that it
 * can be mapped at several addresses; what is released has its pages punched out, so that it
 * reads as zeroes to the next owner.
 */
#include "softgpu/driver/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Offsets are handed out in the file; it is far larger than any device, so never fragmented. */
#define FILE_SIZE ((uint64_t)1 << 45)

/* Under memory_lock. */
static int memory_file = -1;
static struct ranges file_ranges;

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static bool granular(uint64_t value)
{
	return value % GRANULE == 0;
}

static CUresult initialised(void)
{
	return device_initialised() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static bool file_open(void)
{
	if (memory_file >= 0)
		return true;
	memory_file = memfd_create("vcuda-softgpu", MFD_CLOEXEC);
	if (memory_file >= 0 && ftruncate(memory_file, (off_t)FILE_SIZE) == 0)
		return true;
	log_problem("memory file: %s", strerror(errno));
	if (memory_file >= 0)
		close(memory_file);
	memory_file = -1;
	return false;
}

static CUresult prop_check(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return prop->location.type == CU_MEM_LOCATION_TYPE_HOST ||
				       prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
				       prop->location.type ==
					       CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_ERROR_INVALID_VALUE;
	if (!device_get(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return prop->requestedHandleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	CUresult ret = initialised();

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
	CUresult ret = initialised();

	if (ret)
		return ret;
	if (!ptr || !size || !granular(size) || flags || (alignment & (alignment - 1)) ||
		!granular(addr))
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

static bool mapped_anywhere(uint64_t start, uint64_t size)
{
	return !ranges_free(&memory_mappings, start, size);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct range *range;
	struct block *block;
	CUresult ret = initialised();

	if (ret)
		return ret;
	pthread_rwlock_wrlock(&memory_lock);
	range = ranges_find(&memory_blocks, ptr);
	block = range ? range->owner : NULL;
	if (!block || block->kind != BLOCK_RESERVATION || block->start != ptr ||
		block->size != size || mapped_anywhere(ptr, size)) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		ranges_remove(&memory_blocks, ptr);
		free(block);
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

/* ---- physical memory ---- */

/* memory_lock held for writing. */
static void physical_unref(struct physical *physical)
{
	if (--physical->refs)
		return;
	if (physical->own_file >= 0) {
		/* Who else has it keeps the memory. */
		close(physical->own_file);
	} else {
		fallocate(memory_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)physical->offset, (off_t)physical->size);
		ranges_remove(&file_ranges, physical->offset);
	}
	memory_uncharge(physical->device, physical->size);
	free(physical);
}

static struct physical *physical_of(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = pointer(handle);

	return object_is(physical, OBJECT_PHYSICAL) ? physical : NULL;
}

/* memory_lock held for writing. FILE: an imported one, or -1. */
static CUresult physical_place(struct physical *physical, int file)
{
	bool shared = file >= 0 || physical->prop.requestedHandleTypes;

	physical->own_file = -1;
	if ((!shared && !file_open()) || !memory_charge(physical->device, physical->size))
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
	CUresult ret = initialised();

	if (!ret)
		ret = prop_check(prop);
	if (ret)
		return ret;
	if (!handle || !size || !granular(size) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return physical_new(handle, size, prop, -1);
}

/* ---- shared with other processes, by descriptor ---- */

CUresult cuMemExportToShareableHandle(void *shareableHandle,
	CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
	unsigned long long flags)
{
	struct physical *physical;
	CUresult ret = initialised();
	int file = -1;

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	physical = physical_of(handle);
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
	if (size <= 0 || !granular((uint64_t)size)) {
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
	CUresult ret = initialised();

	if (ret)
		return ret;
	pthread_rwlock_wrlock(&memory_lock);
	physical = physical_of(handle);
	if (!physical) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		if (--physical->handles == 0)
			object_remove(physical);
		physical_unref(physical);
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	struct range *range;
	CUresult ret = initialised();

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
	CUresult ret = initialised();

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	physical = physical_of(handle);
	if (!prop || !physical)
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		*prop = physical->prop;
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

/* ---- mapping ---- */

/* One reservation holds all of it. */
static bool reserved(uint64_t start, uint64_t size)
{
	struct range *range = ranges_find(&memory_blocks, start);
	struct block *block = range ? range->owner : NULL;

	return block && block->kind == BLOCK_RESERVATION &&
	       size <= block->start + block->size - start;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct mapping *mapping;
	struct physical *physical;
	CUresult ret = initialised();

	if (ret)
		return ret;
	if (!size || !granular(ptr) || !granular(size) || !granular(offset) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_rwlock_wrlock(&memory_lock);
	physical = physical_of(handle);
	if (!physical || offset > physical->size || size > physical->size - offset ||
		!reserved(ptr, size) || mapped_anywhere(ptr, size)) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		*mapping = (struct mapping){
			.start = ptr, .size = size, .physical = physical, .offset = offset};
		if (!ranges_insert(&memory_mappings, ptr, size, mapping))
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		else
			physical->refs++;
	}
	pthread_rwlock_unlock(&memory_lock);
	if (ret)
		free(mapping);
	return ret;
}

/* Whether [start, start + size) is whole mappings, one after another. */
static bool whole_mappings(uint64_t start, uint64_t size)
{
	uint64_t end;

	if (!size || __builtin_add_overflow(start, size, &end))
		return false;
	for (size_t i = ranges_at(&memory_mappings, start); start < end; i++) {
		const struct range *range = &memory_mappings.item[i];

		if (i >= memory_mappings.count || range->start != start ||
			range->size > end - start)
			return false;
		start += range->size;
	}
	return true;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult ret = initialised();

	if (ret)
		return ret;
	memory_lock_taking();
	if (!whole_mappings(ptr, size)) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else if (!memory_decommit(ptr, size)) {
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		for (uint64_t at = ptr; at < ptr + size;) {
			struct mapping *mapping = ranges_find(&memory_mappings, at)->owner;

			ranges_remove(&memory_mappings, at);
			at += mapping->size;
			physical_unref(mapping->physical);
			free(mapping);
		}
	}
	memory_unlock_taking();
	return ret;
}

/* Who of those named may read and write. */
struct access {
	uint64_t named, read, write;
	bool host_named;
	CUmemAccess_flags host;
};

static CUresult access_read(struct access *access, const CUmemAccessDesc *desc)
{
	uint64_t bit;

	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->location.type == CU_MEM_LOCATION_TYPE_HOST) {
		access->host_named = true;
		access->host = desc->flags;
		return CUDA_SUCCESS;
	}
	if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(desc->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	bit = 1ull << desc->location.id;
	access->named |= bit;
	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		access->read |= bit;
	if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		access->write |= bit;
	return CUDA_SUCCESS;
}

/* The process has one set of page tables, so the most that any device may do is what all can;
 * which of them reaches it at all is peer.c's. */
static CUresult mapping_protect(struct mapping *mapping, const struct access *access)
{
	uint64_t offset = mapping->physical->offset + mapping->offset;
	int file = mapping->physical->own_file;
	int prot = PROT_NONE;

	mapping->reached_by = (mapping->reached_by & ~access->named) | access->read;
	mapping->written_by = (mapping->written_by & ~access->named) | access->write;
	if (access->host_named)
		mapping->host = access->host;
	if (mapping->reached_by || mapping->host != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		prot = PROT_READ;
	if (mapping->written_by || mapping->host == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		prot |= PROT_WRITE;
	peer_mapped(mapping->start, mapping->size, mapping->reached_by);
	return mmap(pointer(mapping->start), mapping->size, prot, MAP_SHARED | MAP_FIXED,
		       file >= 0 ? file : memory_file, (off_t)offset) == MAP_FAILED
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct access access = {0};
	CUresult ret = initialised();

	if (ret)
		return ret;
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !ret && i < count; i++)
		ret = access_read(&access, &desc[i]);
	if (ret)
		return ret;
	memory_lock_taking();
	if (!whole_mappings(ptr, size))
		ret = CUDA_ERROR_INVALID_VALUE;
	for (uint64_t at = ptr; !ret && at < ptr + size;) {
		struct mapping *mapping = ranges_find(&memory_mappings, at)->owner;

		ret = mapping_protect(mapping, &access);
		at += mapping->size;
	}
	memory_unlock_taking();
	return ret;
}

CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct range *range;
	CUresult ret = initialised();

	if (ret)
		return ret;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_rwlock_rdlock(&memory_lock);
	range = ranges_find(&memory_mappings, ptr);
	if (range) {
		const struct mapping *mapping = range->owner;
		uint64_t device = 1ull << location->id;

		*flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
		if (mapping->written_by & device)
			*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		else if (mapping->reached_by & device)
			*flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	} else {
		ret = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}
