/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that is served beside the loop.  Its serve function runs on a thread of its own and
 * has all that a serve function has, since thread and loop take turns: the thread is in the
 * loop's place, and the loop stands still, but for the time between beside_leave and
 * beside_enter.  There it does what may last (a library prepares a plan, searches, analyses),
 * and touches nothing of the loop's, while the session's other streams and threads go on.
 *
 * What it uses meanwhile is kept: objects that close wait (closing.c), streams are waited for,
 * and what is made by content is not thrown out (beside_first).
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_BESIDE_CALL_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_BESIDE_CALL_H

#include "gpu-agent/worker/worker.h"

struct beside_call;
struct worker_stream;

/* Streams that one call may name. */
#define BESIDE_STREAMS 4

/* Serves the request by SERVE beside the loop, which answers when it has ended. False, and the
 * caller goes on itself: it is that thread already, nobody waits for an answer, a stream
 * captures (what a thread may do then is the capturing thread's), or there is no thread. */
bool beside_serve(struct worker *w, struct request *r, serve_function serve);

/* Around what may last. Nothing where the loop serves the request. */
void beside_leave(const struct request *r);
void beside_enter(const struct request *r);

/* Lets other calls go on for a moment: for who waits for something that one of them has. */
void beside_others(struct worker *w, const struct request *r);

/* Whether any is being served. */
bool beside_any(const struct worker *w);
/* Whether one has left the loop's place, and has not asked for it back. */
bool beside_outside(const struct worker *w);
/* The frame number of the oldest that is being served, or the request's: what was used by it
 * or later may be in use. */
uint64_t beside_first(const struct worker *w, const struct request *r);
/* The call names the stream. False: it names too many. */
bool beside_uses(struct beside_call *call, struct worker_stream *stream);
/* Waits until none that is being served names the stream. On the loop. */
void beside_unused(struct worker *w, const struct worker_stream *stream);
/* Waits until none is being served. On the loop. */
void beside_drain(struct worker *w);
/* Those that wait for their turn get it. On the loop. */
bool beside_turns(struct worker *w);
/* The same; where none waits, a moment passes. Between looks at what is waited for. */
void beside_pause(struct worker *w);

#endif
