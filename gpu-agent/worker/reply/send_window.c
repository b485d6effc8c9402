/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/reply/send_window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/staging/staging.h"

/* A comes behind B: by their distance, as they are 32 bits of a count that has no end. */
static bool behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

static bool is_numbered(const struct frame_header *header)
{
	return header->kind != FRAME_PING && header->kind != FRAME_PONG;
}

static void set(_Atomic uint32_t *to, uint32_t value)
{
	atomic_store_explicit(to, value, memory_order_relaxed);
}

static uint32_t used(const struct send_window *window)
{
	return atomic_load_explicit(&window->used, memory_order_relaxed);
}

static struct send_window_segment *segment(const struct send_window *window, uint32_t i)
{
	return &window->segments[(window->first + i) % SEND_WINDOW_SEGMENTS];
}

int send_window_open(struct send_window *window)
{
	window->bytes = malloc(SEND_WINDOW_BYTES_MOST);
	window->segments = calloc(SEND_WINDOW_SEGMENTS, sizeof(*window->segments));
	return window->bytes && window->segments ? 0 : -ENOMEM;
}

static struct send_window_segment *append(struct send_window *window)
{
	struct send_window_segment *s = segment(window, send_window_count(window));

	set(&window->count, send_window_count(window) + 1);
	*s = (struct send_window_segment){.last = window->numbered};
	return s;
}

void send_window_add(
	struct send_window *window, const struct frame_header *header, const void *body)
{
	uint32_t need = (uint32_t)sizeof(*header) + header->body, skip = 0;
	uint32_t count = send_window_count(window);
	struct send_window_segment *s = NULL;
	unsigned char *at;

	if (window->head + need > SEND_WINDOW_BYTES_MOST) {
		skip = SEND_WINDOW_BYTES_MOST - window->head;
		window->head = 0;
	}
	at = window->bytes + window->head;
	memcpy(at, header, sizeof(*header));
	if (header->body)
		memcpy(at + sizeof(*header), body, header->body);
	window->head = (window->head + need) % SEND_WINDOW_BYTES_MOST;
	set(&window->used, used(window) + need + skip);
	window->numbered += is_numbered(header);

	/* Frames that lie side by side go out as one piece. */
	if (send_window_waits(window))
		s = segment(window, count - 1);
	if (!s || !s->ring_bytes || skip || s->bytes + s->length != at) {
		s = append(window);
		s->bytes = at;
	}
	s->length += need;
	s->ring_bytes += need + skip;
	s->last = window->numbered;
}

void send_window_payload(struct send_window *window, const void *bytes, uint32_t n,
	struct staging_range *range, bool beside)
{
	struct send_window_segment *s = append(window);

	s->bytes = bytes;
	s->length = n;
	s->range = range;
	s->beside = beside;
}

int send_window_next(const struct send_window *window, struct iovec *iov, int most)
{
	uint32_t count = send_window_count(window);
	int n = 0;

	for (uint32_t i = send_window_gone(window); i < count && n < most; i++) {
		struct send_window_segment *s = segment(window, i);

		if (!s->beside)
			iov[n++] = (struct iovec){
				(void *)(uintptr_t)(s->bytes + s->done), s->length - s->done};
	}
	return n;
}

/* The oldest goes. */
static void release_first(struct send_window *window)
{
	struct send_window_segment *s = segment(window, 0);

	set(&window->used, used(window) - s->ring_bytes);
	if (s->range)
		staging_done(s->range);
	window->first = (window->first + 1) % SEND_WINDOW_SEGMENTS;
	set(&window->count, send_window_count(window) - 1);
	if (send_window_gone(window))
		set(&window->sent, send_window_gone(window) - 1);
	if (!send_window_count(window))
		window->head = 0;
}

static void release_counted(struct send_window *window)
{
	while (send_window_gone(window) && !behind(segment(window, 0)->last, window->counted))
		release_first(window);
}

void send_window_sent(struct send_window *window, size_t n)
{
	uint32_t gone = send_window_gone(window), count = send_window_count(window);

	while (gone < count) {
		struct send_window_segment *s = segment(window, gone);
		uint32_t left = s->beside ? 0 : s->length - s->done;

		if (n < left) {
			s->done += (uint32_t)n;
			break;
		}
		n -= left;
		s->done = s->length;
		gone++;
	}
	set(&window->sent, gone);
	if (!window->keeps && gone)
		window->counted = segment(window, gone - 1)->last;
	/* The client may have counted what a link still called unsent. */
	release_counted(window);
}

int send_window_counted(struct send_window *window, uint32_t count)
{
	if (behind(count, window->numbered))
		return -EPROTO;
	if (behind(count, window->counted)) {
		window->counted = count;
		release_counted(window);
	}
	return 0;
}

/* How many frames that count begin in S, which are the ring's bytes; with N: only before that
 * one of them, and *at is where it begins. */
static uint32_t walk(const struct send_window_segment *s, uint32_t n, uint32_t *at)
{
	uint32_t numbered = 0;

	for (*at = 0; *at < s->length;) {
		struct frame_header header;

		memcpy(&header, s->bytes + *at, sizeof(header));
		if (is_numbered(&header) && numbered++ == n)
			return n;
		*at += (uint32_t)sizeof(header) + header.body;
	}
	return numbered;
}

/* The stripes are gone: everything goes over the link. */
static void without_stripes(struct send_window *window, struct send_window_segment *s)
{
	s->done = 0;
	s->beside = false;
	for (uint32_t at = 0; s->ring_bytes && at < s->length;) {
		unsigned char *to = window->bytes + (s->bytes - window->bytes) + at;
		struct frame_header header;

		memcpy(&header, to, sizeof(header));
		header.flags = 0;
		memcpy(to, &header, sizeof(header));
		at += (uint32_t)sizeof(header) + header.body;
	}
}

int send_window_rewind(struct send_window *window, uint32_t count)
{
	struct send_window_segment *s;
	uint32_t begin, whole, at;

	if (window->drops && behind(window->dropped, count))
		return -ENODATA;
	if (behind(window->counted, count) || behind(count, window->numbered))
		return -EPROTO;
	window->counted = count;
	while (send_window_count(window) && !behind(segment(window, 0)->last, count))
		release_first(window);
	set(&window->sent, 0);
	for (uint32_t i = 0; i < send_window_count(window); i++)
		without_stripes(window, segment(window, i));
	if (!send_window_count(window))
		return 0;
	s = segment(window, 0);
	whole = walk(s, UINT32_MAX, &at);
	begin = s->last - whole; /* the number before its first */
	walk(s, count - begin, &at);
	s->done = at;
	return 0;
}

bool send_window_drop(struct send_window *window)
{
	bool any = send_window_gone(window) > 0;

	while (send_window_gone(window)) {
		window->dropped = segment(window, 0)->last;
		window->drops = true;
		release_first(window);
	}
	return any;
}
