/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers say.  It is a tenant's word: each number is checked, each state change must fit
 * the state.
 */
#include "gpu-agent/front/handoff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/direct.h"
#include "gpu-agent/front/tensor/fallen.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/images.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/ledger/lease.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/refusals.h"
#include "gpu-agent/front/session/resume.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/sharing.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "protocol/wire/status.h"

#define DEVICE_MEMORY_MAX (1ull << 50) /* no GPU has more */
#define DATAGRAMS_A_TURN 16
_Static_assert(sizeof(struct handoff) != sizeof(struct tensor_message), "told by their size");

static bool devices_make_sense(const struct handoff *h)
{
	if (!h->device_count || h->device_count > HANDOFF_DEVICES)
		return false;
	for (uint32_t d = 0; d < h->device_count; d++)
		if (!h->devices[d].total_memory ||
			h->devices[d].total_memory > DEVICE_MEMORY_MAX ||
			h->devices[d].free_memory > h->devices[d].total_memory ||
			h->devices[d].context_memory > h->devices[d].total_memory)
			return false;
	return true;
}

/* Said once, and again where it changes: the kernel is the same for all of them. */
static void note_sandbox(struct front *front, uint32_t parts)
{
	struct pool *pool = &front->pool;
	char text[SANDBOX_TEXT];

	if (pool->driver[0] && pool->sandbox == parts)
		return;
	pool->sandbox = parts;
	sandbox_text(text, parts);
	if (sandbox_whole(parts) || front->config->sandbox_off)
		log_info("worker.sandbox", "text=\"%s\"", text);
	else
		log_warn("worker.sandbox", "text=\"%s\"", text);
}

static void worker_is_ready(struct front *front, struct pool_worker *worker, struct handoff *h)
{
	struct pool *pool = &front->pool;
	struct ledger *ledger = &front->ledger;

	if (front->config->sandbox_required && !sandbox_whole(h->sandbox)) {
		char text[SANDBOX_TEXT], why[192];

		sandbox_text(text, h->sandbox);
		snprintf(
			why, sizeof(why), "sandbox: required, and a worker has only: %s", text);
		note_sandbox(front, h->sandbox);
		pool_fault(front, worker, why);
		return;
	}
	if (worker->state != WORKER_STARTING || !devices_make_sense(h)) {
		pool_fault(front, worker, "the worker's READY makes no sense");
		return;
	}
	for (uint32_t d = 0; d < h->device_count; d++) {
		char name[sizeof(h->devices[d].name)] = "";

		front_clean(name, sizeof(name), h->devices[d].name, sizeof(name));
		memcpy(h->devices[d].name, name, sizeof(name));
	}
	if (fallen_late(front, worker))
		return;
	fallen_ready(front, h);
	if (!ledger_same(ledger, h->devices, h->device_count)) {
		if (ledger->device_count &&
			(front->session_count || pool->count[WORKER_READY])) {
			pool_fault(front, worker,
				"the worker sees other GPUs than those before it");
			return;
		}
		ledger_devices(
			ledger, h->devices, h->device_count, front->config->memory_reserve);
		fallen_others(front, h);
	}
	for (uint32_t d = 0; d < h->device_count; d++) {
		worker->contexts[d] = h->devices[d].context_memory;
		worker->lacks |= h->devices[d].fell ? 1u << d : 0;
	}
	ledger_context_add(ledger, worker->contexts);
	worker->counted = true;
	pool_set_state(front, worker, WORKER_READY);
	if (!front->session_count && pool_starting(pool) == 0)
		for (uint32_t d = 0; d < h->device_count; d++)
			if (!h->devices[d].fell)
				ledger_foreign(ledger, d,
					h->devices[d].total_memory - h->devices[d].free_memory +
						h->devices[d].context_memory);
	note_sandbox(front, h->sandbox);
	pool->driver_version = h->driver_version;
	front_clean(pool->driver, sizeof(pool->driver), h->text, sizeof(h->text));
	front_clean(pool->driver_release, sizeof(pool->driver_release), h->release,
		sizeof(h->release));
	journal_devices(front);
	if (pool->failing || !pool->logged[0])
		log_info("worker.ready", "worker=%d gpus=%u driver=\"%s\"", worker->pid,
			h->device_count, pool->driver);
	pool->failing = false;
	pool->text[0] = 0;
	snprintf(pool->logged, sizeof(pool->logged), "ready");
	pool->retry_delay = 0;
	pool->killed = 0;
	pool_balance(front, wait_now());
}

static void worker_failed(
	struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	char text[sizeof(h->text)];

	if (worker->state != WORKER_STARTING) {
		pool_fault(front, worker, "FAILED from a worker that was ready");
		return;
	}
	front_clean(text, sizeof(text), h->text, sizeof(h->text));
	fallen_failed(front, h);
	worker->failed = true;
	pool_expect_end(front, worker, CONTROL_STOP_MS);
	pool_failed(front, text[0] ? text : "the worker failed and does not say why");
}

/* The libraries are all that outlives the session: a hostile worker has others opened. */
static void note_stats(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	uint32_t libraries = front->pool.libraries | (h->libraries & (LIBRARY_BITS - 1));

	if (libraries != front->pool.libraries) {
		front->pool.libraries = libraries;
		journal_devices(front);
	}
	session_stats(front, worker->session, h);
}

static void worker_says_ended(
	struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	char text[sizeof(h->text)];

	front_clean(text, sizeof(text), h->text, sizeof(h->text));
	if (worker->session) {
		note_stats(front, worker, h);
		/* It told its client, who may not have read so far. */
		session_set_end(worker->session, h->status, text);
		log_of(&worker->session->subject, LOG_INFO, "session.ended",
			"worker=%d status=%u text=\"%s\"", worker->pid, h->status, text);
	}
	if (worker->state != WORKER_ENDING)
		pool_expect_end(front, worker, CONTROL_STOP_MS);
}

/* *fd: what came with it, or -1. */
void handoff_handle(struct front *front, struct pool_worker *worker, struct handoff *h, int *fd)
{
	bool has_session = worker->session &&
			   (worker->state == WORKER_BUSY || worker->state == WORKER_ENDING);

	if (h->version != HANDOFF_VERSION) {
		pool_fault(front, worker, "another version of the hand-off protocol");
		return;
	}
	/* The front before heard it too, or will never answer: it is asked again (AGAIN). */
	if (worker->adopted &&
		(h->what == HANDOFF_LEASE || h->what == HANDOFF_SHARE ||
			h->what == HANDOFF_WANT || h->what == HANDOFF_IMAGE_WANT ||
			h->what == HANDOFF_DRAIN))
		return;
	/* The agent drains: it was told to stop before it was ready. */
	if (worker->state == WORKER_ENDING &&
		(h->what == HANDOFF_READY || h->what == HANDOFF_REFUSALS ||
			h->what == HANDOFF_FAILED))
		return;
	switch (h->what) {
	case HANDOFF_AGAIN:
		/* Another number: it was for a front that died before it read this. */
		if (h->bytes == front->config->front_restarts)
			worker->adopted = false;
		return;
	case HANDOFF_READY: worker_is_ready(front, worker, h); return;
	case HANDOFF_REFUSALS:
		if (worker->state == WORKER_STARTING)
			refusals_begin(front, worker, fd);
		else
			pool_fault(front, worker, "REFUSALS from a worker that was ready");
		return;
	case HANDOFF_FAILED: worker_failed(front, worker, h); return;
	case HANDOFF_ENDED: worker_says_ended(front, worker, h); return;
	case HANDOFF_STATS:
		if (has_session)
			note_stats(front, worker, h);
		else
			pool_fault(front, worker, "STATS without a session");
		return;
	case HANDOFF_LEASE:
		if (has_session)
			lease_wanted(front, worker, h);
		else
			pool_fault(front, worker, "LEASE without a session");
		return;
	case HANDOFF_DOUBT:
		if (has_session && fallen_status(h->status))
			fallen_doubt(front);
		else
			pool_fault(front, worker, "DOUBT without a session, or a reason");
		return;
	case HANDOFF_SHORT:
		if (has_session)
			pool_short(front, worker);
		else
			pool_fault(front, worker, "SHORT without a session");
		return;
	case HANDOFF_DRAIN:
		if (has_session)
			lease_drain(front, worker, h);
		else
			pool_fault(front, worker, "DRAIN without a session");
		return;
	case HANDOFF_TIME:
		if (has_session)
			timeshare_report(front, worker, h);
		else
			pool_fault(front, worker, "TIME without a session");
		return;
	case HANDOFF_ALIVE:
		if (!has_session)
			pool_fault(front, worker, "ALIVE without a session");
		return;
	case HANDOFF_PARKED:
		if (!has_session || !resume_parked(front, worker, h))
			pool_fault(front, worker, "PARKED without a session that can be");
		return;
	case HANDOFF_TICKET:
	case HANDOFF_DIAL:
		if (has_session)
			direct_request(front, worker, h);
		else
			pool_fault(front, worker, "TICKET or DIAL without a session");
		return;
	case HANDOFF_SHARE:
	case HANDOFF_UNSHARE:
	case HANDOFF_WANT:
		if (has_session)
			sharing_request(front, worker, h, fd);
		else
			pool_fault(front, worker, "sharing without a session");
		return;
	case HANDOFF_IMAGE_WANT:
	case HANDOFF_IMAGE_PUT:
		if (has_session)
			images_request(front, worker, h, fd);
		else
			pool_fault(front, worker, "an image without a session");
		return;
	default: pool_fault(front, worker, "a datagram of no known kind"); return;
	}
}

/* As handoff_handle: the front before this one will never answer. */
static void handle_tensor(
	struct front *front, struct pool_worker *worker, const struct tensor_message *ask)
{
	if (worker->copy)
		tensor_copy_heard(front, worker, ask);
	else if (!worker->session ||
		 (worker->state != WORKER_BUSY && worker->state != WORKER_ENDING))
		pool_fault(front, worker, "a question on tensors without a session");
	else if (ask->what == TENSOR_FOLLOWED)
		tensors_followed(front, worker->session->number, ask->id);
	else if (!worker->adopted)
		tensors_ask(front, worker, ask);
}

void handoff_ready(struct watch *watch, uint32_t mask)
{
	struct pool_worker *worker = events_container(watch, struct pool_worker, handoff);
	struct front *front = watch->owner;

	(void)mask;
	for (int i = 0; i < DATAGRAMS_A_TURN && watch->fd >= 0; i++) {
		union {
			struct handoff h;
			struct tensor_message tensor;
		} said;
		int fd;
		ssize_t n = descriptors_receive(
			watch->fd, &said, sizeof(said), &fd, 1, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n == (ssize_t)sizeof(said.h))
			handoff_handle(front, worker, &said.h, &fd);
		else if (n == (ssize_t)sizeof(said.tensor))
			handle_tensor(front, worker, &said.tensor);
		if (fd >= 0)
			close(fd);
		worker->silent = 0;
		if (n == (ssize_t)sizeof(said.h) || n == (ssize_t)sizeof(said.tensor))
			continue;
		/* The end, or nonsense: nothing more is read; the exit comes as EXITED. */
		if (n > 0)
			pool_fault(front, worker, "a datagram of the wrong size");
		close(events_forget(&front->events, watch));
		if (worker->state != WORKER_ENDING)
			pool_expect_end(front, worker, CONTROL_STOP_MS);
		return;
	}
}
