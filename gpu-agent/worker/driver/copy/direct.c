/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between a device here and one of another agent.  The end that has the bytes copies
 * them into pinned memory, piece by piece, and sends each when it is there; the other one
 * copies them on.  A stream that the copy belongs to is held on the device meanwhile, so that
 * what comes behind it there sees the copy done, and the streams that copy wait for nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/copy/direct.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/worker_state.h"

#define COPIES_MOST 65536u /* of a session under way */
/* ---- the list ---- */

struct direct_copy *direct_copy_find(
	const struct worker *w, const struct direct_link *l, uint64_t id, bool sends)
{
	for (struct direct_copy *c = w->direct->copies; c; c = c->next)
		if (c->link == l && c->id == id && c->sends == sends && !c->over)
			return c;
	return NULL;
}

static void copy_drop(struct worker *w, struct direct_copy *copy)
{
	struct direct *d = w->direct;
	struct direct_copy **at = &d->copies;

	while (*at != copy)
		at = &(*at)->next;
	*at = copy->next;
	if (d->copies_tail == &copy->next)
		d->copies_tail = at;
	free(copy);
}

void direct_copy_end(struct worker *w, struct direct_copy *copy)
{
	direct_release(w, &copy->hold);
	direct_piece_forget(w, copy);
	for (uint32_t i = 0; i < w->direct->count; i++)
		if (w->direct->links[i]->copy == copy)
			w->direct->links[i]->copy = NULL;
	copy->over = true;
	if (!copy->fences)
		copy_drop(w, copy);
}

void direct_copy_fail(struct worker *w, struct direct_copy *copy, CUresult status, bool say)
{
	struct direct_link *l = copy->link;
	uint64_t id = copy->id;

	if (!w->deferred)
		w->deferred = status;
	direct_copy_end(w, copy);
	/* Last: where that breaks the connection all of its copies end. */
	if (say)
		direct_say(w, l, DIRECT_FAILED, id, (uint64_t)status);
}

bool direct_deep(const struct worker *w)
{
	const struct direct *d = w->direct;

	for (const struct direct_wait *wait = d ? d->waits : NULL; wait; wait = wait->next)
		if (direct_hold_deep(&wait->hold))
			return true;
	for (const struct direct_copy *copy = d ? d->copies : NULL; copy; copy = copy->next)
		if (direct_hold_deep(&copy->hold))
			return true;
	return false;
}

void direct_stream_gone(struct worker *w, const struct worker_stream *stream)
{
	struct direct *d = w->direct;

	for (struct direct_wait *wait = d ? d->waits : NULL; wait; wait = wait->next)
		if (wait->hold.stream == stream)
			wait->hold.stream = NULL;
	for (struct direct_copy *copy = d ? d->copies : NULL; copy; copy = copy->next)
		if (copy->hold.stream == stream)
			copy->hold.stream = NULL;
}

bool direct_done_up_to(const struct worker *w, uint64_t serial)
{
	return !w->direct->copies || w->direct->copies->serial > serial;
}

struct worker_stream *direct_copy_stream(struct worker *w, uint32_t device)
{
	struct worker_stream **stream = &w->direct->streams[device];

	if (!*stream)
		*stream = stream_own(w, (uint16_t)CONTEXT_PRIMARY(device), OWN_COPIES);
	return *stream;
}

/* Where one cannot be had, the frame that needs it says so. */
void direct_prepare(struct worker *w)
{
	for (uint32_t i = 0; i < w->device_count; i++)
		if (w->contexts[CONTEXT_PRIMARY(i)])
			direct_copy_stream(w, i);
	direct_event_prepare(w);
	direct_hold_prepare(w);
}

static bool copy_makes(const struct direct *d, uint32_t device, uint32_t flags)
{
	return device < HANDOFF_DEVICES &&
	       (!d->streams[device] || (flags & DIRECT_HOLDS && !d->hold_count));
}

bool direct_makes(const struct worker *w)
{
	const struct direct *d = w->direct;
	const struct wire_vcudaDirectSend *send = (const void *)w->receiver.body;
	const struct wire_vcudaDirectReceive *receive = (const void *)w->receiver.body;
	size_t n = w->receiver.frame.body;

	if (!d)
		return false;
	switch (w->receiver.frame.op) {
	case OP_vcudaDirectSend:
		return n >= sizeof(*send) && copy_makes(d, (uint32_t)send->device, send->flags);
	case OP_vcudaDirectReceive:
		return n >= sizeof(*receive) &&
		       copy_makes(d, (uint32_t)receive->device, receive->flags);
	case OP_vcudaDirectAwait: return !d->hold_count;
	case OP_vcudaDirectSignal: return !d->listener_count;
	default: return false;
	}
}

/* ---- their frames ---- */

CUresult direct_copy_fence(
	struct worker *w, struct direct_copy *copy, struct worker_stream *stream)
{
	struct pending *p = fence_new(w, PENDING_DIRECT, stream->context);
	CUresult status = p ? fence_stream(w, p, stream) : CUDA_ERROR_OUT_OF_MEMORY;

	if (status) {
		if (p)
			fence_free(w, p);
		return status;
	}
	p->direct = copy;
	copy->fences++;
	fence_push(w, p);
	return CUDA_SUCCESS;
}

static void copy_ready(struct worker *w, struct direct_copy *copy)
{
	copy->turn = true;
	if (!copy->sends)
		direct_say(w, copy->link, DIRECT_READY, copy->id, 0);
}

/* What came before the frame. False: it failed at the other end. */
static bool copy_hear_early(struct direct_copy *copy)
{
	struct direct_early early;

	if (!direct_early(copy->link, copy->id, &early))
		return true;
	if (early.what == DIRECT_READY)
		copy->ready = true;
	return early.what == DIRECT_READY;
}

struct direct_request {
	uint32_t link;
	uint64_t id;
	int device;
	const struct direct_box *box;
	uint32_t flags;
	uint64_t stream;
	bool sends;
};

static bool box_total(const struct direct_box *box, uint64_t *total)
{
	return !__builtin_mul_overflow(box->width, box->height, total) &&
	       !__builtin_mul_overflow(*total, box->depth, total) && *total;
}

/* The copy, with its stream held where that is asked for. */
static CUresult copy_begin(struct worker *w, struct request *r, const struct direct_request *q,
	struct direct_link *l)
{
	struct direct *d = w->direct;
	const struct direct_box *box = q->box;
	struct worker_stream *stream = NULL;
	struct direct_copy *copy;
	struct copy_side side;
	uint64_t total = 0;
	CUresult status = CUDA_SUCCESS;

	if (q->device < 0 || (uint32_t)q->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!box_total(box, &total) || q->flags & ~(DIRECT_BEHIND | DIRECT_HOLDS))
		return CUDA_ERROR_INVALID_VALUE;
	side = copy_side_any(w, r, box->array, box->at, box->pitch, box->slice, box->width,
		box->height, box->depth);
	if (q->flags)
		stream = worker_stream_object(w, r, q->stream);
	if (worker_refused(r))
		return r->refused;
	if (d->serial - (d->copies ? d->copies->serial : d->serial) >= COPIES_MOST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->link = l;
	copy->id = q->id;
	copy->serial = ++d->serial;
	copy->seq = r->header.seq;
	copy->sends = q->sends;
	copy->device = (uint32_t)q->device;
	copy->side = side;
	copy->box = *box;
	copy->total = total;
	*d->copies_tail = copy;
	d->copies_tail = &copy->next;
	if (!copy_hear_early(copy)) {
		direct_copy_fail(w, copy, COPY_BROKEN, false);
		return CUDA_SUCCESS;
	}
	if (!direct_copy_stream(w, copy->device))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!status && q->flags & DIRECT_BEHIND)
		status = direct_copy_fence(w, copy, stream);
	if (!status && q->flags & DIRECT_HOLDS)
		status = direct_hold(w, stream, &copy->hold);
	if (status)
		direct_copy_fail(w, copy, status, true);
	else if (!(q->flags & DIRECT_BEHIND))
		copy_ready(w, copy);
	return status;
}

/* Where it cannot begin the other end hears it, or its stream would wait. */
static CUresult copy_serve(struct worker *w, struct request *r, const struct direct_request *q)
{
	struct direct_link *l = direct_find(w, q->link);
	uint32_t before;
	CUresult status;

	if (!l)
		return COPY_BROKEN;
	direct_newest(l, q->id);
	before = l->count;
	status = worker_refused(r) ? r->refused : copy_begin(w, r, q, l);
	if (status && l->state != DIRECT_BROKEN && l->count == before)
		direct_say(w, l, DIRECT_FAILED, q->id, (uint64_t)status);
	return status;
}

CUresult serve_vcudaDirectSend(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectSend *req = (const void *)r->body;
	const struct direct_request q = {req->link, req->id, req->device,
		worker_in(r, &req->box, sizeof(struct direct_box)), req->flags, req->stream,
		true};

	return copy_serve(w, r, &q);
}

CUresult serve_vcudaDirectReceive(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectReceive *req = (const void *)r->body;
	const struct direct_request q = {req->link, req->id, req->device,
		worker_in(r, &req->box, sizeof(struct direct_box)), req->flags, req->stream,
		false};

	return copy_serve(w, r, &q);
}

CUresult serve_vcudaDirectCancel(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectCancel *req = (const void *)r->body;
	struct direct_link *l = direct_find(w, req->link);
	struct direct_copy *copy = l ? direct_copy_find(w, l, req->id, false) : NULL;

	if (copy)
		direct_copy_end(w, copy);
	return CUDA_SUCCESS;
}

bool direct_heard(struct worker *w, struct direct_link *l, const struct direct_message *m)
{
	struct direct_copy *copy;

	if (m->what == DIRECT_SIGNAL)
		return direct_event_heard(w, l, m->id);
	copy = direct_copy_find(w, l, m->id, true);
	if (!copy && m->what == DIRECT_FAILED)
		copy = direct_copy_find(w, l, m->id, false);
	/* A copy that failed here; or one whose frame comes yet: READY, FAILED. */
	if (!copy)
		return m->what == DIRECT_DONE;
	switch (m->what) {
	case DIRECT_READY: copy->ready = true; break;
	case DIRECT_DONE: direct_copy_end(w, copy); break;
	default: direct_copy_fail(w, copy, COPY_BROKEN, false); break;
	}
	return true;
}

void direct_fail_all(struct worker *w, struct direct_link *l)
{
	bool broken = l->state == DIRECT_BROKEN;

	for (struct direct_copy *copy = w->direct->copies, *next; copy; copy = next) {
		next = copy->next;
		if (copy->link != l || copy->over)
			continue;
		direct_copy_fail(w, copy, COPY_BROKEN, !broken);
		if (!broken && l->state == DIRECT_BROKEN)
			return; /* that broke it, and they failed all */
	}
	direct_event_fail(w, l);
}

void direct_give_up(struct worker *w)
{
	for (uint32_t i = 0; w->direct && i < w->direct->count; i++)
		direct_fail_all(w, w->direct->links[i]);
}

void direct_passed(struct worker *w, struct pending *p, CUresult status)
{
	struct direct_copy *copy = p->direct;
	struct direct_link *l;

	if (!copy) {
		l = direct_find(w, p->number);
		if (l)
			direct_say(w, l, DIRECT_SIGNAL, p->value, 0);
		return;
	}
	copy->fences--;
	if (copy->over) {
		if (!copy->fences)
			copy_drop(w, copy);
	} else if (status) {
		direct_copy_fail(w, copy, status, true);
	} else if (!copy->turn) {
		copy_ready(w, copy);
	} else if (copy->under_way == copy->total) {
		uint64_t id = copy->id;

		l = copy->link;
		direct_copy_end(w, copy);
		direct_say(w, l, DIRECT_DONE, id, 0);
	}
}

void direct_forget(struct worker *w, uint16_t context)
{
	struct direct *d = w->direct;

	if (!d)
		return;
	direct_piece_forget_context(w, context);
	staging_forget(w, &d->in, context);
	for (uint32_t i = 0; i < w->device_count; i++)
		if (d->streams[i] && d->streams[i]->context == context)
			d->streams[i] = NULL;
	if (context == CONTEXT_PRIMARY(0))
		d->listener_count = 0;
}
