/* SPDX-License-Identifier: Apache-2.0
 *
 * What waits for the GPU.  The loop never blocks in the driver: it records an event, keeps what
 * is to be done after it in a list, and polls.  The list is in the order of the frames, so
 * copies to the host are sent before the synchronisation that was asked for after them is
 * answered.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/worker_state.h"

CUresult fence_event_get(struct worker *w, uint16_t context, CUevent *event)
{
	CUresult status;

	if (w->fences.event_count[context]) {
		*event = w->fences.event_pool[context][--w->fences.event_count[context]];
		return CUDA_SUCCESS;
	}
	status = worker_use(w, context);
	return status ? status : w->cuda.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

void fence_event_put(struct worker *w, uint16_t context, CUevent event)
{
	enum { KEEP = 1024 };

	if (!w->fences.event_pool[context])
		w->fences.event_pool[context] = calloc(KEEP, sizeof(CUevent));
	if (w->fences.event_pool[context] && w->fences.event_count[context] < KEEP) {
		w->fences.event_pool[context][w->fences.event_count[context]++] = event;
		return;
	}
	worker_use(w, context);
	w->cuda.cuEventDestroy(event);
}

struct pending *fence_new(struct worker *w, enum pending_what what, uint16_t context)
{
	struct pending *p = w->fences.free;

	if (p)
		w->fences.free = p->next;
	else
		p = malloc(sizeof(*p));
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->what = what;
	p->context = context;
	p->events = &p->one;
	return p;
}

/* Whoever else waits for it, NULL: nobody. */
static struct pending_event *fence_waits(
	struct worker *w, CUevent event, const struct pending_event *but)
{
	for (struct pending *p = w->fences.first; p; p = p->next)
		for (uint32_t i = 0; i < p->event_count; i++)
			if (&p->events[i] != but && p->events[i].event == event)
				return &p->events[i];
	return NULL;
}

bool fence_adopt(struct worker *w, CUevent event)
{
	struct pending_event *e = fence_waits(w, event, NULL);

	if (e)
		e->ours = e->adopted = true;
	return e;
}

static void fence_event_end(struct worker *w, struct pending_event *e)
{
	struct pending_event *heir;

	if (!e->ours)
		return;
	heir = e->adopted ? fence_waits(w, e->event, e) : NULL;
	if (heir)
		heir->ours = heir->adopted = true;
	else
		fence_event_put(w, e->context, e->event);
}

void fence_free(struct worker *w, struct pending *p)
{
	for (uint32_t i = 0; i < p->event_count; i++)
		fence_event_end(w, &p->events[i]);
	if (p->board)
		ipc_event_put(p);
	if (p->events != &p->one)
		free(p->events);
	p->next = w->fences.free;
	w->fences.free = p;
}

static CUresult fence_record(
	struct worker *w, struct pending_event *at, struct worker_stream *stream)
{
	CUresult status;

	if (capture_of(w, stream)) {
		/* What it had to do before; nothing of that: it is done. */
		at->event = stream->before;
		at->stream = stream;
		at->context = stream->context;
		at->work = stream->before_work;
		at->ours = false;
		return CUDA_SUCCESS;
	}
	status = fence_event_get(w, stream->context, &at->event);
	if (status)
		return status;
	status = w->cuda.cuEventRecord(at->event, stream->stream);
	if (status) {
		fence_event_put(w, stream->context, at->event);
		return status;
	}
	at->stream = stream;
	at->context = stream->context;
	at->work = stream->work;
	at->ours = true;
	return CUDA_SUCCESS;
}

CUresult fence_stream(struct worker *w, struct pending *p, struct worker_stream *stream)
{
	CUresult status = worker_use(w, stream->context);

	p->context = stream->context;
	if (!status)
		status = fence_record(w, &p->one, stream);
	if (!status && p->one.event)
		p->event_count = 1;
	return status;
}

CUresult fence_context(struct worker *w, struct pending *p, uint16_t context)
{
	struct worker_stream *stream;
	CUresult status;
	uint32_t n = 0;

	for (stream = w->streams.list; stream; stream = stream->next)
		if (stream->work != stream->clean && (!context || stream->context == context))
			n++;
	if (n > 1) {
		p->events = calloc(n, sizeof(*p->events));
		if (!p->events) {
			p->events = &p->one;
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	for (stream = w->streams.list; stream; stream = stream->next) {
		if (stream->work == stream->clean || (context && stream->context != context))
			continue;
		status = worker_use(w, stream->context);
		if (!status)
			status = fence_record(w, &p->events[p->event_count], stream);
		if (status)
			return status;
		if (p->events[p->event_count].event)
			p->event_count++;
	}
	return CUDA_SUCCESS;
}

void fence_push(struct worker *w, struct pending *p)
{
	p->next = NULL;
	*w->fences.tail = p;
	w->fences.tail = &p->next;
	w->fences.count++;
}

/* SUCCESS: all its events are done; NOT_READY; or the error that the driver reports. */
static CUresult fence_look(struct worker *w, struct pending *p)
{
	while (p->event_count) {
		struct pending_event *e = &p->events[p->event_count - 1];
		CUresult status;

		worker_use(w, e->context);
		status = w->cuda.cuEventQuery(e->event);
		if (status == CUDA_ERROR_NOT_READY)
			return status;
		/* Already done, so it does not block: it is what makes the driver print what
		 * kernels left in its buffer, which a query does not. */
		if (status == CUDA_ERROR_ASSERT ||
			(!status && (p->what == PENDING_REPLY || p->what == PENDING_COPY_OUT ||
					    p->what == PENDING_MIRROR)))
			w->cuda.cuEventSynchronize(e->event);
		if (status) {
			worker_note(w, status);
			return status;
		}
		if (e->stream && e->stream->clean < e->work) {
			e->stream->clean = e->work;
			metering_clean(w, e->stream);
		}
		fence_event_end(w, e);
		p->event_count--;
	}
	if (p->board && !ipc_event_passed(p))
		return CUDA_ERROR_NOT_READY;
	return p->what == PENDING_UNMAP && w->direct && !direct_done_up_to(w, p->serial)
		       ? CUDA_ERROR_NOT_READY
		       : CUDA_SUCCESS;
}

void fence_forget(struct worker *w, uint16_t context)
{
	for (struct pending *p = w->fences.first; p; p = p->next) {
		for (uint32_t i = p->event_count; i-- > 0;) {
			if (p->events[i].context != context)
				continue;
			fence_event_end(w, &p->events[i]);
			p->events[i] = p->events[--p->event_count];
		}
		if (p->what == PENDING_STREAM && p->stream && p->stream->context == context) {
			stream_drop(w, p->stream);
			p->stream = NULL;
		}
	}
}

static void fence_finish(struct worker *w, struct pending *p, CUresult status)
{
	switch (p->what) {
	case PENDING_REPLY:
		output_tell(w);
		reply_send(w, p->tag, status, NULL, 0);
		break;
	case PENDING_COPY_OUT:
		if (p->post && status) {
			if (!w->deferred)
				w->deferred = status;
			staging_done(p->range);
		} else if (status) {
			staging_done(p->range);
			reply_send(w, p->tag, status, NULL, 0);
		} else {
			w->stats.copies_out_bytes += p->length;
			output_tell(w);
			reply_payload(w, p->post ? FRAME_DATA : FRAME_REPLY, p->tag, status,
				&p->destination, p->bytes, p->length, p->range);
		}
		break;
	case PENDING_COUNTER:
		/* An error is told by the next call that waits; the query must end either way.
		 */
		reply_update(w, p->counter, p->value);
		break;
	case PENDING_STREAM:
		if (p->stream)
			stream_drop(w, p->stream);
		break;
	case PENDING_UNMAP: memory_unmap(w, p); break;
	case PENDING_MIRROR:
		output_tell(w);
		if (!status) {
			mirror_finish(w, p);
		} else {
			staging_done(p->range);
			reply_send(w, p->tag, status, NULL, 0);
		}
		break;
	case PENDING_DIRECT: direct_passed(w, p, status); break;
	case PENDING_LOOK: break;
	}
}

/* Two waits on one stream: the later cannot be done before the earlier, so it is not asked. */
static bool fence_behind(const struct pending *p, struct worker_stream *const *busy, uint32_t n)
{
	if (p->event_count != 1 || !p->events[0].stream)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (busy[i] == p->events[0].stream)
			return true;
	return false;
}

/* Deals with what is done. false: there was no room for all of it. */
static bool fence_walk(struct worker *w, bool copies_only, bool *progress)
{
	enum { BUSY = 16 };
	struct worker_stream *busy[BUSY];
	struct pending **at = &w->fences.first, *p;
	bool unmap_waits = false;
	uint32_t n = 0;

	while ((p = *at)) {
		CUresult status;

		if (!reply_room(w))
			return false;
		/* Tickets are told in their order. What ends a copy of another agent's may
		 * stand between two of them, and an event may be over only when the second is
		 * asked. */
		if ((copies_only && p->what != PENDING_COPY_OUT) ||
			(p->what == PENDING_UNMAP && unmap_waits) || fence_behind(p, busy, n)) {
			unmap_waits = unmap_waits || p->what == PENDING_UNMAP;
			at = &p->next;
			continue;
		}
		status = fence_look(w, p);
		if (status == CUDA_ERROR_NOT_READY) {
			unmap_waits = unmap_waits || p->what == PENDING_UNMAP;
			if (p->event_count == 1 && p->events[0].stream && n < BUSY)
				busy[n++] = p->events[0].stream;
			at = &p->next;
			continue;
		}
		/* A copy that stands before it in the list may have ended since it was looked
		 * at. */
		if (!copies_only && p->what != PENDING_COPY_OUT && at != &w->fences.first) {
			if (!fence_flush_copies(w))
				return false;
			for (at = &w->fences.first; *at != p; at = &(*at)->next)
				;
		}
		*at = p->next;
		if (w->fences.tail == &p->next)
			w->fences.tail = at;
		w->fences.count--;
		fence_finish(w, p, status);
		fence_free(w, p);
		*progress = true;
	}
	return true;
}

bool fence_flush_copies(struct worker *w)
{
	bool progress;

	return fence_walk(w, true, &progress);
}

bool fence_poll(struct worker *w)
{
	bool progress = false;

	fence_walk(w, false, &progress);
	return progress;
}
