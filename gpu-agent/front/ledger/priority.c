/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/ledger/priority.h"

#include <inttypes.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/http/viewer.h"
#include "protocol/wire/session.h"

const char *priority_name(enum agent_priority priority)
{
	static const char *const names[PRIORITIES] = {"normal", "low", "normal", "high"};

	return names[priority];
}

bool priority_configured(const struct agent_config *config)
{
	for (uint32_t i = 0; i < config->limit_count; i++)
		if (config->limits[i].priority)
			return true;
	return false;
}

enum agent_priority priority_asked(const struct session_hello *hello)
{
	if (hello->features & SESSION_FEATURE_LOW)
		return PRIORITY_LOW;
	return hello->features & SESSION_FEATURE_NORMAL ? PRIORITY_NORMAL
							: (enum agent_priority)0;
}

enum agent_priority priority_of(const struct session *session)
{
	enum agent_priority own = session->tenant->timeshare.priority, asked = session->asked;

	if (!own)
		own = PRIORITY_NORMAL;
	return asked && asked < own ? asked : own;
}

bool priority_is_behind(const struct priority_gpu *gpu, enum agent_priority priority)
{
	for (uint32_t p = priority + 1; p < PRIORITIES; p++)
		if (gpu->working[p])
			return true;
	return false;
}

uint64_t priority_quantum(const struct priority_gpu *gpu, enum agent_priority priority,
	uint64_t given_at, uint64_t now)
{
	if (priority == PRIORITY_HIGH)
		return UINT64_MAX;
	if (!priority_is_behind(gpu, priority))
		return PRIORITY_QUANTUM_NS;
	return now - given_at >= PRIORITY_EVERY_NS ? PRIORITY_TURN_NS : 0;
}

void priority_metrics(FILE *out, const struct front *front, const struct viewer *viewer)
{
	const struct tenant *tenant;

	if (!front->priorities)
		return;
	fprintf(out,
		"# HELP vcuda_agent_tenant_priority 1: the class of a tenant's sessions at "
		"most.\n# TYPE vcuda_agent_tenant_priority gauge\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		if (viewer_sees(viewer, tenant))
			fprintf(out,
				"vcuda_agent_tenant_priority{tenant=\"%s\",priority=\"%s\"} "
				"1\n",
				tenant->name, priority_name(tenant->timeshare.priority));
	fprintf(out, "# HELP vcuda_agent_tenant_held_total How often a session was held up by "
		     "one of a higher class.\n# TYPE vcuda_agent_tenant_held_total counter\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		if (viewer_sees(viewer, tenant))
			fprintf(out,
				"vcuda_agent_tenant_held_total{tenant=\"%s\"} %" PRIu64 "\n",
				tenant->name, tenant->timeshare.held);
}
