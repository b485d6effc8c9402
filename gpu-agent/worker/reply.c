/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames to the app.  Headers and bodies are copied into a ring, payloads go from staging as
 * they lie; the socket takes both by one gathered send.  Whoever wants to answer asks
 * reply_room first: a slow reader stops the taking of frames, never the process.
 *
 * The loop adds and sends; while it is in a call that does not return, the thread of watchdog.c
 * sends what is ready (reply_flush_beside).  A lock of one word, free but for that time, is
 * held while frames are added and while some are sent.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "gpu-agent/worker/reply.h"
#include "gpu-agent/worker/staging.h"
#include "gpu-agent/worker/worker_state.h"

/* Frames a turn may add without looking again. */
#define REPLY_MARGIN 16

static void reply_lock(struct worker *w)
{
	for (unsigned n = 0; atomic_exchange_explicit(&w->sender.lock, 1, memory_order_acquire);
		n++) {
		if (n < 100)
			wait_relax();
		else
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
}

static void reply_unlock(struct worker *w)
{
	atomic_store_explicit(&w->sender.lock, 0, memory_order_release);
}

static uint32_t reply_count(const struct worker *w)
{
	return atomic_load_explicit(&w->sender.segment_count, memory_order_relaxed);
}

static uint32_t reply_used(const struct worker *w)
{
	return atomic_load_explicit(&w->sender.used, memory_order_relaxed);
}

/* Another thread only takes away: what there is room for now there is room for later. */
bool reply_room(const struct worker *w)
{
	return reply_count(w) + REPLY_MARGIN < SEND_SEGMENTS &&
	       reply_used(w) + REPLY_MARGIN * 4096 < SEND_BYTES;
}

bool reply_waits(const struct worker *w)
{
	return reply_count(w) > 0;
}

static void reply_set_count(struct worker *w, uint32_t n)
{
	atomic_store_explicit(&w->sender.segment_count, n, memory_order_relaxed);
}

static void reply_set_used(struct worker *w, uint32_t n)
{
	atomic_store_explicit(&w->sender.used, n, memory_order_relaxed);
}

static struct send_segment *reply_segment(struct worker *w)
{
	uint32_t count = reply_count(w);
	struct send_segment *s =
		&w->sender.segments[(w->sender.segment_first + count) % SEND_SEGMENTS];

	reply_set_count(w, count + 1);
	memset(s, 0, sizeof(*s));
	return s;
}

/* Under the lock. */
static void reply_add(struct worker *w, struct frame_header *h, const void *body, uint32_t n)
{
	uint32_t need = (uint32_t)sizeof(*h) + n, skip = 0;
	struct send_segment *s;
	struct send_segment *last;
	unsigned char *at;

	h->magic = FRAME_MAGIC;
	h->seq = w->sender.seq;
	h->body = n;
	h->length += n;
	if (w->sender.head + need > SEND_BYTES) {
		skip = SEND_BYTES - w->sender.head;
		w->sender.head = 0;
	}
	at = w->sender.bytes + w->sender.head;
	memcpy(at, h, sizeof(*h));
	if (n)
		memcpy(at + sizeof(*h), body, n);
	w->sender.head = (w->sender.head + need) % SEND_BYTES;
	reply_set_used(w, reply_used(w) + need + skip);

	/* Frames that lie side by side go out as one piece. */
	last = reply_count(w)
		       ? &w->sender.segments[(w->sender.segment_first + reply_count(w) - 1) %
					     SEND_SEGMENTS]
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

/* The loop's: takes the lock, and acknowledges what was taken. */
static void reply_begin(struct worker *w)
{
	reply_lock(w);
	w->sender.seq = w->receiver.acked = w->receiver.taken;
	w->receiver.unacked_bytes = 0;
	w->stats.frames_sent++;
}

static void reply_frame(struct worker *w, struct frame_header *h, const void *body, uint32_t n)
{
	reply_begin(w);
	reply_add(w, h, body, n);
	reply_unlock(w);
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
	const struct frame_destination *destination, const void *bytes, uint32_t n,
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
	reply_begin(w);
	reply_add(w, &h, destination, sizeof(*destination));
	s = reply_segment(w);
	s->bytes = bytes;
	s->length = n;
	s->range = range;
	reply_unlock(w);
}

void reply_update(struct worker *w, uint32_t counter, uint64_t value)
{
	struct frame_update update = {.index = counter, .value = value};
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

/* N bytes went out. */
static void reply_gone(struct worker *w, size_t n)
{
	atomic_store_explicit(&w->sender.sent_bytes,
		atomic_load_explicit(&w->sender.sent_bytes, memory_order_relaxed) + n,
		memory_order_relaxed);
	while (reply_count(w)) {
		struct send_segment *s = &w->sender.segments[w->sender.segment_first];
		uint32_t left = s->length - s->done;

		if (n < left) {
			s->done += (uint32_t)n;
			return;
		}
		n -= left;
		reply_set_used(w, reply_used(w) - s->ring_bytes);
		if (s->range)
			staging_done(s->range);
		w->sender.segment_first = (w->sender.segment_first + 1) % SEND_SEGMENTS;
		reply_set_count(w, reply_count(w) - 1);
	}
}

/* Under the lock: as much as the socket takes. 1: something went out, 0, or -errno. */
static int reply_push(struct worker *w)
{
	enum { PIECES = 64 };
	struct iovec iov[PIECES];
	int progress = 0;

	while (reply_count(w)) {
		uint32_t n = reply_count(w);
		int count = 0;
		ssize_t sent;

		for (uint32_t i = 0; i < n && count < PIECES; i++) {
			struct send_segment *s =
				&w->sender.segments[(w->sender.segment_first + i) %
						    SEND_SEGMENTS];

			iov[count].iov_base = (void *)(uintptr_t)(s->bytes + s->done);
			iov[count++].iov_len = s->length - s->done;
		}
		sent = link_send(w->link, iov, count);
		if (sent == -EAGAIN)
			return progress;
		if (sent < 0)
			return (int)sent;
		progress = 1;
		reply_gone(w, (size_t)sent);
	}
	w->sender.head = 0;
	return progress;
}

bool reply_flush(struct worker *w)
{
	int ret;

	if (!reply_waits(w))
		return false;
	reply_lock(w);
	ret = reply_push(w);
	reply_unlock(w);
	if (ret < 0)
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the link broke while sending: %s",
			strerror(-ret));
	return ret;
}

int reply_flush_beside(struct worker *w, bool pong)
{
	struct frame_header h = {.kind = FRAME_PONG};
	int ret;

	reply_lock(w);
	if (pong && !reply_count(w))
		reply_add(w, &h, NULL, 0);
	ret = reply_push(w);
	reply_unlock(w);
	return ret < 0 ? ret : 0;
}
