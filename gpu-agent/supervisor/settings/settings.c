/* SPDX-License-Identifier: Apache-2.0
 *
 * One table of settings serves the YAML file and the flags, so that a value is checked in one
 * place and an error says what the key takes.
 */
#include "gpu-agent/supervisor/settings/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/config.h"
#include "common/log.h"
#include "gpu-agent/supervisor/settings/limit_settings.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/settings/parse_value.h"
#include "gpu-agent/supervisor/settings/settings_values.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "gpu-agent/supervisor/settings/users.h"
#include "gpu-agent/tensor_table.h"

#define CONFIG_LIST_MAX 2048 /* a sequence written out with commas */

enum setting_type {
	TEXT,
	FLAG,
	NUMBER16,
	NUMBER32,
	BYTES,
	TIME,
	PATHS,
	LIBRARY,
	ENVIRONMENT,
	SPECIAL
};

struct setting {
	const char *key;
	enum setting_type type;
	size_t offset;	   /* in struct agent_config */
	uint64_t min, max; /* of a number; max = room for a text */
	int (*set)(struct agent_config *config, const char *value);
	const char *takes; /* what the value must be, for people */
};

void settings_defaults(struct agent_config *config)
{
	memset(config, 0, sizeof(*config));
	config->magic = AGENT_CONFIG_MAGIC;
	config->size = sizeof(*config);
	config->ports[LISTEN_SEND] = SESSION_PORT_SEND;
	config->ports[LISTEN_RECV] = SESSION_PORT_RECV;
	config->ports[LISTEN_CONTROL] = SESSION_PORT_CONTROL;
	config->driver = DRIVER_NVIDIA;
	config->max_sessions = 1024;
	config->max_sessions_per_pod = 256;
	config->memory_reserve =
		UINT64_MAX; /* not set: settings_complete decides by the driver */
	config->lease_initial = 256u << 20;
	config->start_timeout_ms = 30000;
	config->worker_silence_ms = 30000;
	config->drain_ms = 30000;
	config->store.tensors_per_namespace = TENSORS_MAX / 2;
	config->grace_ms = 300000;
	config->host_memory = 8ull << 30;
	config->cache_bytes = 8ull << 30;
	config->expiry_grace_ms = 60000;
	config->nccl.wait_ms = 1800000;
	config->log_level = LOG_INFO;
	strcpy(config->service_account.issuer, "https://kubernetes.default.svc.cluster.local");
	strcpy(config->service_account.audience, "vcuda-agent");
}

/* --- the table ---------------------------------------------------------------------------- */

#define AT(field) offsetof(struct agent_config, field)
#define PATH(field) TEXT, AT(field), 0, AGENT_PATH, NULL, "a path"
#define PORT(which) NUMBER16, AT(ports[which]), 0, 65535, NULL, "a port, 0-65535 (0 = any)"

static const struct setting settings[] = {
	{"listen", TEXT, AT(address), 0, 256, NULL,
		"addresses to listen on, with commas between (\"\" = every one)"},
	{"ports", SPECIAL, 0, 0, 0, settings_ports, "SEND,RECV,CONTROL, three ports"},
	{"ports.send", PORT(LISTEN_SEND)},
	{"ports.recv", PORT(LISTEN_RECV)},
	{"ports.control", PORT(LISTEN_CONTROL)},
	{"http.address", SPECIAL, 0, 0, 0, settings_http_address, "one address to listen on"},
	{"http.token_file", SPECIAL, 0, 0, 0, NULL, "a path"},
	{"http.tenant_metrics", FLAG, AT(http_tenant_metrics), 0, 0, NULL, "true or false"},
	{"driver", SPECIAL, 0, 0, 0, settings_driver, "nvidia, software or an absolute path"},
	{"libraries.path", PATHS, AT(library_path), 0, AGENT_PATH, NULL,
		"a list of absolute folders"},
#define LIBRARY_ROW(id, family, key, stem, ...)                                                \
	{"libraries." key, LIBRARY, AT(libraries[LIBRARY_##id]), 0, AGENT_PATH, NULL,          \
		"a list of absolute folders, or files named " stem ".so.MAJOR"},
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW
	{"gpus", SPECIAL, 0, 0, 0, settings_gpus, "all or a list like [0, 1]"},
	{"token", SPECIAL, 0, 0, 0, settings_token, "a text of at most 255 bytes"},
	{"token_file", SPECIAL, 0, 0, 0, NULL, "a path"},
	{"tls.cert", TEXT, AT(tls.cert), 0, TRANSPORT_PATH, NULL, "a path"},
	{"tls.key", TEXT, AT(tls.key), 0, TRANSPORT_PATH, NULL, "a path"},
	{"tls.client_ca", TEXT, AT(tls.ca), 0, TRANSPORT_PATH, NULL, "a path"},
	{"tls.require_client_cert", FLAG, AT(tls.require), 0, 0, NULL, "true or false"},
	{"tls.peer_ca", TEXT, AT(peer_ca), 0, TRANSPORT_PATH, NULL, "a path"},
	{"tls.peer_name", TEXT, AT(peer_name), 0, 256, NULL, "a text of at most 255 bytes"},
	{"service_account.keys", PATH(service_account.keys)},
	{"service_account.issuer", TEXT, AT(service_account.issuer), 0, 256, NULL,
		"a text of at most 255 bytes"},
	{"service_account.audience", TEXT, AT(service_account.audience), 0, 256, NULL,
		"a text of at most 255 bytes"},
	{"service_account.tenant", SPECIAL, 0, 0, 0, settings_account_tenant,
		"namespace or service_account"},
	{"expiry_grace", TIME, AT(expiry_grace_ms), 0, 3600000, NULL,
		"a time up to 1h, like 60s"},
	{"peers", SPECIAL, 0, 0, 0, settings_peers,
		"a list of names, *.NAME, addresses and ADDRESS/BITS, each with :PORT or :* "
		"where it is not 9998"},
	{"networks_folder", PATH(networks_folder)},
	{"networks_end", FLAG, AT(networks_end), 0, 0, NULL, "true or false"},
	{"insecure", FLAG, AT(insecure), 0, 0, NULL, "true or false"},
	{"warm_workers", NUMBER32, AT(warm_workers), 1, 64, NULL, "a number from 1 to 64"},
	{"max_sessions", NUMBER32, AT(max_sessions), 1, AGENT_SESSIONS_MAX, NULL,
		"a number from 1 to 4096"},
	{"max_sessions_per_pod", NUMBER32, AT(max_sessions_per_pod), 1, 4096, NULL,
		"a number from 1 to 4096"},
	{"memory_limit", BYTES, AT(memory_limit), 0, AGENT_BYTES_MAX, NULL,
		"bytes like 8GiB (0 = the whole device)"},
	{"memory_reserve", BYTES, AT(memory_reserve), 0, AGENT_BYTES_MAX, NULL,
		"bytes like 256MiB"},
	{"lease_initial", BYTES, AT(lease_initial), 0, AGENT_BYTES_MAX, NULL,
		"bytes like 256MiB"},
	{"start_timeout", TIME, AT(start_timeout_ms), 100, 600000, NULL,
		"a time from 100ms to 10m, like 30s"},
	{"worker_silence", TIME, AT(worker_silence_ms), 1000, 3600000, NULL,
		"a time from 1s to 1h, like 30s"},
	{"grace", TIME, AT(grace_ms), 0, 3600000, NULL, "a time up to 1h, like 30s; 0: none"},
	{"drain_seconds", TIME, AT(drain_ms), 0, 86400000, NULL, "seconds, 0-86400"},
	{"host_memory", BYTES, AT(host_memory), 0, 1ull << 50, NULL,
		"bytes like 8GiB (0 = no limit)"},
	{"cache_dir", PATH(cache_dir)},
	{"cache.shared", SPECIAL, 0, 0, 0, settings_cache_shared, "tenant or all"},
	{"cache_bytes", BYTES, AT(cache_bytes), 0, AGENT_BYTES_MAX, NULL, "bytes like 8GiB"},
	{"upload_cache_bytes", BYTES, AT(upload_cache_bytes), 0, AGENT_BYTES_MAX, NULL,
		"bytes like 32GiB (0: none)"},
	{"worker_cpus", SPECIAL, 0, 0, 0, settings_cpus, "all or a list like [0, 2-5]"},
	{"worker_users", SPECIAL, 0, 0, 0, users_set, "two numbers like 200000-202000"},
	{"launch_timeout_ms", NUMBER32, AT(launch_timeout_ms), 0, 86400000, NULL,
		"milliseconds, 0-86400000 (0 = none)"},
	{"store.bytes", BYTES, AT(store.bytes), 0, AGENT_BYTES_MAX, NULL,
		"bytes like 64GiB (0: no tensors with names)"},
	{"store.bytes_per_namespace", BYTES, AT(store.bytes_per_namespace), 0, AGENT_BYTES_MAX,
		NULL, "bytes like 16GiB (0 = as many as store.bytes)"},
	{"store.tensors_per_namespace", NUMBER32, AT(store.tensors_per_namespace), 1,
		TENSORS_MAX, NULL, "a number, 1-4096"},
	{"store.pool_bytes", BYTES, AT(store.pool_bytes), 0, AGENT_BYTES_MAX, NULL,
		"bytes like 4GiB (0: none)"},
	{"store.registry", SPECIAL, 0, 0, 0, settings_registry,
		"a Redis: unix:///PATH or tcp://HOST:PORT"},
	{"store.registry_user", TEXT, AT(store.registry_user), 0, 128, NULL,
		"a user of Redis' ACL"},
	{"store.registry_password_file", TEXT, AT(store.registry_password_file), 0, AGENT_PATH,
		NULL, "a path"},
	{"store.socket", SPECIAL, 0, 0, 0, settings_store_socket,
		"an absolute path of at most 107 bytes"},
	{"store.node", TEXT, AT(store.node), 0, 64, NULL, "this agent's ID: at most 63 bytes"},
	{"store.address", TEXT, AT(store.address), 0, 160, NULL,
		"HOST or HOST:PORT of at most 159 bytes, where other agents find this one"},
	{"store.user", NUMBER32, AT(store.user), 0, USERS_MOST, NULL,
		"a user's number (0: the agent's own)"},
	{"compress", SPECIAL, 0, 0, 0, settings_compress, "auto, off or always"},
	{"congestion", SPECIAL, 0, 0, 0, settings_congestion,
		"a congestion control of the kernel's, like bbr (\"\" = its default)"},
	{"sandbox", SPECIAL, 0, 0, 0, settings_sandbox, "on, required or off"},
	{"nccl.allowed", FLAG, AT(nccl.allowed), 0, 0, NULL, "true or false"},
	{"nccl.environment", ENVIRONMENT, AT(nccl.environment), 0, AGENT_PATH, NULL,
		"a list of texts like NCCL_DEBUG=WARN"},
	{"nccl.wait", TIME, AT(nccl.wait_ms), 100, 86400000, NULL,
		"a time from 100ms to 24h, like 30m"},
	{"log", SPECIAL, 0, 0, 0, settings_log_level, "error, warn, info or debug"},
	{"log_format", SPECIAL, 0, 0, 0, settings_log_format, "text or json"},
	{"ready_file", PATH(ready_file)},
	{"health_socket", TEXT, AT(health_socket), 0,
		sizeof(((struct agent_config *)0)->health_socket), NULL,
		"a path of at most 107 bytes"},
};
#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct setting *find_setting(const char *key)
{
	if (!strcmp(key, "library_path")) /* as it was called first */
		key = "libraries.path";
	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(settings[i].key, key))
			return &settings[i];
	return NULL;
}

/* Absolute paths, ':' between; of a library also files, which have its name and a major. */
static int check_paths(const struct setting *s, const char *value)
{
	char copy[AGENT_PATH], wanted[32];
	char *rest = copy, *entry, *slash;

	if (strlen(value) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, value);
	snprintf(wanted, sizeof(wanted), "lib%s.so.", strchr(s->key, '.') + 1);
	while ((entry = strsep(&rest, ":"))) {
		if (*entry != '/')
			return -EINVAL;
		slash = strrchr(entry, '/');
		if (!strstr(slash, ".so"))
			continue;
		if (s->type != LIBRARY || strncmp(slash + 1, wanted, strlen(wanted)) ||
			slash[1 + strlen(wanted)] < '0' || slash[1 + strlen(wanted)] > '9')
			return -EINVAL;
	}
	return 0;
}

/* NCCL_NAME=VALUE, a line each. */
static int check_environment(const char *value)
{
	char copy[AGENT_PATH];
	char *rest = copy, *line;

	if (strlen(value) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, value);
	while ((line = strsep(&rest, "\n"))) {
		size_t name = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		if (strncmp(line, "NCCL_", 5) || name < 6 || line[name] != '=')
			return -EINVAL;
	}
	return 0;
}

static int set_plain(struct agent_config *config, const struct setting *s, const char *value)
{
	unsigned char *field = (unsigned char *)config + s->offset;
	const char *end;
	uint64_t n;
	int ret;

	switch (s->type) {
	case PATHS:
	case LIBRARY:
		if (*value && check_paths(s, value))
			return -EINVAL;
		/* fall through */
	case ENVIRONMENT:
		if (s->type == ENVIRONMENT && *value && check_environment(value))
			return -EINVAL;
		/* fall through */
	case TEXT:
		if (strlen(value) >= s->max)
			return -EINVAL;
		memset(field, 0, s->max);
		memcpy(field, value, strlen(value));
		return 0;
	case FLAG:
		if (strcmp(value, "true") && strcmp(value, "false"))
			return -EINVAL;
		*(bool *)field = !strcmp(value, "true");
		return 0;
	case NUMBER16:
	case NUMBER32:
		ret = parse_number(value, &n, &end);
		if (!ret && *end)
			ret = -EINVAL;
		break;
	case BYTES: ret = parse_bytes(value, &n); break;
	default: ret = parse_time(value, &n); break;
	}
	if (ret || n < s->min || n > s->max)
		return -EINVAL;
	if (s->type == NUMBER16)
		*(uint16_t *)(void *)field = (uint16_t)n;
	else if (s->type == BYTES)
		*(uint64_t *)(void *)field = n;
	else
		*(uint32_t *)(void *)field = (uint32_t)n;
	return 0;
}

int settings_set(
	struct agent_config *config, const char *key, const char *value, struct error *error)
{
	const struct setting *s = find_setting(key);
	char shown[80];
	int ret;

	if (limit_settings_has(key))
		return limit_settings_set(config, key, value, error);
	if (!s)
		return error_set(error, 0, "unknown key '%s'", key);
	if (config->asking && (!strcmp(key, "token_file") || !strcmp(key, "http.token_file")))
		return 0;
	if (!strcmp(key, "http.token_file"))
		return token_read_http(&config->http_tokens, value, error);
	if (!strcmp(key, "token_file"))
		return token_read(&config->tokens, value, error);
	ret = s->type == SPECIAL ? s->set(config, value) : set_plain(config, s, value);
	if (!ret)
		return 0;
	if (!strcmp(key, "token"))
		value = "(hidden)";
	return error_set(error, 0, "%s: %s is not %s", key,
		log_quote(shown, sizeof(shown), value), s->takes);
}

/* --- the YAML file ------------------------------------------------------------------------ */

struct reader {
	struct agent_config *config;
	bool seen[SETTINGS], of_tenants[LIMITS_SEEN];
	char list[CONFIG_LIST_MAX]; /* the sequence so far, with commas between */
};

static int unknown_key(const char *key, struct error *error)
{
	char known[400] = "";
	size_t at = 0;

	for (size_t i = 0; i < SETTINGS && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", at ? ", " : "",
			settings[i].key);
	return error_set(error, 0, "unknown key '%.40s' (docs/AGENT.md lists them: %.120s …)",
		key, known);
}

/* One scalar of the file; those of a sequence come one by one and are set as a list. */
static int read_item(void *argument, const struct config_item *item, struct error *error)
{
	struct reader *r = argument;
	const struct setting *s = find_setting(item->key);
	const char *value = item->text;
	bool *seen;
	size_t at;

	if (limit_settings_has(item->key) && item->index < 0)
		return limit_settings_read(r->config, r->of_tenants, item->key, value, error);
	if (network_settings_has(item->key))
		return network_settings_item(r->config, item, error);
	if (!s || s->set == settings_ports)
		return unknown_key(item->key, error);
	seen = &r->seen[s - settings];
	if (item->index < 1) {
		if (*seen)
			return error_set(error, 0, "'%s' is given twice", item->key);
		*seen = true;
		r->list[0] = 0;
	}
	if (item->index >= 0) {
		if (s->set != settings_gpus && s->set != settings_cpus &&
			s->set != settings_peers && s->type != PATHS && s->type != LIBRARY &&
			s->type != ENVIRONMENT)
			return error_set(error, 0, "%s is %s, not a list", s->key, s->takes);
		at = strlen(r->list);
		if ((size_t)snprintf(r->list + at, sizeof(r->list) - at, "%s%s",
			    !at			     ? ""
			    : s->set		     ? ","
			    : s->type == ENVIRONMENT ? "\n"
						     : ":",
			    value) >= sizeof(r->list) - at)
			return error_set(error, 0, "%s: the list is too long", s->key);
		value = r->list;
	}
	return settings_set(r->config, item->key, value, error);
}

int agent_settings_read(struct agent_config *config, const char *path, struct error *error)
{
	struct reader r = {.config = config};

	int ret = config_read(path, read_item, &r, error);

	return ret ? ret : network_settings_complete(config, path, error);
}

/* --- completion --------------------------------------------------------------------------- */

/* The software GPU's library: in ../lib of the binary, or where `make install` puts it. */
static void find_software(struct agent_config *config, const char *binary)
{
	static const char *const places[] = {"lib", "lib/vcuda"};
	char folder[AGENT_PATH / 2] = ".";
	char *slash;

	snprintf(folder, sizeof(folder), "%s", binary);
	for (int up = 0; up < 2; up++) {
		slash = strrchr(folder, '/');
		if (slash)
			*slash = 0;
	}
	for (int i = 0; i < 2; i++) {
		snprintf(config->driver_path, sizeof(config->driver_path),
			"%s/%s/libvcuda-softgpu.so", folder, places[i]);
		if (!access(config->driver_path, R_OK))
			return;
	}
	snprintf(config->driver_path, sizeof(config->driver_path), "%s/lib/libvcuda-softgpu.so",
		folder);
}

/* Who asks whether the agent is healthy finds it by the same configuration. */
static void find_health_socket(struct agent_config *config)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");

	if (config->health_socket[0] || !config->ports[LISTEN_CONTROL])
		return;
	if (!folder || folder[0] != '/' || strlen(folder) > 64)
		folder = "/tmp";
	snprintf(config->health_socket, sizeof(config->health_socket), "%s/gpu-agent-%u.sock",
		folder, config->ports[LISTEN_CONTROL]);
}

int settings_complete(struct agent_config *config, const char *binary, struct error *error)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");

	if (config->driver == DRIVER_SOFTWARE)
		find_software(config, binary);
	else if (config->driver == DRIVER_NVIDIA)
		strcpy(config->driver_path, "libcuda.so.1");
	if (!config->warm_workers)
		config->warm_workers = config->driver == DRIVER_NVIDIA ? 2 : 1;
	if (config->memory_reserve == UINT64_MAX)
		config->memory_reserve = config->driver == DRIVER_NVIDIA ? 256u << 20 : 0;
	if (!config->http_address[0])
		memcpy(config->http_address, config->address, sizeof(config->address));
	if (!config->cache_dir[0]) {
		if (xdg && xdg[0] == '/' && strlen(xdg) < AGENT_PATH / 2)
			snprintf(config->cache_dir, AGENT_PATH, "%s/vcuda/modules", xdg);
		else if (geteuid() && home && home[0] == '/' && strlen(home) < AGENT_PATH / 2)
			snprintf(
				config->cache_dir, AGENT_PATH, "%s/.cache/vcuda/modules", home);
		else
			strcpy(config->cache_dir, "/var/cache/vcuda/modules");
	}
	find_health_socket(config);
	for (int i = 0; i < AGENT_PORTS; i++)
		for (int j = 0; j < i; j++)
			if (config->ports[i] && config->ports[i] == config->ports[j])
				return error_set(
					error, 0, "ports: %u is given twice", config->ports[i]);
	/* Manifests of the legacy command line go on working: their clients bring no token
	 * either. */
	if (config->older_form && !config->tokens.count)
		config->insecure = true;
	if (config->insecure && config->tokens.count)
		return error_set(error, 0,
			"insecure: everybody is to be served, and there is a token; take one "
			"of them away");
	if (network_settings_check(config, error))
		return -EINVAL;
	if (config->memory_limit && config->lease_initial > config->memory_limit)
		config->lease_initial = config->memory_limit;
	return users_check(config, error);
}

int settings_to_fd(const struct agent_config *config, struct error *error)
{
	cleanup_close int fd = memfd_create("gpu-agent-config", MFD_CLOEXEC);

	if (fd < 0)
		return error_set(error, errno, "memfd_create");
	if (pwrite(fd, config, sizeof(*config), 0) != (ssize_t)sizeof(*config))
		return error_set(error, errno ? errno : EIO, "write the configuration's memfd");
	return take_fd(&fd);
}

int settings_from_fd(struct agent_config *config, int fd, struct error *error)
{
	if (pread(fd, config, sizeof(*config), 0) != (ssize_t)sizeof(*config) ||
		config->magic != AGENT_CONFIG_MAGIC || config->size != sizeof(*config))
		return error_set(error, 0,
			"--role is for gpu-agent itself: descriptor %d holds no configuration",
			fd);
	return 0;
}
