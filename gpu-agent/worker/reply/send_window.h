/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames to the app, from when they are made until nobody can ask for them again: until
 * they are sent, or, where the session can be resumed (`keeps`), until the client has counted
 * them.  Headers and bodies are copied into a ring, payloads go as they lie.  It knows no
 * connection: reply.c sends what it says comes next.
 *
 * What _Atomic is may be looked at by any thread; all else, and each function but
 * send_window_room, is for one at a time (reply.c has a lock).
 */
#ifndef VCUDA_GPU_AGENT_WORKER_REPLY_SEND_WINDOW_H
#define VCUDA_GPU_AGENT_WORKER_REPLY_SEND_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "protocol/wire/frame.h"

#define SEND_WINDOW_BYTES_MOST (512u * 1024) /* headers and bodies */
#define SEND_WINDOW_SEGMENTS 1024
#define SEND_WINDOW_MARGIN 16 /* frames that may be added without looking again */

struct staging_range;

struct send_window {
	unsigned char *bytes; /* SEND_WINDOW_BYTES_MOST, a ring */
	uint32_t head;
	_Atomic uint32_t used;
	struct send_window_segment {
		const unsigned char *bytes;
		uint32_t length, done;	     /* done: sent */
		uint32_t ring_bytes;	     /* of `bytes` of the window that it holds */
		uint32_t last;		     /* number of the last frame that begins in it */
		bool beside;		     /* a stripe brings it, not the link */
		struct staging_range *range; /* released with it; NULL: the ring's bytes */
	} *segments;
	uint32_t first;
	_Atomic uint32_t count; /* segments from `first` on, … */
	_Atomic uint32_t sent;	/* … of which the first ones went out whole */
	bool keeps;
	uint32_t numbered; /* frames ever made that count: the number of the last */
	uint32_t counted;  /* by the client */
	uint32_t dropped;  /* the last one that was let go without being counted */
	bool drops;	   /* there is such a one */
};

/* 0 or -ENOMEM. */
int send_window_open(struct send_window *window);

/* A frame, whose header is complete. Where it has a payload, send_window_payload comes next. */
void send_window_add(
	struct send_window *window, const struct frame_header *header, const void *body);
/* BESIDE: a stripe brings it, as the header says; after send_window_rewind the link does. */
void send_window_payload(struct send_window *window, const void *bytes, uint32_t n,
	struct staging_range *range, bool beside);

/* What is to be sent next: at most MOST pieces, their number. */
int send_window_next(const struct send_window *window, struct iovec *iov, int most);
/* N bytes of that went out. */
void send_window_sent(struct send_window *window, size_t n);

/* The client has counted COUNT frames (the low 32 bits); what it said before may come late. 0,
 * or -EPROTO: there were never so many. */
int send_window_counted(struct send_window *window, uint32_t count);

/* Everything behind frame number COUNT is to be sent again. 0; -EPROTO: there were never so
 * many, or it said more before; -ENODATA: some of that was dropped. */
int send_window_rewind(struct send_window *window, uint32_t count);

/* Lets go what was sent and not counted: a session that is cut before the client counts that
 * far is lost. False: there is none. */
bool send_window_drop(struct send_window *window);

static inline uint32_t send_window_count(const struct send_window *window)
{
	return atomic_load_explicit(&window->count, memory_order_relaxed);
}
static inline uint32_t send_window_gone(const struct send_window *window)
{
	return atomic_load_explicit(&window->sent, memory_order_relaxed);
}

/* Other threads only send: what there is room for now there is room for later. */
static inline bool send_window_room(const struct send_window *window)
{
	return send_window_count(window) + SEND_WINDOW_MARGIN < SEND_WINDOW_SEGMENTS &&
	       atomic_load_explicit(&window->used, memory_order_relaxed) +
			       SEND_WINDOW_MARGIN * 4096 <
		       SEND_WINDOW_BYTES_MOST;
}

/* Something has not gone out yet. */
static inline bool send_window_waits(const struct send_window *window)
{
	return send_window_count(window) != send_window_gone(window);
}

#endif
