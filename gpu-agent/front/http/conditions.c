/* SPDX-License-Identifier: Apache-2.0
 *
 * /v1/agent: what the agent is, and what a person should know of it now.  The conditions have
 * the names of the alerts where there is one (docs/ALERTS.md), without the history that
 * Prometheus has: those of counters are since the agent's start.
 */
#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/http/state.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/http/viewer.h"
#include "gpu-agent/sandbox/sandbox.h"

#define CONDITION_WAIT_NS (10000 * FRONT_MS) /* as the alerts have it */
#define CONDITION_LEFT 20		     /* less than a 20th of a GPU is free */
#define CONDITION_KILLED 3
#define CONDITION_REFUSED 10

static const char warning[] = "warning", critical[] = "critical";

static void add(cJSON *list, const char *name, const char *severity, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void add(cJSON *list, const char *name, const char *severity, const char *format, ...)
{
	cJSON *condition = cJSON_CreateObject();
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cJSON_AddStringToObject(condition, "name", name);
	cJSON_AddStringToObject(condition, "severity", severity);
	cJSON_AddStringToObject(condition, "text", text);
	cJSON_AddItemToArray(list, condition);
}

static void add_memory(cJSON *list, const struct front *front)
{
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		uint64_t left = ledger_free(&front->ledger, d);

		if (left < front->ledger.devices[d].total / CONDITION_LEFT)
			add(list, "VcudaMemoryNearlyLeased", warning,
				"GPU %u has %llu MiB left to give.", d,
				(unsigned long long)left >> 20);
	}
}

static void add_waiting(cJSON *list, const struct front *front)
{
	uint64_t now = wait_now();
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		waiting += front->sessions[i].state == SESSION_WAITING &&
			   now - front->sessions[i].begun > CONDITION_WAIT_NS;
	if (waiting)
		add(list, "VcudaSessionsWait", warning,
			"%u sessions have waited more than 10 s for a worker.", waiting);
}

static void add_counted(cJSON *list, const struct front *front)
{
	const struct counters *c = &front->counters;
	uint64_t refused = c->refused[REFUSAL_TOKEN] + c->refused[REFUSAL_SECRET];

	if (front->config->front_restarts > front->config->reloads)
		add(list, "VcudaFrontRestarts", warning,
			"The front died %u times since the agent started.",
			front->config->front_restarts - front->config->reloads);
	if (c->exits_signal > CONDITION_KILLED)
		add(list, "VcudaWorkersKilled", warning, "%llu workers were ended by a signal.",
			(unsigned long long)c->exits_signal);
	if (refused > CONDITION_REFUSED)
		add(list, "VcudaTokensRefused", warning,
			"%llu connections had a wrong token or secret.",
			(unsigned long long)refused);
}

/* What is of no tenant's doing everybody may know; what is counted over all, who sees all. */
static void add_conditions(cJSON *list, const struct front *front, const struct viewer *viewer)
{
	const struct tensor_table *table = tensors_table(front);
	const uint32_t sandbox = front->pool.sandbox;
	char text[SANDBOX_TEXT];
	const char *why;

	if (!front_is_ready(front, &why))
		add(list, front->draining ? "Draining" : "VcudaAgentNotReady",
			front->draining ? warning : critical, "New sessions are refused: %s.",
			why);
	for (uint32_t d = 0; d < front->ledger.device_count; d++)
		if (front->fallen[d].why[0] && viewer_sees_gpu(front, viewer, d))
			add(list, "VcudaGpuFallen", critical, "%s.", front->fallen[d].why);
	if (viewer->all && front->ledger.bugs)
		add(list, "VcudaLedgerBug", critical,
			"The accounts of device memory do not add up; the log says where.");
	if (front->config->insecure)
		add(list, "Insecure", warning,
			"No token is asked for: everybody who reaches the ports is served.");
	if (front->pool.driver[0] && !sandbox_whole(sandbox))
		add(list, "Sandbox", warning, "Of the workers' sandbox only this holds: %s.",
			sandbox_text(text, sandbox));
	if (table && !sandbox_whole(table->sandbox))
		add(list, "Sandbox", warning, "Of the store's sandbox only this holds: %s.",
			sandbox_text(text, table->sandbox));
	if (!viewer->all)
		return;
	add_memory(list, front);
	add_waiting(list, front);
	add_counted(list, front);
}

char *state_agent(const struct front *front, const struct viewer *viewer)
{
	const struct tenant *tenant = viewer->all ? NULL : viewer->tenant;
	cJSON *root = cJSON_CreateObject();
	const char *why;
	char *text;

	cJSON_AddStringToObject(root, "version", AGENT_VERSION);
	cJSON_AddNumberToObject(root, "protocol", SESSION_VERSION);
	cJSON_AddStringToObject(root, "driver", front->pool.driver);
	cJSON_AddBoolToObject(root, "ready", front_is_ready(front, &why));
	cJSON_AddBoolToObject(root, "draining", front->draining);
	cJSON_AddNumberToObject(root, "started", (double)front->started);
	cJSON_AddNumberToObject(root, "seconds", (double)(time(NULL) - front->started));
	cJSON_AddNumberToObject(
		root, "sessions", tenant ? tenant->sessions : front->session_count);
	cJSON_AddNumberToObject(root, "max_sessions",
		tenant && tenant->most ? tenant->most : front->config->max_sessions);
	cJSON_AddNumberToObject(root, "workers_ready", front->pool.count[WORKER_READY]);
	add_conditions(cJSON_AddArrayToObject(root, "conditions"), front, viewer);
	text = cJSON_Print(root);
	cJSON_Delete(root);
	return text;
}
