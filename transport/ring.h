/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's consumer.  Its memory belongs to a hostile peer: the tail is loaded once a turn, a
 * header is copied before it is looked at, and sizes, positions and what was handed out are
 * kept here, never read back.  Entries stay until the agent has acknowledged them.
 */
#ifndef VCUDA_TRANSPORT_RING_H
#define VCUDA_TRANSPORT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"
#include "transport/segments.h"

/* What one entry needs at most in the buffer that ring_pop fills. */
#define RING_ENTRY_MAX (sizeof(struct frame_header) + FRAME_BODY_MAX)

struct ring {
	struct channel_page *page;  /* shared */
	const unsigned char *bytes; /* shared */
	uint64_t size;		    /* power of two */
	const struct segments *segments;
	uint32_t pinned_most;  /* of a payload in a segment that is not 0; of others
				  FRAME_PAYLOAD_MAX */
	uint64_t taken;	       /* byte count up to which entries were taken */
	uint64_t released;     /* what page->head says */
	uint64_t last;	       /* sequence number of the last entry taken, 0 = none */
	uint64_t highest;      /* that was ever taken: up to it entries go out again */
	bool counts;	       /* what goes on the wire says how many frames came back … */
	uint32_t counted;      /* … by then */
	uint64_t acknowledged; /* by the agent */
	uint64_t *ends;	       /* [seq % (size / 32)]: byte count behind that entry */
	uint64_t waiting[CHANNEL_SLOTS / 64]; /* tags of calls that are not answered */
	uint64_t calls[CHANNEL_SLOTS];	      /* sequence numbers of these */
	bool bye;			      /* BYE was taken: nothing may follow */
};

struct ring_entry {
	struct frame_header header; /* as it goes on the wire */
	uint32_t bytes;		    /* in the buffer: header, body, inline payload */
	const void *bulk; /* payload in shared memory: opaque, it may change; or NULL */
	uint32_t bulk_bytes;
	uint32_t segment; /* where bulk lies */
};

/* `page` and `segments` outlive the ring. -ENOMEM. */
int ring_consumer_init(struct ring *ring, struct channel_page *page, const void *bytes,
	uint64_t size, const struct segments *segments);
void ring_fini(struct ring *ring);

/* Something is there that was not taken. */
bool ring_waiting(const struct ring *ring);

/* Takes one entry: header and body into buffer (RING_ENTRY_MAX bytes), the rest by pointer. 1;
 * 0 where there is none; -EPROTO with *error saying what the app did wrong. */
int ring_pop(struct ring *ring, unsigned char *buffer, struct ring_entry *entry,
	struct error *error);

/* The agent has taken over everything up to SEQ: releases it. -EPROTO where it cannot have. */
int ring_acknowledge(struct ring *ring, uint64_t seq);

/* What stands behind entry TAKEN is taken again: the connection that it went over is gone, and
 * the agent has not taken it over. -EPROTO where that cannot be. */
int ring_rewind(struct ring *ring, uint64_t taken);

/* The ring is another sidecar's, which is gone; the agent has taken over everything up to
 * TAKEN. What is not released is checked as ring_pop does it, into BUFFER; what stands behind
 * TAKEN is taken next. SLOTS say which calls wait. 0; -EPROTO with *error: ring and agent do
 * not fit together. */
int ring_adopt(struct ring *ring, uint64_t taken, const struct channel_slot *slots,
	unsigned char *buffer, struct error *error);

/* Entries taken and not acknowledged. */
static inline uint64_t ring_in_flight(const struct ring *ring)
{
	return ring->last - ring->acknowledged;
}

/* A call with that tag waits for its answer. */
static inline bool ring_waits(const struct ring *ring, uint16_t tag)
{
	return tag < CHANNEL_SLOTS && ring->waiting[tag / 64] >> tag % 64 & 1;
}
static inline bool ring_any_waits(const struct ring *ring)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < CHANNEL_SLOTS / 64; i++)
		any |= ring->waiting[i];
	return any;
}
static inline void ring_answered(struct ring *ring, uint16_t tag)
{
	ring->waiting[tag / 64] &= ~(1ull << tag % 64);
}

#endif
