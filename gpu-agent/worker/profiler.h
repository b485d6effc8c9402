/* SPDX-License-Identifier: Apache-2.0
 *
 * Who records what the GPU does for the session, while it is profiled: is told for which frame
 * a thread works.  The loop tells each frame's number, a thread beside it that of its job's
 * frame, and so does what goes on with a frame's work later.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_PROFILER_H
#define VCUDA_GPU_AGENT_WORKER_PROFILER_H

#include <stddef.h>
#include <stdint.h>

struct profiler {
	void (*begin)(uint64_t seq); /* what this thread does now is for that frame … */
	void (*end)(void);	     /* … as far as here; they nest */
};

/* PROFILER: the worker's, NULL for none. What it returns is for profiler_end: the frame may be
 * the one that begins or ends the profile. */
static inline const struct profiler *profiler_begin(
	const struct profiler *profiler, uint64_t seq)
{
	if (__builtin_expect(profiler != NULL, 0))
		profiler->begin(seq);
	return profiler;
}

static inline void profiler_end(const struct profiler *profiler)
{
	if (__builtin_expect(profiler != NULL, 0))
		profiler->end();
}

#endif
