/* SPDX-License-Identifier: Apache-2.0
 *
 * The producer's half of the channel: frames into the ring, captured bytes into the arena.
 * Nothing here waits: where there is no room the answer is NULL, and the engine decides how
 * long to be patient.  One short lock orders the frames of all threads; bytes are copied into
 * the arena outside of it, so blocks of the arena are given out in one order and may be
 * published in another; they are released first in, first out, once the frame that named them
 * is acknowledged.
 */
#ifndef VCUDA_SHIM_ENGINE_RING_H
#define VCUDA_SHIM_ENGINE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>

#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"
#include "shim/engine/lock.h"

/* Blocks of the arena in flight. A frame with a block takes at least 96 bytes of ring. */
#define RING_BLOCKS 8192u

struct ring_block {
	uint64_t end;	    /* arena count behind it */
	uint64_t frame_end; /* ring count behind the frame that names it; RING_PENDING before
			       that */
};
#define RING_PENDING UINT64_MAX

struct ring {
	struct channel_page *page;
	unsigned char *bytes;
	unsigned char *arena;
	uint64_t size;
	uint64_t arena_size;
	uint64_t arena_offset; /* of the arena in the segment */
	uint64_t arena_ready;  /* bytes of it that have memory; under the lock */
	/* Of the others, as the page said when it was checked; it may say something else now.
	 */
	uint64_t bounce, bounce_size, slots, counters, upcalls;
	uint32_t lent_most; /* of a payload in pinned memory: FRAME_CHUNK … FRAME_LENT_MAX */
	uint32_t streams;   /* for the payloads of one copy: 1 … SESSION_STRIPES */

	_Alignas(64) _Atomic uint32_t lock; /* 0 free, 1 held, 2 held and someone sleeps */
	uint64_t tail;			    /* free-running, like page->tail */
	uint64_t head;			    /* page->head as last looked at */
	bool separate;			    /* the arena is given back by page->captured … */
	uint64_t captured;		    /* … which, or the head, said this last */
	uint64_t seq;			    /* number of the last frame */
	uint64_t arena_tail;
	uint64_t arena_head;
	uint32_t block_first; /* free-running indices into blocks */
	uint32_t block_next;
	struct ring_block blocks[RING_BLOCKS];
};

/* Checks the sizes that the page claims against the segment's real size. False: do not use it.
 */
bool ring_init(struct ring *ring, struct channel_page *page, uint64_t segment_bytes);

/* What nearly every frame needs is in line here, and what it seldom needs in ring.c. */
void ring_lock_slow(struct ring *ring);
void ring_unlock_slow(struct ring *ring);
static inline void ring_lock(struct ring *ring)
{
	uint32_t free = 0;

	lock_order_acquire(ring);
	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(&ring->lock, &free, 1,
				     memory_order_acquire, memory_order_relaxed),
		    0))
		ring_lock_slow(ring);
}
static inline void ring_unlock(struct ring *ring)
{
	lock_order_release(ring);
	if (__builtin_expect(
		    atomic_exchange_explicit(&ring->lock, 0, memory_order_release) == 2, 0))
		ring_unlock_slow(ring);
}

/* With the lock held: room for a frame of header + (bulk) + *body bytes, or NULL. Numbers the
 * frame; fills magic, seq and body in the header. *body may grow by up to 31 zero bytes. The
 * caller fills the rest in and publishes. Frames are <= FRAME_BODY_MAX of body. */
#define RING_ALIGN 16u
struct frame_header *ring_begin_slow(struct ring *ring, uint32_t *body, bool bulk);
static inline struct frame_header *ring_number(
	struct ring *ring, uint64_t position, uint64_t bytes, uint32_t body, bool bulk)
{
	struct frame_header *header = (struct frame_header *)(ring->bytes + position);

	*header = (struct frame_header){.seq = ++ring->seq,
		.length = body,
		.body = body,
		.flags = bulk ? FRAME_BULK : 0,
		.magic = FRAME_MAGIC};
	ring->tail += bytes;
	return header;
}
static inline struct frame_header *ring_begin(struct ring *ring, uint32_t *body, bool bulk)
{
	const uint32_t fixed = (uint32_t)sizeof(struct frame_header) +
			       (bulk ? (uint32_t)sizeof(struct frame_bulk) : 0);
	const uint64_t position = ring->tail & (ring->size - 1);
	const uint64_t frame = (fixed + *body + RING_ALIGN - 1) & ~(uint64_t)(RING_ALIGN - 1);

	/* Not at the ring's end, and there is room without looking at the consumer's index. */
	if (__builtin_expect(frame + RING_ALIGN >= ring->size - position ||
				     ring->size - (ring->tail - ring->head) < frame,
		    0))
		return ring_begin_slow(ring, body, bulk);
	return ring_number(ring, position, frame, *body, bulk);
}

/* With the lock held: makes what ring_begin gave out visible. */
static inline void ring_publish(struct ring *ring)
{
	atomic_store_explicit(&ring->page->tail, ring->tail, memory_order_release);
}

/* With the lock held: N bytes (n <= arena_size / 2, and FRAME_PAYLOAD_MAX) of arena, their
 * offset in the segment in *offset, and the block's number in *block; NULL where there is no
 * room now. While only CHANNEL_FIRST bytes have memory, it begins at the front again once all
 * is back. */
void *ring_arena(struct ring *ring, uint32_t n, uint64_t *offset, uint32_t *block);

/* With the lock held: block is named by the frame that ring_begin gave out last (or by none:
 * abandoned). */
void ring_arena_named(struct ring *ring, uint32_t block);
/* What says how much of the arena was given back. */
const _Atomic uint64_t *ring_arena_released(const struct ring *ring);
void ring_arena_abandon(struct ring *ring, uint32_t block);

/* The consumer's INDEX has gone on since it was BEFORE. One that went back is of a page that
 * the sidecar emptied: no room comes of it, and who took it for some would look for ever. */
static inline bool ring_risen(const _Atomic uint64_t *index, uint64_t before)
{
	return (int64_t)(atomic_load_explicit(index, memory_order_acquire) - before) > 0;
}

#endif
