/* SPDX-License-Identifier: Apache-2.0
 *
 * How long serving took, for the front's histograms.  An awaited call costs two looks at the
 * clock; of the posts of a class the first is timed, and then one in TIMING_POSTS, which counts
 * for those before it too: a launch costs a counter.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_TIMING_H
#define VCUDA_GPU_AGENT_WORKER_TIMING_H

#include "common/wait.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/class.h"

#define TIMING_POSTS 64

_Static_assert((int)CLASS_MODULE_LOAD == OP_vcudaModuleLoad, "class.h");
_Static_assert((int)CLASS_MODULE_DATA == OP_vcudaModuleData, "class.h");
_Static_assert((int)CLASS_COPY_IN == OP_vcudaCopyIn, "class.h");
_Static_assert((int)CLASS_COPY_OUT == OP_vcudaCopyOut, "class.h");
_Static_assert((int)CLASS_ARRAY_IN == OP_vcudaArrayIn, "class.h");
_Static_assert((int)CLASS_ARRAY_OUT == OP_vcudaArrayOut, "class.h");

struct timing {
	enum latency_class class;
	uint64_t count; /* that this one counts for; 0: it is not timed */
	uint64_t since;
};

static inline struct timing timing_begin(struct worker *w, const struct frame_header *header)
{
	struct timing timing = {.class = class_of(header), .count = 1};
	uint64_t before;

	if (header->kind != FRAME_CALL) {
		before = w->posts[timing.class]++;
		timing.count = !before ? 1 : before % TIMING_POSTS ? 0 : TIMING_POSTS;
	}
	if (timing.count)
		timing.since = wait_now();
	return timing;
}

static inline void timing_end(struct worker *w, const struct timing *timing)
{
	if (timing->count)
		latency_observe(&w->stats.latency[timing->class], wait_now() - timing->since,
			timing->count);
}

#endif
