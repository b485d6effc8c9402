/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that are kept while a host function is outstanding: whose call would wait in the
 * driver for it, and those behind them.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker_state.h"

/* While a host function is outstanding, so many frames are issued at the most: the driver's
 * queue (1024 launches) must never be what the loop blocks on, since the word that ends the
 * wait comes through the loop. */
#define HOST_FUNC_FRAMES 256
#define STASH_MAX (64u << 20)

/* Behind a fault host functions never run, and the driver waits for nothing. */
bool stash_holds(struct worker *w, const struct frame_header *h)
{
	return w->host_funcs && !w->sticky &&
	       (w->issued_behind >= HOST_FUNC_FRAMES || limits_full(w) ||
		       loop_marked(serve_find(h->op), h, SERVE_WAITS));
}

bool stash_overtakes(struct worker *w)
{
	const struct wire_vcudaCopyOut *out = (const void *)w->frame_body;
	const struct wire_vcudaCopyIn *in = (const void *)w->frame_body;
	const struct wire_vcudaSync *sync = (const void *)w->frame_body;
	const struct worker_stream *stream;
	uint64_t handle = 0;
	struct name *name;

	if (w->frame.op == OP_vcudaCopyOut && w->frame.body >= sizeof(*out))
		handle = out->stream;
	else if (w->frame.op == OP_vcudaCopyIn && w->frame.body >= sizeof(*in))
		handle = in->stream;
	else if (w->frame.op == OP_vcudaSync && w->frame.body >= sizeof(*sync) &&
		 sync->scope == SYNC_STREAM)
		handle = sync->handle;
	name = handle ? names_find(w, handle, KIND_CUstream) : NULL;
	stream = name ? name->object : NULL;
	return stream && stream->flags & STREAM_AHEAD;
}

void stash_keep(struct worker *w)
{
	struct stash *s = &w->stash;
	uint32_t payload = w->frame.length - w->frame.body;
	size_t need = sizeof(w->frame) + w->frame.length;

	if (s->used + need > s->room && s->at) {
		memmove(s->bytes, s->bytes + s->at, s->used - s->at);
		s->used -= s->at;
		s->at = 0;
	}
	if (s->used + need > s->room) {
		size_t room = s->room ? s->room : 1u << 20;
		unsigned char *bytes;

		while (room < s->used + need)
			room *= 2;
		bytes = room <= STASH_MAX ? realloc(s->bytes, room) : NULL;
		if (bytes)
			s->bytes = bytes;
		if (!s->body)
			s->body = aligned_alloc(64, FRAME_BODY_MAX);
		if (!bytes || !s->body) {
			worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
				"too much is waiting behind a host function");
			return;
		}
		s->room = room;
	}
	memcpy(s->bytes + s->used, &w->frame, sizeof(w->frame));
	memcpy(s->bytes + s->used + sizeof(w->frame), w->frame_body, w->frame.body);
	if (payload)
		memcpy(s->bytes + s->used + sizeof(w->frame) + w->frame.body, w->frame_payload,
			payload);
	s->used += need;
}

static bool stash_serve_first(struct worker *w)
{
	struct stash *s = &w->stash;
	const unsigned char *at = s->bytes + s->at;
	uint32_t payload;

	memcpy(&w->frame, at, sizeof(w->frame));
	memcpy(w->frame_body, at + sizeof(w->frame), w->frame.body);
	if (stash_holds(w, &w->frame) || limits_full(w) || !loop_can_serve(w))
		return false;
	payload = w->frame.length - w->frame.body;
	w->frame_range = NULL;
	if (payload) {
		w->frame_range = staging_take(w, &w->in, payload, &w->frame_payload);
		if (!w->frame_range)
			return false;
		memcpy(w->frame_payload, at + sizeof(w->frame) + w->frame.body, payload);
	}
	loop_serve_frame(w);
	loop_range_done(w);
	if (w->host_funcs)
		w->issued_behind++;
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
	bool served;

	w->frame_body = w->stash.body;
	served = stash_serve_first(w);
	w->frame = coming;
	w->frame_range = range;
	w->frame_body = body;
	w->frame_payload = payload;
	return served;
}
