/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/settings/network_settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "gpu-agent/supervisor/settings/token.h"

_Static_assert(NETWORK_GPUS == HANDOFF_DEVICES, "a bit for each");

static const char prefix[] = "networks[";

bool network_settings_has(const char *key)
{
	return !strncmp(key, prefix, sizeof(prefix) - 1);
}

int network_settings_item(
	struct agent_config *config, const struct config_item *item, struct error *error)
{
	char *end;
	unsigned long at = strtoul(item->key + sizeof(prefix) - 1, &end, 10);

	if (strncmp(end, "].", 2))
		return error_set(error, 0,
			"'%.60s': networks is a list, each with name, "
			"directory and token_file",
			item->key);
	if (at >= AGENT_NETWORKS)
		return error_set(error, 0, "networks: more than %d", AGENT_NETWORKS);
	if (at >= config->network_count)
		config->network_count = (uint32_t)at + 1;
	return network_set(&config->networks[at].is, end + 2, item, error);
}

int network_settings_complete(
	struct agent_config *config, const char *path, struct error *error)
{
	char whole[PATH_MAX];
	char *slash = realpath(path, whole) ? strrchr(whole, '/') : NULL;
	int ret = 0;

	if (slash)
		*slash = 0;
	for (uint32_t i = 0; i < config->network_count && !ret; i++) {
		struct agent_network *network = &config->networks[i];

		ret = network_complete(&network->is, slash ? whole : ".", error);
		if (!ret && !config->asking)
			ret = token_read_network(network, error);
		if (ret)
			return error_wrap(error, ret, "%s: networks: '%s'", path,
				network->is.name[0] ? network->is.name : "(no name)");
	}
	return 0;
}

static bool has_token(const struct agent_network *network, const uint8_t hash[AGENT_TOKEN_HASH])
{
	for (uint32_t i = 0; i < network->token_count; i++)
		if (!memcmp(network->tokens[i], hash, AGENT_TOKEN_HASH))
			return true;
	return false;
}

static int fits_tokens(const struct agent_tokens *tokens, const struct agent_network *network,
	const char *key, struct error *error)
{
	for (uint32_t i = 0; i < tokens->count; i++)
		if (has_token(network, tokens->list[i].hash))
			return error_set(error, 0, "network '%s': its token is one of %s too",
				network->is.name, key);
	return 0;
}

static int fits_network(const struct agent_network *other, const struct agent_network *network,
	struct error *error)
{
	const char *name = network->is.name;

	if (!strcmp(other->is.name, name))
		return error_set(
			error, 0, "network '%s': there is one of that name already", name);
	if (!strcmp(other->is.directory, network->is.directory))
		return error_set(error, 0, "network '%s': its directory is that of '%s' too",
			name, other->is.name);
	for (uint32_t i = 0; i < other->token_count; i++)
		if (has_token(network, other->tokens[i]))
			return error_set(error, 0,
				"network '%s': its token is that of '%s' too", name,
				other->is.name);
	return 0;
}

int network_settings_fits(const struct agent_config *config, uint32_t count,
	const struct agent_network *network, struct error *error)
{
	const char *name = network->is.name;
	int ret = 0;

	if (config->insecure)
		return error_set(error, 0,
			"network '%s': the agent is insecure, and would serve everybody", name);
	if (!strcmp(name, TOKEN_TENANT))
		return error_set(error, 0,
			"network '%s': that is the name of the tenant of a "
			"token without one",
			name);
	for (uint32_t i = 0; i < config->tokens.count; i++)
		if (!strcmp(config->tokens.list[i].name, name))
			return error_set(error, 0,
				"network '%s': token_file has a tenant of that name", name);
	if (!strcmp(config->store.registry, network->is.directory))
		return error_set(error, 0,
			"network '%s': its directory is the agent's store.registry", name);
	for (uint32_t i = 0; i < count && !ret; i++)
		ret = fits_network(&config->networks[i], network, error);
	if (!ret)
		ret = fits_tokens(&config->tokens, network, "token_file", error);
	if (!ret)
		ret = fits_tokens(&config->http_tokens, network, "http.token_file", error);
	return ret;
}

int network_settings_check(const struct agent_config *config, struct error *error)
{
	int ret = 0;

	for (uint32_t i = 0; i < config->network_count && !ret; i++)
		ret = network_settings_fits(config, i, &config->networks[i], error);
	return ret;
}

void network_settings_hide(struct agent_config *config)
{
	for (uint32_t i = 0; i < config->network_count; i++) {
		struct network *is = &config->networks[i].is;

		memset(is->directory, 0, sizeof(is->directory));
		memset(is->user, 0, sizeof(is->user));
		memset(is->password_file, 0, sizeof(is->password_file));
		memset(is->token_file, 0, sizeof(is->token_file));
	}
}

void network_settings_strip(struct agent_config *config)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < config->network_count; i++)
		if (!config->networks[i].dropped && !config->networks[i].leaving_until)
			config->networks[kept++] = config->networks[i];
	memset(&config->networks[kept], 0,
		(AGENT_NETWORKS - kept) * sizeof(config->networks[0]));
	config->network_count = kept;
}
