/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/networks.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/network.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "protocol/wire/status.h"

#define TELL_NS (1000 * FRONT_MS)

struct networks {
	struct agent_network list[AGENT_NETWORKS];
	struct network_report told[AGENT_NETWORKS]; /* of the same; name "": nothing yet */
	uint32_t count;
	uint64_t tell_at;
	bool draining; /* as it was told */
};

void networks_take(struct front *front, const struct agent_config *config)
{
	struct networks *networks = front->networks;

	/* Without any there is no table, and nothing to look at. */
	if (!networks && config->network_count)
		front->networks = networks = calloc(1, sizeof(*networks));
	if (!networks) {
		if (config->network_count)
			log_error("networks.memory", "text=\"none can be served\"");
		return;
	}
	memset(networks, 0, sizeof(*networks));
	networks->count =
		config->network_count < AGENT_NETWORKS ? config->network_count : AGENT_NETWORKS;
	memcpy(networks->list, config->networks, sizeof(networks->list));
}

void networks_close(struct front *front)
{
	free(front->networks);
	front->networks = NULL;
}

uint32_t networks_count(const struct front *front)
{
	return front->networks ? front->networks->count : 0;
}

const struct agent_network *networks_at(const struct front *front, uint32_t index)
{
	return index < networks_count(front) ? &front->networks->list[index] : NULL;
}

const struct agent_network *networks_named(const struct front *front, const char *name)
{
	for (uint32_t i = 0; i < networks_count(front); i++)
		if (!strcmp(front->networks->list[i].is.name, name))
			return &front->networks->list[i];
	return NULL;
}

const struct agent_network *networks_of_token(
	const struct front *front, const char token[AGENT_TOKEN_MAX + 1])
{
	const struct agent_network *found = NULL;
	uint8_t hash[AGENT_TOKEN_HASH];

	if (!networks_count(front))
		return NULL;
	SHA256((const unsigned char *)token, strnlen(token, AGENT_TOKEN_MAX + 1), hash);
	for (uint32_t i = 0; i < networks_count(front); i++) {
		const struct agent_network *network = &front->networks->list[i];

		for (uint32_t t = 0; t < network->token_count; t++)
			if (token_same(hash, network->tokens[t], sizeof(hash)))
				found = network;
	}
	explicit_bzero(hash, sizeof(hash));
	return found;
}

/* --- what it is now ------------------------------------------------------------------------
 */

static unsigned minute_now(void)
{
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	return (unsigned)(tm.tm_hour * 60 + tm.tm_min);
}

/* A GPU that it names and that the agent does not have, or -1. */
static int missing_gpu(const struct front *front, const struct agent_network *network)
{
	for (uint32_t i = front->ledger.device_count; i < NETWORK_GPUS; i++)
		if (network->is.gpus >> i & 1)
			return (int)i;
	return -1;
}

static enum network_state state_of(
	const struct front *front, const struct agent_network *network, char text[192])
{
	int missing = missing_gpu(front, network);
	char hours[NETWORK_HOURS * 13 + 1];
	const char *why;

	text[0] = 0;
	if (network->leaving_until || front->draining) {
		snprintf(text, 192, "this agent leaves the network '%s'; try another one",
			network->is.name);
		return NETWORK_LEAVING;
	}
	if (!front->ledger.device_count) {
		front_is_ready(front, &why);
		snprintf(text, 192, "%s", why);
		return NETWORK_STARTING;
	}
	if (missing >= 0) {
		snprintf(text, 192, "the network '%s' wants GPU %d, and this agent has %u",
			network->is.name, missing, front->ledger.device_count);
		return NETWORK_REFUSED;
	}
	if (network_is_open(&network->is, minute_now()))
		return NETWORK_OPEN;
	network_hours_text(hours, sizeof(hours), &network->is);
	snprintf(text, 192, "this agent serves the network '%s' at %s only, by its own clock",
		network->is.name, hours);
	return NETWORK_CLOSED;
}

uint32_t networks_may(const struct front *front, const struct tenant *tenant, char text[192])
{
	const struct agent_network *network =
		tenant->network ? networks_named(front, tenant->name) : NULL;
	char why[192];

	if (!network || state_of(front, network, why) == NETWORK_OPEN ||
		!front->ledger.device_count)
		return 0; /* who comes early waits for the first worker */
	snprintf(text, 192, "%s", why);
	return STATUS_NOT_READY;
}

/* The driver's own version; where that is not known, CUDA's. */
static void describe_driver(const struct front *front, char *out, size_t n)
{
	const struct pool *pool = &front->pool;

	if (pool->driver_release[0])
		snprintf(out, n, "%s", pool->driver_release);
	else
		snprintf(out, n, "CUDA %u.%u", pool->driver_version / 1000,
			pool->driver_version % 1000 / 10);
}

/* Zeros between and behind its parts: it is compared as bytes. */
static void report_of(const struct front *front, const struct agent_network *network,
	struct network_report *report)
{
	const struct tenant *tenant = tenants_of_network(front, network->is.name);

	memset(report, 0, sizeof(*report));
	strcpy(report->name, network->is.name);
	report->state = state_of(front, network, report->text);
	if (!tenant) {
		report->state = NETWORK_REFUSED;
		snprintf(report->text, sizeof(report->text),
			"sessions of a tenant '%s', who is none of the network's people, run "
			"here",
			network->is.name);
	}
	describe_driver(front, report->driver, sizeof(report->driver));
	if (!tenant)
		return;
	report->sessions = tenant->sessions;
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		const struct ledger_device *device = &front->ledger.devices[d];
		struct network_gpu *gpu = &report->gpus[report->gpu_count];

		if (!(quota_good(front, tenant) >> d & 1))
			continue;
		memcpy(gpu->uuid, device->uuid, sizeof(gpu->uuid));
		gpu->total =
			device->total > device->reserve ? device->total - device->reserve : 0;
		if (tenant->budget.limit && tenant->budget.limit < gpu->total)
			gpu->total = tenant->budget.limit;
		gpu->free = quota_free(front, tenant, d);
		report->gpu_count++;
	}
}

/* Its time to leave is up. */
static void stop_sessions(struct front *front, const struct agent_network *network)
{
	char text[192];

	snprintf(text, sizeof(text), "the agent has left the network '%s'", network->is.name);
	for (uint32_t i = 0; i < front->pool.room; i++) {
		struct pool_worker *worker = &front->pool.workers[i];

		if ((worker->state == WORKER_BUSY || worker->state == WORKER_TAKEN) &&
			worker->session &&
			!strcmp(worker->session->tenant->name, network->is.name))
			pool_stop(front, worker, STATUS_LOST, text);
	}
}

uint64_t networks_tick(struct front *front, uint64_t now)
{
	struct networks *networks = front->networks;
	uint64_t next = UINT64_MAX;

	if (!networks_count(front))
		return next;
	for (uint32_t i = 0; i < networks->count; i++) {
		uint64_t until = networks->list[i].leaving_until;

		if (until && until <= now)
			stop_sessions(front, &networks->list[i]);
		else if (until && until < next)
			next = until;
	}
	if (networks->tell_at > now && networks->draining == front->draining)
		return networks->tell_at < next ? networks->tell_at : next;
	networks->tell_at = now + TELL_NS;
	networks->draining = front->draining;
	for (uint32_t i = 0; i < networks->count; i++) {
		struct network_report report;
		int fd;

		report_of(front, &networks->list[i], &report);
		if (!memcmp(&report, &networks->told[i], sizeof(report)))
			continue;
		fd = network_report_write(&report);
		if (fd < 0)
			continue;
		if (front_tell_with(front, &(struct control){.what = CONTROL_NETWORK}, fd))
			networks->told[i] = report;
		close(fd);
	}
	return networks->tell_at < next ? networks->tell_at : next;
}
