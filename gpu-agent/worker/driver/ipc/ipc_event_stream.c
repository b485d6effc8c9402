/* SPDX-License-Identifier: Apache-2.0
 *
 * What streams, and those who wait, do with events that processes share.  A recording goes to
 * the driver's event and to the board.  A stream waits for the driver's event where that stands
 * for the last recording, else for the board's word, on the device.  Nothing blocks: what the
 * program waits for is looked at in each turn.
 */
#include <stdlib.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/ipc/ipc_board.h"
#include "gpu-agent/worker/driver/ipc/ipc_event.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/worker_state.h"

/* ---- recordings ---- */

/* A fault before it is noticed though nobody asks, and the track's others let go. */
static void record_watch(struct worker *w, struct worker_stream *stream)
{
	struct pending *p = fence_new(w, PENDING_LOOK, stream->context);

	if (!p)
		return;
	if (fence_stream(w, p, stream))
		fence_free(w, p);
	else
		fence_push(w, p);
}

/* Behind what STREAM has; ALSO: the driver's event is recorded, too. */
static CUresult record(
	struct worker *w, struct ipc_event *e, struct worker_stream *stream, bool also)
{
	uint64_t recording, *host;
	CUdeviceptr word;
	CUresult status = board_next(e->board, stream, &recording);

	if (!status)
		status = worker_use(w, stream->context);
	if (status)
		return status;
	word = board_word(e->board, recording, &host);
	/* First: in a legacy stream it comes behind what the other streams have. */
	if (also) {
		e->here = 0;
		status = w->cuda.cuEventRecord(e->event, stream->stream);
	}
	if (!status)
		status = w->cuda.cuStreamWriteValue64_v2(stream->stream, word,
			recording & BOARD_NUMBERS, CU_STREAM_WRITE_VALUE_DEFAULT);
	if (status)
		return status;
	board_written(e->board, stream, recording);
	e->here = recording;
	board_event_set(e->board, e->number, recording);
	record_watch(w, stream);
	return CUDA_SUCCESS;
}

/* A stream of the worker's own that has nothing to do; the last one where there is none. */
static struct worker_stream *listener(struct worker *w, uint32_t device)
{
	struct ipc_events *events = w->events;
	struct worker_stream *stream = NULL;

	for (uint32_t i = 0; i < events->listener_count; i++) {
		stream = events->listeners[i];
		if (stream->work == stream->clean)
			return stream;
	}
	if (events->listener_count < EVENT_LISTENERS) {
		stream = stream_own(w, (uint16_t)CONTEXT_PRIMARY(device), OWN_LISTENS);
		if (stream)
			events->listeners[events->listener_count++] = stream;
	}
	return stream;
}

/* What the driver's event stands for now is the last recording. */
static CUresult record_event(struct worker *w, struct ipc_event *e)
{
	struct worker_stream *stream = listener(w, e->board->device);
	CUresult status;

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = worker_use(w, stream->context);
	if (status)
		return status;
	limits_work(w, stream);
	status = w->cuda.cuStreamWaitEvent(stream->stream, e->event, 0);
	return status ? status : record(w, e, stream, false);
}

CUresult ipc_event_begin(struct worker *w, struct ipc_event *e)
{
	return w->cuda.cuEventQuery(e->event) == CUDA_ERROR_NOT_READY ? record_event(w, e)
								      : CUDA_SUCCESS;
}

/* ---- what streams do ---- */

/* Both handles of the frame; refused where the event is not shared. */
static struct ipc_event *event_of(struct worker *w, struct request *r, uint64_t handle)
{
	struct name *name = ipc_event_named(w, r, handle);

	if (name && !name->shared)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return name ? name->shared : NULL;
}

CUresult serve_vcudaEventRecord(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventRecord *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct ipc_event *e = event_of(w, r, req->event);

	if (worker_refused(r))
		return r->refused;
	/* A capture only notes what is before it: such a recording is the driver's alone. */
	if (capture_of(w, stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return record(w, e, stream, true);
}

CUresult serve_vcudaEventRecordContext(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventRecordContext *req = (const void *)r->body;
	struct ipc_event *e = event_of(w, r, req->event);
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	e->here = 0;
	status = stream_record_context(w, r->header.context, e->event);
	return status ? status : record_event(w, e);
}

/* The stream goes on when the board says so. */
static CUresult hold(
	struct worker *w, struct board *b, uint64_t recording, struct worker_stream *stream)
{
	struct event_hold *h = calloc(1, sizeof(*h));
	CUdeviceptr word;
	CUresult status;
	uint64_t *host;

	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*h = (struct event_hold){.next = w->events->holds,
		.board = b,
		.recording = recording,
		.looked = wait_now()};
	word = board_word(b, recording, &host);
	status = w->cuda.cuStreamWaitValue64_v2(
		stream->stream, word, recording & BOARD_NUMBERS, CU_STREAM_WAIT_VALUE_GEQ);
	if (status) {
		free(h);
		return status;
	}
	b->uses++;
	w->events->holds = h;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaEventAwait(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventAwait *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct ipc_event *e = event_of(w, r, req->event);
	uint64_t recording;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (capture_of(w, stream))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	recording = board_event(e->board, e->number);
	if (board_done(e->board, recording, NULL))
		return CUDA_SUCCESS;
	status = worker_use(w, stream->context);
	if (status)
		return status;
	return recording == e->here ? w->cuda.cuStreamWaitEvent(stream->stream, e->event, 0)
				    : hold(w, e->board, recording, stream);
}

/* ---- for those who wait ---- */

CUresult ipc_event_look(struct name *name)
{
	struct ipc_event *e = name->shared;

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	return board_done(e->board, board_event(e->board, e->number), NULL)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_READY;
}

CUresult ipc_event_fence(struct name *name, struct pending *p)
{
	struct ipc_event *e = name->shared;

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	p->board = e->board;
	p->recording = board_event(e->board, e->number);
	p->looked = wait_now();
	e->board->uses++;
	/* A fault before it ends the wait, too. */
	if (p->recording == e->here) {
		p->one.event = e->event;
		p->one.context = name->context;
		p->event_count = 1;
	}
	return CUDA_SUCCESS;
}

bool ipc_event_passed(struct pending *p)
{
	return board_done(p->board, p->recording, &p->looked);
}

void ipc_event_put(struct pending *p)
{
	p->board->uses--;
	p->board = NULL;
}

/* ---- the turn ---- */

static void hold_free(struct event_hold **at)
{
	struct event_hold *h = *at;

	*at = h->next;
	h->board->uses--;
	free(h);
}

bool ipc_event_turn(struct worker *w)
{
	struct ipc_events *events = w->events;
	bool progress = false;

	for (struct event_hold **at = &events->holds; *at;) {
		if (board_done((*at)->board, (*at)->recording, &(*at)->looked)) {
			hold_free(at);
			progress = true;
		} else {
			at = &(*at)->next;
		}
	}
	/* What the device was to write it will not write any more. */
	if (w->sticky && !events->given_up) {
		events->given_up = true;
		for (struct board *b = events->boards; b; b = b->next)
			board_give_up(b);
	}
	return progress;
}

bool ipc_event_busy(const struct worker *w)
{
	return w->events && w->events->holds;
}

void ipc_event_give_up(struct worker *w)
{
	while (w->events && w->events->holds)
		hold_free(&w->events->holds);
}

void ipc_event_stream_gone(struct worker *w, const struct worker_stream *stream)
{
	struct ipc_events *events = w->events;

	if (!events)
		return;
	for (struct board *b = events->boards; b; b = b->next)
		board_stream_gone(b, stream);
	for (uint32_t i = 0; i < events->listener_count; i++)
		if (events->listeners[i] == stream)
			events->listeners[i] = events->listeners[--events->listener_count];
}
