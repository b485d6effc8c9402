/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounce buffer: where the payloads of answers go that have no pinned memory to land in.
 */
#include <pthread.h>

#include "common/wait.h"
#include "shim/engine/blocks.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"
#include "shim/engine/lock.h"

/* The region is given out in such units. */
#define BOUNCE_UNIT 4096u
/* As often a sleeper looks at the session (engine.c). */
#define BOUNCE_LOOK_NS 50000000u

static struct {
	pthread_mutex_t lock;
	struct blocks blocks;
	_Atomic uint32_t given; /* futex word */
} region = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(bounce, region.lock, LOCK_BOUNCE);

struct bounce_wish {
	uint32_t units;
	uint32_t at;
};

static bool bounce_try(void *argument)
{
	struct bounce_wish *wish = argument;

	if (wish->at != BLOCKS_NONE)
		return true;
	pthread_mutex_lock(&region.lock);
	if (!region.blocks.count) {
		uint64_t units = session.ring.bounce_size / BOUNCE_UNIT;

		blocks_init(&region.blocks, units > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)units);
	}
	wish->at = blocks_alloc(&region.blocks, wish->units);
	pthread_mutex_unlock(&region.lock);
	return wish->at != BLOCKS_NONE;
}

static struct bounce_wish bounce_wish(size_t n)
{
	return (struct bounce_wish){
		.units = (uint32_t)((n + BOUNCE_UNIT - 1) / BOUNCE_UNIT), .at = BLOCKS_NONE};
}

bool shim_bounce_try(size_t n, uint64_t *offset)
{
	struct bounce_wish wish = bounce_wish(n);

	if (!bounce_try(&wish))
		return false;
	*offset = session.ring.bounce + (uint64_t)wish.at * BOUNCE_UNIT;
	return true;
}

CUresult shim_bounce_get(size_t n, uint64_t *offset)
{
	struct bounce_wish wish = bounce_wish(n);

	while (!bounce_try(&wish)) {
		uint32_t given = atomic_load(&region.given);

		if (bounce_try(&wish))
			break;
		wait_sleep(&region.given, given, BOUNCE_LOOK_NS);
		if (session_check())
			return session_status();
	}
	*offset = session.ring.bounce + (uint64_t)wish.at * BOUNCE_UNIT;
	return CUDA_SUCCESS;
}

void shim_bounce_put(uint64_t offset, size_t n)
{
	pthread_mutex_lock(&region.lock);
	blocks_free(&region.blocks, (uint32_t)((offset - session.ring.bounce) / BOUNCE_UNIT),
		bounce_wish(n).units);
	pthread_mutex_unlock(&region.lock);
	atomic_fetch_add(&region.given, 1);
	wait_wake(&region.given);
}

void *shim_segment(uint64_t offset)
{
	return (unsigned char *)session.page + offset;
}
