/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tenant_quotas.h"

#include <inttypes.h>
#include <string.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/viewer.h"

void tenant_quotas_fill(const struct session *session, struct handoff *h)
{
	memcpy(h->quotas, session->tenant->quotas, sizeof(h->quotas));
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

bool tenant_quotas_stripes(const struct session *session, uint32_t stripes)
{
	const uint64_t limit = session->tenant->quotas[QUOTA_INFLIGHT];

	return !limit || QUOTA_LINK_BYTES + (uint64_t)stripes * QUOTA_STRIPE_BYTES <= limit;
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
		if (session->tenant->quotas[q])
			cJSON_AddNumberToObject(
				one, "limit", (double)session->tenant->quotas[q]);
		if (session->quotas_refused[q])
			cJSON_AddNumberToObject(
				one, "refused", (double)session->quotas_refused[q]);
	}
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

	fprintf(out, "# HELP vcuda_agent_tenant_quota What each session of a tenant may have.\n"
		     "# TYPE vcuda_agent_tenant_quota gauge\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		for (int q = 0; q < QUOTAS && viewer_sees(viewer, tenant); q++)
			if (tenant->quotas[q])
				print(out, "vcuda_agent_tenant_quota", tenant, q,
					tenant->quotas[q]);
	fprintf(out, "# HELP vcuda_agent_tenant_quota_refused_total How often a session wanted "
		     "more of it.\n# TYPE vcuda_agent_tenant_quota_refused_total counter\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		for (int q = 0; q < QUOTAS && viewer_sees(viewer, tenant); q++)
			if (tenant->quotas[q] && is_counted((enum quota)q) && q != QUOTA_HOST)
				print(out, "vcuda_agent_tenant_quota_refused_total", tenant, q,
					tenant->quotas_refused[q]);
}
