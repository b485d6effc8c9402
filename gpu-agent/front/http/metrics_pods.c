/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics by pod, as clients say its name: its sessions and their memory of each device.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/http/metrics_core.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"

#define METRICS_PODS 256 /* whose figures are told */

struct pod_figures {
	const struct session *one; /* any of its sessions, for the names */
	uint64_t sessions;
	uint64_t leased[HANDOFF_DEVICES], used[HANDOFF_DEVICES];
};

static struct pod_figures *figures_of(
	struct pod_figures *pods, size_t *count, const struct session *session)
{
	for (size_t i = 0; i < *count; i++)
		if (pods[i].one->tenant == session->tenant &&
			!strcmp(pods[i].one->pod, session->pod))
			return &pods[i];
	if (*count == METRICS_PODS)
		return NULL;
	pods[*count] = (struct pod_figures){.one = session};
	return &pods[(*count)++];
}

static size_t add_up(
	const struct front *front, const struct viewer *viewer, struct pod_figures *pods)
{
	size_t count = 0;

	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		const struct session *s = &front->sessions[i];
		struct pod_figures *f =
			viewer_sees_session(viewer, s) ? figures_of(pods, &count, s) : NULL;

		if (!f)
			continue;
		f->sessions++;
		for (uint32_t d = 0; d < front->ledger.device_count; d++) {
			f->leased[d] += s->account.lease[d];
			f->used[d] += s->stats.used[d];
		}
	}
	return count;
}

/* As dcgm-exporter names them. A client says NAMESPACE/NAME, or its host's name. */
static void print_pod_labels(FILE *out, const struct session *session)
{
	const char *slash = strchr(session->pod, '/');

	fprintf(out, "tenant=\"%s\",namespace=\"%.*s\",pod=\"%s\"", session->tenant->name,
		slash ? (int)(slash - session->pod) : 0, session->pod,
		slash ? slash + 1 : session->pod);
}

static void print_pod_memory(FILE *out, const struct front *front, const char *name,
	const struct pod_figures *pod, const uint64_t bytes[HANDOFF_DEVICES])
{
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		if (!(pod->one->account.devices >> d & 1))
			continue;
		fprintf(out, "%s{", name);
		metrics_gpu_labels(out, front, d);
		fputc(',', out);
		print_pod_labels(out, pod->one);
		fprintf(out, "} %" PRIu64 "\n", bytes[d]);
	}
}

void metrics_pods(FILE *out, const struct front *front, const struct viewer *viewer)
{
	static struct pod_figures pods[METRICS_PODS];
	size_t count = add_up(front, viewer, pods);

	if (!count)
		return;
	metrics_head(out, "vcuda_agent_pod_sessions", "gauge",
		"Sessions by the pod that clients say.");
	for (size_t i = 0; i < count; i++) {
		fputs("vcuda_agent_pod_sessions{", out);
		print_pod_labels(out, pods[i].one);
		fprintf(out, "} %" PRIu64 "\n", pods[i].sessions);
	}
	metrics_head(out, "vcuda_agent_pod_memory_used_bytes", "gauge",
		"Device memory in use by the sessions of a pod.");
	for (size_t i = 0; i < count; i++)
		print_pod_memory(out, front, "vcuda_agent_pod_memory_used_bytes", &pods[i],
			pods[i].used);
	metrics_head(out, "vcuda_agent_pod_memory_leased_bytes", "gauge",
		"Device memory leased to the sessions of a pod.");
	for (size_t i = 0; i < count; i++)
		print_pod_memory(out, front, "vcuda_agent_pod_memory_leased_bytes", &pods[i],
			pods[i].leased);
}
