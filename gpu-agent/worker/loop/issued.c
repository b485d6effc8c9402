/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's queue (1024 launches) must never be what the loop blocks on while a host
 * function is outstanding, since the frame that ends the wait comes through the loop.  So what
 * may wait behind the function is counted: the work of each stream until an event behind it is
 * done, so that streams that do not wait for the function go on, and every frame that names no
 * stream.
 */
#include "gpu-agent/worker/loop/issued.h"

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/worker_state.h"

#define ISSUED_MOST 256
/* Pieces of work between two looks at the streams. */
#define ISSUED_LOOK 64

void issued_work(struct worker *w, struct worker_stream *stream)
{
	stream->issued.pieces++;
	w->kept.issued.count++;
	w->kept.issued.named = true;
}

void issued_frame(struct worker *w)
{
	if (w->callbacks.outstanding && !w->kept.issued.named)
		w->kept.issued.count++;
	w->kept.issued.named = false;
}

static void issued_mark_put(struct worker *w, struct worker_stream *stream)
{
	if (stream->issued.mark)
		fence_event_put(w, stream->context, stream->issued.mark);
	stream->issued.mark = NULL;
}

static void issued_done(struct worker *w, struct worker_stream *stream, uint32_t pieces)
{
	stream->issued.pieces -= pieces;
	w->kept.issued.count -= pieces;
}

/* Leaves an event behind what was issued to STREAM, once the one before it is done. */
static void issued_look(struct worker *w, struct worker_stream *stream)
{
	if (!stream->issued.pieces)
		return;
	if (capture_of(w, stream)) {
		issued_done(w, stream, stream->issued.pieces); /* none of it runs */
		return;
	}
	if (worker_use(w, stream->context))
		return;
	if (stream->issued.mark) {
		if (w->cuda.cuEventQuery(stream->issued.mark) == CUDA_ERROR_NOT_READY)
			return;
		issued_done(w, stream, stream->issued.marked);
	} else if (fence_event_get(w, stream->context, &stream->issued.mark)) {
		stream->issued.mark = NULL;
		return;
	}
	stream->issued.marked = stream->issued.pieces;
	if (w->cuda.cuEventRecord(stream->issued.mark, stream->stream))
		issued_mark_put(w, stream);
}

bool issued_full(struct worker *w)
{
	struct issued *issued = &w->kept.issued;

	if (issued->count < issued->look)
		return false;
	for (struct worker_stream *s = w->streams.list; s; s = s->next)
		issued_look(w, s);
	issued->look = issued->count + ISSUED_LOOK;
	if (issued->look > ISSUED_MOST)
		issued->look = ISSUED_MOST;
	return issued->count >= ISSUED_MOST;
}

void issued_stream_gone(struct worker *w, struct worker_stream *stream)
{
	issued_mark_put(w, stream);
	issued_done(w, stream, stream->issued.pieces);
}

void issued_over(struct worker *w)
{
	for (struct worker_stream *s = w->streams.list; s; s = s->next)
		issued_stream_gone(w, s);
	w->kept.issued = (struct issued){.look = ISSUED_LOOK};
}
