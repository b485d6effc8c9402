/* SPDX-License-Identifier: Apache-2.0
 *
 * What a key takes: one setter a kind of value, which names the key where the value is not of
 * it.
 */
#include "sidecar/options/options_values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "sidecar/agents/agents.h"
#include "transport/transport.h"

int options_set_agent(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (agents_check(item->text, error) < 0)
		return error_wrap(error, -EINVAL, "%s", item->key);
	return config_text(item, options->agent, sizeof(options->agent), error);
}

/* What the kubelet projects for a ServiceAccount, whatever its length. */
static bool is_signed(const char *text)
{
	const char *dot = strchr(text, '.');

	return !strncmp(text, "eyJ", 3) && dot && strchr(dot + 1, '.');
}

/* One that is signed stays in its file, which is read again. */
static int set_token_file(
	struct options *options, const struct config_item *item, struct error *error)
{
	cleanup_close int fd = open(item->text, O_RDONLY | O_CLOEXEC);
	char text[SESSION_CREDENTIAL_MAX + 1];
	ssize_t n;

	if (fd < 0)
		return error_set(error, errno, "%s: %s", item->key, item->text);
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return error_set(error, errno, "%s: %s", item->key, item->text);
	while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n] = 0;
	options->credential[0] = options->token[0] = 0;
	if (is_signed(text))
		return config_text(
			item, options->credential, sizeof(options->credential), error);
	if (!n || (size_t)n >= sizeof(options->token) || memchr(text, 0, (size_t)n))
		return error_set(error, 0, "%s: %s must hold 1 to %zu characters", item->key,
			item->text, sizeof(options->token) - 1);
	memcpy(options->token, text, (size_t)n + 1);
	explicit_bzero(text, sizeof(text));
	return 0;
}

static int set_mode(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (!strcmp(item->text, "host"))
		options->mode = CHANNEL_HOST;
	else if (!strcmp(item->text, "pod"))
		options->mode = CHANNEL_POD;
	else
		return error_set(
			error, 0, "%s: '%.40s' is neither host nor pod", item->key, item->text);
	return 0;
}

/* native and light: over the network. */
static int set_protocol(
	struct options *options, const struct config_item *item, struct error *error)
{
	bool known = !strcmp(item->text, "auto") || !strcmp(item->text, "native") ||
		     !strcmp(item->text, "light") || !strcmp(item->text, "local");

	if (!known)
		return error_set(error, 0,
			"%s: '%.40s' is none of auto, native, light and local", item->key,
			item->text);
	options->light = !strcmp(item->text, "light");
	options->local_never = options->light || !strcmp(item->text, "native");
	options->local_only = !strcmp(item->text, "local");
	return 0;
}

static int set_local_socket(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (item->text[0] && item->text[0] != '/')
		return error_set(
			error, 0, "%s: '%.60s' is no absolute path", item->key, item->text);
	return config_text(item, options->local_socket, sizeof(options->local_socket), error);
}

static int set_socket_mode(
	struct options *options, const struct config_item *item, struct error *error)
{
	char *end;
	unsigned long n = strtoul(item->text, &end, 8);

	if (*end || item->text[0] < '0' || item->text[0] > '7' || n > 0777)
		return error_set(error, 0, "%s: '%.40s' is not octal permissions such as 0660",
			item->key, item->text);
	options->socket_mode = n;
	return 0;
}

static int set_socket(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (!item->text[0])
		return error_set(error, 0, "%s: empty", item->key);
	return config_text(item, options->socket, sizeof(options->socket), error);
}

static int set_label(
	struct options *options, const struct config_item *item, struct error *error)
{
	for (const char *c = item->text; *c; c++)
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyz-", *c))
			return error_set(
				error, 0, "%s: only a-z, 0-9 and - may be in it", item->key);
	snprintf(options->label, sizeof(options->label), "%.12s", item->text);
	return 0;
}

static int set_spin(
	struct options *options, const struct config_item *item, struct error *error)
{
	uint64_t n;
	int ret = 0;

	if (!strcmp(item->text, "auto"))
		options->spin = UINT64_MAX;
	else if (!strcmp(item->text, "never"))
		options->spin = 0;
	else if (!(ret = config_number(item, 0, 10000, &n, NULL)))
		options->spin = n * 1000;
	if (ret < 0)
		return error_set(error, 0,
			"%s: '%.40s' is not auto, never or 0 to 10000 microseconds", item->key,
			item->text);
	return 0;
}

/* Bytes of the ring, and of arena and bounce buffer. */
#define RING_LEAST (256u << 10)
#define RING_MOST (16u << 20)
#define BULK_LEAST (1u << 20)
#define BULK_MOST (1u << 30)

static bool is_power(uint64_t n, uint64_t least, uint64_t most)
{
	return n >= least && n <= most && !(n & (n - 1));
}

bool options_channel_sizes(uint64_t ring, uint64_t arena, uint64_t bounce)
{
	return is_power(ring, RING_LEAST, RING_MOST) &&
	       is_power(arena, BULK_LEAST, BULK_MOST) &&
	       is_power(bounce, BULK_LEAST, BULK_MOST);
}

static int set_power(const struct config_item *item, uint64_t least, uint64_t most,
	uint64_t *value, struct error *error)
{
	uint64_t n;
	int ret = config_size(item, least, most, &n, error);

	if (ret < 0)
		return ret;
	if (n & (n - 1))
		return error_set(
			error, 0, "%s: '%.40s' is not a power of two", item->key, item->text);
	*value = n;
	return 0;
}

static int set_bulk(const struct config_item *item, uint64_t *value, struct options *options,
	struct error *error)
{
	options->sized = true;
	return set_power(item, BULK_LEAST, BULK_MOST, value, error);
}

static int set_log(const struct config_item *item, struct error *error)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(names[i], item->text)) {
			log_level = (enum log_level)i;
			return 0;
		}
	return error_set(error, 0, "%s: '%.40s' is not error, warn, info or debug", item->key,
		item->text);
}

static int set_log_format(const struct config_item *item, struct error *error)
{
	if (!log_set_format(item->text))
		return 0;
	return error_set(error, 0, "%s: '%.40s' is not text or json", item->key, item->text);
}

/* The highest class is the tenant's own, whichever that is. */
static int set_priority(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (!strcmp(item->text, "low"))
		options->priority = SESSION_FEATURE_LOW;
	else if (!strcmp(item->text, "normal"))
		options->priority = SESSION_FEATURE_NORMAL;
	else if (!strcmp(item->text, "high"))
		options->priority = 0;
	else
		return error_set(error, 0, "%s: '%.40s' is not low, normal or high", item->key,
			item->text);
	return 0;
}

static int set_spread(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (!spread_parse(item->text, &options->spread))
		return 0;
	return error_set(error, 0, "%s: '%.40s' is not never, if-needed or always", item->key,
		item->text);
}

int options_agree(const struct options *options, struct error *error)
{
	if (options->spread == SPREAD_NEVER)
		return 0;
	if (!options->gpu_count)
		return error_set(error, 0,
			"gpu_spread: how many GPUs are to be spread? gpu_count says it");
	if (agents_parts(options->agent) > 1)
		return error_set(error, 0,
			"gpu_spread: agent: '%.120s' says with + which agents there are "
			"already; with commas they are chosen among",
			options->agent);
	return 0;
}

static int set_congestion(
	struct options *options, const struct config_item *item, struct error *error)
{
	int ret = config_text(item, options->congestion, sizeof(options->congestion), error);

	return ret < 0 ? ret : transport_congestion(options->congestion, error);
}

static int set_compress(
	struct options *options, const struct config_item *item, struct error *error)
{
	if (!controller_parse(item->text, &options->compress))
		return 0;
	return error_set(
		error, 0, "%s: '%.40s' is not auto, off or always", item->key, item->text);
}

static int set_upload_cache(
	struct options *options, const struct config_item *item, struct error *error)
{
	bool one = !strcmp(item->text, "1");
	int value = one;
	int ret = one || !strcmp(item->text, "0") ? 0 : config_bool(item, &value, error);

	if (!ret)
		options->upload_cache = value;
	return ret;
}

static int set_insecure(
	struct options *options, const struct config_item *item, struct error *error)
{
	int value;
	int ret = config_bool(item, &value, error);

	if (!ret)
		options->insecure = value;
	return ret;
}

static int set_tls(struct options *options, const struct config_item *item, struct error *error)
{
	struct transport_tls *tls = &options->tls;
	const char *key = item->key + 4;

	if (!strcmp(key, "ca"))
		return config_text(item, tls->ca, sizeof(tls->ca), error);
	if (!strcmp(key, "cert"))
		return config_text(item, tls->cert, sizeof(tls->cert), error);
	if (!strcmp(key, "key"))
		return config_text(item, tls->key, sizeof(tls->key), error);
	if (!strcmp(key, "name"))
		return config_text(item, tls->name, sizeof(tls->name), error);
	return error_set(
		error, 0, "unknown key '%.60s'; known: tls: ca cert key name", item->key);
}

/* One more setting: a line here and one in options_usage. */
int options_set(void *argument, const struct config_item *item, struct error *error)
{
	struct options *o = argument;
	const char *key = item->key;

	if (item->index >= 0)
		return error_set(error, 0, "%s: a single value is expected, not a list", key);
	if (!strcmp(key, "agent"))
		return options_set_agent(o, item, error);
	if (!strcmp(key, "token"))
		return config_text(item, o->token, sizeof(o->token), error);
	if (!strcmp(key, "token_file") || !strcmp(key, "tokenFile"))
		return set_token_file(o, item, error);
	if (!strncmp(key, "tls.", 4) || !strncmp(key, "tls_", 4))
		return set_tls(o, item, error);
	if (!strcmp(key, "socket"))
		return set_socket(o, item, error);
	if (!strcmp(key, "socket_mode"))
		return set_socket_mode(o, item, error);
	if (!strcmp(key, "protocol"))
		return set_protocol(o, item, error);
	if (!strcmp(key, "local_socket"))
		return set_local_socket(o, item, error);
	if (!strcmp(key, "ipc"))
		return set_mode(o, item, error);
	if (!strcmp(key, "pod"))
		return config_text(item, o->pod, sizeof(o->pod), error);
	if (!strcmp(key, "pod_uid"))
		return config_text(item, o->pod_uid, sizeof(o->pod_uid), error);
	if (!strcmp(key, "label"))
		return set_label(o, item, error);
	if (!strcmp(key, "vram_limit"))
		return config_size(item, 0, 1ull << 50, &o->vram_limit, error);
	if (!strcmp(key, "gpu_count"))
		return config_number(item, 0, 16, &o->gpu_count, error);
	if (!strcmp(key, "gpu_spread"))
		return set_spread(o, item, error);
	if (!strcmp(key, "priority"))
		return set_priority(o, item, error);
	if (!strcmp(key, "compress"))
		return set_compress(o, item, error);
	if (!strcmp(key, "upload_cache"))
		return set_upload_cache(o, item, error);
	if (!strcmp(key, "congestion"))
		return set_congestion(o, item, error);
	if (!strcmp(key, "shm_size"))
		return config_size(item, 0, 1ull << 50, &o->shm_size, error);
	if (!strcmp(key, "ring"))
		return set_power(item, RING_LEAST, RING_MOST, &o->ring, error);
	if (!strcmp(key, "arena"))
		return set_bulk(item, &o->arena, o, error);
	if (!strcmp(key, "landing"))
		return set_bulk(item, &o->bounce, o, error);
	if (!strcmp(key, "spin"))
		return set_spin(o, item, error);
	if (!strcmp(key, "max_processes"))
		return config_number(item, 1, 16384, &o->max_processes, error);
	if (!strcmp(key, "attach_timeout"))
		return config_number(item, 1, 600, &o->attach_timeout, error);
	if (!strcmp(key, "ping_timeout"))
		return config_number(item, 1, 3600, &o->ping_timeout, error);
	if (!strcmp(key, "busy_timeout"))
		return config_number(item, 1, 86400, &o->busy_timeout, error);
	if (!strcmp(key, "grace"))
		return config_number(item, 0, 3600, &o->grace, error);
	if (!strcmp(key, "idle_exit"))
		return config_number(item, 0, 86400, &o->idle_exit, error);
	if (!strcmp(key, "insecure"))
		return set_insecure(o, item, error);
	if (!strcmp(key, "dumpable"))
		return config_number(item, 0, 1, &o->dumpable, error);
	if (!strcmp(key, "log"))
		return set_log(item, error);
	if (!strcmp(key, "log_format"))
		return set_log_format(item, error);
	return error_set(error, 0,
		"unknown key '%.60s'; known: agent token token_file insecure tls socket "
		"socket_mode protocol local_socket ipc "
		"pod "
		"pod_uid label "
		"vram_limit gpu_count gpu_spread priority compress upload_cache congestion "
		"shm_size "
		"ring "
		"arena landing "
		"spin "
		"max_processes "
		"attach_timeout ping_timeout "
		"busy_timeout "
		"grace idle_exit dumpable log log_format",
		key);
}
