/* SPDX-License-Identifier: Apache-2.0
 *
 * What was freed and waits for the worker: see heap.h.
 */
#include "shim/driver/memory/heap.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context.h"
#include "shim/engine/completion.h"
#include "shim/engine/engine.h"

bool freed_push(const struct freed *freed)
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
CUresult freed_post(int device, uint64_t address, uint64_t bytes, uint64_t ticket)
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

void freed_reap(void)
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

void freed_forget(const struct block *slab)
{
	size_t kept = heap.freed_first;

	for (size_t i = heap.freed_first; i < heap.freed_next; i++)
		if (heap.freed_list[i].slab != slab)
			heap.freed_list[kept++] = heap.freed_list[i];
	heap.freed_next = kept;
}

void freed_ticket_chunks(void)
{
	if (!heap.freed_unticketed)
		return;
	heap.freed_unticketed = 0;
	freed_post(0, 0, 0, ++heap.last_ticket);
}

void freed_unmap(struct window *w, uint64_t address, uint64_t size)
{
	int device = (int)(w - heap.windows);

	/* Chunks freed before wait for heap.last_ticket + 1: this one is it. */
	heap.freed_unticketed = 0;
	freed_post(device, address, size, ++heap.last_ticket);
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

CUresult freed_drain(void)
{
	CUresult status = CUDA_SUCCESS;

	freed_ticket_chunks();
	/* Twice: slabs that become empty only then go to the worker with one more ticket. */
	for (int i = 0; !status && i < 2 && heap.freed_first != heap.freed_next; i++) {
		uint64_t ticket = heap.last_ticket;

		status = shim_wait_until(all_unmapped, &ticket);
		if (!status)
			freed_reap();
	}
	return status;
}
