/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's state as JSON, for programs and for the page.  docs/AGENT.md has the fields.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wait.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/http/state.h"
#include "gpu-agent/front/ledger/tenant_quotas.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/http/viewer.h"
#include "gpu-agent/sandbox/sandbox.h"

void state_uuid_text(char *out, size_t n, const uint8_t uuid[16])
{
	size_t at = (size_t)snprintf(out, n, "GPU-");

	for (int i = 0; i < 16 && at < n; i++)
		at += (size_t)snprintf(out + at, n - at, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

void state_uuid(FILE *out, const uint8_t uuid[16])
{
	char text[48];

	state_uuid_text(text, sizeof(text), uuid);
	fputs(text, out);
}

/* cJSON's text belongs to cJSON's allocator, which is malloc's. */
static char *print_json(cJSON *root)
{
	char *text = cJSON_Print(root);

	cJSON_Delete(root);
	return text;
}

static void add_bytes(cJSON *object, const char *name, uint64_t bytes)
{
	/* Doubles hold every whole number up to 2^53: devices are smaller. */
	cJSON_AddNumberToObject(object, name, (double)bytes);
}

uint64_t state_used(const struct front *front, uint32_t device, const struct tenant *tenant)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state &&
			(!tenant || front->sessions[i].tenant == tenant))
			used += front->sessions[i].stats.used[device];
	return used;
}

static uint64_t leased_by(
	const struct front *front, uint32_t device, const struct tenant *tenant)
{
	uint64_t leased = 0;

	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state && front->sessions[i].tenant == tenant)
			leased += front->sessions[i].account.lease[device];
	return leased;
}

/* What NVML said; what is not known, or is old, is left out. */
static void add_meters(cJSON *object, const struct front *front, uint32_t gpu)
{
	const struct control_gpu *meter = &front->meters[gpu];

	if (!front->metered_at[gpu] || wait_now() - front->metered_at[gpu] > METER_STALE_NS)
		return;
	if (meter->busy >= 0)
		cJSON_AddNumberToObject(object, "utilization_percent", meter->busy);
	if (meter->memory_busy >= 0)
		cJSON_AddNumberToObject(
			object, "memory_utilization_percent", meter->memory_busy);
	if (meter->memory_used >= 0)
		add_bytes(object, "memory_in_use_bytes", (uint64_t)meter->memory_used);
	if (meter->milliwatts >= 0)
		cJSON_AddNumberToObject(object, "power_watts", meter->milliwatts / 1000.0);
	if (meter->celsius >= 0)
		cJSON_AddNumberToObject(object, "temperature_celsius", meter->celsius);
}

/* Whose memory it is that others have, and what they make the device do, is not said. */
static void add_memory_of(
	cJSON *gpu, const struct front *front, uint32_t device, const struct tenant *tenant)
{
	uint64_t leased = leased_by(front, device, tenant);

	add_bytes(gpu, "memory_leased_bytes", leased);
	add_bytes(gpu, "memory_used_bytes", state_used(front, device, tenant));
	add_bytes(gpu, "memory_free_bytes", quota_free(front, tenant, device));
}

static void add_memory(cJSON *gpu, const struct front *front, uint32_t device)
{
	const struct ledger_device *d = &front->ledger.devices[device];

	add_bytes(gpu, "memory_reserved_bytes", d->reserve);
	add_bytes(gpu, "memory_foreign_bytes", d->foreign);
	add_bytes(gpu, "memory_context_bytes", d->contexts);
	add_bytes(gpu, "memory_leased_bytes", d->leased);
	add_bytes(gpu, "memory_used_bytes", state_used(front, device, NULL));
	add_bytes(gpu, "memory_free_bytes", ledger_free(&front->ledger, device));
	add_meters(gpu, front, device);
}

char *state_gpus(const struct front *front, const struct viewer *viewer)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(root, "gpus");

	cJSON_AddStringToObject(root, "driver", front->pool.driver);
	cJSON_AddNumberToObject(root, "driver_version", front->pool.driver_version);
	cJSON_AddStringToObject(root, "driver_release", front->pool.driver_release);
	for (uint32_t i = 0; i < front->ledger.device_count; i++) {
		const struct ledger_device *d = &front->ledger.devices[i];
		cJSON *gpu;
		char uuid[48];

		if (!viewer_sees_gpu(front, viewer, i))
			continue;
		gpu = cJSON_CreateObject();
		state_uuid_text(uuid, sizeof(uuid), d->uuid);
		cJSON_AddNumberToObject(gpu, "index", i);
		cJSON_AddStringToObject(gpu, "name", d->name);
		cJSON_AddStringToObject(gpu, "uuid", uuid);
		cJSON_AddStringToObject(gpu, "fallen", front->fallen[i].why);
		add_bytes(gpu, "memory_total_bytes", d->total);
		if (viewer->all)
			add_memory(gpu, front, i);
		else
			add_memory_of(gpu, front, i, viewer->tenant);
		cJSON_AddItemToArray(list, gpu);
	}
	return print_json(root);
}

/* Negative where that is past. */
static int64_t seconds_until(uint64_t at)
{
	return ((int64_t)at - (int64_t)wait_now()) / (int64_t)(1000 * FRONT_MS);
}

static cJSON *session_json(
	const struct front *front, const struct session *s, const struct viewer *viewer)
{
	cJSON *object = cJSON_CreateObject();
	cJSON *memory;

	if (viewer->all) /* it counts everybody's */
		cJSON_AddNumberToObject(object, "session", (double)s->number);
	cJSON_AddStringToObject(object, "id", s->subject.session);
	cJSON_AddStringToObject(object, "state", session_state_name(s->state));
	cJSON_AddStringToObject(object, "tenant", s->tenant->name);
	cJSON_AddStringToObject(object, "pod", s->pod);
	cJSON_AddStringToObject(object, "program", s->program);
	cJSON_AddNumberToObject(object, "pid", s->pid);
	cJSON_AddNumberToObject(object, "uid", s->uid);
	cJSON_AddStringToObject(object, "peer", s->peer.text);
	cJSON_AddNumberToObject(object, "started", (double)s->started);
	cJSON_AddNumberToObject(object, "expires",
		s->proven_until ? (double)(time(NULL) + seconds_until(s->proven_until)) : 0);
	cJSON_AddNumberToObject(object, "worker_pid", s->worker ? s->worker->pid : 0);
	cJSON_AddBoolToObject(object, "parked", s->resume.parked_at != 0);
	cJSON_AddNumberToObject(object, "resumed", s->resume.times);
	memory = cJSON_AddArrayToObject(object, "memory");
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		cJSON *one;

		if (!viewer_sees_gpu(front, viewer, d))
			continue;
		one = cJSON_CreateObject();
		cJSON_AddNumberToObject(one, "gpu", d);
		add_bytes(one, "leased_bytes", s->account.lease[d]);
		add_bytes(one, "used_bytes", s->stats.used[d]);
		cJSON_AddItemToArray(memory, one);
	}
	add_bytes(object, "memory_limit_bytes", quota_limit(s));
	tenant_quotas_json(object, s);
	add_bytes(object, "frames_received", s->stats.frames_received);
	add_bytes(object, "frames_sent", s->stats.frames_sent);
	add_bytes(object, "bytes_received", s->stats.bytes_received);
	add_bytes(object, "bytes_sent", s->stats.bytes_sent);
	cJSON_AddNumberToObject(object, "peers", s->peers);
	add_bytes(object, "peer_received_bytes", s->stats.peer_received);
	add_bytes(object, "peer_sent_bytes", s->stats.peer_sent);
	add_bytes(object, "saved_received_bytes", s->stats.saved_received);
	add_bytes(object, "saved_sent_bytes", s->stats.saved_sent);
	cJSON_AddBoolToObject(object, "coded", s->features & SESSION_FEATURE_ZSTD);
	add_bytes(object, "launches", s->stats.launches);
	add_bytes(object, "copies_in_bytes", s->stats.copies_in_bytes);
	add_bytes(object, "copies_out_bytes", s->stats.copies_out_bytes);
	add_bytes(object, "errors", s->stats.errors);
	cJSON_AddNumberToObject(object, "gpu_seconds", (double)s->timeshare.own / 1e9);
	if (front->priorities)
		cJSON_AddStringToObject(
			object, "priority", priority_name(s->timeshare.priority));
	cJSON_AddStringToObject(object, "last_error", s->last_error);
	cJSON_AddNumberToObject(object, "refused_calls", (double)s->refused_calls);
	cJSON_AddStringToObject(object, "transport", s->transport->name);
	cJSON_AddNumberToObject(object, "lanes", s->stripes);
	return object;
}

char *state_sessions(const struct front *front, const struct viewer *viewer)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(root, "sessions");

	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (viewer_sees_session(viewer, &front->sessions[i]))
			cJSON_AddItemToArray(
				list, session_json(front, &front->sessions[i], viewer));
	return print_json(root);
}

/* No failure either: what is missing is the kernel's, or was switched off. */
static void print_sandbox(FILE *out, const struct front *front)
{
	const struct tensor_table *table = tensors_table(front);
	const char *off = front->config->sandbox_off ? "switched off, " : "";
	const uint32_t parts = front->pool.sandbox;
	char text[SANDBOX_TEXT];

	if (front->pool.driver[0]) /* else no worker said it yet */
		fprintf(out, "[%c] sandbox: %s%s\n", sandbox_whole(parts) ? '+' : ' ', off,
			sandbox_text(text, parts));
	if (table)
		fprintf(out, "[%c] sandbox of the store: %s%s\n",
			sandbox_whole(table->sandbox) ? '+' : ' ', off,
			sandbox_text(text, table->sandbox));
}

/* Who is served, and what is there for programs; what is missing is not missed by all. */
static void print_details(FILE *out, const struct front *front)
{
	if (front->config->insecure)
		fprintf(out, "[!] token: none is asked for (insecure), everybody is served\n");
	else
		fprintf(out, "[+] token\n");
	print_sandbox(out, front);
	for (size_t i = 0; i < front->library_count; i++) {
		const struct control *c = &front->libraries[i];
		const struct library_family *f = library_family((enum agent_library)c->number);
		const struct control *next = i + 1 < front->library_count ? c + 1 : NULL;

		fprintf(out, "[%c] %s.so.%d: ", c->status ? ' ' : '+', f->stem, c->pid);
		if (c->status && next && next->number == c->number && !next->status)
			fprintf(out, "missing, %s.so.%d serves\n", f->stem, next->pid);
		else
			fprintf(out, "%s%s\n", c->status ? "missing, " : "", c->text);
	}
	if (!front->library_count)
		fprintf(out, "[ ] libraries: not looked at yet\n");
}

/* One line a check, as kube-apiserver does: all with verbose, else the failed ones or "ok". */
char *state_ready(const struct front *front, bool verbose, bool *ready)
{
	const struct pool *pool = &front->pool;
	const bool failing = pool->failing && !pool->count[WORKER_READY];
	const struct {
		const char *name, *why;
		bool good;
	} checks[] = {
		{"gpu", failing ? pool->text : "the first worker is starting",
			front->ledger.device_count && !failing},
		{"draining", "the agent is ending", !front->draining},
		{"ledger", "accounts do not add up; the agent's log says where",
			!front->ledger.bugs},
	};
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	*ready = true;
	if (!out)
		return NULL;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		*ready = *ready && checks[i].good;
		if (!checks[i].good)
			fprintf(out, "[-] %s: %s\n", checks[i].name, checks[i].why);
		else if (verbose)
			fprintf(out, "[+] %s\n", checks[i].name);
	}
	for (uint32_t d = 0; d < front->ledger.device_count; d++)
		if (front->fallen[d].why[0])
			fprintf(out, "[!] %s\n", front->fallen[d].why);
	if (verbose)
		print_details(out, front);
	if (*ready)
		fprintf(out, "ok\n");
	fclose(out);
	return text;
}
