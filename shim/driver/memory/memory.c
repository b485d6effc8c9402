/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory: see memory.h.
 */
#include "shim/driver/memory/memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/vcuda_send.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/globals.h"
#include "shim/driver/memory/heap.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/memory/virtual/vmm_host.h"
#include "shim/engine/engine.h"
#include "shim/engine/statistics.h"

CUresult memory_drain(int device, uint64_t *kept)
{
	const struct freed_queue *q = freed_queue(device);
	CUresult status = CUDA_SUCCESS;

	*kept = 0;
	pthread_mutex_lock(&heap.lock);
	if (!function_outstanding())
		status = freed_drain(device);
	else
		freed_reap();
	for (size_t i = q->first; i < q->next; i++)
		if (q->list[i].device == device)
			*kept += q->list[i].backed;
	*kept += heap.windows[device].spare_bytes +
		 heap.windows[device].empty_slabs * heap.windows[device].slab_size;
	pthread_mutex_unlock(&heap.lock);
	return status;
}

/* What BYTES take in granules of their own. */
static uint64_t whole_granules(const struct window *w, size_t bytes)
{
	return (bytes + w->granularity - 1) / w->granularity * w->granularity;
}

CUresult memory_alloc(int device, size_t bytes, bool async, CUdeviceptr *address)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > w->bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&heap.lock);
	freed_reap();
	if (bytes <= SLAB_LARGEST && shim_perf & PERF_SLAB) {
		status = slab_alloc(w, bytes, async, address);
	} else {
		status = CUDA_SUCCESS;
		block = spare_get(w, whole_granules(w, bytes), async)
				?: spare_await(w, whole_granules(w, bytes), async);
		if (!block)
			block = heap_block_new(w, BLOCK_WHOLE, whole_granules(w, bytes),
				FREE_EXTENTS_NONE, async, &status);
		if (block) {
			block->plain = true;
			block->bytes = bytes;
			*address = block->base;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

CUresult memory_alloc_whole(int device, size_t bytes, CUdeviceptr *address, bool *ours)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status;

	if (bytes > w->bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&heap.lock);
	freed_reap();
	block = heap_block_new(
		w, BLOCK_WHOLE, whole_granules(w, bytes), FREE_EXTENTS_NONE, false, &status);
	if (block) {
		block->bytes = bytes;
		block->managed = true;
		*address = block->base;
		*ours = w->reserved;
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

static CUresult call_import(
	struct window *w, const uint8_t name[16], uint64_t address, uint64_t bytes)
{
	int device = (int)(w - heap.windows);
	struct session_visit visit;
	CUresult status = heap_lease(w, bytes);

	if (status)
		return status;
	visit = device_visit(device);
	status = send_vcudaIpcImport(device_wire(device), name, address, bytes);
	session_leave(visit);
	return status;
}

CUresult memory_import(int device, const uint8_t name[16], size_t bytes, CUdeviceptr *address)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (!bytes || bytes > w->bytes || bytes % w->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&heap.lock);
	freed_reap();
	/* An address first, then what is to be there. */
	block = heap_block_new(w, BLOCK_RESERVED, bytes, FREE_EXTENTS_NONE, false, &status);
	if (block) {
		status = call_import(w, name, block->base, bytes);
		if (status) {
			heap_granules_set(w, block->base, bytes, NULL);
			free_extents_put(&w->free, (block->base - w->base) / w->granularity,
				bytes / w->granularity);
			free(block);
		} else {
			block->kind = BLOCK_WHOLE;
			block->bytes = bytes;
			w->mapped += bytes;
			*address = block->base;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

CUresult memory_free(CUdeviceptr address)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct window *w;
	struct block *block;
	uint32_t unit;

	pthread_mutex_lock(&heap.lock);
	freed_reap();
	block = heap_block_at(address, &w);
	if (block && block->kind == BLOCK_WHOLE && block->base == address) {
		if (!spare_keep(block))
			heap_block_free(block);
		status = CUDA_SUCCESS;
	} else if (block && block->kind == BLOCK_SLAB) {
		unit = slab_start(block, address);
		if (unit != BLOCKS_NONE &&
			block->base + (uint64_t)unit * SLAB_UNIT == address) {
			struct freed_queue *q = freed_queue(block->device);

			block->slab->starts[unit / 64] &= ~(1ull << unit % 64);
			freed_push(&(struct freed){.ticket = q->last_ticket + 1,
				.address = address,
				.size = (block->slab->bytes[unit] + SLAB_UNIT - 1) / SLAB_UNIT *
					SLAB_UNIT,
				.slab = block,
				.device = block->device});
			q->unticketed_bytes += block->slab->bytes[unit];
			if (++q->unticketed >= FREED_BATCH ||
				q->unticketed_bytes >= FREED_BYTES)
				freed_ticket_chunks(block->device);
			status = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

void memory_shared(CUdeviceptr address)
{
	struct window *w;
	struct block *block;

	pthread_mutex_lock(&heap.lock);
	block = heap_block_at(address, &w);
	if (block) {
		block->plain = false;
		block->shared = true;
	}
	pthread_mutex_unlock(&heap.lock);
}

bool memory_is_shared(CUdeviceptr address)
{
	struct window *w;
	struct block *block;
	bool shared;

	pthread_mutex_lock(&heap.lock);
	block = heap_block_at(address, &w);
	shared = block && block->shared;
	pthread_mutex_unlock(&heap.lock);
	return shared;
}

/* ---- looking up ---- */

static bool range_find(CUdeviceptr address, struct memory_range *range)
{
	struct window *w;
	struct block *block;
	uint32_t unit;
	const struct global *global;
	bool found = false;

	pthread_mutex_lock(&heap.lock);
	block = heap_block_at(address, &w);
	if (block && block->kind == BLOCK_SLAB) {
		unit = slab_start(block, address);
		found = unit != BLOCKS_NONE;
		if (found)
			*range = (struct memory_range){
				.base = block->base + (uint64_t)unit * SLAB_UNIT,
				.bytes = block->slab->bytes[unit],
				.id = block->slab->id[unit],
				.device = block->device,
				.context = block->context,
				.async = block->async};
	} else if (block &&
		   (block->kind == BLOCK_RESERVED || address - block->base < block->bytes)) {
		*range = (struct memory_range){.base = block->base,
			.bytes = block->bytes,
			.id = block->id,
			.device = block->device,
			.context = block->context,
			.async = block->async,
			.managed = block->managed,
			.reserved = block->kind == BLOCK_RESERVED};
		found = true;
	} else if (!w && (global = globals_find(address, session_here()->index))) {
		*range = (struct memory_range){.base = global->address,
			.bytes = global->bytes,
			.id = global->id,
			.device = global->device,
			.context = device_primary(global->device),
			.global = true};
		found = true;
	}
	pthread_mutex_unlock(&heap.lock);
	return found;
}

bool memory_find(CUdeviceptr address, struct memory_range *range)
{
	return range_find(address, range) && !(range->reserved && vmm_host_at(address));
}

bool memory_reserved(CUdeviceptr address, struct memory_range *range)
{
	return range_find(address, range) && range->reserved;
}

bool memory_window_kept(int device)
{
	return heap.windows[device].reserved;
}

bool memory_inside(CUdeviceptr address, size_t bytes)
{
	struct memory_range range;

	for (;;) {
		uint64_t here;

		if (!memory_find(address, &range))
			return false;
		here = range.base + range.bytes - address;
		if (range.reserved && !vmm_accessible(address, bytes < here ? bytes : here))
			return false;
		if (bytes <= here)
			return true;
		/* Neighbours in reserved address ranges (VMM) may be copied as one, but two
		 * allocations are two whatever lies between them. */
		if (!range.reserved)
			return false;
		address += here;
		bytes -= here;
	}
}

bool memory_inside_one(int device, CUdeviceptr address, size_t bytes)
{
	const struct window *w = &heap.windows[device];
	const uint64_t at = address - w->base;
	const struct block *block;
	uint64_t end = 0;
	uint32_t unit;

	if (at >= w->bytes)
		return false;
	pthread_mutex_lock(&heap.lock);
	block = w->granule[at / w->granularity];
	if (block && block->kind == BLOCK_WHOLE) {
		end = block->base + block->bytes;
	} else if (block && block->kind == BLOCK_SLAB) {
		unit = slab_start(block, address);
		if (unit != BLOCKS_NONE)
			end = block->base + (uint64_t)unit * SLAB_UNIT +
			      block->slab->bytes[unit];
	}
	pthread_mutex_unlock(&heap.lock);
	return address < end && bytes <= end - address;
}

bool memory_in_window(CUdeviceptr address, int *device)
{
	struct window *w = heap_window(address);
	struct memory_range range;

	if (w) {
		*device = (int)(w - heap.windows);
		return !vmm_host_at(address);
	}
	if (!globals_any() || !memory_find(address, &range))
		return false;
	*device = range.device;
	return true;
}

void memory_global(int device, CUdeviceptr address, size_t bytes)
{
	pthread_mutex_lock(&heap.lock);
	globals_put(&(struct global){.address = address,
			    .bytes = bytes,
			    .id = ++heap.last_id,
			    .device = device},
		devices.at[device].agent);
	pthread_mutex_unlock(&heap.lock);
}

/* With the lock held: its addresses are free once what was posted before is done. */
static void reservation_free(struct window *w, struct block *block)
{
	heap_granules_set(w, block->base, block->size, NULL);
	w->reservations--;
	/* Work in flight must not meet the next owner there. */
	freed_push(&(struct freed){.ticket = freed_post(block->device, 0, 0),
		.address = block->base,
		.size = block->size,
		.device = block->device});
	free(block);
}

void memory_context_gone(const struct context *context, bool last)
{
	struct window *w = &heap.windows[context->device];
	uint64_t count = w->bytes / w->granularity, granules;

	pthread_mutex_lock(&heap.lock);
	freed_reap();
	spare_trim(w);
	for (uint64_t i = 0; (w->mapped || w->reservations) && i < count; i += granules) {
		struct block *block = w->granule[i];

		granules = block ? block->size / w->granularity : 1;
		if (!block || (!last && (block->kind == BLOCK_RESERVED ||
						block->context != context->number)))
			continue;
		if (block->kind == BLOCK_RESERVED) {
			reservation_free(w, block);
		} else if (block->kind == BLOCK_SLAB) {
			freed_forget(block);
			slab_drop(block);
		} else {
			heap_block_free(block);
		}
	}
	pthread_mutex_unlock(&heap.lock);
}

/* ---- for vmm.c ---- */

CUresult memory_reserve(
	int device, size_t bytes, size_t alignment, CUdeviceptr wanted, CUdeviceptr *address)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status;

	pthread_mutex_lock(&heap.lock);
	freed_reap();
	status = CUDA_ERROR_INVALID_VALUE;
	if (bytes && !(bytes % w->granularity)) {
		bool hinted = heap_window(wanted) == w && !(wanted % w->granularity);
		uint64_t first = free_extents_find(&w->free, bytes / w->granularity,
			hinted ? (wanted - w->base) / w->granularity : FREE_EXTENTS_NONE,
			w->base / w->granularity,
			alignment > w->granularity ? alignment / w->granularity : 1);

		status = CUDA_ERROR_OUT_OF_MEMORY;
		block = first == FREE_EXTENTS_NONE ? NULL
						   : heap_block_new(w, BLOCK_RESERVED, bytes,
							     first, false, &status);
		if (block) {
			*address = block->base;
			block->bytes = bytes;
			w->reservations++;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

CUresult memory_unreserve(CUdeviceptr address, size_t bytes)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct window *w;
	struct block *block;

	pthread_mutex_lock(&heap.lock);
	block = heap_block_at(address, &w);
	if (block && block->kind == BLOCK_RESERVED && block->base == address &&
		block->size == bytes) {
		reservation_free(w, block);
		status = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

CUresult memory_lease(int device, size_t bytes)
{
	struct window *w = &heap.windows[device];
	CUresult status;

	pthread_mutex_lock(&heap.lock);
	freed_reap();
	status = heap_lease(w, bytes);
	if (!status)
		w->mapped += bytes;
	pthread_mutex_unlock(&heap.lock);
	return status;
}

void memory_unlease(int device, size_t bytes)
{
	pthread_mutex_lock(&heap.lock);
	heap.windows[device].mapped -= bytes;
	pthread_mutex_unlock(&heap.lock);
}
