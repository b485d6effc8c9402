/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics in Prometheus' text format.  Labels come from fixed sets and from the GPUs; nothing
 * that a client says becomes one.  docs/AGENT.md lists the names.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/front.h"
#include "gpu-agent/sandbox.h"

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	head(out, name, type, help);
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

struct labelled {
	const char *value;
	uint64_t number;
};

static void some(FILE *out, const char *name, const char *type, const char *help,
	const char *label, const struct labelled *rows, size_t count)
{
	head(out, name, type, help);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, rows[i].value,
			rows[i].number);
}
#define SOME(out, name, type, help, label, ...)                                                \
	some(out, name, type, help, label, (struct labelled[]){__VA_ARGS__},                   \
		sizeof((struct labelled[]){__VA_ARGS__}) / sizeof(struct labelled))

static void print_sessions(FILE *out, const struct front *front)
{
	uint64_t states[SESSION_ENDING + 1] = {0};
	const struct counters *c = &front->counters;

	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		states[front->sessions[i].state]++;
	head(out, "vcuda_agent_sessions", "gauge", "Sessions by state.");
	for (int s = SESSION_WAITING; s <= SESSION_ENDING; s++)
		fprintf(out, "vcuda_agent_sessions{state=\"%s\"} %" PRIu64 "\n",
			session_state_name((enum session_state)s), states[s]);
	one(out, "vcuda_agent_sessions_total", "counter", "Sessions handed to a worker.",
		c->sessions);
	one(out, "vcuda_agent_probes_total", "counter", "Probes answered.", c->probes);
	head(out, "vcuda_agent_handshakes_refused_total", "counter",
		"Connections refused, by reason.");
	for (int r = 0; r < REFUSALS; r++)
		fprintf(out,
			"vcuda_agent_handshakes_refused_total{reason=\"%s\"} %" PRIu64 "\n",
			refusal_name((enum refusal)r), c->refused[r]);
	one(out, "vcuda_agent_handshakes_half_open", "gauge",
		"Connections that have not said who they are.", front->half_open);
}

static void print_workers(FILE *out, const struct front *front)
{
	const struct counters *c = &front->counters;

	head(out, "vcuda_agent_workers", "gauge", "Worker processes by state.");
	for (int s = WORKER_ASKED; s < WORKER_STATES; s++)
		fprintf(out, "vcuda_agent_workers{state=\"%s\"} %u\n",
			worker_state_name((enum worker_state)s), front->pool.count[s]);
	one(out, "vcuda_agent_worker_starts_total", "counter", "Workers started.",
		c->worker_starts);
	SOME(out, "vcuda_agent_worker_exits_total", "counter",
		"Workers reaped, by how they ended.", "reason", {"clean", c->exits_clean},
		{"failed", c->exits_failed}, {"signal", c->exits_signal});
	head(out, "vcuda_agent_worker_sandbox", "gauge",
		"1: this part of the workers' sandbox holds.");
	for (uint32_t part = 1; part < SANDBOX_ALL; part <<= 1)
		fprintf(out, "vcuda_agent_worker_sandbox{part=\"%s\"} %d\n",
			sandbox_part_name(part), (front->pool.sandbox & part) != 0);
	one(out, "vcuda_agent_worker_faults_total", "counter",
		"Datagrams of workers that made no sense.", c->peer_faults);
}

static void print_traffic(FILE *out, const struct session_stats *t)
{
	SOME(out, "vcuda_agent_frames_total", "counter", "Frames of sessions.", "direction",
		{"received", t->frames_received}, {"sent", t->frames_sent});
	SOME(out, "vcuda_agent_bytes_total", "counter", "Bytes of sessions.", "direction",
		{"received", t->bytes_received}, {"sent", t->bytes_sent});
	SOME(out, "vcuda_agent_copy_bytes_total", "counter",
		"Bytes copied to and from devices.", "direction", {"in", t->copies_in_bytes},
		{"out", t->copies_out_bytes});
	one(out, "vcuda_agent_launches_total", "counter", "Kernels launched.", t->launches);
	one(out, "vcuda_agent_errors_total", "counter", "Refused frames and sticky errors.",
		t->errors);
}

static void print_memory(FILE *out, const struct front *front)
{
	static const char *const names[][2] = {
		{"total", "Memory of the device."},
		{"reserved", "Kept free by configuration."},
		{"foreign", "Used by others than this agent when last seen."},
		{"context", "Taken by the contexts of workers."},
		{"leased", "Promised to sessions."},
		{"used", "In use by sessions."},
	};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		char name[64];

		snprintf(name, sizeof(name), "vcuda_agent_device_memory_%s_bytes", names[n][0]);
		head(out, name, "gauge", names[n][1]);
		for (uint32_t i = 0; i < front->ledger.device_count; i++) {
			const struct ledger_device *d = &front->ledger.devices[i];
			const uint64_t values[] = {d->total, d->reserve, d->foreign,
				d->contexts, d->leased, status_used(front, i)};

			fprintf(out, "%s{gpu=\"%u\",UUID=\"", name, i);
			status_uuid(out, d->uuid);
			fprintf(out, "\",modelName=\"%s\"} %" PRIu64 "\n", d->name, values[n]);
		}
	}
	one(out, "vcuda_agent_leases_refused_total", "counter", "Leases that could not grow.",
		front->counters.lease_refused);
	one(out, "vcuda_agent_ledger_bugs_total", "counter",
		"Accounts that did not add up (a bug in the agent).", front->ledger.bugs);
}

char *metrics_text(const struct front *front)
{
	const char *why;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	head(out, "vcuda_agent_info", "gauge", "What this agent is.");
	fprintf(out, "vcuda_agent_info{version=\"%s\",protocol=\"%u\",driver=\"%s\"} 1\n",
		AGENT_VERSION, SESSION_VERSION, front->pool.driver);
	one(out, "vcuda_agent_ready", "gauge", "1: new sessions are served.",
		front_is_ready(front, &why));
	one(out, "vcuda_agent_draining", "gauge", "1: the agent is ending.", front->draining);
	one(out, "vcuda_agent_start_time_seconds", "gauge", "When the front started.",
		(uint64_t)front->started);
	one(out, "vcuda_agent_front_restarts_total", "counter", "Fronts that died.",
		front->config->front_restarts);
	one(out, "vcuda_agent_insecure", "gauge", "1: everybody is served, without a token.",
		front->config->insecure);
	print_sessions(out, front);
	print_workers(out, front);
	print_traffic(out, &front->counters.totals);
	print_memory(out, front);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
