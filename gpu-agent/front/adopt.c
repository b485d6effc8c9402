/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/adopt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/handoff.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/priority.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/refusals.h"
#include "gpu-agent/front/session/renew.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/sharing.h"
#include "gpu-agent/front/ledger/tenant_quotas.h"
#include "gpu-agent/front/tenants.h"

static struct journal_session *find_session(struct front *front, pid_t worker)
{
	struct journal *j = front->journal;

	for (uint32_t i = 0; j && worker > 0 && i < front->config->max_sessions; i++)
		if (j->sessions[i].worker == worker)
			return &j->sessions[i];
	return NULL;
}

/* Counters go on from what the front before told. */
static void take_counters(struct front *front, const struct journal *j)
{
	front->counters = j->counters;
	for (uint32_t i = 0; i < j->tenant_count && i < TENANTS; i++) {
		const struct journal_tenant *had = &j->tenants[i];
		struct tenant *tenant = tenants_named(front, had->name);

		if (!tenant)
			continue;
		tenant->totals = had->totals;
		tenant->timeshare.used = had->gpu_used;
		tenant->timeshare.waited = had->gpu_waited;
		tenant->timeshare.held = had->gpu_held;
		memcpy(tenant->quotas_refused, had->quotas_refused,
			sizeof(tenant->quotas_refused));
	}
}

/* Device memory and warm libraries, as they were. */
static void take_journal(struct front *front, int fd)
{
	const struct journal *j;
	int ret = journal_take(front, fd);

	close(fd);
	if (ret) {
		log_warn("journal.take", "text=\"%s; its sessions end\"", strerror(-ret));
		return;
	}
	j = front->journal;
	front->next_session = j->next_session;
	front->pool.libraries = j->libraries;
	front->pool.driver_version = j->driver_version;
	front->pool.sandbox = j->sandbox;
	memcpy(front->pool.driver, j->driver, sizeof(j->driver));
	memcpy(front->pool.driver_release, j->driver_release, sizeof(j->driver_release));
	ledger_restore(&front->ledger, j->devices, j->device_count);
	take_counters(front, j);
}

static struct session *restore_session(struct front *front, const struct journal_session *j)
{
	struct session *session = &front->sessions[j - front->journal->sessions];

	session->tenant = tenants_named(front, j->tenant);
	session->transport = transport_named(j->transport);
	if (!session->tenant || !session->transport)
		return NULL;
	session->state = SESSION_RUNNING;
	memcpy(session->id, j->id, sizeof(session->id));
	memcpy(session->secret, j->secret, sizeof(session->secret));
	memcpy(session->resume.next, j->next, sizeof(session->resume.next));
	session->resume.offered = j->offered;
	session->grace_ms = j->grace_ms;
	session->stripes = j->stripes;
	session->features = j->features;
	session->number = j->number;
	session->pid = j->pid;
	session->uid = j->uid;
	memcpy(session->program, j->program, sizeof(session->program));
	memcpy(session->pod, j->pod, sizeof(session->pod));
	session_subject(session);
	session->peer = j->peer;
	session->started = (time_t)j->started;
	session->begun = j->begun;
	session->proven_until = j->proven_until;
	session->stats = j->stats;
	memcpy(session->latency, j->latency, sizeof(session->latency));
	memcpy(session->quotas_refused, j->quotas_refused, sizeof(session->quotas_refused));
	memcpy(session->timeshare.used, j->gpu_used, sizeof(j->gpu_used));
	session->timeshare.own = j->gpu_own;
	session->inflight = j->inflight;
	session->tallied = j->tallied;
	session->asked = j->asked;
	/* Its STATS may come before it tells of its time. */
	session->timeshare.priority = priority_of(session);
	session->tenant->sessions++;
	front->session_count++;
	if (j->limited)
		session->limits = quota_adopt(front, &j->limits, session->tenant);
	ledger_adopt(&front->ledger, &session->account, &j->account,
		session->limits ? &session->limits->budget : &session->tenant->budget);
	front->counters.adopted++;
	return session;
}

void adopt_worker(struct front *front, const struct control *control, int fd)
{
	const struct handoff again = {.version = HANDOFF_VERSION,
		.what = HANDOFF_ADOPTED,
		.bytes = front->config->front_restarts};
	const struct journal_session *j = find_session(front, control->pid);
	struct session *session = j && fd >= 0 ? restore_session(front, j) : NULL;
	struct pool_worker *worker =
		session ? pool_adopt(front, control->pid, j->contexts, fd) : NULL;

	if (!worker) {
		log_error("worker.unknown", "worker=%d", control->pid);
		if (fd >= 0)
			close(fd);
		front_tell(front, &(struct control){.what = CONTROL_KILL, .pid = control->pid});
		if (session)
			session_ended(front, session);
		return;
	}
	session->worker = worker;
	worker->session = session;
	if (pool_say(worker, &again))
		pool_fault(front, worker, "the worker does not take its ADOPTED");
}

static void take_share(struct front *front, const struct session *session,
	const struct control *control, int fd)
{
	const struct journal *j = front->journal;

	for (uint32_t i = 0; i < JOURNAL_SHARES; i++) {
		const struct journal_share *share = &j->shares[i];

		if (share->session != (uint32_t)(session - front->sessions) + 1 ||
			memcmp(share->name, control->text, CONTROL_NAME))
			continue;
		sharing_adopt(front, i, session, share, fd);
		return;
	}
	close(fd); /* it was dropped, and the front died before it said so */
}

static void take_refusals(struct front *front, struct session *session, int fd)
{
	refusals_begin(front, session->worker, &fd);
	if (fd >= 0)
		close(fd);
}

void adopt_kept(struct front *front, const struct control *control, int fd)
{
	const struct journal_session *j = find_session(front, control->pid);
	struct session *session = j ? &front->sessions[j - front->journal->sessions] : NULL;

	if (fd < 0)
		return;
	if (!control->pid && !memcmp(control->text, JOURNAL_NAME, CONTROL_NAME))
		take_journal(front, fd);
	else if (!session || session->state != SESSION_RUNNING)
		close(fd);
	else if (!memcmp(control->text, JOURNAL_CLIENT, CONTROL_NAME))
		session_watch_client(front, session, fd);
	else if (!memcmp(control->text, JOURNAL_TALLY, CONTROL_NAME))
		tenant_quotas_adopt(session, fd);
	else if (!memcmp(control->text, JOURNAL_REFUSALS, CONTROL_NAME))
		take_refusals(front, session, fd);
	else
		take_share(front, session, control, fd);
}

void adopt_end(struct front *front)
{
	struct journal *j = front->journal;

	front->begun = true;
	if (!j) {
		journal_open(front);
		return;
	}
	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (j->sessions[i].worker && front->sessions[i].state == SESSION_FREE) {
			log_warn("session.gone", "session=%" PRIu64 " worker=%d",
				j->sessions[i].number, j->sessions[i].worker);
			j->sessions[i].worker = 0;
		}
	tenant_quotas_adopted(front);
	for (uint32_t i = 0; i < JOURNAL_SHARES; i++)
		if (!sharing_has(front, i))
			j->shares[i].session = 0;
	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state == SESSION_RUNNING)
			quota_tell_one(front, &front->sessions[i]);
	renew_revoked(front);
	if (front->session_count)
		log_info("front.adopted", "sessions=%u", front->session_count);
}
