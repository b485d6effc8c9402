/* SPDX-License-Identifier: Apache-2.0
 *
 * What tenants may have, by name: `tenants: {team-a: {gpu_share: 0.5}}`.  "*" stands for those
 * that are not named.  A name may have dots: the last one is before the key.
 */
#include "gpu-agent/supervisor/settings/limit_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu-agent/supervisor/settings/parse_value.h"

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
static int set_share(struct agent_limits *limits, const char *value)
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
	limits->gpu_share = (uint32_t)whole;
	return 0;
}

static int set_bytes(struct agent_limits *limits, const char *value)
{
	uint64_t bytes;

	if (parse_bytes(value, &bytes) || bytes > AGENT_BYTES_MAX)
		return -EINVAL;
	limits->bytes = bytes;
	return 0;
}

static int set_sessions(struct agent_limits *limits, const char *value)
{
	const char *end;
	uint64_t n;

	if (parse_number(value, &n, &end) || *end || n > AGENT_SESSIONS_MAX)
		return -EINVAL;
	limits->sessions = (uint32_t)n;
	return 0;
}

static int set_priority(struct agent_limits *limits, const char *value)
{
	static const char *const names[PRIORITIES] = {
		[PRIORITY_LOW] = "low", [PRIORITY_NORMAL] = "normal", [PRIORITY_HIGH] = "high"};

	for (uint32_t p = PRIORITY_LOW; p < PRIORITIES; p++)
		if (!strcmp(value, names[p])) {
			limits->priority = p;
			return 0;
		}
	return -EINVAL;
}

static const struct limit_key {
	const char *key;
	int (*set)(struct agent_limits *limits, const char *value);
	const char *takes;
} keys[] = {
	{"device_bytes", set_bytes, "bytes like 8GiB (0 = no limit)"},
	{"sessions", set_sessions, "a number from 0 to 4096 (0 = no limit)"},
	{"gpu_share", set_share, "a part of a GPU's time from 0.001 to 1"},
	{"priority", set_priority, "low, normal or high"},
};

_Static_assert(sizeof(keys) / sizeof(keys[0]) + QUOTAS == LIMIT_KEYS, "one key more or less");

static const struct limit_key *find_key(const char *key)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(keys[i].key, key))
			return &keys[i];
	return NULL;
}

/* Of what each session may have; -1: it is none. */
static int find_quota(const char *key)
{
	for (int q = 0; q < QUOTAS; q++)
		if (!strcmp(quota_rows[q].key, key))
			return q;
	return -1;
}

static int set_quota(struct agent_limits *limits, int quota, const char *value)
{
	const struct quota_row *row = &quota_rows[quota];
	const char *end = "";
	uint64_t n;

	if ((row->bytes ? parse_bytes(value, &n) : parse_number(value, &n, &end)) || *end ||
		(n && (n < row->least || n > row->most)))
		return -EINVAL;
	limits->quotas[quota] = n;
	return 0;
}

static int unknown_key(const char *key, struct error *error)
{
	char known[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s, ", keys[i].key);
	for (int q = 0; q < QUOTAS; q++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s",
			quota_rows[q].key, q + 1 < QUOTAS ? ", " : "");
	return error_set(error, 0, "unknown key '%.80s': a tenant has %s", key, known);
}

int limit_settings_set(
	struct agent_config *config, const char *key, const char *value, struct error *error)
{
	const char *name = key + sizeof(prefix) - 1, *dot = strrchr(name, '.');
	const struct limit_key *known = dot ? find_key(dot + 1) : NULL;
	int quota = dot && !known ? find_quota(dot + 1) : -1;
	struct agent_limits *limits;

	if (!known && quota < 0)
		return unknown_key(key, error);
	limits = entry_of(config, name, (size_t)(dot - name), error);
	if (!limits)
		return -EINVAL;
	if (known ? known->set(limits, value) : set_quota(limits, quota, value))
		return error_set(error, 0, "%.80s: '%.20s' is not %s", key, value,
			known ? known->takes : quota_rows[quota].takes);
	return 0;
}

/* Which of all keys of all tenants it is; the tenant is there. */
static unsigned number_of(const struct agent_config *config, const char *key)
{
	const char *name = key + sizeof(prefix) - 1, *dot = strrchr(name, '.');
	const struct limit_key *known = find_key(dot + 1);
	const size_t n = (size_t)(dot - name);
	uint32_t at = 0;

	while (at + 1 < config->limit_count &&
		(strlen(config->limits[at].name) != n ||
			memcmp(config->limits[at].name, name, n)))
		at++;
	return at * LIMIT_KEYS +
	       (known ? (unsigned)(known - keys) + QUOTAS : (unsigned)find_quota(dot + 1));
}

int limit_settings_read(struct agent_config *config, bool seen[LIMITS_SEEN], const char *key,
	const char *value, struct error *error)
{
	unsigned at;

	if (limit_settings_set(config, key, value, error))
		return -EINVAL;
	at = number_of(config, key);
	if (seen[at])
		return error_set(error, 0, "'%s' is given twice", key);
	seen[at] = true;
	return 0;
}
