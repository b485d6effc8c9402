/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop reads: frames out of the connection, payloads out of stripes, checked.
 */
#include "gpu-agent/worker/loop/loop_input.h"

#include <errno.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/local/local.h"
#include "gpu-agent/worker/loop/loop.h"
#include "gpu-agent/worker/limits/metering.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/loop/stash.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/worker_state.h"

static void protocol_violation(struct worker *w, const char *what)
{
	w->stats.errors++;
	worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the client broke the protocol: %s", what);
}

static uint32_t loop_stripe(const struct frame_header *h)
{
	return (h->flags & FRAME_STRIPE_MASK) >> FRAME_STRIPE_SHIFT;
}

/* What a frame must be before any of it is used. */
static const char *loop_check(const struct worker *w, const struct frame_header *h)
{
	if (h->magic != FRAME_MAGIC)
		return "no frame begins here";
	if (h->kind != FRAME_POST && h->kind != FRAME_CALL && h->kind != FRAME_PING &&
		h->kind != FRAME_PONG && h->kind != FRAME_BYE &&
		(h->kind != FRAME_TAKEN || !w->park.grace))
		return "unknown kind of frame";
	if (h->length &&
		(h->kind == FRAME_PING || h->kind == FRAME_PONG || h->kind == FRAME_TAKEN))
		return "a body where there is none";
	if (h->flags & ~FRAME_STRIPE_MASK)
		return "unknown flags";
	if (h->body > FRAME_BODY_MAX || h->body > h->length)
		return "a body beyond the limit";
	if (h->length - h->body > FRAME_PAYLOAD_MAX)
		return "a payload beyond the limit";
	if (h->flags && (h->length == h->body || loop_stripe(h) > SESSION_STRIPES))
		return "a stripe for nothing";
	if (h->tag >= CHANNEL_SLOTS)
		return "a tag out of range";
	if ((h->kind == FRAME_POST || h->kind == FRAME_CALL) && h->seq != w->receiver.taken + 1)
		return "a sequence number out of order";
	return NULL;
}

bool loop_read(struct worker *w, void *to, uint32_t n, uint32_t *got)
{
	ssize_t result = link_receive(w->link, to, n);

	*got = 0;
	if (result == -EAGAIN)
		return false;
	if (result <= 0) {
		park_or_end(w, CUDA_SUCCESS, "the client is gone%s%s", result ? ": " : "",
			result ? strerror((int)-result) : "");
		return false;
	}
	w->stats.bytes_received += (uint64_t)result;
	*got = (uint32_t)result;
	return true;
}

static bool loop_stripe_there(struct worker *w)
{
	/* The front said it before the sidecar knew, behind a grant at the most. */
	for (int i = 0; i < 4 && !stripe_there(w, w->receiver.payload_stripe); i++)
		worker_control(w);
	if (w->park.wanted)
		return false;
	if (!stripe_there(w, w->receiver.payload_stripe))
		protocol_violation(w, "a stripe that was not opened");
	return stripe_there(w, w->receiver.payload_stripe);
}

void loop_fill_payload(struct worker *w)
{
	if (w->receiver.fill)
		memset(w->receiver.payload, (int)w->receiver.fill - 1,
			w->receiver.frame.length - w->receiver.frame.body);
	w->receiver.fill = 0;
}

bool loop_stripe_receive(struct worker *w)
{
	struct stripe *stripe = w->stripes.at[w->receiver.payload_stripe];
	int ret = stripe_receive(stripe, w->receiver.payload_missing, &w->receiver.payload,
		&w->receiver.fill, &w->receiver.range);

	if (ret == -EPROTO)
		protocol_violation(w, stripe_forged(stripe)
					      ? "a coded piece that is not what it says"
					      : "a piece of another length than its frame");
	else if (ret == -ECONNRESET)
		park_or_end(w, CUDA_SUCCESS, "a stripe of the client is gone");
	else if (ret == -ENOMEM)
		worker_end(w, CUDA_ERROR_OUT_OF_MEMORY,
			"no pinned memory for a connection of its own");
	if (ret)
		return false;
	w->stats.bytes_received += stripe_took(stripe);
	w->receiver.payload_missing = 0;
	if (!serve_marked(w->receiver.frame.op, SERVE_COPIED))
		loop_fill_payload(w);
	return true;
}

/* What the client has counted (frame.h). false: it cannot have. */
static bool loop_counted(struct worker *w, const struct frame_header *h)
{
	uint32_t count = h->kind == FRAME_TAKEN ? (uint32_t)h->seq : h->status;

	if (h->kind != FRAME_POST && h->kind != FRAME_CALL && h->kind != FRAME_TAKEN)
		return true;
	if (count == w->sender.window.counted || reply_counted(w, count))
		return true;
	protocol_violation(w, "it has counted what was never sent");
	return false;
}

bool loop_parse(struct worker *w)
{
	uint32_t have = w->receiver.end - w->receiver.at;
	uint32_t payload, now;
	const char *violation;

	if (have < sizeof(w->receiver.frame))
		return false;
	memcpy(&w->receiver.frame, w->receiver.bytes + w->receiver.at,
		sizeof(w->receiver.frame));
	violation = loop_check(w, &w->receiver.frame);
	if (violation) {
		protocol_violation(w, violation);
		return false;
	}
	if (have < sizeof(w->receiver.frame) + w->receiver.frame.body)
		return false;
	if (w->park.grace && !loop_counted(w, &w->receiver.frame))
		return false;
	payload = w->receiver.frame.length - w->receiver.frame.body;
	w->receiver.payload_stripe = loop_stripe(&w->receiver.frame);
	w->receiver.frame.flags = 0;
	w->receiver.fill = 0;
	if (w->receiver.payload_stripe && !loop_stripe_there(w))
		return false;
	if (payload && !w->receiver.payload_stripe) {
		w->receiver.range = staging_alloc(w, &w->in, payload, &w->receiver.payload);
		w->receiver.payload_waits = !w->receiver.range;
		if (!w->receiver.range)
			return false; /* the GPU is behind: the socket waits */
	}
	memcpy(w->receiver.body, w->receiver.bytes + w->receiver.at + sizeof(w->receiver.frame),
		w->receiver.frame.body);
	w->receiver.at += (uint32_t)sizeof(w->receiver.frame) + w->receiver.frame.body;
	now = w->receiver.payload_stripe ? 0 : w->receiver.end - w->receiver.at;
	if (now > payload)
		now = payload;
	if (now)
		memcpy(w->receiver.payload, w->receiver.bytes + w->receiver.at, now);
	w->receiver.at += now;
	w->receiver.payload_missing = payload - now;
	w->receiver.have_frame = true;
	return true;
}

bool loop_fill(struct worker *w)
{
	uint32_t room, got;

	if (w->receiver.at == w->receiver.end)
		w->receiver.at = w->receiver.end = 0;
	/* Behind a big payload comes another, most likely: read its header, and the payload
	 * itself straight into staging. */
	room = w->receiver.small ? 4096 : RECEIVE_BYTES;
	if (w->receiver.at && RECEIVE_BYTES - w->receiver.end < room) {
		memmove(w->receiver.bytes, w->receiver.bytes + w->receiver.at,
			w->receiver.end - w->receiver.at);
		w->receiver.end -= w->receiver.at;
		w->receiver.at = 0;
	}
	if (room > RECEIVE_BYTES - w->receiver.end)
		room = RECEIVE_BYTES - w->receiver.end;
	if (!room || !loop_read(w, w->receiver.bytes + w->receiver.end, room, &got))
		return false;
	w->receiver.end += got;
	if (got == room)
		w->receiver.small = false; /* many small ones: read more at once */
	return true;
}

bool loop_awaits_count(const struct worker *w)
{
	return w->park.grace && send_window_gone(&w->sender.window) && w->receiver.have_frame &&
	       !w->receiver.payload_missing && w->receiver.end - w->receiver.at < RECEIVE_BYTES;
}

bool loop_look_ahead(struct worker *w)
{
	uint32_t at = w->receiver.at, counted = w->sender.window.counted;

	if (!w->park.grace || !send_window_gone(&w->sender.window))
		return false;
	loop_fill(w);
	if (w->receiver.at < at)
		at = w->receiver.at; /* what is there was moved */
	while (w->receiver.end - at >= sizeof(struct frame_header)) {
		struct frame_header h;

		memcpy(&h, w->receiver.bytes + at, sizeof(h));
		if (h.magic != FRAME_MAGIC || !loop_counted(w, &h))
			break;
		if (h.flags & FRAME_STRIPE_MASK)
			h.length = h.body;
		if (h.length > w->receiver.end - at - sizeof(h))
			break;
		at += (uint32_t)sizeof(h) + h.length;
	}
	return w->sender.window.counted != counted;
}

void loop_drop_input(struct worker *w)
{
	struct receiver *r = &w->receiver;

	if (w->local.is)
		return; /* it came by no link, and comes no second time */
	if (r->have_frame)
		loop_range_done(w);
	r->at = r->end = 0;
	r->have_frame = r->payload_waits = r->small = false;
	r->payload_missing = r->payload_stripe = 0;
	r->fill = 0;
}
