/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tenants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/networks.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "protocol/wire/status.h"

/* Everybody, where no token is asked for. */
static const struct agent_tenant anybody = {.name = TOKEN_TENANT};

struct tenants {
	struct tenant list[TENANTS];
	struct agent_tokens tokens;
	uint64_t sent_at;
	bool changed; /* one of them */
};

static struct tenant *find_name(struct tenants *tenants, const char *name)
{
	for (unsigned i = 0; i < TENANTS; i++)
		if (!strcmp(tenants->list[i].name, name))
			return &tenants->list[i];
	return NULL;
}

/* The entry of that name; else a free one, or one that nobody needs any more. */
static struct tenant *entry_for(struct tenants *tenants, const char *name)
{
	struct tenant *tenant = find_name(tenants, name);

	for (unsigned i = 0; i < TENANTS && !tenant; i++)
		if (!tenants->list[i].known && !tenants->list[i].sessions)
			tenant = &tenants->list[i];
	return tenant;
}

/* What the configuration says of it, or of all that it does not name; NULL: nothing. */
static const struct agent_limits *limits_of(const struct agent_config *config, const char *name)
{
	const struct agent_limits *found = NULL;

	for (uint32_t i = 0; i < config->limit_count; i++) {
		const struct agent_limits *limits = &config->limits[i];

		if (!strcmp(limits->name, name))
			return limits;
		if (!strcmp(limits->name, "*"))
			found = limits;
	}
	return found;
}

/* 0 stands for no limit. */
static uint64_t lower(uint64_t a, uint64_t b)
{
	return !b || (a && a < b) ? a : b;
}

/* The entry's limits: what the token file says (0 = nothing), and the configuration. */
static void set_limits(const struct agent_config *config, struct tenant *tenant, uint64_t bytes,
	uint32_t sessions)
{
	static const struct agent_limits none;
	const struct agent_limits *limits = limits_of(config, tenant->name);

	if (!limits)
		limits = &none;
	tenant->most = (uint32_t)lower(sessions, limits->sessions);
	tenant->budget.limit = lower(bytes, limits->bytes);
	tenant->timeshare.share = limits->gpu_share;
	tenant->timeshare.priority = (enum agent_priority)limits->priority;
	memcpy(tenant->quotas, limits->quotas, sizeof(tenant->quotas));
}

static bool admit(const struct front *front, const struct agent_tenant *wanted)
{
	struct tenants *tenants = front->tenants;
	struct tenant *tenant = entry_for(tenants, wanted->name);

	if (!tenant) {
		log_error("tenants.full", "tenant=%s", wanted->name);
		return false;
	}
	if (strcmp(tenant->name, wanted->name)) {
		memset(tenant, 0, sizeof(*tenant));
		strcpy(tenant->name, wanted->name);
	}
	tenant->known = true;
	tenant->network = false;
	tenant->gpus = 0;
	set_limits(front->config, tenant, wanted->bytes, wanted->sessions);
	return true;
}

/* No token is asked for: of nobody, or of those whose certificate was checked. */
static bool asks_no_token(const struct front *front, const struct agent_tokens *tokens)
{
	return front->config->insecure || (front->config->tls.require && !tokens->count &&
						  !front->config->service_account.keys[0]);
}

static void admit_network(struct front *front, const struct agent_network *network)
{
	struct agent_tenant wanted = {
		.bytes = network->is.memory, .sessions = network->is.sessions};
	struct tenant *tenant = find_name(front->tenants, network->is.name);

	/* Somebody of that name whom the cluster signed for is here already. */
	if (tenant && tenant->sessions && !tenant->network)
		return;
	strcpy(wanted.name, network->is.name);
	if (!admit(front, &wanted))
		return;
	tenant = find_name(front->tenants, wanted.name);
	tenant->network = true;
	tenant->gpus = network->is.gpus;
}

void tenants_replace(struct front *front, const struct agent_config *config)
{
	const struct agent_tokens *tokens = &config->tokens;
	struct tenants *tenants = front->tenants;
	const struct agent_network *network;

	memset(&tenants->tokens, 0, sizeof(tenants->tokens));
	for (unsigned i = 0; i < TENANTS; i++)
		tenants->list[i].known = false;
	/* Who has no entry has no token either. */
	for (uint32_t i = 0; i < tokens->count && i < AGENT_TOKENS; i++)
		if (admit(front, &tokens->list[i]))
			tenants->tokens.list[tenants->tokens.count++] = tokens->list[i];
	if (asks_no_token(front, tokens))
		admit(front, &anybody);
	networks_take(front, config);
	for (uint32_t i = 0; (network = networks_at(front, i)); i++)
		admit_network(front, network);
}

int tenants_open(struct front *front, struct error *error)
{
	front->tenants = calloc(1, sizeof(*front->tenants));
	front->http_tokens = front->config->http_tokens;
	front->priorities = priority_configured(front->config);
	if (!front->tenants)
		return error_set(error, ENOMEM, "a table of tenants");
	tenants_replace(front, front->config);
	return 0;
}

void tenants_close(struct front *front)
{
	free(front->tenants);
	front->tenants = NULL;
}

static struct tenant *network_of(
	const struct front *front, const char token[AGENT_TOKEN_MAX + 1])
{
	const struct agent_network *network = networks_of_token(front, token);
	struct tenant *tenant = network ? find_name(front->tenants, network->is.name) : NULL;

	return tenant && tenant->network ? tenant : NULL;
}

static struct tenant *owner_of(struct tenants *tenants, const char token[AGENT_TOKEN_MAX + 1])
{
	int i = token_find(&tenants->tokens, token);

	return i < 0 ? NULL : find_name(tenants, tenants->tokens.list[i].name);
}

const struct tenant *tenants_of_network(const struct front *front, const char *name)
{
	const struct tenant *tenant = find_name(front->tenants, name);

	return tenant && tenant->network ? tenant : NULL;
}

const struct tenant *tenants_of_token(
	const struct front *front, const char token[AGENT_TOKEN_MAX + 1])
{
	const struct tenant *network = network_of(front, token);
	const struct tenant *owner = owner_of(front->tenants, token);

	return network ? network : owner;
}

struct tenant *tenants_find(struct front *front, const struct transport *transport,
	const char token[AGENT_TOKEN_MAX + 1])
{
	struct tenants *tenants = front->tenants;
	struct tenant *network = network_of(front, token);

	if (network)
		return network;
	/* A transport that certificates mean nothing to has brought none. */
	if (front->config->insecure ||
		(asks_no_token(front, &tenants->tokens) && transport->secure))
		return find_name(tenants, anybody.name);
	return owner_of(tenants, token);
}

struct tenant *tenants_named(struct front *front, const char *name)
{
	struct tenant *tenant = entry_for(front->tenants, name);

	if (!tenant) {
		log_error("tenants.full", "tenant=%s", name);
		return NULL;
	}
	if (!tenant->known && !tenant->sessions) { /* whoever had it is gone */
		/* What it owes of a GPU's time it still owes. */
		struct timeshare owed = {0};

		if (!strcmp(tenant->name, name))
			owed = tenant->timeshare;
		memset(tenant, 0, sizeof(*tenant));
		tenant->timeshare = owed;
		snprintf(tenant->name, sizeof(tenant->name), "%s", name);
		set_limits(front->config, tenant, 0, 0);
	}
	return tenant;
}

const struct tenant *tenants_at(const struct front *front, uint32_t index)
{
	for (unsigned i = 0; i < TENANTS; i++)
		if (front->tenants->list[i].name[0] && !index--)
			return &front->tenants->list[i];
	return NULL;
}

bool tenants_known(const struct front *front, const char *name)
{
	const struct tenant *tenant = find_name(front->tenants, name);
	bool known = *name && tenant && tenant->known;

	for (uint32_t i = 0; *name && i < front->config->limit_count; i++)
		known |= !strcmp(front->config->limits[i].name, name);
	return known;
}

bool tenants_have_tokens(const struct front *front)
{
	return front->tenants->tokens.count != 0;
}

/* Whether there may be others: with signed tokens anybody whom the cluster knows. */
static bool are_others(const struct front *front)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TENANTS; i++)
		n += front->tenants->list[i].known;
	return n > 1 || front->config->service_account.keys[0];
}

/* A client's certificate may name anybody. */
bool tenants_several(const struct front *front)
{
	return are_others(front) || front->config->tls.ca[0] || networks_count(front);
}

uint32_t tenants_may(const struct front *front, const struct tenant *tenant, char text[192])
{
	uint32_t left = front->config->max_sessions - front->session_count;

	if (tenant->most && tenant->sessions >= tenant->most)
		snprintf(text, 192, "%u sessions of '%s' are running, no more are allowed",
			tenant->sessions, tenant->name);
	else if (!tenant->most && are_others(front) && tenant->sessions >= left)
		snprintf(text, 192,
			"%u sessions of '%s' are running, the %u that are left are for other "
			"tenants",
			tenant->sessions, tenant->name, left);
	else
		return 0;
	return STATUS_NOT_PERMITTED;
}

void tenants_changed(struct front *front, struct tenant *tenant)
{
	if (!tenant->budget.limit)
		return;
	tenant->changed = true;
	front->tenants->changed = true;
}

uint64_t tenants_tick(struct front *front, uint64_t now)
{
	struct tenants *tenants = front->tenants;

	if (!tenants->changed)
		return UINT64_MAX;
	if (now < tenants->sent_at + TENANTS_TELL_NS)
		return tenants->sent_at + TENANTS_TELL_NS;
	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];

		if (session->state == SESSION_RUNNING && session->tenant->changed)
			quota_tell_one(front, session);
	}
	for (unsigned i = 0; i < TENANTS; i++)
		tenants->list[i].changed = false;
	tenants->changed = false;
	tenants->sent_at = now;
	return UINT64_MAX;
}
