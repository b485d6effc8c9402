/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the agent's machine a session may take, its GPU aside.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIMITS_LIMITS_H
#define VCUDA_GPU_AGENT_WORKER_LIMITS_LIMITS_H

#include <stdbool.h>

struct worker;
struct worker_stream;

/* A stream has at most twice as many pieces of work unseen by the loop; the drivers of GPUs
 * block at 1024. */
#define STREAM_DEPTH 8192

/* No frame that makes work is to be served now. */
bool limits_full(struct worker *w);
/* One more piece of work is put on the stream. */
void limits_work(struct worker *w, struct worker_stream *stream);
/* Leaves an event behind what the stream has, once the one before it is done; false: that one
 * is not. */
bool limits_mark(struct worker *w, struct worker_stream *stream);
void limits_stream_gone(struct worker *w, struct worker_stream *stream);
/* Ends the session where it has too much memory; once a second. */
void limits_look(struct worker *w);

#endif
