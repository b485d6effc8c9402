/* SPDX-License-Identifier: Apache-2.0
 *
 * The producer of the command ring and its arena: see ring.h.
 */
#include "shim/engine/ring.h"

#include <stddef.h>
#include <string.h>

#include "common/wait.h"
#include "protocol/wire/session.h"
#include "shim/engine/lock.h"

#define ARENA_ALIGN 64u
/* Tries before the lock's waiter sleeps: the lock is held for some 100 ns. */
#define RING_LOCK_SPINS 200

static bool range_inside(uint64_t offset, uint64_t bytes, uint64_t size)
{
	return offset <= size && bytes <= size - offset;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* The part of the page that does not change. A hostile sidecar changes it all the same, so it
 * is read once: what was checked is what is used. */
static struct channel_page page_once(const struct channel_page *page)
{
	struct channel_page once;

	memcpy(&once, page, offsetof(struct channel_page, tail));
	__asm__ volatile("" ::: "memory"); /* nor does the compiler look again */
	return once;
}

bool ring_init(struct ring *ring, struct channel_page *page, uint64_t segment_bytes)
{
	const struct channel_page once = page_once(page);
	uint64_t lent_most;
	uint32_t streams;

	if (once.magic != CHANNEL_MAGIC || once.version != CHANNEL_VERSION ||
		once.size > segment_bytes)
		return false;
	if (!power_of_two(once.ring_size) || once.ring_size < 4u * (FRAME_BODY_MAX + 64u) ||
		!power_of_two(once.arena_size) || once.arena_size < 2u * FRAME_CHUNK ||
		once.bounce_size < FRAME_CHUNK)
		return false;
	if (!range_inside(once.ring, once.ring_size, segment_bytes) ||
		!range_inside(once.arena, once.arena_size, segment_bytes) ||
		!range_inside(once.bounce, once.bounce_size, segment_bytes) ||
		!range_inside(once.slots, CHANNEL_SLOTS * sizeof(struct channel_slot),
			segment_bytes) ||
		!range_inside(
			once.counters, CHANNEL_COUNTERS * sizeof(uint64_t), segment_bytes) ||
		!range_inside(once.upcalls, CHANNEL_UPCALLS * sizeof(struct channel_upcall),
			segment_bytes))
		return false;
	if ((once.ring | once.arena | once.bounce | once.slots | once.counters | once.upcalls) %
		64)
		return false;

	/* The blocks are written before they are read: 32 pages that few programs need. */
	memset(ring, 0, offsetof(struct ring, blocks));
	ring->page = page;
	ring->bytes = (unsigned char *)page + once.ring;
	ring->arena = (unsigned char *)page + once.arena;
	ring->size = once.ring_size;
	ring->arena_size = once.arena_size;
	ring->arena_offset = once.arena;
	ring->arena_ready = once.arena_size;
	ring->bounce = once.bounce;
	ring->bounce_size = once.bounce_size;
	ring->slots = once.slots;
	ring->counters = once.counters;
	ring->upcalls = once.upcalls;
	lent_most = atomic_load_explicit(&page->lent_most, memory_order_relaxed);
	ring->lent_most = FRAME_CHUNK;
	if (lent_most > FRAME_CHUNK)
		ring->lent_most =
			lent_most < FRAME_LENT_MAX ? (uint32_t)lent_most : FRAME_LENT_MAX;
	streams = atomic_load_explicit(&page->streams, memory_order_relaxed);
	ring->streams = !streams || streams > SESSION_STRIPES ? 1 : streams;
	return true;
}

void ring_lock_slow(struct ring *ring)
{
	for (int i = 0; i < RING_LOCK_SPINS; i++) {
		uint32_t free = 0;

		wait_relax();
		if (!atomic_load_explicit(&ring->lock, memory_order_relaxed) &&
			atomic_compare_exchange_strong_explicit(&ring->lock, &free, 1,
				memory_order_acquire, memory_order_relaxed))
			return;
	}
	while (atomic_exchange_explicit(&ring->lock, 2, memory_order_acquire))
		wait_sleep(&ring->lock, 2, 50000000u);
}

void ring_unlock_slow(struct ring *ring)
{
	wait_wake(&ring->lock);
}

/* Bytes of ring that are free, looking at the consumer's index only when the last look does not
 * do. An index that cannot be is taken for "nothing released". */
static bool ring_has_room(struct ring *ring, uint64_t need)
{
	uint64_t head;

	if (ring->size - (ring->tail - ring->head) >= need)
		return true;
	head = atomic_load_explicit(&ring->page->head, memory_order_acquire);
	if (head - ring->head > ring->tail - ring->head)
		return false;
	ring->head = head;
	return ring->size - (ring->tail - head) >= need;
}

struct frame_header *ring_begin_slow(struct ring *ring, uint32_t *body, bool bulk)
{
	uint32_t fixed = (uint32_t)sizeof(struct frame_header) +
			 (bulk ? (uint32_t)sizeof(struct frame_bulk) : 0);
	uint64_t position = ring->tail & (ring->size - 1);
	uint64_t left = ring->size - position;
	uint64_t frame = (fixed + *body + RING_ALIGN - 1) & ~(uint64_t)(RING_ALIGN - 1);
	struct frame_header *header;
	uint64_t skip = 0;

	if (frame > left) {
		skip = left;
		position = 0;
		left = ring->size;
	}
	/* A frame that would leave room for half a header at the ring's end takes that too: so
	 * there is always room for a FRAME_PAD. */
	bool stretched = left - frame == RING_ALIGN;

	if (stretched)
		frame += RING_ALIGN;
	if (!ring_has_room(ring, skip + frame))
		return NULL;
	if (stretched) {
		memset(ring->bytes + position + fixed + *body, 0, frame - fixed - *body);
		*body = (uint32_t)(frame - fixed);
	}

	if (skip) {
		header = (struct frame_header *)(ring->bytes + (ring->tail & (ring->size - 1)));
		*header = (struct frame_header){.length = (uint32_t)(skip - sizeof(*header)),
			.kind = FRAME_PAD,
			.magic = FRAME_MAGIC};
	}
	return ring_number(ring, position, skip + frame, *body, bulk);
}

const _Atomic uint64_t *ring_arena_released(const struct ring *ring)
{
	return ring->separate ? &ring->page->captured : &ring->page->head;
}

static void arena_release(struct ring *ring)
{
	uint64_t captured =
		atomic_load_explicit(ring_arena_released(ring), memory_order_acquire);

	if (captured - ring->captured <= ring->tail - ring->captured)
		ring->captured = captured;
	while (ring->block_first != ring->block_next) {
		struct ring_block *block = &ring->blocks[ring->block_first % RING_BLOCKS];

		if (block->frame_end > ring->captured)
			return;
		ring->arena_head = block->end;
		ring->block_first++;
	}
}

/* The next block begins at the arena's front: no block is out. */
static bool arena_restart(struct ring *ring)
{
	arena_release(ring);
	if (ring->block_first != ring->block_next)
		return false;
	ring->arena_tail = (ring->arena_tail + ring->arena_size - 1) & ~(ring->arena_size - 1);
	ring->arena_head = ring->arena_tail;
	return true;
}

void *ring_arena(struct ring *ring, uint32_t n, uint64_t *offset, uint32_t *block)
{
	uint64_t size = ((uint64_t)n + ARENA_ALIGN - 1) & ~(uint64_t)(ARENA_ALIGN - 1);
	uint64_t position = ring->arena_tail & (ring->arena_size - 1);
	uint64_t skip = size > ring->arena_size - position ? ring->arena_size - position : 0;

	if (ring->arena_ready < ring->arena_size && position + size > ring->arena_ready) {
		if (!arena_restart(ring))
			return NULL;
		position = skip = 0;
	}
	if (ring->arena_size - (ring->arena_tail - ring->arena_head) < skip + size ||
		ring->block_next - ring->block_first >= RING_BLOCKS) {
		arena_release(ring);
		if (ring->arena_size - (ring->arena_tail - ring->arena_head) < skip + size ||
			ring->block_next - ring->block_first >= RING_BLOCKS)
			return NULL;
	}
	if (skip)
		position = 0;
	ring->arena_tail += skip + size;
	*block = ring->block_next++;
	ring->blocks[*block % RING_BLOCKS] =
		(struct ring_block){.end = ring->arena_tail, .frame_end = RING_PENDING};
	*offset = ring->arena_offset + position;
	return ring->arena + position;
}

void ring_arena_named(struct ring *ring, uint32_t block)
{
	ring->blocks[block % RING_BLOCKS].frame_end = ring->tail;
}

void ring_arena_abandon(struct ring *ring, uint32_t block)
{
	ring->blocks[block % RING_BLOCKS].frame_end = 0;
}
