/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that are neither a number, a flag, a text nor a path.
 */
#include "gpu-agent/supervisor/settings/settings_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/network.h"
#include "gpu-agent/supervisor/settings/parse_value.h"
#include "gpu-agent/supervisor/settings/token.h"

int settings_driver(struct agent_config *config, const char *value)
{
	if (!strcmp(value, "nvidia")) {
		config->driver = DRIVER_NVIDIA;
	} else if (!strcmp(value, "software")) {
		config->driver = DRIVER_SOFTWARE;
	} else if (value[0] == '/' && strlen(value) < sizeof(config->driver_path)) {
		config->driver = DRIVER_FILE;
		strcpy(config->driver_path, value);
	} else {
		return -EINVAL;
	}
	return 0;
}

int settings_cache_shared(struct agent_config *config, const char *value)
{
	if (strcmp(value, "tenant") && strcmp(value, "all"))
		return -EINVAL;
	config->cache_shared = value[0] == 'a';
	return 0;
}

/* "0,2-4": calls `add` for each number; -EINVAL on anything else. */
static int parse_list(struct agent_config *config, const char *value,
	int (*add)(struct agent_config *config, uint64_t number))
{
	const char *at = value;
	uint64_t first, last;

	do {
		while (*at == ' ')
			at++;
		if (parse_number(at, &first, &at))
			return -EINVAL;
		last = first;
		if (*at == '-' && parse_number(at + 1, &last, &at))
			return -EINVAL;
		if (last < first || last > CPU_SETSIZE)
			return -EINVAL;
		for (uint64_t n = first; n <= last; n++)
			if (add(config, n))
				return -EINVAL;
		while (*at == ' ')
			at++;
	} while (*at++ == ',');
	return at[-1] ? -EINVAL : 0;
}

static int add_gpu(struct agent_config *config, uint64_t number)
{
	if (number > 255 || config->gpu_count == HANDOFF_DEVICES)
		return -EINVAL;
	for (uint32_t i = 0; i < config->gpu_count; i++)
		if (config->gpus[i] == number)
			return -EINVAL;
	config->gpus[config->gpu_count++] = (uint16_t)number;
	return 0;
}

int settings_gpus(struct agent_config *config, const char *value)
{
	config->gpu_count = 0;
	return strcmp(value, "all") ? parse_list(config, value, add_gpu) : 0;
}

static int add_cpu(struct agent_config *config, uint64_t number)
{
	if (number >= CPU_SETSIZE)
		return -EINVAL;
	CPU_SET(number, &config->worker_cpus);
	return 0;
}

int settings_cpus(struct agent_config *config, const char *value)
{
	CPU_ZERO(&config->worker_cpus);
	config->pinned = strcmp(value, "all") != 0;
	return config->pinned ? parse_list(config, value, add_cpu) : 0;
}

int settings_log_level(struct agent_config *config, const char *value)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};

	for (uint32_t i = 0; i < 4; i++) {
		if (!strcmp(value, names[i])) {
			config->log_level = i;
			return 0;
		}
	}
	return -EINVAL;
}

int settings_log_format(struct agent_config *config, const char *value)
{
	int ret = log_set_format(value);

	config->log_format = log_format;
	return ret;
}

int settings_peers(struct agent_config *config, const char *value)
{
	struct error error;

	if (strlen(value) >= sizeof(config->peers) || transport_check_allowed(value, &error))
		return -EINVAL;
	strcpy(config->peers, value);
	return 0;
}

int settings_token(struct agent_config *config, const char *value)
{
	return token_set(&config->tokens, value);
}

int settings_sandbox(struct agent_config *config, const char *value)
{
	config->sandbox_off = !strcmp(value, "off");
	config->sandbox_required = !strcmp(value, "required");
	return config->sandbox_off || config->sandbox_required || !strcmp(value, "on")
		       ? 0
		       : -EINVAL;
}

/* This process opens no link: the name is only checked. */
int settings_congestion(struct agent_config *config, const char *value)
{
	struct error error;

	if (strlen(value) >= sizeof(config->congestion) || transport_congestion(value, &error))
		return -EINVAL;
	strcpy(config->congestion, value);
	return 0;
}

int settings_compress(struct agent_config *config, const char *value)
{
	config->compress_off = !strcmp(value, "off");
	config->compress_always = !strcmp(value, "always");
	return config->compress_off || config->compress_always || !strcmp(value, "auto")
		       ? 0
		       : -EINVAL;
}

int settings_account_tenant(struct agent_config *config, const char *value)
{
	config->service_account.by_account = !strcmp(value, "service_account");
	return config->service_account.by_account || !strcmp(value, "namespace") ? 0 : -EINVAL;
}

int settings_registry(struct agent_config *config, const char *value)
{
	if (strlen(value) >= sizeof(config->store.registry) ||
		(*value && !network_is_redis(value)))
		return -EINVAL;
	strcpy(config->store.registry, value);
	return 0;
}

/* Its host is looked at with that of `listen`, which it is where it is empty. */
int settings_http_address(struct agent_config *config, const char *value)
{
	if (strlen(value) >= sizeof(config->http_address) || strpbrk(value, ", \t"))
		return -EINVAL;
	strcpy(config->http_address, value);
	return 0;
}

int settings_store_socket(struct agent_config *config, const char *value)
{
	/* The store has another working directory. */
	if (strlen(value) >= sizeof(config->store.socket) || (*value && *value != '/'))
		return -EINVAL;
	strcpy(config->store.socket, value);
	return 0;
}

int settings_ports(struct agent_config *config, const char *value)
{
	const char *at = value;
	uint64_t port;

	for (int i = 0; i < AGENT_PORTS; i++) {
		if (parse_number(at, &port, &at) || port > 65535)
			return -EINVAL;
		config->ports[i] = (uint16_t)port;
		if (*at++ != (i < AGENT_PORTS - 1 ? ',' : 0))
			return -EINVAL;
	}
	return 0;
}
