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
#include "shim/engine/lock.h"

/* BLOCKS_MAX counters are plenty: an event takes one only when it is asked about too early. */
static struct {
	pthread_mutex_t lock;
	struct blocks map;
} completions = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(completion, completions.lock, LOCK_COMPLETION);

uint32_t completion_get(void)
{
	uint32_t unit;

	pthread_mutex_lock(&completions.lock);
	if (!completions.map.count)
		blocks_init(&completions.map, BLOCKS_MAX < CHANNEL_COUNTERS - COUNTER_FIRST_FREE
						      ? BLOCKS_MAX
						      : CHANNEL_COUNTERS - COUNTER_FIRST_FREE);
	unit = blocks_alloc(&completions.map, 1);
	pthread_mutex_unlock(&completions.lock);
	return unit == BLOCKS_NONE ? 0 : unit + COUNTER_FIRST_FREE;
}

void completion_put(uint32_t counter)
{
	if (!counter)
		return;
	pthread_mutex_lock(&completions.lock);
	blocks_free(&completions.map, counter - COUNTER_FIRST_FREE, 1);
	pthread_mutex_unlock(&completions.lock);
}

uint64_t completion_read(uint32_t counter)
{
	return atomic_load_explicit(&session.counters[counter], memory_order_acquire);
}
