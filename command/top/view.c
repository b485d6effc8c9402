/* SPDX-License-Identifier: Apache-2.0 */
#include "command/top/view.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

#define MIB 1048576.0

int view_open(struct view *view, const char *agent, const char *token_file, struct error *error)
{
	struct transport_description at;
	int ret = transport_describe(agent, SESSION_PORT_CONTROL, &at, error);

	if (ret < 0)
		return error_wrap(error, ret, "top: --agent");
	*view = (struct view){.port = at.port};
	ret = http_token(view->token, token_file, error);
	if (ret < 0)
		return error_wrap(error, ret, "top");
	snprintf(view->host, sizeof(view->host), "%s", at.host);
	view->sessions = calloc(VIEW_SESSIONS, sizeof(*view->sessions));
	view->before = calloc(VIEW_SESSIONS, sizeof(*view->before));
	return view->sessions && view->before ? 0 : error_set(error, ENOMEM, "top");
}

void view_close(struct view *view)
{
	free(view->sessions);
	free(view->before);
}

/* --- the agent's pages -------------------------------------------------------------------- */

static double number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

/* An agent is somebody else's: only what is printable goes to the terminal. */
static void copy_text(char *to, size_t n, const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
	size_t i;

	for (i = 0; text && text[i] && i + 1 < n; i++)
		to[i] = text[i] < ' ' || text[i] > 126 ? '?' : text[i];
	to[i] = 0;
}

static int get_json(
	const struct view *view, const char *path, cJSON **root, struct error *error)
{
	cleanup_free char *text = NULL;
	int ret = http_get(view->host, view->port, path, view->token, &text, error);

	if (ret < 0)
		return error_wrap(error, ret, "top");
	*root = cJSON_Parse(text);
	return *root ? 0
		     : error_set(error, EPROTO, "top: %s:%u%s is no JSON", view->host,
			       view->port, path);
}

static void take_gpus(struct view *view, const cJSON *root)
{
	const cJSON *item;

	view->gpu_count = 0;
	copy_text(view->driver, sizeof(view->driver), root, "driver");
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "gpus"))
	{
		struct view_gpu *gpu = &view->gpus[view->gpu_count];

		if (view->gpu_count == VIEW_GPUS)
			break;
		view->gpu_count++;
		copy_text(gpu->name, sizeof(gpu->name), item, "name");
		gpu->total = number(item, "memory_total_bytes");
		gpu->used = number(item, "memory_used_bytes");
		gpu->leased = number(item, "memory_leased_bytes");
		gpu->busy = cJSON_HasObjectItem(item, "utilization_percent")
				    ? (int)number(item, "utilization_percent")
				    : -1;
	}
}

static void take_rates(struct view *view, struct view_session *s, double passed)
{
	for (int i = 0; i < view->before_count && passed > 0; i++) {
		const struct view_session *old = &view->before[i];

		if (strcmp(old->id, s->id))
			continue;
		s->rate_in = (s->received - old->received) / passed;
		s->rate_out = (s->sent - old->sent) / passed;
		if (s->share >= 0)
			s->share = 100 * (s->gpu_seconds - old->gpu_seconds) / passed;
		return;
	}
}

static void take_session(struct view_session *s, const cJSON *item)
{
	const cJSON *memory;

	*s = (struct view_session){0};
	copy_text(s->id, sizeof(s->id), item, "id");
	copy_text(s->state, sizeof(s->state), item, "state");
	copy_text(s->tenant, sizeof(s->tenant), item, "tenant");
	copy_text(s->pod, sizeof(s->pod), item, "pod");
	copy_text(s->program, sizeof(s->program), item, "program");
	copy_text(s->error, sizeof(s->error), item, "last_error");
	s->pid = number(item, "pid");
	s->started = number(item, "started");
	s->launches = number(item, "launches");
	s->received = number(item, "bytes_received");
	s->sent = number(item, "bytes_sent");
	s->gpu_seconds = number(item, "gpu_seconds");
	s->share = cJSON_HasObjectItem(item, "gpu_seconds") ? 0 : -1;
	cJSON_ArrayForEach(memory, cJSON_GetObjectItemCaseSensitive(item, "memory")) s->used +=
		number(memory, "used_bytes");
}

static void take_sessions(struct view *view, const cJSON *root)
{
	struct view_session *before = view->sessions;
	struct timespec now;
	const cJSON *item;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &now);
	seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	view->sessions = view->before;
	view->before = before;
	view->before_count = view->count;
	view->count = 0;
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "sessions"))
	{
		if (view->count == VIEW_SESSIONS)
			break;
		take_session(&view->sessions[view->count], item);
		take_rates(view, &view->sessions[view->count],
			view->taken > 0 ? seconds - view->taken : 0);
		view->count++;
	}
	view->taken = seconds;
}

int view_take(struct view *view, struct error *error)
{
	cJSON *agent = NULL, *gpus = NULL, *sessions = NULL;
	int ret = get_json(view, "/v1/agent", &agent, error);

	if (!ret)
		ret = get_json(view, "/v1/gpus", &gpus, error);
	if (!ret)
		ret = get_json(view, "/v1/sessions", &sessions, error);
	if (!ret) {
		view->ready = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(agent, "ready"));
		take_gpus(view, gpus);
		take_sessions(view, sessions);
		view_sort(view);
	}
	cJSON_Delete(agent);
	cJSON_Delete(gpus);
	cJSON_Delete(sessions);
	return ret;
}

/* --- order -------------------------------------------------------------------------------- */

static double key_of(const struct view_session *s, enum view_order order)
{
	switch (order) {
	case ORDER_SHARE: return s->share;
	case ORDER_MEMORY: return s->used;
	case ORDER_RECEIVED: return s->rate_in;
	case ORDER_SENT: return s->rate_out;
	case ORDER_LAUNCHES: return s->launches;
	default: return -s->started;
	}
}

/* The largest first; what is equal as it came. */
static int compare(const void *a, const void *b, void *argument)
{
	const struct view_session *x = a, *y = b;
	const struct view *view = argument;
	double left = key_of(x, view->order), right = key_of(y, view->order);
	int order = view->order == ORDER_POD ? strcmp(x->pod, y->pod)
					     : (left < right) - (left > right);

	if (view->reverse)
		order = -order;
	return order ? order : strcmp(x->id, y->id);
}

void view_sort(struct view *view)
{
	qsort_r(view->sessions, (size_t)view->count, sizeof(*view->sessions), compare, view);
}

const char *view_order_name(enum view_order order)
{
	static const char *const names[ORDERS] = {
		"GPU share", "memory", "received/s", "sent/s", "launches", "time", "pod"};

	return names[order];
}

/* --- lines -------------------------------------------------------------------------------- */

/* Four or five characters: 999B, 9.8K, 312M. */
static const char *short_bytes(char out[16], double n)
{
	static const char units[] = "BKMGTP";
	size_t unit = 0;

	while (n >= 999.5 && unit < sizeof(units) - 2) {
		n /= 1024;
		unit++;
	}
	snprintf(out, 16, unit && n < 9.95 ? "%.1f%c" : "%.0f%c", n < 0 ? 0 : n, units[unit]);
	return out;
}

static const char *short_time(char out[32], double seconds)
{
	long s = seconds > 0 ? (long)seconds : 0;

	if (s < 3600)
		snprintf(out, 32, "%ld:%02ld", s / 60, s % 60);
	else if (s < 86400)
		snprintf(out, 32, "%ldh%02ld", s / 3600, s / 60 % 60);
	else
		snprintf(out, 32, "%ldd%02ldh", s / 86400, s / 3600 % 24);
	return out;
}

void view_line(const struct view_session *s, char *line, size_t n)
{
	char memory[16], in[16], out[16], age[32], share[16] = "-";

	if (!s) {
		snprintf(line, n, "%-8s %-8s %7s %5s %6s %6s %6s %11s %-24s %-16s %s",
			"SESSION", "STATE", "TIME", "GPU%", "MEM", "IN/S", "OUT/S", "LAUNCHES",
			"POD", "PROGRAM", "LAST ERROR");
		return;
	}
	if (s->share >= 0)
		snprintf(share, sizeof(share), "%.1f", s->share);
	snprintf(line, n, "%-8.8s %-8.8s %7s %5s %6s %6s %6s %11.0f %-24.24s %-16.16s %s",
		s->id, s->state, short_time(age, (double)time(NULL) - s->started), share,
		short_bytes(memory, s->used), short_bytes(in, s->rate_in),
		short_bytes(out, s->rate_out), s->launches, s->pod, s->program, s->error);
}

void view_gpu_line(const struct view_gpu *gpu, int index, char *line, size_t n)
{
	char bar[21] = "                    ", busy[32] = "";
	double part = gpu->total > 0 ? gpu->used / gpu->total : 0;
	double leased = gpu->total > 0 ? gpu->leased / gpu->total : 0;

	for (int i = 0; i < 20; i++)
		bar[i] = (i + 0.5) / 20 < part ? '#' : (i + 0.5) / 20 < leased ? '-' : ' ';
	if (gpu->busy >= 0)
		snprintf(busy, sizeof(busy), "  load %d%%", gpu->busy);
	snprintf(line, n, "GPU %-2d [%s] %8.0f / %.0f MiB%s  %s", index, bar, gpu->used / MIB,
		gpu->total / MIB, busy, gpu->name);
}

void view_title(const struct view *view, char *line, size_t n)
{
	snprintf(line, n, "vcuda top  %s:%u  %s  %d %s  by %s%s", view->host, view->port,
		view->ready ? "ready" : "NOT READY", view->count,
		view->count == 1 ? "session" : "sessions", view_order_name(view->order),
		view->reverse ? ", reversed" : "");
}
