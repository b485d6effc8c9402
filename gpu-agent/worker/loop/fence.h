/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for the GPU.  The loop never blocks in the driver: it records an event, keeps what
 * is to be done after it, and polls.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_FENCE_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_FENCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

struct board;
struct staging_range;
struct worker;
struct worker_stream;

/* What waits for the GPU. */
enum pending_what {
	PENDING_REPLY,	  /* answers `tag` */
	PENDING_COPY_OUT, /* answers `tag`, or pushes FRAME_DATA, with the bytes in staging */
	PENDING_COUNTER,  /* sets counters[counter] = value */
	PENDING_STREAM,	  /* destroys the stream */
	PENDING_UNMAP,	  /* takes the memory away, then sets COUNTER_UNMAPPED */
	PENDING_MIRROR,	  /* answers `tag` with what kernels wrote to host memory, in staging */
	PENDING_DIRECT,	  /* says what another agent waits for (direct.h) */
	PENDING_LOOK,	  /* nothing: a fault before it is noticed though nobody asks */
};
struct pending_event {
	CUevent event;
	struct worker_stream *stream; /* NULL: not a stream's, or the stream is gone */
	uint16_t context;
	uint64_t work; /* stream->work when it was recorded */
	bool ours;     /* from the event pool, goes back there */
	bool adopted;  /* `ours`, but the app's once: another one may wait for it too */
};
struct pending {
	struct pending *next;
	enum pending_what what;
	uint16_t context;
	uint16_t tag;
	bool post;
	struct pending_event *events;
	struct pending_event one;	      /* the usual case: events == &one */
	uint32_t event_count;		      /* those not seen done yet are at the front */
	struct frame_destination destination; /* COPY_OUT */
	struct staging_range *range;
	unsigned char *bytes;
	uint32_t length;
	uint32_t counter; /* COUNTER */
	uint64_t value;	  /* WORD: value; UNMAP: ticket; DIRECT: its number */
	uint64_t serial;  /* UNMAP: of the last copy before it that another agent is part of */
	uint32_t device;  /* UNMAP */
	uint64_t address, size;
	struct worker_stream *stream; /* STREAM */
	void *direct;		      /* DIRECT: a copy, or a connection */
	uint32_t number;	      /* DIRECT: that connection's */
	struct board *board; /* NULL, or it waits for a recording there, too (ipc_board.h) */
	uint64_t recording, looked;
};

/* An event without timing, from the pool or made; the driver's error where there is none. */
CUresult fence_event_get(struct worker *w, uint16_t context, CUevent *event);
void fence_event_put(struct worker *w, uint16_t context, CUevent event);
struct pending *fence_new(struct worker *w, enum pending_what what, uint16_t context);
CUresult fence_stream(struct worker *w, struct pending *p, struct worker_stream *stream);
/* context 0: the streams of all contexts */
CUresult fence_context(struct worker *w, struct pending *p, uint16_t context);
void fence_push(struct worker *w, struct pending *p);
void fence_free(struct worker *w, struct pending *p);
bool fence_poll(struct worker *w); /* true: something was done */
/* Sends every finished copy to the host: after an event was seen done, before that is told.
 * false: there was no room for all of them, so it must not be told yet. */
bool fence_flush_copies(struct worker *w);
/* An event that the app destroys: true where somebody waits for it, who keeps it. */
bool fence_adopt(struct worker *w, CUevent event);
/* The context is done with: nothing waits for it, and its events are not looked at again. */
void fence_forget(struct worker *w, uint16_t context);

#endif
