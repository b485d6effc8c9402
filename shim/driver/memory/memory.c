/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory: see memory.h.
 */
#include "shim/driver/memory/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine/blocks.h"
#include "shim/driver/callback.h"
#include "shim/driver/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/globals.h"
#include "shim/driver/memory/free_extents.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/thread.h"
#include "shim/engine/completion.h"
#include "shim/engine/lock.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define SLAB_UNIT 512u			    /* alignment that CUDA programs rely on is 256 */
#define SLAB_BYTES (BLOCKS_MAX * SLAB_UNIT) /* 2 MiB: the granularity of NVIDIA's devices */
/* Larger ones get granules of their own: half a slab, so at most half of one is lost. */
#define SLAB_LARGEST (SLAB_BYTES / 2)
/* Freed chunks wait for a ticket together: one post for so many. */
#define FREED_BATCH 64

enum block_kind { BLOCK_WHOLE, BLOCK_SLAB, BLOCK_RESERVED };

struct slab {
	struct blocks map;
	uint64_t starts[BLOCKS_MAX / 64]; /* bit u: a live chunk starts at unit u */
	uint32_t bytes[BLOCKS_MAX];	  /* by first unit: as asked for */
	uint64_t id[BLOCKS_MAX];
	uint32_t live; /* chunks not yet given back to the map */
};

struct block {
	enum block_kind kind;
	int device;
	uint16_t context;
	bool async;
	uint64_t base;
	uint64_t size; /* granules, in bytes */
	uint64_t bytes;
	uint64_t id;
	struct slab *slab;
	struct block *next; /* of the device's slabs */
};

/* Waits for its ticket: granules whose memory goes (slab NULL), or a chunk of a slab. */
struct freed {
	uint64_t ticket;
	uint64_t address;
	uint64_t size;
	struct block *slab;
	uint64_t backed; /* bytes that no longer count against the lease */
	int device;
};

struct window {
	uint64_t base;
	uint64_t bytes;
	uint64_t granularity;
	uint64_t slab_size;
	uint64_t lease;
	uint64_t mapped; /* counted against the lease, until its unmapping is confirmed */
	struct block **granule;
	struct free_extents free; /* free granules */
	struct block *slabs;
	uint32_t reservations; /* blocks of that kind */
	bool reserved;	       /* the app's own mappings are kept out */
};

static struct {
	pthread_mutex_t lock;
	struct window windows[OPEN_DEVICES];
	struct freed *freed_list; /* a queue: [freed_first, freed_next) */
	size_t freed_first, freed_next, freed_room;
	uint32_t freed_unticketed; /* chunks since the last ticket */
	uint64_t last_ticket;
	uint64_t last_id;
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(memory, heap.lock, LOCK_MEMORY);

/* ---- opening ---- */

static bool window_open(struct window *w, const struct open_device *open)
{
	uint64_t count;
	void *at;

	w->base = open->window;
	w->bytes = open->window_bytes;
	w->granularity = open->granularity;
	w->lease = open->lease;
	if (!w->granularity || w->base % w->granularity || w->bytes < w->granularity ||
		w->base + w->bytes < w->base)
		return false;
	w->slab_size = (SLAB_BYTES + w->granularity - 1) / w->granularity * w->granularity;
	count = w->bytes / w->granularity;
	w->granule = mmap(NULL, count * sizeof(*w->granule), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->granule == MAP_FAILED)
		return false;
	/* So that no malloc of the app lies where device addresses are. Best effort: a limit on
	 * address space must not cost the GPU. */
	at = mmap((void *)(uintptr_t)w->base, w->bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	w->reserved = at == (void *)(uintptr_t)w->base;
	if (at != MAP_FAILED && !w->reserved)
		munmap(at, w->bytes);
	return free_extents_put(&w->free, 0, count);
}

bool memory_open(void)
{
	for (int i = 0; i < devices.count; i++)
		if (!window_open(&heap.windows[i], &devices.at[i].open))
			return false;
	return true;
}

/* ---- what waits for the worker ---- */

static bool freed_push(const struct freed *freed)
{
	if (heap.freed_next == heap.freed_room && heap.freed_first) {
		memmove(heap.freed_list, heap.freed_list + heap.freed_first,
			(heap.freed_next - heap.freed_first) * sizeof(*heap.freed_list));
		heap.freed_next -= heap.freed_first;
		heap.freed_first = 0;
	}
	if (heap.freed_next == heap.freed_room) {
		size_t room = heap.freed_room ? 2 * heap.freed_room : 256;
		struct freed *list = realloc(heap.freed_list, room * sizeof(*list));

		if (!list)
			return false; /* never used again: safe */
		heap.freed_list = list;
		heap.freed_room = room;
	}
	heap.freed_list[heap.freed_next++] = *freed;
	return true;
}

/* The ticket's post. The lock is held, so tickets are in the ring in their order. */
static CUresult post_unmap(int device, uint64_t address, uint64_t bytes, uint64_t ticket)
{
	struct shim_call call;
	struct wire_vcudaMemUnmap *body;

	body = shim_begin(&call, OP_vcudaMemUnmap, sizeof(*body));
	body->device = device_wire(device);
	body->address = address;
	body->bytes = bytes;
	body->ticket = ticket;
	return shim_post(&call);
}

static void slab_free(struct block *block);

static void freed_done(const struct freed *freed)
{
	struct window *w = &heap.windows[freed->device];

	if (freed->slab) {
		struct slab *slab = freed->slab->slab;

		blocks_free(&slab->map,
			(uint32_t)((freed->address - freed->slab->base) / SLAB_UNIT),
			(uint32_t)(freed->size / SLAB_UNIT));
		if (!--slab->live)
			slab_free(freed->slab);
		return;
	}
	w->mapped -= freed->backed;
	free_extents_put(&w->free, (freed->address - w->base) / w->granularity,
		freed->size / w->granularity);
}

static void reap(void)
{
	uint64_t done;

	if (heap.freed_first == heap.freed_next)
		return;
	done = completion_read(COUNTER_UNMAPPED);
	/* freed_done may push, and move the list: take a copy. */
	while (heap.freed_first < heap.freed_next &&
		heap.freed_list[heap.freed_first].ticket <= done) {
		struct freed freed = heap.freed_list[heap.freed_first++];

		freed_done(&freed);
	}
	if (heap.freed_first == heap.freed_next)
		heap.freed_first = heap.freed_next = 0;
}

static void ticket_chunks(void)
{
	if (!heap.freed_unticketed)
		return;
	heap.freed_unticketed = 0;
	post_unmap(0, 0, 0, ++heap.last_ticket);
}

/* Gives whole granules back to the worker, which takes their memory away. */
static void unmap(struct window *w, uint64_t address, uint64_t size)
{
	int device = (int)(w - heap.windows);

	/* Chunks freed before wait for heap.last_ticket + 1: this one is it. */
	heap.freed_unticketed = 0;
	post_unmap(device, address, size, ++heap.last_ticket);
	freed_push(&(struct freed){.ticket = heap.last_ticket,
		.address = address,
		.size = size,
		.backed = size,
		.device = device});
}

static bool all_unmapped(void *ticket)
{
	return completion_read(COUNTER_UNMAPPED) >= *(uint64_t *)ticket;
}

/* Waits until the worker has unmapped everything that is free. The lock is held. */
static CUresult drain(void)
{
	CUresult status = CUDA_SUCCESS;

	ticket_chunks();
	/* Twice: slabs that become empty only then go to the worker with one more ticket. */
	for (int i = 0; !status && i < 2 && heap.freed_first != heap.freed_next; i++) {
		uint64_t ticket = heap.last_ticket;

		status = shim_wait_until(all_unmapped, &ticket);
		if (!status)
			reap();
	}
	return status;
}

CUresult memory_settle(int device, uint64_t *kept)
{
	CUresult status = CUDA_SUCCESS;

	*kept = 0;
	pthread_mutex_lock(&heap.lock);
	if (!callback_outstanding())
		status = drain();
	else
		reap();
	for (size_t i = heap.freed_first; i < heap.freed_next; i++)
		if (heap.freed_list[i].device == device)
			*kept += heap.freed_list[i].backed;
	pthread_mutex_unlock(&heap.lock);
	return status;
}

static bool lease_has(const struct window *w, uint64_t size)
{
	return size <= w->lease && w->mapped <= w->lease - size;
}

static CUresult lease_ask(struct window *w, uint64_t size)
{
	struct shim_call call;
	struct wire_vcudaLease *body;
	const struct wire_vcudaLease_reply *reply;
	CUresult status;

	body = shim_begin(&call, OP_vcudaLease, sizeof(*body));
	body->device = device_wire((int)(w - heap.windows));
	body->bytes = w->mapped + size - w->lease;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply && reply->granted > w->lease)
		w->lease = reply->granted;
	status = shim_end(&call);
	return status || lease_has(w, size) ? status : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Makes room for SIZE more bytes under the lease. What is free is given back first, which waits
 * for host functions too: they may need a lock of this thread, so while one is outstanding only
 * where there is no other memory. */
static CUresult lease(struct window *w, uint64_t size)
{
	bool functions = callback_outstanding();
	CUresult status = CUDA_SUCCESS;

	if (lease_has(w, size))
		return CUDA_SUCCESS;
	if (functions)
		reap();
	else
		status = drain();
	if (status || lease_has(w, size))
		return status;
	status = lease_ask(w, size);
	if (status != CUDA_ERROR_OUT_OF_MEMORY || !functions)
		return status;
	status = drain();
	return status || lease_has(w, size) ? status : lease_ask(w, size);
}

/* The lease has room. */
static CUresult post_leased_map(struct window *w, uint64_t address, uint64_t size)
{
	struct shim_call call;
	struct wire_vcudaMemMap *body;

	body = shim_begin(&call, OP_vcudaMemMap, sizeof(*body));
	body->device = device_wire((int)(w - heap.windows));
	body->address = address;
	body->bytes = size;
	return shim_post(&call);
}

static CUresult post_map(struct window *w, uint64_t address, uint64_t size)
{
	CUresult status = lease(w, size);

	if (!status)
		status = post_leased_map(w, address, size);
	if (!status)
		w->mapped += size;
	return status;
}

/* ---- blocks ---- */

static void granules_set(struct window *w, uint64_t base, uint64_t size, struct block *block)
{
	uint64_t first = (base - w->base) / w->granularity;

	for (uint64_t i = 0; i < size / w->granularity; i++)
		w->granule[first + i] = block;
}

/* At granule WANTED if that can be had (FREE_EXTENTS_NONE: anywhere). */
static struct block *block_new(struct window *w, enum block_kind kind, uint64_t size,
	uint64_t wanted, CUresult *status)
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
	block->context = thread_self.number;
	*status = kind == BLOCK_RESERVED ? CUDA_SUCCESS : post_map(w, block->base, size);
	if (*status) {
		free_extents_put(&w->free, first, size / w->granularity);
		free(block);
		return NULL;
	}
	granules_set(w, block->base, size, block);
	return block;
}

static void block_free(struct block *block)
{
	struct window *w = &heap.windows[block->device];

	granules_set(w, block->base, block->size, NULL);
	unmap(w, block->base, block->size);
	free(block);
}

/* An empty slab goes back, but the device's last one stays for the next small allocation. */
static void slab_free(struct block *block)
{
	struct window *w = &heap.windows[block->device];
	struct block **at = &w->slabs;

	if (w->slabs == block && !block->next)
		return;
	while (*at != block)
		at = &(*at)->next;
	*at = block->next;
	free(block->slab);
	block_free(block);
}

static struct block *slab_new(struct window *w, CUresult *status)
{
	struct slab *slab = calloc(1, sizeof(*slab));
	struct block *block;

	*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!slab)
		return NULL;
	block = block_new(w, BLOCK_SLAB, w->slab_size, FREE_EXTENTS_NONE, status);
	if (!block) {
		free(slab);
		return NULL;
	}
	blocks_init(&slab->map, BLOCKS_MAX);
	block->slab = slab;
	block->next = w->slabs;
	w->slabs = block;
	return block;
}

static CUresult slab_take(struct window *w, size_t bytes, CUdeviceptr *address)
{
	uint32_t units = (uint32_t)((bytes + SLAB_UNIT - 1) / SLAB_UNIT);
	struct block *block;
	uint32_t unit = BLOCKS_NONE;
	CUresult status;

	for (block = w->slabs; block; block = block->next) {
		unit = blocks_alloc(&block->slab->map, units);
		if (unit != BLOCKS_NONE)
			break;
	}
	if (!block) {
		ticket_chunks();
		block = slab_new(w, &status);
		if (!block)
			return status;
		unit = blocks_alloc(&block->slab->map, units);
	}
	block->slab->live++;
	block->slab->starts[unit / 64] |= 1ull << unit % 64;
	block->slab->bytes[unit] = (uint32_t)bytes;
	block->slab->id[unit] = ++heap.last_id;
	*address = block->base + (uint64_t)unit * SLAB_UNIT;
	return CUDA_SUCCESS;
}

/* The chunk's first unit; BLOCKS_NONE: no live chunk there. */
static uint32_t slab_start(const struct block *block, uint64_t address)
{
	uint64_t offset = address - block->base;
	uint32_t unit = (uint32_t)(offset / SLAB_UNIT);
	uint32_t word = unit / 64;
	uint64_t bits;

	if (unit >= BLOCKS_MAX)
		return BLOCKS_NONE;
	bits = block->slab->starts[word] << (63 - unit % 64) >> (63 - unit % 64);
	while (!bits && word)
		bits = block->slab->starts[--word];
	if (!bits)
		return BLOCKS_NONE;
	unit = word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
	return offset - (uint64_t)unit * SLAB_UNIT < block->slab->bytes[unit] ? unit
									      : BLOCKS_NONE;
}

static struct window *window_of(CUdeviceptr address)
{
	for (int i = 0; i < devices.count; i++)
		if (address - heap.windows[i].base < heap.windows[i].bytes)
			return &heap.windows[i];
	return NULL;
}

static struct block *block_at(CUdeviceptr address, struct window **window)
{
	struct window *w = window_of(address);

	*window = w;
	return w ? w->granule[(address - w->base) / w->granularity] : NULL;
}

CUresult memory_take(int device, size_t bytes, bool async, CUdeviceptr *address)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > w->bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&heap.lock);
	reap();
	if (bytes <= SLAB_LARGEST && shim_perf & PERF_SLAB) {
		status = slab_take(w, bytes, address);
	} else {
		block = block_new(w, BLOCK_WHOLE,
			(bytes + w->granularity - 1) / w->granularity * w->granularity,
			FREE_EXTENTS_NONE, &status);
		if (block) {
			block->bytes = bytes;
			block->async = async;
			*address = block->base;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

static CUresult call_import(
	struct window *w, const uint8_t name[16], uint64_t address, uint64_t bytes)
{
	struct shim_call call;
	struct wire_vcudaIpcImport *body;
	CUresult status = lease(w, bytes);

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaIpcImport, sizeof(*body));
	body->device = device_wire((int)(w - heap.windows));
	body->address = address;
	body->bytes = bytes;
	shim_put(&call, &body->name, name, 16);
	shim_wait(&call, 0);
	return shim_end(&call);
}

CUresult memory_import(int device, const uint8_t name[16], size_t bytes, CUdeviceptr *address)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (!bytes || bytes > w->bytes || bytes % w->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&heap.lock);
	reap();
	/* An address first, then what is to be there. */
	block = block_new(w, BLOCK_RESERVED, bytes, FREE_EXTENTS_NONE, &status);
	if (block) {
		status = call_import(w, name, block->base, bytes);
		if (status) {
			granules_set(w, block->base, bytes, NULL);
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

CUresult memory_give(CUdeviceptr address)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct window *w;
	struct block *block;
	uint32_t unit;

	pthread_mutex_lock(&heap.lock);
	reap();
	block = block_at(address, &w);
	if (block && block->kind == BLOCK_WHOLE && block->base == address) {
		block_free(block);
		status = CUDA_SUCCESS;
	} else if (block && block->kind == BLOCK_SLAB) {
		unit = slab_start(block, address);
		if (unit != BLOCKS_NONE &&
			block->base + (uint64_t)unit * SLAB_UNIT == address) {
			block->slab->starts[unit / 64] &= ~(1ull << unit % 64);
			freed_push(&(struct freed){.ticket = heap.last_ticket + 1,
				.address = address,
				.size = (block->slab->bytes[unit] + SLAB_UNIT - 1) / SLAB_UNIT *
					SLAB_UNIT,
				.slab = block,
				.device = block->device});
			if (++heap.freed_unticketed >= FREED_BATCH)
				ticket_chunks();
			status = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

/* ---- looking up ---- */

bool memory_find(CUdeviceptr address, struct memory_range *range)
{
	struct window *w;
	struct block *block;
	uint32_t unit;
	const struct global *global;
	bool found = false;

	pthread_mutex_lock(&heap.lock);
	block = block_at(address, &w);
	if (block && block->kind == BLOCK_SLAB) {
		unit = slab_start(block, address);
		found = unit != BLOCKS_NONE;
		if (found)
			*range = (struct memory_range){
				.base = block->base + (uint64_t)unit * SLAB_UNIT,
				.bytes = block->slab->bytes[unit],
				.id = block->slab->id[unit],
				.device = block->device,
				.context = block->context};
	} else if (block &&
		   (block->kind == BLOCK_RESERVED || address - block->base < block->bytes)) {
		*range = (struct memory_range){.base = block->base,
			.bytes = block->bytes,
			.id = block->id,
			.device = block->device,
			.context = block->context,
			.async = block->async,
			.reserved = block->kind == BLOCK_RESERVED};
		found = true;
	} else if (!w && (global = globals_find(address))) {
		*range = (struct memory_range){.base = global->address,
			.bytes = global->bytes,
			.id = global->id,
			.device = global->device,
			.context = (uint16_t)CONTEXT_PRIMARY(device_wire(global->device)),
			.global = true};
		found = true;
	}
	pthread_mutex_unlock(&heap.lock);
	return found;
}

bool memory_inside(CUdeviceptr address, size_t bytes)
{
	struct memory_range range;

	for (;;) {
		uint64_t here;

		if (!memory_find(address, &range))
			return false;
		here = range.base + range.bytes - address;
		if (bytes <= here)
			return true;
		/* Neighbours in mapped address ranges (VMM) may be copied as one. */
		address += here;
		bytes -= here;
	}
}

bool memory_in_window(CUdeviceptr address, int *device)
{
	struct window *w = window_of(address);
	struct memory_range range;

	if (w) {
		*device = (int)(w - heap.windows);
		return true;
	}
	if (!globals_any() || !memory_find(address, &range))
		return false;
	*device = range.device;
	return true;
}

void memory_global(int device, CUdeviceptr address, size_t bytes)
{
	pthread_mutex_lock(&heap.lock);
	globals_put(&(struct global){
		.address = address, .bytes = bytes, .id = ++heap.last_id, .device = device});
	pthread_mutex_unlock(&heap.lock);
}

void memory_reset(int device, uint64_t kept)
{
	struct window *w = &heap.windows[device];
	uint64_t count = w->bytes / w->granularity;
	size_t waiting = heap.freed_first;

	pthread_mutex_lock(&heap.lock);
	for (size_t i = heap.freed_first; i < heap.freed_next; i++)
		if (heap.freed_list[i].device != device)
			heap.freed_list[waiting++] = heap.freed_list[i];
	heap.freed_next = waiting;
	for (uint64_t i = 0; (w->mapped || w->reservations) && i < count; i++) {
		struct block *block = w->granule[i];

		if (!block)
			continue;
		if (block->kind == BLOCK_RESERVED)
			w->reservations--;
		else
			w->mapped -= block->size;
		granules_set(w, block->base, block->size, NULL);
		free(block->slab);
		free(block);
	}
	w->slabs = NULL;
	w->mapped = kept;
	w->free.count = 0;
	free_extents_put(&w->free, 0, count);
	pthread_mutex_unlock(&heap.lock);
}

/* ---- for vmm.c ---- */

CUresult memory_reserve(int device, size_t bytes, CUdeviceptr wanted, CUdeviceptr *address)
{
	struct window *w = &heap.windows[device];
	struct block *block;
	CUresult status;

	pthread_mutex_lock(&heap.lock);
	reap();
	status = CUDA_ERROR_INVALID_VALUE;
	if (bytes && !(bytes % w->granularity)) {
		bool hinted = window_of(wanted) == w && !(wanted % w->granularity);

		block = block_new(w, BLOCK_RESERVED, bytes,
			hinted ? (wanted - w->base) / w->granularity : FREE_EXTENTS_NONE,
			&status);
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
	block = block_at(address, &w);
	if (block && block->kind == BLOCK_RESERVED && block->base == address &&
		block->size == bytes) {
		granules_set(w, address, bytes, NULL);
		w->reservations--;
		/* Work in flight must not meet the next owner there. */
		heap.freed_unticketed = 0;
		post_unmap(block->device, 0, 0, ++heap.last_ticket);
		freed_push(&(struct freed){.ticket = heap.last_ticket,
			.address = address,
			.size = bytes,
			.device = block->device});
		free(block);
		status = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&heap.lock);
	return status;
}

CUresult memory_promise(int device, size_t bytes)
{
	struct window *w = &heap.windows[device];
	CUresult status;

	pthread_mutex_lock(&heap.lock);
	reap();
	status = lease(w, bytes);
	if (!status)
		w->mapped += bytes;
	pthread_mutex_unlock(&heap.lock);
	return status;
}

void memory_unpromise(int device, size_t bytes)
{
	pthread_mutex_lock(&heap.lock);
	heap.windows[device].mapped -= bytes;
	pthread_mutex_unlock(&heap.lock);
}
