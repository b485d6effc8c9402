/* SPDX-License-Identifier: Apache-2.0
 *
 * What looks after the session while the loop is in a call of the driver or of a library.  Each
 * such call, but for those that surely return at once, stands between enter and leave.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_WATCHDOG_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_WATCHDOG_H

#include <stdatomic.h>

#include "gpu-agent/worker/worker_state.h"

void watchdog_start(struct worker *w);
static inline void watchdog_beat(struct worker *w)
{
	atomic_store_explicit(&w->liveness.beat,
		atomic_load_explicit(&w->liveness.beat, memory_order_relaxed) + 1,
		memory_order_release);
}
static inline void watchdog_enter(struct worker *w)
{
	watchdog_beat(w);
}
static inline void watchdog_leave(struct worker *w)
{
	watchdog_beat(w);
}

#endif
