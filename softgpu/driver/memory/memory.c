/* SPDX-License-Identifier: Apache-2.0
 *
 * The window and the account.  Everything that a kernel can reach lies in one range of
 * addresses that is reserved (PROT_NONE) when the driver starts: device memory, pinned host
 * memory, and what the VMM calls map.  An allocation makes its pages accessible; freeing gives
 * them back to the kernel, so the next owner finds zeroes.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/peer.h"
#include "softgpu/driver/task.h"

/* Where the window is wanted: above what ASan keeps for itself, below where programs and
 * libraries are loaded, and around the places where vcuda's clients ask for their windows. */
#define WINDOW_BASE 0x110000000000u
#define WINDOW_END 0x400000000000u
#define WINDOW_LEAST (64 * GIB)
/* Our own choices come from the lowest part; what is above is for those who name an address. */
#define HEAP_SHARE 8

pthread_rwlock_t memory_lock;	      /* prefers writers, see memory_init */
static pthread_rwlock_t memory_still; /* prefers writers too */
struct ranges memory_blocks, memory_mappings, memory_registered;
struct ptx_window memory_window;

static unsigned long long next_block_id = 1;

static void *reserve(uint64_t base, uint64_t span)
{
	void *hint = NULL;

	memcpy(&hint, &base, sizeof(hint));
	return mmap(hint, span, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (base ? MAP_FIXED_NOREPLACE : 0),
		-1, 0);
}

/* The whole window where it is wanted; else as much as the system grants, anywhere. */
bool memory_init(void)
{
	pthread_rwlockattr_t attr;
	uint64_t span = WINDOW_END - WINDOW_BASE;
	void *at = MAP_FAILED;

	pthread_rwlockattr_init(&attr);
	/* Or a stream of copies would starve an allocation. */
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&memory_lock, &attr);
	pthread_rwlock_init(&memory_still, &attr);
	pthread_rwlockattr_destroy(&attr);
#ifndef __SANITIZE_THREAD__ /* which has its shadow there */
	at = reserve(WINDOW_BASE, span);
#endif
	for (span = 1024 * GIB; at == MAP_FAILED && span >= WINDOW_LEAST; span /= 2)
		at = reserve(0, memory_window.span = span);
	if (at == MAP_FAILED) {
		soft_log_problem("no %zu GiB of addresses can be reserved (ulimit -v?)",
			WINDOW_LEAST / GIB);
		return false;
	}
	if (!memory_window.span)
		memory_window.span = WINDOW_END - WINDOW_BASE;
	memory_window.base = (uintptr_t)at;
	/* So that the start of the window is never an allocation and 0 means none. */
	return true;
}

static size_t free_of(const struct device *device)
{
	size_t taken = device->used + device_others();

	return taken < settings.memory ? settings.memory - taken : 0;
}

bool memory_charge(struct device *device, size_t size)
{
	if (size > free_of(device))
		return false;
	if (settings.fault_oom_at && device->used + size > settings.fault_oom_at)
		return false;
	device->used += size;
	return true;
}

void memory_uncharge(struct device *device, size_t size)
{
	device->used -= size;
}

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

bool memory_decommit(uint64_t start, size_t span)
{
	return mmap(pointer(start), span, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		       0) != MAP_FAILED;
}

void memory_lock_taking(void)
{
	pthread_rwlock_wrlock(&memory_still);
	pthread_rwlock_wrlock(&memory_lock);
}

void memory_unlock_taking(void)
{
	pthread_rwlock_unlock(&memory_lock);
	pthread_rwlock_unlock(&memory_still);
}

static struct block *block_find(uint64_t address)
{
	struct range *range = ranges_find(&memory_blocks, address);

	return range ? range->owner : NULL;
}

void memory_zone(const struct device *device, uint64_t *from, uint64_t *to)
{
	peer_zone(device, memory_window.base + GRANULE,
		memory_window.base + memory_window.span / HEAP_SHARE, from, to);
}

/* What memory_allocate() does, in the part of the window that is ZONE's. */
static CUresult allocate(struct CUctx_st *context, struct device *device, size_t size,
	size_t align, enum block_kind kind, struct CUmemPoolHandle_st *pool,
	const struct device *zone, uint64_t *address)
{
	bool charged = kind == BLOCK_DEVICE;
	struct block *block;
	uint64_t at, from, to;

	if (size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > memory_window.span / HEAP_SHARE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block = calloc(1, sizeof(*block));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->kind = kind;
	block->size = size;
	block->span = (size + PAGE - 1) & ~(PAGE - 1);
	block->device = device;
	block->context = context;
	block->pool = pool;
	/* Large ones begin at a granule, so that the kernel can use large pages. */
	if (align < PAGE)
		align = PAGE;
	if (block->span >= GRANULE && align < GRANULE)
		align = GRANULE;

	pthread_rwlock_wrlock(&memory_lock);
	if (charged && !memory_charge(device, block->span)) {
		pthread_rwlock_unlock(&memory_lock);
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memory_zone(zone, &from, &to);
	at = ranges_gap(&memory_blocks, block->span, align, from, to);
	block->start = at;
	block->id = next_block_id++;
	if (!at || !ranges_insert(&memory_blocks, at, block->span, block)) {
		at = 0;
	} else if (mprotect(pointer(at), block->span, PROT_READ | PROT_WRITE)) {
		ranges_remove(&memory_blocks, at);
		at = 0;
	}
	if (at && block->span >= GRANULE)
		madvise(pointer(at), block->span, MADV_HUGEPAGE);
	if (at && context)
		context_ref(context);
	if (at && pool)
		pool_took(pool, block->span);
	if (!at && charged)
		memory_uncharge(device, block->span);
	pthread_rwlock_unlock(&memory_lock);
	if (!at) {
		free(block);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*address = at;
	return CUDA_SUCCESS;
}

CUresult memory_allocate(struct CUctx_st *context, struct device *device, size_t size,
	size_t align, enum block_kind kind, struct CUmemPoolHandle_st *pool, uint64_t *address)
{
	return allocate(context, device, size, align, kind, pool,
		kind == BLOCK_DEVICE ? device : NULL, address);
}

CUresult memory_allocate_open(
	struct CUctx_st *context, size_t size, size_t align, uint64_t *address)
{
	return allocate(
		context, context->device, size, align, BLOCK_DEVICE, NULL, NULL, address);
}

/* memory_lock_taking() was called. */
static void block_free(struct block *block)
{
	ranges_remove(&memory_blocks, block->start);
	memory_decommit(block->start, block->span);
	if (block->kind == BLOCK_DEVICE)
		memory_uncharge(block->device, block->span);
	if (block->pool)
		pool_gave(block->pool, block->span);
	context_unref(block->context);
	free(block);
}

CUresult memory_release(uint64_t address, enum block_kind kind)
{
	CUresult ret = CUDA_SUCCESS;
	struct block *block;

	memory_lock_taking();
	block = block_find(address);
	if (!block || block->start != address || block->kind != kind)
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		block_free(block);
	memory_unlock_taking();
	return ret;
}

void memory_release_context(const struct CUctx_st *context)
{
	memory_lock_taking();
	for (size_t i = 0; i < memory_blocks.count;) {
		struct block *block = memory_blocks.item[i].owner;

		if (block->context == context && block->kind != BLOCK_RESERVATION)
			block_free(block);
		else
			i++;
	}
	for (size_t i = 0; i < memory_registered.count;) {
		struct registered *reg = memory_registered.item[i].owner;

		if (reg->context != context) {
			i++;
			continue;
		}
		ranges_remove(&memory_registered, reg->start);
		ptx_outside_remove(reg->start);
		context_unref(reg->context);
		free(reg);
	}
	memory_unlock_taking();
}

/* A block covers it whole, or mappings do one after another; or it is registered host memory.
 */
bool memory_mapped_locked(uint64_t address, uint64_t size)
{
	struct block *block;

	if (size == 0)
		return true;
	if (!memory_in_window(address)) {
		const struct range *range = ranges_find(&memory_registered, address);

		return range && size <= range->start + range->size - address;
	}
	if (size > memory_window.base + memory_window.span - address)
		return false;
	block = block_find(address);
	if (!block)
		return false;
	if (block->kind != BLOCK_RESERVATION)
		return size <= block->start + block->size - address;
	for (size_t i = ranges_at(&memory_mappings, address); size; i++) {
		const struct range *range = &memory_mappings.item[i];
		const struct mapping *mapping;
		uint64_t inside;

		if (i >= memory_mappings.count || range->start > address)
			return false;
		mapping = range->owner;
		if (!mapping->reached_by && !mapping->host)
			return false;
		inside = range->start + range->size - address;
		if (inside >= size)
			return true;
		address += inside;
		size -= inside;
	}
	return true;
}

bool memory_mapped(uint64_t address, uint64_t size)
{
	struct block *block;
	bool mapped;

	pthread_rwlock_rdlock(&memory_lock);
	mapped = memory_mapped_locked(address, size);
	/* What is queued before a stream-ordered free may still use it; a new call may not. */
	block = mapped && size ? block_find(address) : NULL;
	mapped = mapped && !(block && block->freeing);
	pthread_rwlock_unlock(&memory_lock);
	return mapped;
}

void cuSoftgpuTaskBegin(void)
{
	pthread_rwlock_rdlock(&memory_still);
}

void cuSoftgpuTaskEnd(void)
{
	pthread_rwlock_unlock(&memory_still);
}

bool cuSoftgpuTaskReaches(uint64_t address, uint64_t bytes)
{
	bool mapped;

	pthread_rwlock_rdlock(&memory_lock);
	mapped = memory_mapped_locked(address, bytes);
	pthread_rwlock_unlock(&memory_lock);
	return mapped;
}

bool memory_reached(uint64_t address, uint64_t size, const struct device *by)
{
	bool reached = true;

	pthread_rwlock_rdlock(&memory_lock);
	for (size_t i = ranges_at(&memory_mappings, address);
		reached && i < memory_mappings.count &&
		memory_mappings.item[i].start < address + size;
		i++)
		reached = ((struct mapping *)memory_mappings.item[i].owner)->reached_by >>
				  by->ordinal &
			  1;
	pthread_rwlock_unlock(&memory_lock);
	return reached;
}

bool memory_pinned(const void *host, uint64_t size)
{
	uint64_t address = (uintptr_t)host;
	bool pinned = false;

	pthread_rwlock_rdlock(&memory_lock);
	if (memory_in_window(address)) {
		pinned = memory_mapped_locked(address, size);
	} else {
		struct range *range = ranges_find(&memory_registered, address);

		pinned = range && size <= range->start + range->size - address;
	}
	pthread_rwlock_unlock(&memory_lock);
	return pinned;
}

/* ---- the calls ---- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	if (free_bytes)
		*free_bytes = free_of(context->device);
	if (total)
		*total = settings.memory;
	pthread_rwlock_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	struct CUctx_st *context;
	uint64_t address;
	CUresult ret = soft_context_current(&context);

	if (!ret)
		ret = capture_unsafe();
	if (ret)
		return ret;
	if (!dptr || bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	ret = memory_allocate(
		context, context->device, bytesize, PAGE, BLOCK_DEVICE, NULL, &address);
	if (!ret)
		*dptr = address;
	return ret;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
	size_t Height, unsigned int ElementSizeBytes)
{
	size_t pitch, size;
	CUresult ret;

	if (!dptr || !pPitch || !WidthInBytes || !Height ||
		(ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(WidthInBytes, (size_t)511, &pitch))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pitch &= ~(size_t)511;
	if (__builtin_mul_overflow(pitch, Height, &size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret = cuMemAlloc_v2(dptr, size);
	if (!ret)
		*pPitch = pitch;
	return ret;
}

/* As on a GPU, freeing waits for the work of the context that may still use the memory. */
CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	struct CUctx_st *context, *owner = NULL;
	struct block *block;
	CUresult ret = soft_context_current(&context);

	if (ret || !dptr)
		return ret;
	ret = capture_unsafe();
	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	block = block_find(dptr);
	if (block && block->start == dptr && block->kind == BLOCK_DEVICE && block->context &&
		!block->freeing) {
		owner = block->context;
		context_ref(owner);
	}
	pthread_rwlock_unlock(&memory_lock);
	if (!owner)
		return CUDA_ERROR_INVALID_VALUE;
	queue_drain(owner, 0);
	if (owner != context)
		queue_drain(context, 0);
	ret = context_fault_of(context);
	if (!ret)
		ret = memory_release(dptr, BLOCK_DEVICE);
	context_unref(owner);
	return ret;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct CUctx_st *context;
	struct block *block;
	struct range *range;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	pthread_rwlock_rdlock(&memory_lock);
	block = block_find(dptr);
	range = ranges_find(&memory_mappings, dptr);
	if (block && block->kind != BLOCK_RESERVATION && dptr - block->start < block->size) {
		if (pbase)
			*pbase = block->start;
		if (psize)
			*psize = block->size;
	} else if (range) {
		if (pbase)
			*pbase = range->start;
		if (psize)
			*psize = range->size;
	} else {
		ret = CUDA_ERROR_NOT_FOUND;
	}
	pthread_rwlock_unlock(&memory_lock);
	return ret;
}

/* Managed memory would have to move between machines page by page; see docs/SOFTGPU.md. */
CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	(void)flags;
	if (ret)
		return ret;
	return dptr && bytesize ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
