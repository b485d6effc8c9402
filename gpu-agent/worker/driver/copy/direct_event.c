/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that wait for another agent's event.  There a stream of the worker's own waits for
 * it, since the program may record it anew at once, and the loop sends a message when that
 * stream has come to its end.  Here the message lets go what holds the program's stream.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/copy/direct.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/limits/limits.h"

#define LISTENERS_MOST 64u
#define LISTENERS_FIRST 8u

bool direct_event_heard(struct worker *w, struct direct_link *l, uint64_t id)
{
	for (struct direct_wait **at = &w->direct->waits, *wait; (wait = *at);
		at = &wait->next) {
		if (wait->link != l || wait->id != id)
			continue;
		*at = wait->next;
		direct_release(w, &wait->hold);
		free(wait);
		return true;
	}
	return false;
}

void direct_event_fail(struct worker *w, struct direct_link *l)
{
	for (struct direct_wait **at = &w->direct->waits, *wait; (wait = *at);) {
		if (wait->link != l) {
			at = &wait->next;
			continue;
		}
		*at = wait->next;
		direct_release(w, &wait->hold);
		if (!w->deferred)
			w->deferred = COPY_BROKEN;
		free(wait);
	}
}

/* One more; NULL: none can be had. */
static struct worker_stream *listener_new(struct worker *w)
{
	struct direct *d = w->direct;
	struct worker_stream *stream;

	if (!d->listeners)
		d->listeners = calloc(LISTENERS_MOST, sizeof(struct worker_stream *));
	stream = d->listeners ? stream_own(w, CONTEXT_PRIMARY(0), OWN_LISTENS) : NULL;
	if (stream)
		d->listeners[d->listener_count++] = stream;
	return stream;
}

void direct_event_prepare(struct worker *w)
{
	while (w->direct->listener_count < LISTENERS_FIRST && listener_new(w))
		;
}

/* A stream that waits for nothing yet. */
static struct worker_stream *listener(struct worker *w)
{
	struct direct *d = w->direct;
	struct worker_stream *stream;

	for (uint32_t i = 0; i < d->listener_count; i++)
		if (d->listeners[i]->work == d->listeners[i]->clean)
			return d->listeners[i];
	if (!d->listener_count || (d->listener_count < LISTENERS_MOST && !direct_busy(w)))
		return listener_new(w);
	/* All wait: behind the one that began first. */
	stream = d->listeners[0];
	memmove(d->listeners, d->listeners + 1, (d->listener_count - 1) * sizeof(stream));
	d->listeners[d->listener_count - 1] = stream;
	return stream;
}

static CUresult signal_begin(
	struct worker *w, struct direct_link *l, uint64_t id, CUevent event)
{
	struct worker_stream *stream = listener(w);
	struct pending *p = fence_new(w, PENDING_DIRECT, CONTEXT_PRIMARY(0));
	CUresult status =
		stream && p ? worker_use(w, stream->context) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!status) {
		limits_work(w, stream);
		status = w->cuda.cuStreamWaitEvent(stream->stream, event, 0);
	}
	if (!status)
		status = fence_stream(w, p, stream);
	if (status) {
		if (p)
			fence_free(w, p);
		return status;
	}
	p->number = l->number;
	p->value = id;
	fence_push(w, p);
	return CUDA_SUCCESS;
}

CUresult serve_vcudaDirectSignal(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectSignal *req = (const void *)r->body;
	struct direct_link *l = direct_find(w, req->link);
	CUevent event = worker_handle(w, r, req->event, KIND_CUevent);
	CUresult status;

	if (!l)
		return COPY_BROKEN;
	direct_newest(l, req->id);
	status = worker_refused(r) ? r->refused : signal_begin(w, l, req->id, event);
	/* Nothing is known of the event: whoever waits is not to wait for good. */
	if (status)
		direct_say(w, l, DIRECT_SIGNAL, req->id, 0);
	return status;
}

CUresult serve_vcudaDirectAwait(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectAwait *req = (const void *)r->body;
	struct direct_link *l = direct_find(w, req->link);
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct direct_early early;
	struct direct_wait *wait;
	CUresult status;

	if (!l)
		return COPY_BROKEN;
	direct_newest(l, req->id);
	if (worker_refused(r))
		return r->refused;
	if (direct_early(l, req->id, &early))
		return CUDA_SUCCESS;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return CUDA_ERROR_OUT_OF_MEMORY;
	wait->link = l;
	wait->id = req->id;
	status = direct_hold(w, stream, &wait->hold);
	if (status) {
		free(wait);
		return status;
	}
	wait->next = w->direct->waits;
	w->direct->waits = wait;
	return CUDA_SUCCESS;
}
