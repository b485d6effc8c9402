/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics in Prometheus' text format.  Labels come from fixed sets, from the GPUs and from the
 * token file; but for the names of pods, which are what clients say: printable, without quotes,
 * and of so many pods at once and no more.  docs/AGENT.md lists the names.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/http/metrics.h"
#include "gpu-agent/front/http/metrics_core.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/http/state.h"
#include "gpu-agent/front/ledger/tenant_quotas.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/http/viewer.h"
#include "gpu-agent/sandbox/sandbox.h"

void metrics_head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_one(
	FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
	metrics_head(out, name, type, help);
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

struct labelled {
	const char *value;
	uint64_t number;
};

static void some(FILE *out, const char *name, const char *type, const char *help,
	const char *label, const struct labelled *rows, size_t count)
{
	metrics_head(out, name, type, help);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, rows[i].value,
			rows[i].number);
}
#define SOME(out, name, type, help, label, ...)                                                \
	some(out, name, type, help, label, (struct labelled[]){__VA_ARGS__},                   \
		sizeof((struct labelled[]){__VA_ARGS__}) / sizeof(struct labelled))

/* Upper bounds in milliseconds, as many as struct histogram has. */
static const uint64_t wait_bounds[HISTOGRAM_BOUNDS] = {
	1, 5, 10, 50, 100, 500, 1000, 5000, 30000};
static const uint64_t duration_bounds[HISTOGRAM_BOUNDS] = {
	100, 1000, 10000, 60000, 300000, 1800000, 3600000, 21600000, 86400000};

static void observe(struct histogram *h, const uint64_t bounds[HISTOGRAM_BOUNDS], uint64_t ns)
{
	size_t i = 0;

	while (i < HISTOGRAM_BOUNDS && ns > bounds[i] * FRONT_MS)
		i++;
	h->counts[i]++;
	h->sum_ns += ns;
}

void metrics_wait(struct front *front, const char *session, uint64_t ns)
{
	latencies_observe(&front->counters.latencies, LATENCY_ATTACH, session, ns);
	observe(&front->counters.waits, wait_bounds, ns);
}

void metrics_duration(struct front *front, uint64_t ns)
{
	observe(&front->counters.durations, duration_bounds, ns);
}

static void print_histogram(FILE *out, const char *name, const char *help,
	const struct histogram *h, const uint64_t bounds[HISTOGRAM_BOUNDS])
{
	uint64_t count = 0;

	metrics_head(out, name, "histogram", help);
	for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
		count += h->counts[i];
		fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
			(double)bounds[i] / 1000, count);
	}
	count += h->counts[HISTOGRAM_BOUNDS];
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.6f\n%s_count %" PRIu64 "\n",
		name, count, name, (double)h->sum_ns / 1e9, name, count);
}

static void print_transports(FILE *out, const struct front *front)
{
	const struct transport *transport;

	metrics_head(out, "vcuda_agent_sessions_by_transport", "gauge", "Running sessions.");
	for (size_t t = 0; (transport = transport_at(t)); t++) {
		unsigned count = 0;

		for (uint32_t i = 0; i < front->config->max_sessions; i++)
			count += front->sessions[i].state == SESSION_RUNNING &&
				 front->sessions[i].transport == transport;
		fprintf(out, "vcuda_agent_sessions_by_transport{transport=\"%s\"} %u\n",
			transport->name, count);
	}
}

static void print_sessions(FILE *out, const struct front *front)
{
	uint64_t states[SESSION_ENDING + 1] = {0}, parked = 0, peers = 0;
	const struct counters *c = &front->counters;

	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		states[front->sessions[i].state]++;
		parked += front->sessions[i].resume.parked_at != 0;
		if (front->sessions[i].state == SESSION_RUNNING)
			peers += front->sessions[i].peers;
	}
	metrics_head(out, "vcuda_agent_sessions", "gauge", "Sessions by state.");
	for (int s = SESSION_WAITING; s <= SESSION_ENDING; s++)
		fprintf(out, "vcuda_agent_sessions{state=\"%s\"} %" PRIu64 "\n",
			session_state_name((enum session_state)s), states[s]);
	print_transports(out, front);
	metrics_one(out, "vcuda_agent_sessions_total", "counter",
		"Sessions handed to a worker.", c->sessions);
	metrics_one(out, "vcuda_agent_sessions_parked", "gauge",
		"Running sessions whose connections are cut.", parked);
	SOME(out, "vcuda_agent_resumes_total", "counter", "How cut sessions went on.", "result",
		{"resumed", c->resumes}, {"refused", c->resumes_refused},
		{"expired", c->resumes_expired});
	SOME(out, "vcuda_agent_knocks_total", "counter",
		"Datagrams that asked for a session's UDP socket.", "result",
		{"taken", c->knocks_taken}, {"refused", c->knocks_refused});
	metrics_one(out, "vcuda_agent_peers", "gauge",
		"Open connections between sessions here and ones of other agents.", peers);
	SOME(out, "vcuda_agent_peer_connections_total", "counter",
		"Connections between sessions here and ones of other agents, or sidecars that "
		"stand for them.",
		"result", {"accepted", c->peers_accepted}, {"dialed", c->peers_dialed},
		{"failed", c->peers_failed});
	print_histogram(out, "vcuda_agent_session_wait_seconds",
		"From a client's HELLO until a worker is there for it.", &c->waits,
		wait_bounds);
	print_histogram(out, "vcuda_agent_session_duration_seconds",
		"How long sessions that are over have been.", &c->durations, duration_bounds);
	metrics_one(out, "vcuda_agent_probes_total", "counter", "Probes answered.", c->probes);
	metrics_head(out, "vcuda_agent_handshakes_refused_total", "counter",
		"Connections refused, by reason.");
	for (int r = 0; r < REFUSALS; r++)
		fprintf(out,
			"vcuda_agent_handshakes_refused_total{reason=\"%s\"} %" PRIu64 "\n",
			refusal_name((enum refusal)r), c->refused[r]);
	metrics_one(out, "vcuda_agent_handshakes_half_open", "gauge",
		"Connections that have not said who they are.", front->half_open);
}

static void print_tls(FILE *out)
{
	struct transport_tls_counts counts;

	transport_tls_counts(&counts);
	metrics_head(out, "vcuda_agent_tls_handshakes_total", "counter",
		"TLS handshakes: whole, shortened by a ticket, refused.");
	fprintf(out,
		"vcuda_agent_tls_handshakes_total{kind=\"full\"} %" PRIu64 "\n"
		"vcuda_agent_tls_handshakes_total{kind=\"resumed\"} %" PRIu64 "\n"
		"vcuda_agent_tls_handshakes_total{kind=\"refused\"} %" PRIu64 "\n",
		counts.full, counts.resumed, counts.failed);
	if (counts.expires)
		metrics_one(out, "vcuda_agent_certificate_expires_seconds", "gauge",
			"When the agent's certificate ends, as Unix time.",
			(uint64_t)counts.expires);
}

static void print_workers(FILE *out, const struct front *front)
{
	const struct counters *c = &front->counters;

	metrics_head(out, "vcuda_agent_workers", "gauge", "Worker processes by state.");
	for (int s = WORKER_ASKED; s < WORKER_STATES; s++)
		fprintf(out, "vcuda_agent_workers{state=\"%s\"} %u\n",
			worker_state_name((enum worker_state)s), front->pool.count[s]);
	metrics_one(out, "vcuda_agent_worker_starts_total", "counter", "Workers started.",
		c->worker_starts);
	SOME(out, "vcuda_agent_worker_exits_total", "counter",
		"Workers reaped, by how they ended.", "reason", {"clean", c->exits_clean},
		{"failed", c->exits_failed}, {"signal", c->exits_signal});
	metrics_head(out, "vcuda_agent_worker_sandbox", "gauge",
		"1: this part of the workers' sandbox holds.");
	for (uint32_t part = 1; part < SANDBOX_ALL; part <<= 1)
		fprintf(out, "vcuda_agent_worker_sandbox{part=\"%s\"} %d\n",
			sandbox_part_name(part), (front->pool.sandbox & part) != 0);
	metrics_head(out, "vcuda_agent_worker_isolation", "gauge",
		"1: what keeps workers in, as a word.");
	fprintf(out, "vcuda_agent_worker_isolation{mode=\"%s\"} 1\n",
		sandbox_mode(front->pool.sandbox));
	metrics_one(out, "vcuda_agent_refused_calls_counted", "gauge",
		"1: system calls that workers are refused are counted.",
		(front->pool.sandbox & SANDBOX_COUNTED) != 0);
	metrics_head(out, "vcuda_agent_refused_calls_total", "counter",
		"System calls that workers were refused.");
	for (unsigned i = 0; sandbox_call_name(i); i++)
		if (!i || c->refused_calls[i])
			fprintf(out,
				"vcuda_agent_refused_calls_total{call=\"%s\"} %" PRIu64 "\n",
				sandbox_call_name(i), c->refused_calls[i]);
	metrics_one(out, "vcuda_agent_worker_faults_total", "counter",
		"Datagrams of workers that made no sense.", c->peer_faults);
	metrics_head(out, "vcuda_agent_images_total", "counter",
		"Images (modules) that workers wanted of the cache, or brought to it.");
	for (int f = 0; f < IMAGE_FATES; f++)
		fprintf(out, "vcuda_agent_images_total{result=\"%s\"} %" PRIu64 "\n",
			image_fate_name((enum image_fate)f), c->images[f]);
	metrics_head(out, "vcuda_agent_image_bytes_total", "counter", "Bytes of the same.");
	for (int f = 0; f < IMAGE_FATES; f++)
		fprintf(out, "vcuda_agent_image_bytes_total{result=\"%s\"} %" PRIu64 "\n",
			image_fate_name((enum image_fate)f), c->image_bytes[f]);
}

static void print_traffic(FILE *out, const struct session_stats *t)
{
	SOME(out, "vcuda_agent_frames_total", "counter", "Frames of sessions.", "direction",
		{"received", t->frames_received}, {"sent", t->frames_sent});
	SOME(out, "vcuda_agent_bytes_total", "counter", "Bytes of sessions.", "direction",
		{"received", t->bytes_received}, {"sent", t->bytes_sent});
	SOME(out, "vcuda_agent_saved_bytes_total", "counter",
		"Bytes that did not travel, since payloads were coded.", "direction",
		{"received", t->saved_received}, {"sent", t->saved_sent});
	SOME(out, "vcuda_agent_peer_bytes_total", "counter",
		"Bytes of copies between GPUs of this agent and of others.", "direction",
		{"received", t->peer_received}, {"sent", t->peer_sent});
	SOME(out, "vcuda_agent_copy_bytes_total", "counter",
		"Bytes copied to and from devices.", "direction", {"in", t->copies_in_bytes},
		{"out", t->copies_out_bytes});
	metrics_one(
		out, "vcuda_agent_launches_total", "counter", "Kernels launched.", t->launches);
	metrics_one(out, "vcuda_agent_errors_total", "counter",
		"Refused frames and sticky errors.", t->errors);
}

static void print_uploads(FILE *out, const struct uploads_counts *c)
{
	metrics_one(out, "vcuda_agent_upload_cache_bytes", "gauge",
		"Payloads that are kept by content.", c->bytes);
	metrics_one(out, "vcuda_agent_upload_cache_hits_total", "counter",
		"Pieces of copies that did not travel, since they were there.", c->hits);
	metrics_one(out, "vcuda_agent_upload_cache_hit_bytes_total", "counter",
		"The same in bytes.", c->hit_bytes);
	metrics_one(out, "vcuda_agent_upload_cache_misses_total", "counter",
		"Pieces that were asked for and were not there.", c->misses);
	metrics_one(out, "vcuda_agent_upload_cache_evictions_total", "counter",
		"Pieces that made room for others.", c->evictions);
}

/* As many as there are tokens, and signed names that have sessions. */
static void print_tenants(FILE *out, const struct front *front, const struct viewer *viewer)
{
	static const struct {
		const char *name, *type, *help, *label;
		size_t at;
	} rows[] = {
		{"vcuda_agent_tenant_launches_total", "counter",
			"Kernels that tenants launched.", "",
			offsetof(struct session_stats, launches)},
		{"vcuda_agent_tenant_bytes_total", "counter", "Bytes of tenants' sessions.",
			",direction=\"received\"",
			offsetof(struct session_stats, bytes_received)},
		{"vcuda_agent_tenant_bytes_total", NULL, NULL, ",direction=\"sent\"",
			offsetof(struct session_stats, bytes_sent)},
		{"vcuda_agent_tenant_copy_bytes_total", "counter",
			"Bytes that tenants copied to and from devices.", ",direction=\"in\"",
			offsetof(struct session_stats, copies_in_bytes)},
		{"vcuda_agent_tenant_copy_bytes_total", NULL, NULL, ",direction=\"out\"",
			offsetof(struct session_stats, copies_out_bytes)},
	};
	const struct tenant *tenant;

	metrics_head(out, "vcuda_agent_tenant_sessions", "gauge", "Sessions of tenants.");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		if (viewer_sees(viewer, tenant))
			fprintf(out, "vcuda_agent_tenant_sessions{tenant=\"%s\"} %u\n",
				tenant->name, tenant->sessions);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		if (rows[r].type)
			metrics_head(out, rows[r].name, rows[r].type, rows[r].help);
		for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++) {
			uint64_t value;

			if (!viewer_sees(viewer, tenant))
				continue;
			memcpy(&value, (const char *)&tenant->totals + rows[r].at,
				sizeof(value));
			fprintf(out, "%s{tenant=\"%s\"%s} %" PRIu64 "\n", rows[r].name,
				tenant->name, rows[r].label, value);
		}
	}
}

/* --- the process -------------------------------------------------------------------------- */

static uint64_t open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (folder && readdir(folder))
		n++;
	if (folder)
		closedir(folder);
	return n > 3 ? n - 3 : 0; /* . and .. and the folder itself */
}

/* Of the front, under the names that every exporter has. */
static void print_process(FILE *out, const struct front *front)
{
	unsigned long long bytes = 0, pages = 0;
	struct rusage usage = {0};
	struct rlimit files = {0};
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm && fscanf(statm, "%llu %llu", &bytes, &pages) != 2)
		bytes = pages = 0;
	if (statm)
		fclose(statm);
	getrusage(RUSAGE_SELF, &usage);
	getrlimit(RLIMIT_NOFILE, &files);
	metrics_head(out, "process_cpu_seconds_total", "counter", "CPU time of the front.");
	fprintf(out, "process_cpu_seconds_total %.3f\n",
		(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
	metrics_one(out, "process_resident_memory_bytes", "gauge", "Memory of the front.",
		pages * (uint64_t)sysconf(_SC_PAGESIZE));
	metrics_one(out, "process_virtual_memory_bytes", "gauge", "Address space of the front.",
		bytes * (uint64_t)sysconf(_SC_PAGESIZE));
	metrics_one(out, "process_open_fds", "gauge", "Open descriptors of the front.",
		open_files());
	metrics_one(out, "process_max_fds", "gauge", "How many there may be.", files.rlim_cur);
	metrics_one(out, "process_start_time_seconds", "gauge", "When the front started.",
		(uint64_t)front->started);
}

/* Over all tenants: a network's people are not shown what the others make of them. */
static void print_sums(FILE *out, struct front *front, bool exemplars)
{
	metrics_one(out, "vcuda_agent_front_restarts_total", "counter", "Fronts that died.",
		front->config->front_restarts - front->config->reloads);
	metrics_one(out, "vcuda_agent_reloads_total", "counter",
		"Times that the agent took another binary or configuration.",
		front->config->reloads);
	metrics_one(out, "vcuda_agent_sessions_renewed_total", "counter",
		"Sessions whose client proved anew who it is, before that expired.",
		front->counters.renewed);
	metrics_one(out, "vcuda_agent_sessions_expired_total", "counter",
		"Sessions that were ended because their client did not.",
		front->counters.expired);
	metrics_one(out, "vcuda_agent_sessions_adopted_total", "counter",
		"Sessions that the front took over from one that died.",
		front->counters.adopted);
	metrics_one(out, "vcuda_agent_insecure", "gauge",
		"1: everybody is served, without a token.", front->config->insecure);
	metrics_one(out, "vcuda_agent_http_refused_total", "counter",
		"Requests to the control port without a token that is good.",
		front->counters.http_refused);
	print_sessions(out, front);
	print_tls(out);
	print_workers(out, front);
	print_traffic(out, &front->counters.totals);
	print_uploads(out, &front->uploads.counts);
	latencies_print(out, &front->counters.latencies, exemplars);
	metrics_memory(out, front);
	metrics_meters(out, front);
	tensors_metrics(out, front);
	print_process(out, front);
}

char *metrics_text(struct front *front, bool openmetrics, const struct viewer *viewer)
{
	static const char *const drivers[] = {[DRIVER_NVIDIA] = "nvidia",
		[DRIVER_SOFTWARE] = "software",
		[DRIVER_FILE] = "file"};
	const char *why;
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	journal_counters(front);
	metrics_head(out, "vcuda_agent_info", "gauge", "What this agent is.");
	fprintf(out,
		"vcuda_agent_info{version=\"%s\",protocol=\"%u\",driver=\"%s\",release=\"%s\"} "
		"1\n",
		AGENT_VERSION, SESSION_VERSION, drivers[front->config->driver],
		front->pool.driver_release);
	metrics_one(out, "vcuda_agent_ready", "gauge", "1: new sessions are served.",
		front_is_ready(front, &why));
	metrics_one(out, "vcuda_agent_draining", "gauge", "1: the agent is ending.",
		front->draining);
	metrics_one(out, "vcuda_agent_start_time_seconds", "gauge", "When the front started.",
		(uint64_t)front->started);
	if (!viewer->tenant || !viewer->tenant->network)
		print_sums(out, front, openmetrics && viewer->all);
	metrics_pods(out, front, viewer);
	print_tenants(out, front, viewer);
	timeshare_metrics(out, front, viewer);
	priority_metrics(out, front, viewer);
	tenant_quotas_metrics(out, front, viewer);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return openmetrics ? latency_openmetrics(text) : text;
}
