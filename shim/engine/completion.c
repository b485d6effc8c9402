/* SPDX-License-Identifier: Apache-2.0
 *
 * See words.h.  The value that a word is armed with is never used twice by the process, so a
 * word that is given back while the agent still owes it a push does no harm to its next owner.
 */
#include "shim/engine/completion.h"

#include <pthread.h>

#include "shim/engine/blocks.h"
#include "shim/engine/session.h"

/* BLOCKS_MAX words are plenty: an event takes one only when it is asked about too early. */
static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static struct blocks words_map;

uint32_t words_take(void)
{
	uint32_t unit;

	pthread_mutex_lock(&words_lock);
	if (!words_map.count)
		blocks_init(&words_map, BLOCKS_MAX < CHANNEL_WORDS - WORD_FIRST_FREE
						? BLOCKS_MAX
						: CHANNEL_WORDS - WORD_FIRST_FREE);
	unit = blocks_take(&words_map, 1);
	pthread_mutex_unlock(&words_lock);
	return unit == BLOCKS_NONE ? 0 : unit + WORD_FIRST_FREE;
}

void words_give(uint32_t word)
{
	if (!word)
		return;
	pthread_mutex_lock(&words_lock);
	blocks_give(&words_map, word - WORD_FIRST_FREE, 1);
	pthread_mutex_unlock(&words_lock);
}

uint64_t words_read(uint32_t word)
{
	return atomic_load_explicit(&session.words[word], memory_order_acquire);
}
