/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames to the app: made here, kept in a window (send_window.h), sent over the link.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_REPLY_REPLY_H
#define VCUDA_GPU_AGENT_WORKER_REPLY_REPLY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

struct link;
struct staging_range;
struct worker;

/* How long a window that is full waits for the client's count, which may stand behind frames
 * that in turn wait for room. */
#define RELIEVE_NS 2000000u

bool reply_room(const struct worker *w);
void reply_send(struct worker *w, uint16_t tag, CUresult status, const void *body, uint32_t n);
/* The same of a question of the shim's own: an error of a post is for a call of the program's.
 */
void reply_aside(struct worker *w, uint16_t tag, CUresult status, const void *body, uint32_t n);
void reply_payload(struct worker *w, enum frame_kind kind, uint16_t tag, CUresult status,
	const struct frame_destination *destination, const void *bytes, uint32_t n,
	struct staging_range *range);
void reply_update(struct worker *w, uint32_t counter, uint64_t value);
void reply_upcall(struct worker *w, uint32_t what, uint64_t value);
void reply_plain(struct worker *w, enum frame_kind kind, CUresult status, const char *text);
bool reply_flush(struct worker *w);	  /* true: something went out */
bool reply_waits(const struct worker *w); /* something has not gone out yet */
/* For another thread than the loop's: sends what waits, or where nothing does and `pong`, a
 * PONG. 0 or -errno: the link is dead. */
int reply_flush_beside(struct worker *w, bool pong);
/* For that thread: the client hears why the session ended, if it reads soon. */
void reply_end_beside(struct worker *w);

/* The client says that it has counted COUNT frames. False: that cannot be. */
bool reply_counted(struct worker *w, uint32_t count);
/* Where frames that are sent and not counted leave no room, and the client's count does not
 * come: lets go of them, and returns true. Each turn of the loop. */
bool reply_relieve(struct worker *w, uint64_t now);
/* The link is dead, and nothing is sent from here on … */
void reply_cut(struct worker *w);
/* … until another takes its place, over which goes what is behind frame number COUNTED. 0: LINK
 * is the worker's; else send_window_rewind's, and nothing changed. */
int reply_resume(struct worker *w, struct link *link, uint32_t counted);
/* The client closed a connection, or it broke. Any thread. */
bool reply_hung_up(struct worker *w);

#endif
