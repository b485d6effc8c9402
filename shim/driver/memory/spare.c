/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that were freed and stay mapped for the next allocation of their size. A program or a
 * library that takes its workspace anew in each step would have memory mapped and unmapped in
 * each, which holds up the worker: MAGMA takes 16 MiB for each factorization of a batch, and to
 * map them took it 40 us on an H200, a tenth of the factorization.
 */
#include "shim/driver/memory/heap.h"

#include "shim/driver/stream/function_order.h"
#include "shim/engine/engine.h"

#define SPARE_LARGEST (32u << 20)
#define SPARE_BYTES (64u << 20) /* of a device */

bool spare_keep(struct block *block)
{
	struct window *w = &heap.windows[block->device];
	const struct freed freed = {.ticket = freed_queue(block->device)->last_ticket + 1,
		.address = block->base,
		.size = block->size,
		.whole = block,
		.device = block->device};

	if (!(shim_perf & PERF_SLAB) || !block->plain || block->size > SPARE_LARGEST ||
		w->spare_bytes + block->size > SPARE_BYTES || !freed_push(&freed))
		return false;
	heap_granules_set(w, block->base, block->size, NULL);
	w->spare_bytes += block->size;
	freed_post(block->device, 0, 0);
	return true;
}

void spare_put(struct block *block)
{
	struct window *w = &heap.windows[block->device];

	block->next = w->spares;
	w->spares = block;
}

static struct block *spare_unlink(struct window *w, struct block **at)
{
	struct block *block = *at;

	*at = block->next;
	block->next = NULL;
	w->spare_bytes -= block->size;
	return block;
}

struct block *spare_get(struct window *w, uint64_t size, bool async)
{
	uint16_t owner = heap_owner(w, async);
	struct block *block;

	for (struct block **at = &w->spares; *at; at = &(*at)->next) {
		if ((*at)->size != size || (*at)->context != owner || (*at)->async != async)
			continue;
		block = spare_unlink(w, at);
		block->id = ++heap.last_id;
		heap_granules_set(w, block->base, block->size, block);
		return block;
	}
	return NULL;
}

/* Does one wait for its ticket? */
static bool spare_coming(struct window *w, uint64_t size, bool async)
{
	const struct freed_queue *q = freed_queue((int)(w - heap.windows));
	const uint16_t owner = heap_owner(w, async);

	for (size_t i = q->first; i < q->next; i++) {
		const struct block *block = q->list[i].whole;

		if (block && block->size == size && block->context == owner &&
			block->async == async)
			return true;
	}
	return false;
}

struct block *spare_await(struct window *w, uint64_t size, bool async)
{
	if (heap_leased(w, size) || function_outstanding() || !spare_coming(w, size, async) ||
		freed_await((int)(w - heap.windows)))
		return NULL;
	freed_reap();
	return spare_get(w, size, async);
}

void spare_trim(struct window *w)
{
	while (w->spares)
		heap_block_free(spare_unlink(w, &w->spares));
}
