/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management: what is mapped where, and who may read and write it there.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/driver/peer.h"
#include "softgpu/driver/memory/vmm_core.h"

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
	CUresult ret = vmm_initialised();

	if (ret)
		return ret;
	if (!size || !vmm_granular(ptr) || !vmm_granular(size) || !vmm_granular(offset) ||
		flags)
		return CUDA_ERROR_INVALID_VALUE;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_rwlock_wrlock(&memory_lock);
	physical = soft_physical_of(handle);
	if (!physical || offset > physical->size || size > physical->size - offset ||
		!reserved(ptr, size) || vmm_mapped_anywhere(ptr, size)) {
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
	CUresult ret = vmm_initialised();

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
			soft_physical_unref(mapping->physical);
			free(mapping);
		}
	}
	memory_unlock_taking();
	return ret;
}

/* Who of those named may read and write. */
struct access {
	uint64_t named, read, write;
	bool host_named, numa_named; /* the latter as a node, too */
	CUmemAccess_flags host;
};

static CUresult access_read(struct access *access, const CUmemAccessDesc *desc)
{
	uint64_t bit;

	if (desc->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->location.type == CU_MEM_LOCATION_TYPE_HOST ||
		desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
		access->host_named = true;
		access->numa_named |= desc->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
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

static bool mapping_written(const struct mapping *mapping)
{
	return mapping->written_by || mapping->host == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
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
	if (mapping_written(mapping))
		prot |= PROT_WRITE;
	peer_mapped(mapping->start, mapping->size, mapping->reached_by);
	return mmap(vmm_pointer(mapping->start), mapping->size, prot, MAP_SHARED | MAP_FIXED,
		       file >= 0 ? file : soft_memory_file, (off_t)offset) == MAP_FAILED
		       ? CUDA_ERROR_OUT_OF_MEMORY
		       : CUDA_SUCCESS;
}

bool memory_writable_locked(uint64_t address, uint64_t size)
{
	for (size_t i = ranges_at(&memory_mappings, address); i < memory_mappings.count; i++) {
		const struct range *range = &memory_mappings.item[i];

		if (range->start >= address && range->start - address >= size)
			return true;
		if (!mapping_written(range->owner))
			return false;
	}
	return true;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct access access = {0};
	CUresult ret = vmm_initialised();

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

		/* cuda.h: other memory has no nodes that it could be let to. */
		ret = access.numa_named && mapping->physical->prop.location.type !=
						   CU_MEM_LOCATION_TYPE_HOST_NUMA
			      ? CUDA_ERROR_INVALID_VALUE
			      : mapping_protect(mapping, &access);
		at += mapping->size;
	}
	memory_unlock_taking();
	return ret;
}

CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	struct range *range;
	CUresult ret = vmm_initialised();
	bool host;

	if (ret)
		return ret;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	host = location->type == CU_MEM_LOCATION_TYPE_HOST ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
	if (!host &&
		(location->type != CU_MEM_LOCATION_TYPE_DEVICE || !device_get(location->id)))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_rwlock_rdlock(&memory_lock);
	range = ranges_find(&memory_mappings, ptr);
	if (range) {
		const struct mapping *mapping = range->owner;
		uint64_t device = host ? 0 : 1ull << location->id;

		*flags = host ? mapping->host : CU_MEM_ACCESS_FLAGS_PROT_NONE;
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
