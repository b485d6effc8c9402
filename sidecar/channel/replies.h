/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from the agent into the segment.  A payload goes straight from the socket to its
 * destination once that place was checked; the answer is published after it.  One that a stripe
 * brings is received by that stripe's thread, so frames are read ahead of it; they take effect
 * in their order all the same.  Whatever does not fit the rules ends the session: -EPROTO with
 * a text.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_REPLIES_H
#define VCUDA_SIDECAR_CHANNEL_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "transport/ring.h"
#include "sidecar/channel/timing.h"
#include "transport/transport.h"

/* What is read ahead. Small: the payload bytes in it are copied once more. */
#define REPLIES_BUFFER (16u * 1024)
/* No frame of the agent has more body: a slot's data and the destination before it. */
#define REPLIES_BODY_MAX (CHANNEL_SLOT_BODY + sizeof(struct frame_destination))

/* Frames that wait for a stripe, and those behind them: 32 pieces keep four stripes busy. */
#define REPLIES_AHEAD 32u

/* A frame that is here but, maybe, for its payload. */
struct replies_frame {
	struct frame_header header;
	bool done;	 /* it did its work before: it is only counted */
	unsigned stripe; /* that brings its payload; 0: none does */
	uint32_t ticket; /* stripes_landed's */
	unsigned char body[REPLIES_BODY_MAX];
};

struct replies {
	struct channel_page *page;	/* shared; only written */
	struct channel_slot *slots;	/* shared; only written, but for `sleeping` */
	_Atomic uint64_t *counters;	/* shared; only written */
	struct channel_upcall *upcalls; /* shared; only written */
	struct ring *ring;
	const struct segments *segments;
	struct stripes *stripes; /* NULL: there are none */
	struct timing *timing;	 /* NULL: nothing is timed */
	uint64_t upcall_tail;
	bool upcalls_full; /* reading pauses until the app takes some */
	bool overlaps;	   /* reading pauses until a stripe has brought what lies there first */
	bool ping;	   /* a PING came: answer it */
	bool closed;	   /* the agent did, in order */
	bool lost;	   /* FRAME_LOST came: status and text */
	uint32_t status;
	char text[200];
	uint64_t frames, bytes;	    /* received over the link */
	uint64_t numbered;	    /* of the frames, those that count (frame.h) */
	bool again;		    /* the next of these may have done its work already */
	uint64_t given, given_call; /* `giving`, as the sidecar before this one left it */
	uint64_t landed;	    /* bytes of payloads of them */
	/* Frames whose turn has not come: a ring. */
	uint32_t first, count;
	bool losing; /* LOST is the last of them: nothing comes behind it */
	struct replies_frame ahead[REPLIES_AHEAD];
	/* The frame that is here last, and its payload on its way. */
	struct replies_frame frame;
	bool in_payload;
	unsigned char *land; /* NULL: nowhere */
	uint32_t left;
	/* Read and not parsed. */
	size_t at, n;
	unsigned char buffer[REPLIES_BUFFER];
};

/* Reads what is there, at most about `budget` bytes. > 0: bytes taken; 0: nothing now (or
 * paused by upcalls_full, or `lost` is set); -ECONNRESET where the agent closed; -EPROTO or
 * another -errno, each with *error. */
ssize_t replies_receive(
	struct replies *replies, struct link *link, size_t budget, struct error *error);

/* Some frames wait for payloads that stripes bring; their places must stay. */
static inline bool replies_wait(const struct replies *replies)
{
	return replies->count;
}
/* The first of these is here, and the program has room for it. */
bool replies_ready(const struct replies *replies);
/* Nothing is read off the link now. */
bool replies_paused(const struct replies *replies);

/* The connection is gone: what was not counted is as if it had never come. */
void replies_drop_input(struct replies *replies);

/* The sidecar before this one left CARRY, a copy, and died: maybe behind what the frame did
 * that it had not counted yet, which then is not done twice.  0, or -EPROTO: the page cannot
 * be. */
int replies_adopt(struct replies *replies, const struct channel_carry *carry);

/* Answers a slot: status only, or with data. Wakes the thread that waits. */
void replies_answer(struct replies *replies, const struct frame_header *header,
	const void *data, uint32_t bytes, uint32_t payload);

#endif
