/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounce buffer: where the payloads of answers go that have no pinned memory to land in.
 */
#include <pthread.h>
#include <string.h>

#include "common/wait.h"
#include "shim/engine/blocks.h"
#include "shim/engine/engine.h"
#include "shim/engine/reserve.h"
#include "shim/engine/session.h"
#include "shim/engine/status.h"

/* The region is given out in such units. */
#define BOUNCE_UNIT 4096u
/* As often a sleeper looks at the session (engine.c). */
#define BOUNCE_LOOK_NS 50000000u

struct bounce_wish {
	uint32_t units;
	uint32_t at;
};

static uint32_t units_now(const struct session *here)
{
	uint64_t bytes = here->ring.bounce_size;

	if (bytes > CHANNEL_FIRST && !reserve_whole())
		bytes = CHANNEL_FIRST;
	return bytes / BOUNCE_UNIT > BLOCKS_MAX ? BLOCKS_MAX : (uint32_t)(bytes / BOUNCE_UNIT);
}

static bool bounce_alloc(struct bounce_wish *wish)
{
	struct session *here = session_here();
	uint32_t units;

	pthread_mutex_lock(&here->bounce.lock);
	units = units_now(here);
	if (!here->bounce.blocks.count)
		blocks_init(&here->bounce.blocks, units);
	else if (here->bounce.blocks.count < units)
		blocks_extend(&here->bounce.blocks, units);
	wish->at = blocks_alloc(&here->bounce.blocks, wish->units);
	pthread_mutex_unlock(&here->bounce.lock);
	return wish->at != BLOCKS_NONE;
}

static bool bounce_try(struct bounce_wish *wish)
{
	return bounce_alloc(wish) || (reserve_more() && bounce_alloc(wish));
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
	*offset = session_here()->ring.bounce + (uint64_t)wish.at * BOUNCE_UNIT;
	return true;
}

CUresult shim_bounce_get(size_t n, uint64_t *offset)
{
	struct session *here = session_here();
	struct bounce_wish wish = bounce_wish(n);

	while (!bounce_try(&wish)) {
		uint32_t given = atomic_load(&here->bounce.given);

		if (bounce_alloc(&wish))
			break;
		wait_sleep(&here->bounce.given, given, BOUNCE_LOOK_NS);
		if (session_check())
			return session_status();
	}
	*offset = session_here()->ring.bounce + (uint64_t)wish.at * BOUNCE_UNIT;
	return CUDA_SUCCESS;
}

void shim_bounce_put(uint64_t offset, size_t n)
{
	struct session *here = session_here();

	pthread_mutex_lock(&here->bounce.lock);
	blocks_free(&here->bounce.blocks,
		(uint32_t)((offset - here->ring.bounce) / BOUNCE_UNIT), bounce_wish(n).units);
	pthread_mutex_unlock(&here->bounce.lock);
	atomic_fetch_add(&here->bounce.given, 1);
	wait_wake(&here->bounce.given);
}

void *shim_segment(uint64_t offset)
{
	return (unsigned char *)session_here()->page + offset;
}

CUresult shim_bounce_read(struct shim_call *call, uint64_t offset, size_t n, void *to)
{
	shim_wait(call, 0);
	if (!call->status && call->received != n)
		call->status = status_of(CAUSE_VIOLATION);
	if (!call->status)
		memcpy(to, shim_segment(offset), n);
	/* Without an answer the bytes may still come: that place is never used again. */
	if (call->slot)
		shim_bounce_put(offset, n);
	return shim_end(call);
}
