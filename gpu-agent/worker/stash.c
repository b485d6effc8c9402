/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that are kept while a host function is outstanding, whose end comes through the loop:
 * those whose call waits in the driver for it, and what comes behind them.  Where a thread
 * waits for the answer the frame is kept alone (`parked`): what other threads send meanwhile
 * may be what the host function needs to end.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/limits.h"
#include "gpu-agent/worker/loop.h"
#include "gpu-agent/worker/staging.h"
#include "gpu-agent/worker/stash.h"
#include "gpu-agent/worker/worker_state.h"

/* While a host function is outstanding, so many frames are issued at the most: the driver's
 * queue (1024 launches) must never be what the loop blocks on, since the word that ends the
 * wait comes through the loop. */
#define HOST_FUNC_FRAMES 256
#define STASH_MAX (64u << 20)

/* The driver waits for host functions. Behind a fault they never run, and it waits for nothing.
 */
static bool stash_outstanding(const struct worker *w)
{
	return w->host_funcs && !w->sticky;
}

static bool stash_holds(struct worker *w, const struct frame_header *h)
{
	return stash_outstanding(w) &&
	       (w->issued_behind >= HOST_FUNC_FRAMES || limits_full(w) ||
		       loop_marked(serve_find(h->op), h, SERVE_WAITS));
}

/* A thread of the app waits for the answer: nothing of its own comes behind the frame, and
 * other threads' frames need not wait for it. */
static bool stash_parks(const struct frame_header *h)
{
	return h->kind == FRAME_CALL && loop_marked(serve_find(h->op), h, SERVE_WAITS);
}

bool stash_behind(struct worker *w)
{
	return w->stash.used || (w->parked.used && !stash_outstanding(w)) ||
	       stash_holds(w, &w->frame);
}

bool stash_overtakes(struct worker *w)
{
	uint64_t handle = serve_overtaking(w->frame.op, w->frame_body, w->frame.body);
	const struct worker_stream *stream;
	struct name *name;

	name = handle ? names_find(w, handle, KIND_CUstream) : NULL;
	stream = name ? name->object : NULL;
	return stream && stream->flags & STREAM_AHEAD;
}

/* Room for `need` more bytes. */
static bool stash_room(struct worker *w, struct stash *s, size_t need)
{
	size_t room = s->room ? s->room : 1u << 20;
	unsigned char *bytes;

	if (w->stash.used - w->stash.at + w->parked.used - w->parked.at + need > STASH_MAX)
		return false;
	if (!w->kept_body)
		w->kept_body = aligned_alloc(64, FRAME_BODY_MAX);
	if (s->used + need > s->room && s->at) {
		memmove(s->bytes, s->bytes + s->at, s->used - s->at);
		s->used -= s->at;
		s->at = 0;
	}
	while (room < s->used + need)
		room *= 2;
	bytes = room == s->room ? s->bytes : realloc(s->bytes, room);
	if (!bytes || !w->kept_body)
		return false;
	s->bytes = bytes;
	s->room = room;
	return true;
}

static void stash_add(
	struct worker *w, struct stash *s, const unsigned char *body, const unsigned char *rest)
{
	uint32_t payload = w->frame.length - w->frame.body;
	unsigned char *at;

	if (!stash_room(w, s, sizeof(w->frame) + w->frame.length)) {
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
			"too much is waiting behind a host function");
		return;
	}
	at = s->bytes + s->used;
	memcpy(at, &w->frame, sizeof(w->frame));
	memcpy(at + sizeof(w->frame), body, w->frame.body);
	if (payload)
		memcpy(at + sizeof(w->frame) + w->frame.body, rest, payload);
	s->used += sizeof(w->frame) + w->frame.length;
}

bool stash_keep(struct worker *w)
{
	bool parks = !w->stash.used && stash_parks(&w->frame);

	if (!w->host_funcs)
		return false;
	stash_add(w, parks ? &w->parked : &w->stash, w->frame_body, w->frame_payload);
	return true;
}

/* Serves the first frame. false: it cannot be served now. */
static bool stash_serve_first(struct worker *w, struct stash *s)
{
	const unsigned char *at = s->bytes + s->at, *rest;
	uint32_t payload;

	if (!s->used)
		return false;
	memcpy(&w->frame, at, sizeof(w->frame));
	memcpy(w->frame_body, at + sizeof(w->frame), w->frame.body);
	payload = w->frame.length - w->frame.body;
	rest = at + sizeof(w->frame) + w->frame.body;
	if (stash_holds(w, &w->frame)) {
		if (s == &w->parked || !stash_parks(&w->frame))
			return false;
		stash_add(w, &w->parked, w->frame_body, rest);
	} else {
		w->frame_range = NULL;
		if (limits_full(w) || !loop_can_serve(w))
			return false;
		if (payload)
			w->frame_range = staging_take(w, &w->in, payload, &w->frame_payload);
		if (payload && !w->frame_range)
			return false;
		if (payload)
			memcpy(w->frame_payload, rest, payload);
		loop_serve_frame(w);
		loop_range_done(w);
		if (w->host_funcs)
			w->issued_behind++;
	}
	s->at += sizeof(w->frame) + w->frame.length;
	if (s->at == s->used)
		s->at = s->used = 0;
	return true;
}

bool stash_serve(struct worker *w)
{
	struct frame_header coming = w->frame;
	struct staging_range *range = w->frame_range;
	unsigned char *body = w->frame_body, *payload = w->frame_payload;
	bool served = false;

	if (!w->stash.used && !w->parked.used)
		return false;
	w->frame_body = w->kept_body;
	while (!w->ended &&
		(stash_serve_first(w, &w->parked) || stash_serve_first(w, &w->stash)))
		served = true;
	w->frame = coming;
	w->frame_range = range;
	w->frame_body = body;
	w->frame_payload = payload;
	return served;
}
