/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of workers as time goes: those that say nothing, are not ready, or are due.
 */
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/handoff.h"
#include "gpu-agent/front/ledger/lease.h"
#include "gpu-agent/front/worker_pool.h"
#include "protocol/wire/status.h"

/* A worker that has a session says something each second, whatever its driver does
 * (watchdog.c). It is ended after so many looks in which nothing came, which are worker_silence
 * in all: by looks and not by the clock, so that a front which was stopped itself blames
 * nobody. */
#define LOOKS_SILENT 6

/* Ends those that give no sign of life any more; when to look again. */
static uint64_t look(struct front *front, uint64_t now)
{
	struct pool *pool = &front->pool;

	if (!pool->count[WORKER_BUSY])
		return UINT64_MAX;
	if (pool->look_at > now)
		return pool->look_at;
	pool->look_at = now + front->config->worker_silence_ms * FRONT_MS / LOOKS_SILENT;
	for (uint32_t i = 0; i < pool->room; i++) {
		struct pool_worker *worker = &pool->workers[i];

		if (worker->state != WORKER_BUSY || ++worker->silent <= LOOKS_SILENT)
			continue;
		log_error("worker.silent", "worker=%d", worker->pid);
		pool_stop(front, worker, STATUS_UNAVAILABLE,
			"the worker gives no sign of life any more");
	}
	return pool->look_at;
}

uint64_t pool_tick(struct front *front, uint64_t now)
{
	struct pool *pool = &front->pool;
	uint64_t next = look(front, now);

	if (pool->failing && !front->draining) {
		pool_balance(front, now);
		if (pool->retry_at > now && pool->retry_at < next)
			next = pool->retry_at;
	}
	for (uint32_t i = 0; pool_starting(pool) && i < pool->room; i++) {
		struct pool_worker *worker = &pool->workers[i];

		if (worker->state != WORKER_STARTING)
			continue;
		if (worker->deadline <= now) {
			worker->failed = true;
			pool_expect_end(front, worker, 0);
			pool_failed(front,
				"a worker did not get ready within 120 s; is the driver "
				"stuck?");
		} else if (worker->deadline < next) {
			next = worker->deadline;
		}
	}
	if (pool->short_until && pool->short_until <= now) {
		pool->short_until = 0;
		pool_balance(front, now);
	}
	if (pool->short_until && pool->short_until < next)
		next = pool->short_until;
	if (pool->replacement.due && pool->replacement.due <= now) {
		pool->replacement.due = 0;
		pool_balance(front, now);
	}
	if (pool->replacement.due && pool->replacement.due < next)
		next = pool->replacement.due;
	for (uint32_t i = 0; i < pool->room; i++) {
		struct pool_worker *worker = &pool->workers[i];

		if (lease_due(worker) <= now)
			lease_retry(front, worker, now);
		if (lease_due(worker) < next)
			next = lease_due(worker);
	}
	return next;
}
