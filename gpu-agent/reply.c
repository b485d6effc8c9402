/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames to the app.  Headers and bodies are copied into a ring, payloads go from staging as
 * they lie; the socket takes both by one gathered send.  Whoever wants to answer asks
 * reply_room first: a slow reader stops the taking of frames, never the process.
 */
#include <errno.h>
#include <string.h>

#include "gpu-agent/worker_state.h"

/* Frames a turn may add without looking again. */
#define REPLY_MARGIN 16

bool reply_room(const struct worker *w)
{
	return w->segment_count + REPLY_MARGIN < SEND_SEGMENTS &&
	       w->send_used + REPLY_MARGIN * 4096 < SEND_BYTES;
}

static struct send_segment *reply_segment(struct worker *w)
{
	struct send_segment *s =
		&w->segments[(w->segment_first + w->segment_count++) % SEND_SEGMENTS];

	memset(s, 0, sizeof(*s));
	return s;
}

static void reply_frame(struct worker *w, struct frame_header *h, const void *body, uint32_t n)
{
	uint32_t need = (uint32_t)sizeof(*h) + n, skip = 0;
	struct send_segment *s;
	struct send_segment *last;
	unsigned char *at;

	h->magic = FRAME_MAGIC;
	h->seq = w->taken;
	h->body = n;
	h->length += n;
	w->acked = w->taken;
	w->unacked_bytes = 0;

	if (w->send_head + need > SEND_BYTES) {
		skip = SEND_BYTES - w->send_head;
		w->send_head = 0;
	}
	at = w->send + w->send_head;
	memcpy(at, h, sizeof(*h));
	if (n)
		memcpy(at + sizeof(*h), body, n);
	w->send_head = (w->send_head + need) % SEND_BYTES;
	w->send_used += need + skip;
	w->stats.frames_sent++;

	/* Frames that lie side by side go out as one piece. */
	last = w->segment_count
		       ? &w->segments[(w->segment_first + w->segment_count - 1) % SEND_SEGMENTS]
		       : NULL;
	if (last && last->ring_bytes && !skip && last->bytes + last->length == at) {
		last->length += need;
		last->ring_bytes += need;
		return;
	}
	s = reply_segment(w);
	s->bytes = at;
	s->length = need;
	s->ring_bytes = need + skip;
}

void reply_send(struct worker *w, uint16_t tag, CUresult status, const void *body, uint32_t n)
{
	struct frame_header h = {
		.kind = FRAME_REPLY,
		.tag = tag,
		.status = (uint32_t)status,
		.deferred = (uint16_t)w->deferred,
	};

	w->deferred = w->sticky;
	reply_frame(w, &h, body, n);
}

void reply_payload(struct worker *w, enum frame_kind kind, uint16_t tag, CUresult status,
	const struct frame_landing *landing, const void *bytes, uint32_t n,
	struct staging_range *range)
{
	struct frame_header h = {
		.kind = (uint8_t)kind,
		.tag = tag,
		.status = (uint32_t)status,
		.length = n,
	};
	struct send_segment *s;

	if (kind == FRAME_REPLY) {
		h.deferred = (uint16_t)w->deferred;
		w->deferred = w->sticky;
	}
	reply_frame(w, &h, landing, sizeof(*landing));
	s = reply_segment(w);
	s->bytes = bytes;
	s->length = n;
	s->range = range;
}

void reply_update(struct worker *w, uint32_t word, uint64_t value)
{
	struct frame_update update = {.index = word, .value = value};
	struct frame_header h = {.kind = FRAME_UPDATE};

	reply_frame(w, &h, &update, sizeof(update));
}

void reply_upcall(struct worker *w, uint32_t what, uint64_t value)
{
	struct frame_upcall upcall = {.what = what, .value = value};
	struct frame_header h = {.kind = FRAME_UPCALL};

	reply_frame(w, &h, &upcall, sizeof(upcall));
}

void reply_plain(struct worker *w, enum frame_kind kind, CUresult status, const char *text)
{
	struct frame_header h = {.kind = (uint8_t)kind, .status = (uint32_t)status};

	reply_frame(w, &h, text, text ? (uint32_t)strlen(text) : 0);
}

bool reply_flush(struct worker *w)
{
	enum { PIECES = 64 };
	struct iovec iov[PIECES];
	bool progress = false;

	while (w->segment_count) {
		ssize_t n;
		int count = 0;

		for (uint32_t i = 0; i < w->segment_count && count < PIECES; i++) {
			struct send_segment *s =
				&w->segments[(w->segment_first + i) % SEND_SEGMENTS];

			iov[count].iov_base = (void *)(uintptr_t)(s->bytes + s->done);
			iov[count++].iov_len = s->length - s->done;
		}
		n = link_send(w->link, iov, count);
		if (n == -EAGAIN)
			return progress;
		if (n < 0) {
			worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
				"the link broke while sending: %s", strerror((int)-n));
			return true;
		}
		progress = true;
		w->stats.bytes_sent += (uint64_t)n;
		while (w->segment_count) {
			struct send_segment *s = &w->segments[w->segment_first];
			uint32_t left = s->length - s->done;

			if ((size_t)n < left) {
				s->done += (uint32_t)n;
				break;
			}
			n -= left;
			w->send_used -= s->ring_bytes;
			if (s->range)
				staging_done(s->range);
			w->segment_first = (w->segment_first + 1) % SEND_SEGMENTS;
			w->segment_count--;
		}
	}
	w->send_head = 0;
	return progress;
}
