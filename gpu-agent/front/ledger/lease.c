/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers ask for: more device memory for their sessions. The ledger decides; a wish that
 * cannot be met now waits a while for workers that are ending. And how much is free: a program
 * that ran before in the same pod must not count any more.
 */
#include <inttypes.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/ledger/lease.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"

#define LEASE_WAIT_NS                                                                          \
	(3000 * FRONT_MS) /* a worker that is told to stop is killed before that */
/* That a session is over may be said already and not be heard yet, as by a program that the
 * next one waited for: no wish is refused before that. */
#define LEASE_HEAR_NS (10 * FRONT_MS)

/* Answers a LEASE. Memory of a session that is over comes back when its worker is reaped, some
 * 100 ms later on a GPU: where that may be what is missing, a wish waits for it unless `final`.
 * false: it waits. */
static bool lease_answer(struct front *front, struct pool_worker *worker, uint32_t device,
	uint64_t bytes, bool final)
{
	struct handoff grant = {
		.version = HANDOFF_VERSION, .what = HANDOFF_GRANT, .device = device};
	struct ledger_account *account = &worker->session->account;
	uint32_t gpu = quota_gpu(front, worker->session, device);
	uint64_t before = account->lease[gpu];

	grant.bytes = ledger_grow(&front->ledger, account, gpu, bytes);
	journal_account(front, worker->session); /* before it is used */
	if (grant.bytes == before && !final &&
		(!worker->wishes_heard || front->pool.count[WORKER_ENDING]))
		return false;
	worker->wishes[device] = 0;
	if (grant.bytes == before)
		front->counters.lease_refused++;
	log_debug("lease", "session=%" PRIu64 " gpu=%u wanted=%" PRIu64 " lease=%" PRIu64,
		worker->session->number, gpu, bytes, grant.bytes);
	if (pool_say(worker, &grant))
		pool_fault(front, worker, "the worker does not take its GRANT");
	else if (grant.bytes != before)
		quota_tell(front, worker->session);
	return true;
}

/* A session of the same pod was over before that, and its worker is not reaped yet. */
static bool lease_undrained(
	const struct front *front, const struct session *session, uint64_t before)
{
	for (uint32_t i = 0; i < front->pool.room; i++) {
		const struct pool_worker *worker = &front->pool.workers[i];

		if (worker->state == WORKER_ENDING && worker->session &&
			worker->ending_since <= before &&
			worker->session->tenant == session->tenant &&
			!strcmp(worker->session->pod, session->pod))
			return true;
	}
	return false;
}

/* Natively a process is gone when its memory is. */
static void lease_drained(struct front *front, struct pool_worker *worker, uint64_t now)
{
	struct handoff h = {
		.version = HANDOFF_VERSION, .what = HANDOFF_DRAINED, .device = worker->drains};

	if (!worker->drains ||
		(worker->state == WORKER_BUSY && now < worker->drains_until &&
			front->pool.count[WORKER_ENDING] &&
			lease_undrained(front, worker->session, worker->drains_asked)))
		return;
	worker->drains = 0;
	if (pool_say(worker, &h))
		pool_fault(front, worker, "the worker does not take its DRAINED");
}

void lease_drain(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	uint64_t now = wait_now();

	if (!worker->drains)
		worker->drains_until = now + LEASE_WAIT_NS;
	worker->drains |= h->device;
	worker->drains_asked = now;
	lease_drained(front, worker, now);
}

uint64_t lease_due(const struct pool_worker *worker)
{
	uint64_t due = worker->drains ? worker->drains_until : UINT64_MAX;

	return worker->wishes_until && worker->wishes_until < due ? worker->wishes_until : due;
}

/* Looks at a worker's waiting wishes again; all are answered when they have waited long enough.
 */
void lease_retry(struct front *front, struct pool_worker *worker, uint64_t now)
{
	bool final, waits = false;

	if (worker->wishes_until && worker->wishes_until <= now && !worker->wishes_heard) {
		worker->wishes_heard = true;
		if (front->pool.count[WORKER_ENDING])
			worker->wishes_until = now + LEASE_WAIT_NS;
	}
	final = worker->wishes_until <= now || worker->state != WORKER_BUSY;
	if (worker->session)
		lease_drained(front, worker, now);
	if (!worker->wishes_until || !worker->session)
		return;
	for (uint32_t d = 0; d < HANDOFF_DEVICES; d++)
		if (worker->wishes[d])
			waits |= !lease_answer(front, worker, d, worker->wishes[d], final);
	if (!waits)
		worker->wishes_until = 0;
}

void lease_wanted(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	uint64_t until;

	if (h->device >= quota_gpu_count(front, worker->session)) {
		pool_fault(front, worker, "LEASE for a GPU that there is not");
		return;
	}
	if (!worker->wishes_until)
		worker->wishes_heard = front->pool.count[WORKER_ENDING];
	if (lease_answer(front, worker, h->device, h->bytes, !h->bytes))
		return;
	worker->wishes[h->device] = h->bytes;
	until = wait_now() + (worker->wishes_heard ? LEASE_WAIT_NS : LEASE_HEAR_NS);
	if (worker->wishes_until < until)
		worker->wishes_until = until;
}
