/* SPDX-License-Identifier: Apache-2.0
 *
 * Small allocations, cut from slabs: see heap.h.
 */
#include "shim/driver/memory/heap.h"

#include <stdlib.h>

static struct block *slab_new(struct window *w, bool async, CUresult *status)
{
	struct slab *slab = calloc(1, sizeof(*slab));
	struct block *block;

	*status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!slab)
		return NULL;
	block = heap_block_new(w, BLOCK_SLAB, w->slab_size, FREE_EXTENTS_NONE, async, status);
	if (!block) {
		free(slab);
		return NULL;
	}
	blocks_init(&slab->map, BLOCKS_MAX);
	block->slab = slab;
	block->next = w->slabs;
	w->slabs = block;
	w->empty_slabs++;
	return block;
}

CUresult slab_alloc(struct window *w, size_t bytes, bool async, CUdeviceptr *address)
{
	uint16_t owner = heap_owner(w, async);
	uint32_t units = (uint32_t)((bytes + SLAB_UNIT - 1) / SLAB_UNIT);
	struct block *block;
	uint32_t unit = BLOCKS_NONE;
	CUresult status;

	for (block = w->slabs; block; block = block->next) {
		if (block->context != owner || block->async != async)
			continue;
		unit = blocks_alloc(&block->slab->map, units);
		if (unit != BLOCKS_NONE)
			break;
	}
	if (!block) {
		freed_ticket_chunks((int)(w - heap.windows));
		block = slab_new(w, async, &status);
		if (!block)
			return status;
		unit = blocks_alloc(&block->slab->map, units);
	}
	if (!block->slab->live++)
		w->empty_slabs--;
	block->slab->starts[unit / 64] |= 1ull << unit % 64;
	block->slab->bytes[unit] = (uint32_t)bytes;
	block->slab->id[unit] = ++heap.last_id;
	*address = block->base + (uint64_t)unit * SLAB_UNIT;
	return CUDA_SUCCESS;
}

uint32_t slab_start(const struct block *block, uint64_t address)
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

void slab_free(struct block *block)
{
	if (++heap.windows[block->device].empty_slabs > SLABS_SPARE)
		slab_drop(block);
}

/* Whether the owner has another one. */
static bool slab_other(const struct block *block)
{
	const struct block *other = heap.windows[block->device].slabs;

	while (other && (other == block || other->context != block->context ||
				other->async != block->async))
		other = other->next;
	return other;
}

void slab_trim(struct window *w, bool last)
{
	for (struct block *block = w->slabs, *next; block && w->empty_slabs; block = next) {
		next = block->next;
		if (!block->slab->live && (last || slab_other(block)))
			slab_drop(block);
	}
}

void slab_drop(struct block *block)
{
	struct block **at = &heap.windows[block->device].slabs;

	while (*at != block)
		at = &(*at)->next;
	*at = block->next;
	if (!block->slab->live)
		heap.windows[block->device].empty_slabs--;
	free(block->slab);
	heap_block_free(block);
}
