/* SPDX-License-Identifier: Apache-2.0
 *
 * What was freed and waits for the worker: see heap.h.
 */
#include "shim/driver/memory/heap.h"

#include <stdlib.h>
#include <string.h>

#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/engine/completion.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"

struct freed_queue *freed_queue(int device)
{
	return &heap.freed[devices.at[device].agent];
}

bool freed_push(const struct freed *freed)
{
	struct freed_queue *q = freed_queue(freed->device);

	if (q->next == q->room && q->first) {
		memmove(q->list, q->list + q->first, (q->next - q->first) * sizeof(*q->list));
		q->next -= q->first;
		q->first = 0;
	}
	if (q->next == q->room) {
		size_t room = q->room ? 2 * q->room : 256;
		struct freed *list = realloc(q->list, room * sizeof(*list));

		if (!list)
			return false; /* never used again: safe */
		q->list = list;
		q->room = room;
	}
	q->list[q->next++] = *freed;
	return true;
}

/* The ticket's post. The lock is held, so tickets are in the ring in their order. */
uint64_t freed_post(int device, uint64_t address, uint64_t bytes)
{
	struct freed_queue *q = freed_queue(device);
	struct session_visit visit = device_visit(device);

	q->unticketed = 0;
	q->unticketed_bytes = 0;
	/* Where it fails the session is lost, and so is what waits. */
	send_vcudaMemUnmap(device_wire(device), address, bytes, ++q->last_ticket);
	session_leave(visit);
	return q->last_ticket;
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
	if (freed->whole) {
		spare_put(freed->whole);
		return;
	}
	w->mapped -= freed->backed;
	free_extents_put(&w->free, (freed->address - w->base) / w->granularity,
		freed->size / w->granularity);
}

static uint64_t unmapped(int device)
{
	struct session_visit visit = device_visit(device);
	uint64_t done = completion_read(COUNTER_UNMAPPED);

	session_leave(visit);
	return done;
}

static void queue_reap(struct freed_queue *q)
{
	uint64_t done;

	if (q->first == q->next)
		return;
	done = unmapped(q->list[q->first].device);
	/* freed_done may push, and move the list: take a copy. */
	while (q->first < q->next && q->list[q->first].ticket <= done) {
		struct freed freed = q->list[q->first++];

		freed_done(&freed);
	}
	if (q->first == q->next)
		q->first = q->next = 0;
}

void freed_reap(void)
{
	for (unsigned i = 0; i < session_count; i++)
		queue_reap(&heap.freed[i]);
}

void freed_forget(const struct block *slab)
{
	struct freed_queue *q = freed_queue(slab->device);
	size_t kept = q->first;

	for (size_t i = q->first; i < q->next; i++)
		if (q->list[i].slab != slab)
			q->list[kept++] = q->list[i];
	q->next = kept;
}

void freed_ticket_chunks(int device)
{
	if (freed_queue(device)->unticketed)
		freed_post(device, 0, 0);
}

void freed_unmap(struct window *w, uint64_t address, uint64_t size)
{
	int device = (int)(w - heap.windows);

	freed_push(&(struct freed){.ticket = freed_post(device, address, size),
		.address = address,
		.size = size,
		.backed = size,
		.device = device});
}

static void heap_trim(struct window *w)
{
	slab_trim(w, false);
	spare_trim(w);
}

static bool all_unmapped(void *ticket)
{
	return completion_read(COUNTER_UNMAPPED) >= *(uint64_t *)ticket;
}

CUresult freed_await(int device)
{
	struct session_visit visit = device_visit(device);
	uint64_t ticket = freed_queue(device)->last_ticket;
	CUresult status = shim_wait_until(all_unmapped, &ticket);

	session_leave(visit);
	return status;
}

CUresult freed_drain(int device)
{
	struct freed_queue *q = freed_queue(device);
	CUresult status = CUDA_SUCCESS;

	heap_trim(&heap.windows[device]);
	freed_ticket_chunks(device);
	/* Twice: slabs that become empty only then, and blocks that were to stay, go to the
	 * worker with one more ticket. */
	for (int i = 0; !status && i < 2 && q->first != q->next; i++) {
		status = freed_await(device);
		if (!status) {
			freed_reap();
			heap_trim(&heap.windows[device]);
		}
	}
	return status;
}
