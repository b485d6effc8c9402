/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that are kept while a host function is outstanding, whose end comes through the loop:
 * those whose call waits in the driver for it, and what comes behind them.  Where a thread
 * waits for the answer the frame is kept alone (`parked`): what other threads send meanwhile
 * may be what the host function needs to end.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/loop/issued.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/loop/loop.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/loop/stash.h"
#include "gpu-agent/worker/worker_state.h"

#define STASH_MAX (64u << 20)
/* With more than so many bytes kept the app's threads wait until they are few again: what they
 * have sent meanwhile (rings, arenas, sockets) fits below STASH_MAX. */
#define STASH_MUCH (16u << 20)
#define STASH_LITTLE (1u << 20)

/* The driver waits for host functions. Behind a fault they never run, and it waits for nothing.
 */
static bool stash_outstanding(const struct worker *w)
{
	return w->callbacks.outstanding && !w->sticky;
}

bool stash_driver_waits(const struct worker *w)
{
	return stash_outstanding(w) && beside_outside(w);
}

/* Staging that is behind the host function is released by nothing else. Half of it stays for
 * what the function needs to end: without it its end could not be read, nor could the copies be
 * served of a stream that goes ahead. */
static bool stash_staging(struct worker *w, const struct frame_header *h)
{
	if (h->length > h->body && staging_half_busy(w, &w->in))
		return false;
	return !loop_stages(w) || (!staging_half_busy(w, &w->out) && loop_has_staging(w));
}

/* The frame, which is the receiver's, would wait for the function itself. */
static bool stash_waits(struct worker *w, const struct frame_header *h)
{
	return loop_marked(serve_find(h->op), h, SERVE_WAITS) || !stash_staging(w, h);
}

static bool stash_holds(struct worker *w, const struct frame_header *h)
{
	return stash_outstanding(w) &&
	       (beside_outside(w) || issued_full(w) || limits_full(w) || stash_waits(w, h));
}

/* A thread of the app waits for the answer: nothing of its own comes behind the frame, and
 * other threads' frames need not wait for it. */
static bool stash_parks(struct worker *w, const struct frame_header *h)
{
	return h->kind == FRAME_CALL && stash_waits(w, h);
}

static size_t stash_bytes(const struct worker *w)
{
	return w->kept.stash.used - w->kept.stash.at + w->kept.parked.used - w->kept.parked.at;
}

void stash_tell(struct worker *w)
{
	size_t bytes = stash_bytes(w);

	if (w->kept.reported ? bytes > STASH_LITTLE : bytes <= STASH_MUCH)
		return;
	if (!reply_room(w))
		return;
	w->kept.reported = !w->kept.reported;
	reply_update(w, COUNTER_KEPT, w->kept.reported ? bytes : 0);
}

bool stash_behind(struct worker *w)
{
	return w->kept.stash.used || (w->kept.parked.used && !stash_outstanding(w)) ||
	       stash_holds(w, &w->receiver.frame);
}

bool stash_has(const struct worker *w, uint64_t seq)
{
	const struct stash *s = &w->kept.stash;
	struct frame_header first;

	if (!s->used)
		return false;
	memcpy(&first, s->bytes + s->at, sizeof(first));
	return first.seq <= seq;
}

bool stash_overtakes(struct worker *w)
{
	uint64_t handle = serve_overtaking(
		w->receiver.frame.op, w->receiver.body, w->receiver.frame.body);
	const struct worker_stream *stream;
	struct name *name;

	name = handle ? handles_find(w, handle, KIND_CUstream) : NULL;
	stream = name ? name->object : NULL;
	return stream && stream->flags & STREAM_AHEAD;
}

/* Room for `need` more bytes. */
static bool stash_room(struct worker *w, struct stash *s, size_t need)
{
	size_t room = s->room ? s->room : 1u << 20;
	unsigned char *bytes;

	if (stash_bytes(w) + need > STASH_MAX)
		return false;
	if (!w->kept.body)
		w->kept.body = aligned_alloc(64, FRAME_BODY_MAX);
	if (s->used + need > s->room && s->at) {
		memmove(s->bytes, s->bytes + s->at, s->used - s->at);
		s->used -= s->at;
		s->at = 0;
	}
	while (room < s->used + need)
		room *= 2;
	bytes = room == s->room ? s->bytes : realloc(s->bytes, room);
	if (!bytes || !w->kept.body)
		return false;
	s->bytes = bytes;
	s->room = room;
	return true;
}

static void stash_add(
	struct worker *w, struct stash *s, const unsigned char *body, const unsigned char *rest)
{
	uint32_t payload = w->receiver.frame.length - w->receiver.frame.body;
	unsigned char *at;

	if (!stash_room(w, s, sizeof(w->receiver.frame) + w->receiver.frame.length)) {
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
			"too much is waiting behind a host function");
		return;
	}
	at = s->bytes + s->used;
	memcpy(at, &w->receiver.frame, sizeof(w->receiver.frame));
	memcpy(at + sizeof(w->receiver.frame), body, w->receiver.frame.body);
	if (payload)
		memcpy(at + sizeof(w->receiver.frame) + w->receiver.frame.body, rest, payload);
	s->used += sizeof(w->receiver.frame) + w->receiver.frame.length;
}

bool stash_keep(struct worker *w)
{
	bool parks = !w->kept.stash.used && stash_parks(w, &w->receiver.frame);

	if (!w->callbacks.outstanding)
		return false;
	loop_fill_payload(w);
	stash_add(w, parks ? &w->kept.parked : &w->kept.stash, w->receiver.body,
		w->receiver.payload);
	if (staging_free(&w->in, w->receiver.range))
		w->receiver.range = NULL;
	return true;
}

/* Serves the first frame. false: it cannot be served now. */
static bool stash_serve_first(struct worker *w, struct stash *s)
{
	const unsigned char *at, *rest;
	uint32_t payload;

	if (!s->used)
		return false;
	at = s->bytes + s->at;
	memcpy(&w->receiver.frame, at, sizeof(w->receiver.frame));
	memcpy(w->receiver.body, at + sizeof(w->receiver.frame), w->receiver.frame.body);
	payload = w->receiver.frame.length - w->receiver.frame.body;
	rest = at + sizeof(w->receiver.frame) + w->receiver.frame.body;
	if (stash_holds(w, &w->receiver.frame)) {
		if (s == &w->kept.parked || !stash_parks(w, &w->receiver.frame))
			return false;
		stash_add(w, &w->kept.parked, w->receiver.body, rest);
	} else {
		w->receiver.range = NULL;
		if (limits_full(w) || !reply_room(w) || !loop_has_staging(w))
			return false;
		if (payload)
			w->receiver.range =
				staging_alloc(w, &w->in, payload, &w->receiver.payload);
		if (payload && !w->receiver.range)
			return false;
		if (payload)
			memcpy(w->receiver.payload, rest, payload);
		loop_serve_frame(w);
		loop_range_done(w);
		issued_frame(w);
	}
	s->at += sizeof(w->receiver.frame) + w->receiver.frame.length;
	if (s->at == s->used)
		s->at = s->used = 0;
	return true;
}

bool stash_serve(struct worker *w)
{
	struct frame_header coming = w->receiver.frame;
	struct staging_range *range = w->receiver.range;
	unsigned char *body = w->receiver.body, *payload = w->receiver.payload;
	uint32_t fill = w->receiver.fill;
	bool served = false;

	if (!w->kept.stash.used && !w->kept.parked.used)
		return false;
	w->receiver.body = w->kept.body;
	w->receiver.fill = 0;
	while (!w->end.ended &&
		(stash_serve_first(w, &w->kept.parked) || stash_serve_first(w, &w->kept.stash)))
		served = true;
	w->receiver.frame = coming;
	w->receiver.range = range;
	w->receiver.body = body;
	w->receiver.payload = payload;
	w->receiver.fill = fill;
	return served;
}
