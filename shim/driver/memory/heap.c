/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows, blocks of granules and the lease: see heap.h.
 */
#include "shim/driver/memory/heap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/status.h"

struct heap heap = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(memory, heap.lock, LOCK_MEMORY);

/* ---- opening ---- */

static CUresult window_open(struct window *w, const struct open_device *open)
{
	uint64_t count;
	void *at;

	w->base = open->window;
	w->bytes = open->window_bytes;
	w->granularity = open->granularity;
	w->lease = open->lease;
	if (!w->granularity || w->base % w->granularity || w->bytes < w->granularity ||
		w->base + w->bytes < w->base)
		return status_of(CAUSE_FOREIGN);
	w->slab_size = (SLAB_BYTES + w->granularity - 1) / w->granularity * w->granularity;
	count = w->bytes / w->granularity;
	w->granule = mmap(NULL, count * sizeof(*w->granule), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->granule == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* So that no malloc of the app lies where device addresses are. Best effort: a limit on
	 * address space must not cost the GPU. */
	at = mmap((void *)(uintptr_t)w->base, w->bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	w->reserved = at == (void *)(uintptr_t)w->base;
	if (at != MAP_FAILED && !w->reserved)
		munmap(at, w->bytes);
	return free_extents_put(&w->free, 0, count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult memory_open(void)
{
	CUresult status = CUDA_SUCCESS;

	for (int i = 0; i < devices.count && !status; i++)
		status = window_open(&heap.windows[i], &devices.at[i].open);
	return status;
}

struct window *heap_window(CUdeviceptr address)
{
	for (int i = 0; i < devices.count; i++)
		if (address - heap.windows[i].base < heap.windows[i].bytes)
			return &heap.windows[i];
	return NULL;
}

/* ---- the lease ---- */

bool heap_leased(const struct window *w, uint64_t size)
{
	return size <= w->lease && w->mapped <= w->lease - size;
}

static CUresult lease_ask(struct window *w, uint64_t size)
{
	int device = (int)(w - heap.windows);
	struct session_visit visit = device_visit(device);
	uint64_t granted = 0;
	CUresult status;

	status = send_vcudaLease(device_wire(device), w->mapped + size - w->lease, &granted);
	if (granted > w->lease)
		w->lease = granted;
	session_leave(visit);
	return status || heap_leased(w, size) ? status : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult heap_lease(struct window *w, uint64_t size)
{
	bool functions = function_outstanding();
	CUresult status = CUDA_SUCCESS;

	if (heap_leased(w, size))
		return CUDA_SUCCESS;
	if (functions)
		freed_reap();
	else
		status = freed_drain((int)(w - heap.windows));
	if (status || heap_leased(w, size))
		return status;
	status = lease_ask(w, size);
	if (status != CUDA_ERROR_OUT_OF_MEMORY || (!functions && !w->empty_slabs))
		return status;
	/* They were told as free. */
	slab_trim(w, true);
	status = freed_drain((int)(w - heap.windows));
	return status || heap_leased(w, size) ? status : lease_ask(w, size);
}

/* The lease has room. */
static CUresult post_leased_map(struct window *w, uint64_t address, uint64_t size)
{
	int device = (int)(w - heap.windows);
	struct session_visit visit = device_visit(device);
	CUresult status;

	status = send_vcudaMemMap(device_wire(device), address, size);
	session_leave(visit);
	return status;
}

static CUresult post_map(struct window *w, uint64_t address, uint64_t size)
{
	CUresult status = heap_lease(w, size);

	if (!status)
		status = post_leased_map(w, address, size);
	if (!status)
		w->mapped += size;
	return status;
}

/* ---- blocks ---- */

void heap_granules_set(struct window *w, uint64_t base, uint64_t size, struct block *block)
{
	uint64_t first = (base - w->base) / w->granularity;

	for (uint64_t i = 0; i < size / w->granularity; i++)
		w->granule[first + i] = block;
}

uint16_t heap_owner(const struct window *w, bool async)
{
	const struct context *context = context_current();
	int device = (int)(w - heap.windows);

	if (!context || context->device != device || context->home->primary)
		return device_primary(device);
	return async ? CONTEXT_NONE : context->number;
}

struct block *heap_block_new(struct window *w, enum block_kind kind, uint64_t size,
	uint64_t wanted, bool async, CUresult *status)
{
	struct block *block = calloc(1, sizeof(*block));
	uint64_t first;

	*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!block)
		return NULL;
	first = wanted;
	if (wanted == FREE_EXTENTS_NONE ||
		!free_extents_get_at(&w->free, wanted, size / w->granularity))
		first = free_extents_get(&w->free, size / w->granularity);
	if (first == FREE_EXTENTS_NONE) {
		free(block);
		return NULL;
	}
	block->kind = kind;
	block->device = (int)(w - heap.windows);
	block->base = w->base + first * w->granularity;
	block->size = size;
	block->id = ++heap.last_id;
	block->context = heap_owner(w, async);
	block->async = async;
	*status = kind == BLOCK_RESERVED ? CUDA_SUCCESS : post_map(w, block->base, size);
	if (*status) {
		free_extents_put(&w->free, first, size / w->granularity);
		free(block);
		return NULL;
	}
	heap_granules_set(w, block->base, size, block);
	return block;
}

void heap_block_free(struct block *block)
{
	struct window *w = &heap.windows[block->device];

	heap_granules_set(w, block->base, block->size, NULL);
	freed_unmap(w, block->base, block->size);
	free(block);
}

struct block *heap_block_at(CUdeviceptr address, struct window **window)
{
	struct window *w = heap_window(address);

	*window = w;
	return w ? w->granule[(address - w->base) / w->granularity] : NULL;
}
