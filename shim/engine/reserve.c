/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the arena and of the bounce buffer: see reserve.h.
 */
#include "shim/engine/reserve.h"

#include <unistd.h>

#include "common/wait.h"
#include "shim/engine/engine.h"
#include "shim/engine/statistics.h"

#define RESERVE_MS 5000		       /* for the answer; what there is does, meanwhile */
#define RESERVE_AGAIN_NS 1000000000ull /* after there was no memory */

_Static_assert(CHANNEL_FIRST >= FRAME_PAYLOAD_MAX, "one payload always has room");

void reserve_begin(bool asked)
{
	struct session *here = session_here();

	here->reserve.possible = asked;
	atomic_store(&here->reserve.again, 0);
	atomic_store(&here->reserve.whole, !asked);
	if (asked && here->ring.arena_ready > CHANNEL_FIRST)
		here->ring.arena_ready = CHANNEL_FIRST;
	here->bounce.blocks.count = 0; /* a parent's were of another segment */
}

static bool reserve_ask(struct session *here)
{
	struct channel_request request = {.op = CHANNEL_RESERVE};
	struct channel_answer answer;
	int fd = -1;

	if (!here->reserve.possible || rejoin_away())
		return false;
	statistics_event(STATISTICS_LOCAL_ROUND_TRIPS);
	/* Who does not answer is not asked again, or each copy would wait so long. */
	here->reserve.possible = attach_ask(&request, &answer, &fd, RESERVE_MS);
	if (fd >= 0)
		close(fd);
	return here->reserve.possible && !answer.status;
}

static void reserve_given(struct session *here)
{
	ring_lock(&here->ring);
	here->ring.arena_ready = here->ring.arena_size;
	ring_unlock(&here->ring);
	atomic_store_explicit(&here->reserve.whole, true, memory_order_release);
}

bool reserve_more(void)
{
	struct session *here = session_here();

	/* Who has the socket may wait for another sidecar. */
	if (reserve_whole() || wait_now() < atomic_load(&here->reserve.again) ||
		pthread_mutex_trylock(&here->socket_lock))
		return false;
	if (!reserve_whole()) {
		if (reserve_ask(here))
			reserve_given(here);
		else
			atomic_store(&here->reserve.again, wait_now() + RESERVE_AGAIN_NS);
	}
	pthread_mutex_unlock(&here->socket_lock);
	return reserve_whole();
}
