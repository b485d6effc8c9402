/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/journal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/tenants.h"

static size_t length(const struct front *front)
{
	return sizeof(struct journal) +
	       front->config->max_sessions * sizeof(struct journal_session);
}

static struct journal_session *place(struct front *front, const struct session *session)
{
	return front->journal ? &front->journal->sessions[session - front->sessions] : NULL;
}

/* This process may die between any two stores, and with them nothing but this order counts. */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static int map(struct front *front, int fd)
{
	void *at = mmap(NULL, length(front), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	front->journal = at;
	return 0;
}

void journal_open(struct front *front)
{
	cleanup_close int fd = memfd_create("gpu-agent-journal", MFD_CLOEXEC);
	struct control c = {.what = CONTROL_KEEP};

	memcpy(c.text, JOURNAL_NAME, CONTROL_NAME);
	if (fd < 0 || ftruncate(fd, (off_t)length(front)) || map(front, fd)) {
		log_warn("journal.open", "text=\"%s; sessions would end with the front\"",
			strerror(errno));
		return;
	}
	front->journal->length = length(front);
	front->journal->next_session = front->next_session;
	in_order();
	front->journal->magic = JOURNAL_MAGIC;
	front_tell_with(front, &c, fd);
}

int journal_take(struct front *front, int fd)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st) || (size_t)st.st_size != length(front))
		return -EINVAL;
	ret = map(front, fd);
	if (!ret && (front->journal->magic != JOURNAL_MAGIC ||
			    front->journal->length != length(front))) {
		journal_close(front);
		return -EINVAL;
	}
	return ret;
}

void journal_close(struct front *front)
{
	if (front->journal)
		munmap(front->journal, length(front));
	front->journal = NULL;
}

static void put_time(struct journal_session *j, const struct session *session)
{
	memcpy(j->gpu_used, session->timeshare.used, sizeof(j->gpu_used));
	j->gpu_own = session->timeshare.own;
}

void journal_session(struct front *front, const struct session *session)
{
	struct journal_session *j = place(front, session);

	if (!j)
		return;
	j->worker = 0;
	in_order();
	j->pid = session->pid;
	j->uid = session->uid;
	j->stripes = session->stripes;
	memcpy(j->id, session->id, sizeof(j->id));
	memcpy(j->secret, session->secret, sizeof(j->secret));
	memcpy(j->next, session->resume.next, sizeof(j->next));
	j->offered = session->resume.offered;
	j->grace_ms = session->grace_ms;
	j->number = session->number;
	j->features = session->features;
	j->begun = session->begun;
	j->proven_until = session->proven_until;
	j->started = session->started;
	j->peer = session->peer;
	snprintf(j->transport, sizeof(j->transport), "%s", session->transport->name);
	memcpy(j->program, session->program, sizeof(j->program));
	memcpy(j->pod, session->pod, sizeof(j->pod));
	memcpy(j->tenant, session->tenant->name, sizeof(j->tenant));
	j->limited = session->limits;
	if (session->limits)
		j->limits = *session->limits;
	j->account = session->account;
	memcpy(j->contexts, session->worker->contexts, sizeof(j->contexts));
	j->stats = session->stats;
	memcpy(j->latency, session->latency, sizeof(j->latency));
	memcpy(j->quotas_refused, session->quotas_refused, sizeof(j->quotas_refused));
	put_time(j, session);
	j->inflight = session->inflight;
	j->tallied = session->tallied;
	j->asked = session->asked;
	front->journal->next_session = front->next_session;
	in_order();
	j->worker = session->worker->pid;
}

/* The tenant's place, made where there is none; NULL: all are taken. */
static struct journal_tenant *tenant_place(struct journal *j, const char *name)
{
	struct journal_tenant *at = j->tenants;

	while (at < j->tenants + j->tenant_count && strcmp(at->name, name))
		at++;
	if (at == j->tenants + TENANTS)
		return NULL;
	if (at == j->tenants + j->tenant_count) {
		memset(at, 0, sizeof(*at));
		snprintf(at->name, sizeof(at->name), "%s", name);
		in_order();
		j->tenant_count++;
	}
	return at;
}

static void put_tenant(struct journal *j, const struct tenant *tenant)
{
	struct journal_tenant *at = tenant_place(j, tenant->name);

	if (!at)
		return;
	at->totals = tenant->totals;
	at->gpu_used = tenant->timeshare.used;
	at->gpu_waited = tenant->timeshare.waited;
	at->gpu_held = tenant->timeshare.held;
	memcpy(at->quotas_refused, tenant->quotas_refused, sizeof(at->quotas_refused));
}

/* A front that dies in between has counted less than there was, and nothing twice. */
void journal_stats(struct front *front, const struct session *session)
{
	struct journal_session *j = place(front, session);

	if (!j)
		return;
	j->stats = session->stats;
	memcpy(j->latency, session->latency, sizeof(j->latency));
	memcpy(j->quotas_refused, session->quotas_refused, sizeof(j->quotas_refused));
	put_time(j, session);
	in_order();
	put_tenant(front->journal, session->tenant);
	front->journal->counters = front->counters;
}

void journal_counters(struct front *front)
{
	const struct tenant *tenant;

	if (!front->journal)
		return;
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		put_tenant(front->journal, tenant);
	front->journal->counters = front->counters;
}

void journal_account(struct front *front, const struct session *session)
{
	struct journal_session *j = place(front, session);

	if (j)
		j->account = session->account;
}

void journal_forget(struct front *front, const struct session *session)
{
	struct journal_session *j = place(front, session);

	if (j)
		j->worker = 0;
}

void journal_devices(struct front *front)
{
	struct journal *j = front->journal;

	if (!j)
		return;
	j->libraries = front->pool.libraries;
	j->driver_version = front->pool.driver_version;
	j->sandbox = front->pool.sandbox;
	memcpy(j->driver, front->pool.driver, sizeof(j->driver));
	memcpy(j->driver_release, front->pool.driver_release, sizeof(j->driver_release));
	memcpy(j->devices, front->ledger.devices, sizeof(j->devices));
	in_order();
	j->device_count = front->ledger.device_count;
}

void journal_share(struct front *front, uint32_t index, const struct session *session,
	const struct journal_share *share, int fd)
{
	struct control c = {.what = CONTROL_KEEP, .pid = session->worker->pid};
	struct journal_share *j;

	if (!front->journal)
		return;
	j = &front->journal->shares[index];
	*j = *share;
	in_order();
	j->session = (uint32_t)(session - front->sessions) + 1;
	memcpy(c.text, share->name, CONTROL_NAME);
	front_tell_with(front, &c, fd);
}

void journal_unshare(struct front *front, uint32_t index, const struct session *session)
{
	struct control c = {.what = CONTROL_DROP};
	struct journal_share *j;

	if (!front->journal)
		return;
	j = &front->journal->shares[index];
	j->session = 0;
	memcpy(c.text, j->name, CONTROL_NAME);
	c.pid = session->worker ? session->worker->pid : 0;
	if (c.pid) /* else it is reaped, and what went with it is gone */
		front_tell(front, &c);
}

static void keep(struct front *front, const struct session *session,
	const uint8_t name[CONTROL_NAME], int fd)
{
	struct control c = {.what = CONTROL_KEEP, .pid = session->worker->pid};

	memcpy(c.text, name, CONTROL_NAME);
	if (front->journal)
		front_tell_with(front, &c, fd);
}

void journal_client(struct front *front, const struct session *session, int fd)
{
	keep(front, session, JOURNAL_CLIENT, fd);
}

void journal_tally(struct front *front, const struct session *session, int fd)
{
	keep(front, session, JOURNAL_TALLY, fd);
}

void journal_refusals(struct front *front, const struct session *session, int fd)
{
	keep(front, session, JOURNAL_REFUSALS, fd);
}
