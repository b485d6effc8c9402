/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames to the app, which send_window.c keeps: the socket takes headers, bodies and payloads
 * by one gathered send.  Whoever wants to answer asks reply_room first: a slow reader stops the
 * taking of frames, never the process.
 *
 * The loop adds and sends; while it is in a call that does not return, the thread of watchdog.c
 * sends what is ready (reply_flush_beside).  A lock of one word, free but for that time, is
 * held while frames are added and while some are sent.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "gpu-agent/worker/local/local.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/worker_state.h"

/* Of a client that reads slowly. */
#define END_LOOKS 50
#define END_PAUSE_NS 10000000

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

bool reply_room(const struct worker *w)
{
	return w->local.is ? local_room(w) : send_window_room(&w->sender.window);
}

bool reply_waits(const struct worker *w)
{
	return send_window_waits(&w->sender.window);
}

/* Under the lock. */
static void reply_add(struct worker *w, struct frame_header *h, const void *body, uint32_t n)
{
	if (w->local.is) {
		local_reply(w, h, body, n);
		return;
	}
	h->magic = FRAME_MAGIC;
	h->seq = w->sender.seq;
	h->body = n;
	h->length += n;
	send_window_add(&w->sender.window, h, body);
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

void reply_aside(struct worker *w, uint16_t tag, CUresult status, const void *body, uint32_t n)
{
	CUresult deferred = w->deferred;

	w->deferred = CUDA_SUCCESS;
	reply_send(w, tag, status, body, n);
	w->deferred = deferred;
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
	uint32_t stripe;

	if (kind == FRAME_REPLY) {
		h.deferred = (uint16_t)w->deferred;
		w->deferred = w->sticky;
	}
	if (w->local.is) {
		reply_begin(w);
		local_reply_payload(w, &h, destination, bytes, n, range);
		reply_unlock(w);
		return;
	}
	stripe = park_is(w) ? 0 : stripes_send(w, bytes, n, range);
	h.flags = (uint8_t)(stripe << FRAME_STRIPE_SHIFT);
	reply_begin(w);
	reply_add(w, &h, destination, sizeof(*destination));
	send_window_payload(&w->sender.window, bytes, n, range, stripe);
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

/* Under the lock: as much as the socket takes. 1: something went out, 0, or -errno. */
static int reply_push(struct worker *w)
{
	enum { PIECES = 64 };
	struct iovec iov[PIECES];
	int progress = 0;

	while (send_window_waits(&w->sender.window)) {
		int count = send_window_next(&w->sender.window, iov, PIECES);
		ssize_t sent = link_send(w->link, iov, count);

		if (sent == -EAGAIN)
			return progress;
		if (sent < 0)
			return (int)sent;
		progress = 1;
		atomic_store_explicit(&w->sender.sent_bytes,
			atomic_load_explicit(&w->sender.sent_bytes, memory_order_relaxed) +
				(uint64_t)sent,
			memory_order_relaxed);
		send_window_sent(&w->sender.window, (size_t)sent);
	}
	return progress;
}

bool reply_flush(struct worker *w)
{
	int ret;

	if (!reply_waits(w) || park_is(w))
		return false;
	reply_lock(w);
	ret = reply_push(w);
	reply_unlock(w);
	if (ret < 0)
		park_or_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the link broke while sending: %s",
			strerror(-ret));
	return ret > 0;
}

int reply_flush_beside(struct worker *w, bool pong)
{
	struct frame_header h = {.kind = FRAME_PONG};
	int ret = 0;

	reply_lock(w);
	if (!park_is(w)) {
		if (pong && !reply_waits(w))
			reply_add(w, &h, NULL, 0);
		ret = reply_push(w);
	}
	reply_unlock(w);
	return ret < 0 ? ret : 0;
}

void reply_end_beside(struct worker *w)
{
	struct frame_header h = {.kind = FRAME_LOST, .status = (uint32_t)w->end.status};

	if (w->local.is) {
		local_end(w);
		return;
	}
	reply_lock(w);
	if (!park_is(w) && reply_room(w))
		reply_add(w, &h, w->end.text, (uint32_t)strlen(w->end.text));
	reply_unlock(w);
	for (int i = 0; i < END_LOOKS && !reply_flush_beside(w, false) && reply_waits(w); i++)
		nanosleep(&(struct timespec){.tv_nsec = END_PAUSE_NS}, NULL);
}

bool reply_counted(struct worker *w, uint32_t count)
{
	int ret = 0;

	if (count == w->sender.window.counted)
		return true;
	reply_lock(w);
	ret = send_window_counted(&w->sender.window, count);
	reply_unlock(w);
	return !ret;
}

bool reply_relieve(struct worker *w, uint64_t now)
{
	struct send_window *window = &w->sender.window;

	if (window->counted != w->sender.relieved || send_window_waits(window) ||
		!send_window_gone(window) || stripes_sending(w) ||
		(reply_room(w) && !staging_half_busy(w, &w->out))) {
		w->sender.relieved = window->counted;
		w->sender.relieved_at = now;
		return false;
	}
	if (now - w->sender.relieved_at < RELIEVE_NS)
		return false;
	reply_lock(w);
	send_window_drop(window);
	reply_unlock(w);
	log_debug("window.dropped", "through=%u", window->dropped);
	return true;
}

void reply_cut(struct worker *w)
{
	reply_lock(w);
	link_shut(w->link);
	atomic_store(&w->park.is, true);
	reply_unlock(w);
}

int reply_resume(struct worker *w, struct link *link, uint32_t counted)
{
	int ret;

	reply_lock(w);
	ret = send_window_rewind(&w->sender.window, counted);
	if (!ret) {
		link_close(w->link);
		w->link = link;
		atomic_store(&w->park.is, false);
	}
	reply_unlock(w);
	return ret;
}

bool reply_hung_up(struct worker *w)
{
	struct pollfd fds[2];
	bool hung_up;

	reply_lock(w);
	link_fds(w->link, fds, false);
	for (int i = 0; i < 2; i++)
		fds[i].events = POLLRDHUP;
	hung_up = poll(fds, 2, 0) > 0;
	reply_unlock(w);
	return hung_up;
}
