/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/ledger/tenant_quotas.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/http/viewer.h"
#include "gpu-agent/tally.h"
#include "protocol/wire/status.h"

_Static_assert(TALLY_SLOTS == AGENT_SESSIONS_MAX, "a session's place in the table is its slot");

/* --- the tally ---------------------------------------------------------------------------- */

/* Bytes in flight are the front's to give. */
static bool is_tallied(enum quota quota)
{
	return quota != QUOTA_INFLIGHT;
}

static bool needs_tally(const struct tenant *tenant)
{
	for (int q = 0; q < QUOTAS; q++)
		if (tenant->quotas[q] && is_tallied((enum quota)q))
			return true;
	return false;
}

static int map(struct tenant *tenant, int fd)
{
	struct tally *tally;
	struct stat st;

	if (fstat(fd, &st) || st.st_size != sizeof(*tally))
		return -EINVAL;
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tally == MAP_FAILED)
		return -errno;
	tenant->tally = tally;
	tenant->tally_fd = fd;
	return 0;
}

/* Nobody can make it smaller: who reads it would die of that. */
static int make_tally(struct tenant *tenant)
{
	cleanup_close int fd = memfd_create("tally", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret;

	if (fd < 0 || ftruncate(fd, sizeof(*tenant->tally)) ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	ret = map(tenant, fd);
	if (!ret)
		take_fd(&fd);
	return ret;
}

/* Sessions of the tenant beside this one (NULL: all) that are counted. */
static bool has_others(
	const struct front *front, const struct tenant *tenant, const struct session *but)
{
	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		const struct session *session = &front->sessions[i];

		if (session != but && session->state && session->tenant == tenant &&
			session->tallied)
			return true;
	}
	return false;
}

/* --- bytes in flight ---------------------------------------------------------------------- */

static uint64_t inflight_of(const struct session *session)
{
	return session->inflight + session->stripes * (uint64_t)QUOTA_STRIPE_BYTES;
}

/* What is left of it beside what TO_COME sessions need at least. */
static uint64_t inflight_left(
	const struct front *front, const struct tenant *tenant, uint32_t to_come)
{
	const uint64_t least = quota_rows[QUOTA_INFLIGHT].least;
	uint64_t used = to_come * least;

	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state && front->sessions[i].tenant == tenant)
			used += inflight_of(&front->sessions[i]);
	return used < tenant->quotas[QUOTA_INFLIGHT] ? tenant->quotas[QUOTA_INFLIGHT] - used
						     : 0;
}

/* How many sessions the tenant may begin beside so many. */
static uint32_t to_come(const struct tenant *tenant, uint32_t sessions)
{
	return tenant->most > sessions ? tenant->most - sessions : 0;
}

/* --- sessions ----------------------------------------------------------------------------- */

uint32_t tenant_quotas_may(
	const struct front *front, const struct tenant *tenant, char text[192])
{
	if (tenant->quotas[QUOTA_INFLIGHT] &&
		inflight_left(front, tenant, 0) < quota_rows[QUOTA_INFLIGHT].least) {
		snprintf(text, 192, "inflight_bytes of '%s' are used up by its %u sessions",
			tenant->name, tenant->sessions);
		return STATUS_NOT_PERMITTED;
	}
	/* A new one would not know what they have. */
	if (needs_tally(tenant) && !tenant->tally && has_others(front, tenant, NULL)) {
		snprintf(text, 192, "what the sessions of '%s' have is not known any more",
			tenant->name);
		return STATUS_NOT_PERMITTED;
	}
	return 0;
}

int tenant_quotas_enter(const struct front *front, struct session *session)
{
	const uint32_t slot = (uint32_t)(session - front->sessions);
	const uint64_t least = quota_rows[QUOTA_INFLIGHT].least;
	struct tenant *tenant = session->tenant;
	int ret = needs_tally(tenant) && !tenant->tally ? make_tally(tenant) : 0;
	uint64_t left;

	if (ret) {
		log_error(
			"tenant.tally", "tenant=%s error=\"%s\"", tenant->name, strerror(-ret));
		return ret;
	}
	if (tenant->quotas[QUOTA_INFLIGHT]) {
		left = inflight_left(front, tenant, to_come(tenant, tenant->sessions + 1));
		left = left < QUOTA_LINK_BYTES ? left : QUOTA_LINK_BYTES;
		session->inflight = left < least ? least : left;
	}
	if (!tenant->tally)
		return 0;
	session->tallied = true;
	if (atomic_load(&tenant->tally->slots) <= slot)
		atomic_store(&tenant->tally->slots, slot + 1);
	return 0;
}

static void clear(struct tally *tally, uint32_t slot)
{
	for (int q = 0; q < QUOTAS; q++)
		atomic_store(&tally->used[q][slot], 0);
}

void tenant_quotas_leave(const struct front *front, struct session *session)
{
	struct tenant *tenant = session->tenant;

	if (tenant->tally && session->tallied)
		clear(tenant->tally, (uint32_t)(session - front->sessions));
	/* One that did not come to be is none of its sessions. */
	if (!tenant->tally || has_others(front, tenant, session))
		return;
	munmap(tenant->tally, sizeof(*tenant->tally));
	close(tenant->tally_fd);
	tenant->tally = NULL;
}

int tenant_quotas_tell(struct front *front, const struct session *session)
{
	const struct handoff h = {.version = HANDOFF_VERSION,
		.what = HANDOFF_TALLY,
		.device = (uint32_t)(session - front->sessions)};

	if (!session->tallied)
		return 0;
	journal_tally(front, session, session->tenant->tally_fd);
	return pool_say_with(session->worker, &h, session->tenant->tally_fd);
}

void tenant_quotas_adopt(struct session *session, int fd)
{
	if (session->tenant->tally || map(session->tenant, fd))
		close(fd); /* another of its sessions brought it */
}

void tenant_quotas_adopted(const struct front *front)
{
	const struct tenant *tenant;

	for (uint32_t t = 0; (tenant = tenants_at(front, t)); t++)
		for (uint32_t i = 0; tenant->tally && i < front->config->max_sessions; i++)
			if (front->sessions[i].state == SESSION_FREE ||
				front->sessions[i].tenant != tenant)
				clear(tenant->tally, i);
}

void tenant_quotas_fill(const struct session *session, struct handoff *h)
{
	memcpy(h->quotas, session->tenant->quotas, sizeof(h->quotas));
	h->quotas[QUOTA_INFLIGHT] = session->inflight;
}

void tenant_quotas_count(struct session *session, const struct handoff *h)
{
	memcpy(session->quotas, h->quotas, sizeof(session->quotas));
	for (int q = 0; q < QUOTAS; q++) {
		if (h->quotas_refused[q] <= session->quotas_refused[q])
			continue; /* a counter only grows */
		session->tenant->quotas_refused[q] +=
			h->quotas_refused[q] - session->quotas_refused[q];
		session->quotas_refused[q] = h->quotas_refused[q];
	}
}

bool tenant_quotas_stripe(const struct front *front, const struct session *session)
{
	return !session->tenant->quotas[QUOTA_INFLIGHT] ||
	       inflight_left(front, session->tenant,
		       to_come(session->tenant, session->tenant->sessions)) >=
		       QUOTA_STRIPE_BYTES;
}

/* A worker measures no more of these than that it keeps them. */
static bool is_counted(enum quota quota)
{
	return quota != QUOTA_INFLIGHT && quota != QUOTA_LOG;
}

void tenant_quotas_json(cJSON *object, const struct session *session)
{
	cJSON *quotas = cJSON_AddObjectToObject(object, "quotas");

	for (int q = 0; q < QUOTAS; q++) {
		cJSON *one = cJSON_AddObjectToObject(quotas, quota_rows[q].key);

		if (is_counted((enum quota)q))
			cJSON_AddNumberToObject(one, "used", (double)session->quotas[q]);
		else if (q == QUOTA_INFLIGHT && session->inflight)
			cJSON_AddNumberToObject(one, "used", (double)inflight_of(session));
		if (session->tenant->quotas[q])
			cJSON_AddNumberToObject(
				one, "limit", (double)session->tenant->quotas[q]);
		if (session->quotas_refused[q])
			cJSON_AddNumberToObject(
				one, "refused", (double)session->quotas_refused[q]);
	}
}

/* What its sessions have together. */
static uint64_t used_by(const struct front *front, const struct tenant *tenant, int quota)
{
	uint64_t used = 0;

	if (quota != QUOTA_INFLIGHT)
		return tenant->tally ? tally_sum(tenant->tally, (enum quota)quota) : 0;
	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state && front->sessions[i].tenant == tenant)
			used += inflight_of(&front->sessions[i]);
	return used;
}

static void print(
	FILE *out, const char *name, const struct tenant *tenant, int quota, uint64_t value)
{
	fprintf(out, "%s{tenant=\"%s\",quota=\"%s\"} %" PRIu64 "\n", name, tenant->name,
		quota_rows[quota].key, value);
}

void tenant_quotas_metrics(FILE *out, const struct front *front, const struct viewer *viewer)
{
	const struct tenant *tenant;

	fprintf(out, "# HELP vcuda_agent_tenant_quota What a tenant's sessions may have "
		     "together.\n# TYPE vcuda_agent_tenant_quota gauge\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		for (int q = 0; q < QUOTAS && viewer_sees(viewer, tenant); q++)
			if (tenant->quotas[q])
				print(out, "vcuda_agent_tenant_quota", tenant, q,
					tenant->quotas[q]);
	fprintf(out, "# HELP vcuda_agent_tenant_quota_used What they have.\n"
		     "# TYPE vcuda_agent_tenant_quota_used gauge\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		for (int q = 0; q < QUOTAS && viewer_sees(viewer, tenant); q++)
			if (tenant->quotas[q] && q != QUOTA_LOG)
				print(out, "vcuda_agent_tenant_quota_used", tenant, q,
					used_by(front, tenant, q));
	fprintf(out, "# HELP vcuda_agent_tenant_quota_refused_total How often a session wanted "
		     "more of it.\n# TYPE vcuda_agent_tenant_quota_refused_total counter\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		for (int q = 0; q < QUOTAS && viewer_sees(viewer, tenant); q++)
			if (tenant->quotas[q] && is_counted((enum quota)q) && q != QUOTA_HOST)
				print(out, "vcuda_agent_tenant_quota_refused_total", tenant, q,
					tenant->quotas_refused[q]);
}
