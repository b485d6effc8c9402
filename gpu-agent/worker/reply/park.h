/* SPDX-License-Identifier: Apache-2.0
 *
 * A session whose connections are cut is parked: its work on the GPU goes on, what it answers
 * gathers in the send window, and nothing more is read, until the client comes back with other
 * connections or the grace is over (docs/RESUME.md).  The loop parks between two turns only, so
 * that a frame was taken over or was not.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_REPLY_PARK_H
#define VCUDA_GPU_AGENT_WORKER_REPLY_PARK_H

#include "gpu-agent/worker/worker_state.h"

/* The link broke, or a stripe did: parks where the session may be resumed, else ends it. */
void park_or_end(struct worker *w, CUresult status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Between two turns. */
void park_turn(struct worker *w, uint64_t now);
/* The front's PARK and RESUME; FDS are the worker's. */
void park_asked(struct worker *w, const struct handoff *message);
void park_resume(struct worker *w, const struct handoff *message, const int fds[TRANSPORT_FDS]);
/* How long a process may outlive its client where the loop cannot end it; ns. */
uint64_t park_most(const struct worker *w);

static inline bool park_is(const struct worker *w)
{
	return atomic_load_explicit(&w->park.is, memory_order_relaxed);
}

#endif
