/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between a device here and one of another agent, as direct.c (which there are),
 * direct_piece.c (their bytes) and direct_event.c (what streams wait for) have them.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_COPY_DIRECT_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_COPY_DIRECT_H

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver/copy/copy.h"

/* What the program hears of a copy that a lost connection ended: sticky nowhere. */
#define COPY_BROKEN CUDA_ERROR_OPERATING_SYSTEM

struct direct_copy {
	struct direct_copy *next;
	struct direct_link *link;
	uint64_t id, serial;
	uint64_t seq; /* of its frame */
	bool sends;   /* the bytes are here */
	bool turn;    /* the stream has come to it */
	bool ready;   /* the other end is, where this one sends */
	bool over;    /* failed: kept until no fence names it */
	uint32_t fences;
	uint32_t device;
	struct copy_side side;
	struct direct_box box;
	uint64_t total;
	uint64_t under_way; /* bytes that were put on the stream */
	struct direct_hold hold;
};

/* NULL: none, or it failed. */
struct direct_copy *direct_copy_find(
	const struct worker *w, const struct direct_link *l, uint64_t id, bool sends);
/* Nobody waits for it any more. */
void direct_copy_end(struct worker *w, struct direct_copy *copy);
/* The same, and the next call that waits hears STATUS; with SAY the other end does, too. Where
 * that cannot be said the connection breaks: other copies are gone then. */
void direct_copy_fail(struct worker *w, struct direct_copy *copy, CUresult status, bool say);
/* The stream of that device's copies; NULL: none can be had. */
struct worker_stream *direct_copy_stream(struct worker *w, uint32_t device);
/* Tells the loop when what STREAM has so far is done. */
CUresult direct_copy_fence(
	struct worker *w, struct direct_copy *copy, struct worker_stream *stream);

/* --- direct_piece.c --- */
void direct_piece_forget(struct worker *w, const struct direct_copy *copy);
void direct_piece_forget_context(struct worker *w, uint16_t context);

/* --- direct_event.c --- */
/* SIGNAL came. False: nobody waits for it yet. */
bool direct_event_heard(struct worker *w, struct direct_link *l, uint64_t id);
/* Who waits for the other end goes on. */
void direct_event_fail(struct worker *w, struct direct_link *l);
/* Streams that listen are there, as many as a program of a few threads has use for. */
void direct_event_prepare(struct worker *w);

#endif
