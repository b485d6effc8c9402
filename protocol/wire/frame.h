/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame: what travels between shim, sidecar and agent.  One fixed header of 32 bytes, a
 * body (the fixed struct of its op, with byte runs behind it), and a payload (bulk bytes of a
 * copy). Little-endian, natural alignment; both ends are x86-64 or aarch64.
 *
 * Sequence and acknowledgement.  The shim numbers its frames 1, 2, 3 …; the agent's frames
 * carry in `seq` the highest number that the worker has taken over, so every one of them
 * acknowledges. A frame stays in the ring until it is acknowledged: that is what a resumed
 * session re-sends. POST, CALL and BYE are numbered; PING and PONG from the sidecar carry seq 0
 * and stand outside.
 *
 * The other way frames are counted by both ends, all but PING and PONG, where both know
 * SESSION_FEATURE_RESUME; the worker keeps what it sent until the sidecar has counted it, and
 * says so in the `status` of each POST and CALL on the wire and in the `seq` of a TAKEN: the
 * low 32 bits of the count.  docs/RESUME.md has the whole of it.
 *
 * In the ring an entry is header, struct frame_bulk where FRAME_BULK is set, body (and, without
 * FRAME_BULK, an inline payload), rounded up to 16 bytes and never wrapped around the ring's
 * end: a FRAME_PAD (a bare header: no seq, length is of no matter) skips to the ring's start,
 * and where fewer than 32 bytes remain before the end both sides skip them without one.
 */
#ifndef VCUDA_PROTOCOL_WIRE_FRAME_H
#define VCUDA_PROTOCOL_WIRE_FRAME_H

#include <stdint.h>

#define FRAME_MAGIC 0xCDA1u

/* Limits, checked by every receiver before anything else is done with a frame. */
#define FRAME_BODY_MAX (60u * 1024)  /* a quarter of the smallest ring; params are <= 32 KiB */
#define FRAME_PAYLOAD_MAX (1u << 20) /* one chunk of a copy: 1 MiB */
#define FRAME_CHUNK (512u * 1024)    /* what copies are cut into */
/* A payload in pinned memory that program and worker share: the GPU pauses 2.8 us between two
 * pieces of a copy (H200), so that pieces of 512 KiB reach 0.78 of its rate and these 0.93. Two
 * of them and their alignment fit into the smallest staging memory, of 4 MiB. */
#define FRAME_LENT_MAX ((2u << 20) - (64u << 10))

enum frame_kind {
	/* app -> agent */
	FRAME_POST = 1, /* not awaited */
	FRAME_CALL = 2, /* awaited: a FRAME_REPLY with the same tag comes back */
	/* agent -> app */
	FRAME_REPLY = 16,  /* body: the op's reply struct, byte runs behind it.  With a payload
			    * the  body begins with struct frame_destination */
	FRAME_DATA = 17,   /* body: struct frame_destination; payload: bytes for that place */
	FRAME_UPDATE = 18, /* body: struct frame_update */
	FRAME_UPCALL = 19, /* body: struct frame_upcall */
	FRAME_ACK = 20,	   /* no body; `seq` is all it says */
	FRAME_LOST = 21,   /* the session is over: status = CUresult, body = text (no NUL) */
	/* both */
	FRAME_PAD = 31, /* in the ring only: skip to the ring's start */
	/* Sidecar <-> worker only; answered with FRAME_PONG, which also comes unasked: a
	 * sidecar that runs says something at least every 3 s, a worker in a long call each
	 * second. */
	FRAME_PING = 32,
	FRAME_PONG = 33,
	FRAME_BYE = 34,	  /* orderly end of the session by the app or the sidecar */
	FRAME_TAKEN = 35, /* sidecar -> worker, SESSION_FEATURE_RESUME: `seq` is how many of the
			   * worker's frames it has counted */
};

/* frame_header.flags */
#define FRAME_BULK                                                                             \
	0x01u /* in the ring only: a struct frame_bulk stands between header and body,         \
	       * and the payload lies where it says */
#define FRAME_STRIPE_SHIFT 4
#define FRAME_STRIPE_MASK                                                                      \
	0x70u /* on the wire only: not 0: the payload, not empty, comes over that stripe of    \
	       * the session (session.h) */

struct frame_header {
	uint32_t length; /* bytes behind this header on the wire: body + payload */
	uint16_t op;	 /* OP_…; 0 where the kind says all */
	uint8_t kind;	 /* enum frame_kind */
	uint8_t flags;
	uint64_t seq;	  /* see the top of this file */
	uint32_t body;	  /* bytes of `length` that are body; the rest is payload */
	uint16_t tag;	  /* CALL and REPLY: the slot that waits, < CHANNEL_SLOTS */
	uint16_t context; /* app -> agent: which CUcontext is current (CONTEXT_… in handle.h) */
	uint32_t status;  /* REPLY: the call's CUresult; POST, CALL on the wire: see the top */
	uint16_t magic;	  /* FRAME_MAGIC */
	uint16_t deferred; /* REPLY: CUresult of the first post that failed since the last reply
			    */
};
_Static_assert(sizeof(struct frame_header) == 32, "the header is 32 bytes on the wire");

/* Where bulk bytes lie on the app's side. Segment 0 is the channel's own (channel.h), others
 * are pinned host memory that the sidecar handed out. */
struct frame_bulk {
	uint32_t segment;
	uint32_t length;
	uint64_t offset;
};
_Static_assert(sizeof(struct frame_bulk) == 16, "");

/* First in the body of a REPLY or DATA that has a payload: the place that the request named.
 * The sidecar checks it against the channel's own segments: in segment 0 only the bounce
 * region is allowed. */
struct frame_destination {
	uint32_t segment;
	uint32_t reserved;
	uint64_t offset;
};
_Static_assert(sizeof(struct frame_destination) == 16, "");

/* Sets counters[index] = value in the segment and wakes who waits for it. */
struct frame_update {
	uint32_t index; /* < CHANNEL_COUNTERS */
	uint32_t reserved;
	uint64_t value;
};

/* Appends to the segment's upcall ring (host functions to run in the app). */
struct frame_upcall {
	uint32_t what; /* enum upcall in channel.h */
	uint32_t reserved;
	uint64_t value;
};

/* A byte run inside a body: `offset` from the body's start, at or behind the fixed struct. */
struct wire_run {
	uint32_t offset;
	uint32_t length;
};

#endif
