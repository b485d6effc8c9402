/* SPDX-License-Identifier: Apache-2.0
 *
 * See completion.h.  The value that a counter is armed with is never used twice by the process,
 * so a counter that is given back while the agent still owes it a push does no harm to its next
 * owner.
 */
#include "shim/engine/completion.h"

#include <pthread.h>

#include "shim/engine/blocks.h"
#include "shim/engine/session.h"

/* Plenty: an event takes one only when it is asked about too early. */
#define COMPLETIONS                                                                            \
	(BLOCKS_MAX < CHANNEL_COUNTERS - COUNTER_FIRST_FREE                                    \
			? BLOCKS_MAX                                                           \
			: CHANNEL_COUNTERS - COUNTER_FIRST_FREE)

uint32_t completion_get(void)
{
	struct session *here = session_here();
	uint32_t unit;

	pthread_mutex_lock(&here->completions.lock);
	if (!here->completions.map.count)
		blocks_init(&here->completions.map, COMPLETIONS);
	unit = blocks_alloc(&here->completions.map, 1);
	pthread_mutex_unlock(&here->completions.lock);
	return unit == BLOCKS_NONE ? 0 : unit + COUNTER_FIRST_FREE;
}

void completion_put(uint32_t counter)
{
	struct session *here = session_here();

	if (!counter)
		return;
	pthread_mutex_lock(&here->completions.lock);
	blocks_free(&here->completions.map, counter - COUNTER_FIRST_FREE, 1);
	pthread_mutex_unlock(&here->completions.lock);
}

uint64_t completion_read(uint32_t counter)
{
	return atomic_load_explicit(&session_here()->counters[counter], memory_order_acquire);
}
