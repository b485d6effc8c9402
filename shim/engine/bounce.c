/* SPDX-License-Identifier: Apache-2.0
 *
 * The landing region: where the payloads of answers go that have no pinned memory to land in.
 */
#include <pthread.h>

#include "common/wait.h"
#include "shim/engine/blocks.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"

/* The region is given out in such units. */
#define LANDING_UNIT 4096u
/* As often a sleeper looks at the session (engine.c). */
#define LANDING_LOOK_NS 50000000u

static pthread_mutex_t landing_lock = PTHREAD_MUTEX_INITIALIZER;
static struct blocks landing;
static _Atomic uint32_t landing_given; /* futex word */

struct landing_wish {
	uint32_t units;
	uint32_t at;
};

static bool landing_try(void *argument)
{
	struct landing_wish *wish = argument;

	if (wish->at != BLOCKS_NONE)
		return true;
	pthread_mutex_lock(&landing_lock);
	if (!landing.count) {
		uint64_t units = session.ring.landing_size / LANDING_UNIT;

		blocks_init(&landing, units > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)units);
	}
	wish->at = blocks_take(&landing, wish->units);
	pthread_mutex_unlock(&landing_lock);
	return wish->at != BLOCKS_NONE;
}

static struct landing_wish landing_wish(size_t n)
{
	return (struct landing_wish){
		.units = (uint32_t)((n + LANDING_UNIT - 1) / LANDING_UNIT), .at = BLOCKS_NONE};
}

bool shim_landing_try(size_t n, uint64_t *offset)
{
	struct landing_wish wish = landing_wish(n);

	if (!landing_try(&wish))
		return false;
	*offset = session.ring.landing + (uint64_t)wish.at * LANDING_UNIT;
	return true;
}

CUresult shim_landing_take(size_t n, uint64_t *offset)
{
	struct landing_wish wish = landing_wish(n);

	while (!landing_try(&wish)) {
		uint32_t given = atomic_load(&landing_given);

		if (landing_try(&wish))
			break;
		wait_sleep(&landing_given, given, LANDING_LOOK_NS);
		if (session_check())
			return session_status();
	}
	*offset = session.ring.landing + (uint64_t)wish.at * LANDING_UNIT;
	return CUDA_SUCCESS;
}

void shim_landing_give(uint64_t offset, size_t n)
{
	pthread_mutex_lock(&landing_lock);
	blocks_give(&landing, (uint32_t)((offset - session.ring.landing) / LANDING_UNIT),
		landing_wish(n).units);
	pthread_mutex_unlock(&landing_lock);
	atomic_fetch_add(&landing_given, 1);
	wait_wake(&landing_given);
}

void *shim_segment(uint64_t offset)
{
	return (unsigned char *)session.page + offset;
}
