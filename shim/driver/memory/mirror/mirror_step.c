/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels to keep the two sides in step: see mirror.h and protocol/wire/mirror.h.
 */
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/mirror/mirror_state.h"

#include <string.h>

#include "common/wait.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/memory/mirror/mirror_thread.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/generated/vcuda_send.h"

/* An answer that was given before this one is taken over by then, or never will be. */
#define MIRROR_TURN_NS 5000000000ull

/* ---- towards the agent ---- */

CUresult mirror_send(bool *changed, struct mirror_names *names)
{
	struct mirror_runs runs = {.to = mirror.runs, .room = sizeof(mirror.runs)};
	struct mirror_cursor cursor = {0, 0};
	CUresult status = CUDA_SUCCESS;

	*changed = false;
	pthread_mutex_lock(&mirror.lock);
	do {
		mirror_gather_stable(&runs, mirror.spare, mirror.views, mirror.count, &cursor);
		if (!runs.used)
			continue;
		*changed = true;
		if (host_idle())
			mirror_names_note(&mirror.names, &runs);
		mirror_sent(&runs, mirror.views, mirror.count);
		status = send_vcudaMirrorWrite(runs.used, runs.to);
		statistics_mirrored(STATISTICS_MIRROR_OUT, runs.used);
	} while (runs.full && !status);
	if (names) {
		*names = mirror.names;
		mirror.names.count = 0;
	}
	pthread_mutex_unlock(&mirror.lock);
	return status;
}

CUresult mirror_push(void)
{
	struct mirror_names names;
	CUresult status;
	bool changed;

	/* What the program has written there may lead to memory that is not active yet, and
	 * that to more, as a list does. */
	do
		status = mirror_send(&changed, &names);
	while (!status && mirror_names_reach(&names));
	return status;
}

/* ---- from the agent ---- */

static bool answer_in_turn(void *argument)
{
	return atomic_load(&mirror.taken) + 1 >= *(const uint64_t *)argument;
}

/* Waits until all answers before it are taken over. */
static bool answer_turn(uint64_t number)
{
	uint64_t until = wait_now() + MIRROR_TURN_NS;

	while (!answer_in_turn(&number)) {
		if (wait_now() > until || session_check())
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
	}
	return true;
}

CUresult mirror_take_over(const void *bytes, size_t n, struct mirror_answer *answer)
{
	bool fits;

	if (n < sizeof(*answer))
		return status_of(CAUSE_VIOLATION);
	memcpy(answer, bytes, sizeof(*answer));
	if (answer->bytes != n - sizeof(*answer) || !answer_turn(answer->number))
		return status_of(CAUSE_VIOLATION);
	pthread_mutex_lock(&mirror.lock);
	/* A region may have gone meanwhile: its runs are for nobody. */
	fits = mirror_store_runs((const unsigned char *)bytes + sizeof(*answer), answer->bytes,
		mirror.views, mirror.count, true);
	if (answer->number > atomic_load(&mirror.taken))
		atomic_store(&mirror.taken, answer->number);
	pthread_mutex_unlock(&mirror.lock);
	if (fits)
		statistics_mirrored(STATISTICS_MIRROR_IN, answer->bytes);
	return CUDA_SUCCESS;
}

CUresult mirror_fetch(uint32_t scope, uint64_t handle, uint64_t *seq)
{
	struct mirror_answer answer = {.more = 1};
	size_t room = MIRROR_FETCH_MAX;
	CUresult status = CUDA_SUCCESS;

	while (answer.more && !status) {
		struct wire_vcudaMirrorFetch *body;
		struct shim_call call;
		uint64_t bounce;
		bool answered;

		status = shim_bounce_get(room, &bounce);
		if (status)
			return status;
		body = shim_begin(&call, OP_vcudaMirrorFetch, sizeof(*body));
		body->scope = scope;
		body->handle = handle;
		body->capacity = room;
		body->destination.offset = bounce;
		shim_wait(&call, 0);
		if (seq && scope != SYNC_NONE)
			*seq = call.seq;
		answered = call.slot != NULL;
		if (answered && !call.status)
			call.status = call.received > room
					      ? status_of(CAUSE_VIOLATION)
					      : mirror_take_over(shim_segment(bounce),
							call.received, &answer);
		status = shim_end(&call);
		/* Without an answer the bytes may still come. */
		if (answered)
			shim_bounce_put(bounce, room);
		room = MIRROR_BULK_MAX;
		scope = SYNC_NONE;
	}
	return status;
}
