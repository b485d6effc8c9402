/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a program's frames took, as its sidecar sees it: a call from the turn that took it
 * out of the ring to the turn that brought its answer, a post to the turn in which the agent
 * acknowledged it.  The turn's own look at the clock serves for all; only an answer that comes
 * in the turn that took its call costs one more.  The channel's thread counts, and another may
 * read meanwhile.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_TIMING_H
#define VCUDA_SIDECAR_CHANNEL_TIMING_H

#include <stdint.h>

#include "common/latency.h"
#include "protocol/generated/op_last.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"

#define TIMING_BATCHES 64
#define TIMING_CALLS 128   /* kinds of calls that are told apart; others count by class only */
#define TIMING_FINE 4	   /* buckets to each doubling of a time, … */
#define TIMING_BUCKETS 128 /* … up to 2^32 ns */

/* One kind of call. */
struct timing_call {
	uint16_t op;
	uint32_t counts[TIMING_BUCKETS];
};

struct timing {
	uint64_t now;	/* of the turn */
	uint64_t taken; /* seq of the last frame; what is sent again counts once */
	struct latency classes[LATENCY_CLASSES];
	/* Calls that wait, by tag. */
	struct timing_wait {
		uint64_t since;
		uint16_t op;
		uint8_t class;
	} waits[CHANNEL_SLOTS];
	/* Posts that were taken in one turn, the oldest first. */
	struct timing_batch {
		uint64_t seq; /* of the last of them */
		uint64_t since;
		uint32_t counts[LATENCY_CLASSES];
	} batches[TIMING_BATCHES];
	unsigned first, count;
	struct timing_batch gathered; /* in this turn */
	uint8_t kinds[OP_LAST + 1];   /* 1 + place in calls; 0: none yet */
	uint32_t call_count;
	struct timing_call calls[TIMING_CALLS];
};

/* A frame was taken out of the ring, for the first time or to be sent again. */
void timing_taken(struct timing *timing, const struct frame_header *header);
/* All that is taken this turn is taken. */
void timing_gathered(struct timing *timing);
void timing_answered(struct timing *timing, uint16_t tag);
/* The agent has taken over everything up to SEQ. */
void timing_acknowledged(struct timing *timing, uint64_t seq);

/* ns below which PART of CALL's answers came, 0 < PART < 1; 0 where none came. */
uint64_t timing_quantile(const struct timing_call *call, double part);
uint64_t timing_count(const struct timing_call *call);

#endif
