/* SPDX-License-Identifier: Apache-2.0
 *
 * What tenants may have, by name: `tenants: {team-a: {gpu_share: 0.5}}`.  "*" stands for those
 * that are not named.  A name may have dots: the last one is before the key.
 */
#include "gpu-agent/supervisor/limit_settings.h"

#include <errno.h>
#include <string.h>

#include "gpu-agent/supervisor/parse.h"

static const char prefix[] = "tenants.";

bool limit_settings_has(const char *key)
{
	return !strncmp(key, prefix, sizeof(prefix) - 1);
}

/* The entry of the name, made where there is none. NULL with *error: it is no name, or there
 * are too many. */
static struct agent_limits *entry_of(
	struct agent_config *config, const char *name, size_t n, struct error *error)
{
	struct agent_limits *at;

	if (!n || n >= sizeof(at->name)) {
		error_set(error, 0, "tenants: a tenant's name has 1 to %zu characters",
			sizeof(at->name) - 1);
		return NULL;
	}
	for (uint32_t i = 0; i < config->limit_count; i++)
		if (strlen(config->limits[i].name) == n &&
			!memcmp(config->limits[i].name, name, n))
			return &config->limits[i];
	if (config->limit_count == AGENT_LIMITS) {
		error_set(error, 0, "tenants: more than %d", AGENT_LIMITS);
		return NULL;
	}
	at = &config->limits[config->limit_count++];
	memcpy(at->name, name, n);
	return at;
}

/* "0.25" in thousandths, 1 to 1000; -EINVAL on anything else. */
static int parse_share(const char *value, uint32_t *thousandths)
{
	uint64_t whole, part = 0;
	const char *at;
	int digits = 0;

	if (parse_number(value, &whole, &at) || whole > 1)
		return -EINVAL;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9' && digits < 3; at++, digits++)
			part = part * 10 + (uint64_t)(*at - '0');
	for (; digits < 3; digits++)
		part *= 10;
	whole = whole * AGENT_SHARE_WHOLE + part;
	if (*at || !whole || whole > AGENT_SHARE_WHOLE)
		return -EINVAL;
	*thousandths = (uint32_t)whole;
	return 0;
}

int limit_settings_set(
	struct agent_config *config, const char *key, const char *value, struct error *error)
{
	const char *name = key + sizeof(prefix) - 1, *dot = strrchr(name, '.');
	struct agent_limits *limits;

	if (!dot || strcmp(dot, ".gpu_share"))
		return error_set(error, 0, "unknown key '%.80s': a tenant has gpu_share", key);
	limits = entry_of(config, name, (size_t)(dot - name), error);
	if (!limits)
		return -EINVAL;
	if (parse_share(value, &limits->gpu_share))
		return error_set(error, 0,
			"%.80s: '%.20s' is not a part of a GPU's time from 0.001 to 1", key,
			value);
	return 0;
}
