/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/agents/spread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"

int spread_parse(const char *text, enum spread_kind *kind)
{
	static const char *const names[] = {"never", "if-needed", "always"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) {
			*kind = (enum spread_kind)i;
			return 0;
		}
	return -EINVAL;
}

void spread_init(struct spread *spread, const struct spread_wish *wish)
{
	pthread_mutex_init(&spread->lock, NULL);
	pthread_mutex_init(&spread->choosing, NULL);
	spread->count = agents_parts(wish->agent);
	for (unsigned i = 0; i < spread->count; i++) {
		agents_part(wish->agent, i, spread->parts[i].agents);
		spread->parts[i].gpus = wish->gpus;
	}
}

unsigned spread_count(struct spread *spread)
{
	unsigned count;

	pthread_mutex_lock(&spread->lock);
	count = spread->count;
	pthread_mutex_unlock(&spread->lock);
	return count;
}

void spread_part(struct spread *spread, unsigned number, struct spread_part *part)
{
	pthread_mutex_lock(&spread->lock);
	*part = spread->parts[number];
	pthread_mutex_unlock(&spread->lock);
}

/* ---- the choice ---- */

/* Whole agents, in order: the last one has some left. */
static unsigned shares_whole(
	uint32_t wanted, const uint32_t *gpus, unsigned count, struct spread_share *shares)
{
	unsigned n = 0;

	for (unsigned i = 0; wanted && i < count && n < CHANNEL_AGENTS; i++) {
		uint32_t took = gpus[i] < wanted ? gpus[i] : wanted;

		if (!took)
			continue;
		shares[n++] = (struct spread_share){i, took};
		wanted -= took;
	}
	return wanted ? 0 : n;
}

/* One of each, and again while some are wanted. */
static unsigned shares_even(
	uint32_t wanted, const uint32_t *gpus, unsigned count, struct spread_share *shares)
{
	unsigned n = 0;
	bool some = true;

	for (unsigned i = 0; i < count && n < CHANNEL_AGENTS && n < wanted; i++)
		if (gpus[i])
			shares[n++] = (struct spread_share){.who = i};
	while (wanted && some) {
		some = false;
		for (unsigned i = 0; wanted && i < n; i++) {
			if (shares[i].took == gpus[shares[i].who])
				continue;
			shares[i].took++;
			wanted--;
			some = true;
		}
	}
	return wanted ? 0 : n;
}

unsigned spread_shares(enum spread_kind kind, uint32_t wanted, const uint32_t *gpus,
	unsigned count, struct spread_share shares[CHANNEL_AGENTS])
{
	if (kind == SPREAD_ALWAYS)
		return shares_even(wanted, gpus, count, shares);
	for (unsigned i = 0; i < count; i++)
		if (gpus[i] >= wanted) {
			shares[0] = (struct spread_share){i, wanted};
			return 1;
		}
	return shares_whole(wanted, gpus, count, shares);
}

/* They are the parts from now on. */
static void keep(struct spread *spread, const struct agents_offer *offers,
	const struct spread_share *shares, unsigned count)
{
	pthread_mutex_lock(&spread->lock);
	for (unsigned i = 0; i < count; i++) {
		struct spread_part *part = &spread->parts[i];

		snprintf(part->agents, sizeof(part->agents), "%s",
			offers[shares[i].who].address);
		part->gpus = shares[i].took;
		log_info("spread.chosen", "agent=%s gpus=%u", part->agents, part->gpus);
	}
	spread->count = count;
	spread->chosen = true;
	pthread_mutex_unlock(&spread->lock);
}

/* With `choosing` held. */
static int choose(struct spread *spread, const struct spread_wish *wish,
	const struct session_hello *hello, uint64_t deadline, struct error *error)
{
	cleanup_free struct agents_offer *offers = calloc(AGENTS_MAX, sizeof(*offers));
	struct spread_share shares[CHANNEL_AGENTS];
	uint32_t gpus[AGENTS_MAX], all = 0;
	unsigned parts;
	int count;

	if (!offers)
		return error_set(error, ENOMEM, "a list of agents");
	count = agents_ask(wish->agent, hello, deadline, offers, error);
	if (count < 0)
		return count;
	for (int i = 0; i < count; i++)
		all += gpus[i] = offers[i].gpus;
	parts = spread_shares(wish->kind, wish->gpus, gpus, (unsigned)count, shares);
	if (!parts)
		return error_set(error, EPERM,
			"%u GPUs are asked for; the agents of '%.120s' that would grant a "
			"session (%d) have %u",
			wish->gpus, wish->agent, count, all);
	keep(spread, offers, shares, parts);
	return 0;
}

int spread_choose(struct spread *spread, const struct spread_wish *wish,
	const struct session_hello *hello, bool alone, uint64_t deadline, bool *anew,
	struct error *error)
{
	int ret = 0;

	*anew = false;
	if (wish->kind == SPREAD_NEVER)
		return 0;
	pthread_mutex_lock(&spread->choosing);
	if (alone || !spread->chosen) {
		ret = choose(spread, wish, hello, deadline, error);
		*anew = !ret;
	}
	pthread_mutex_unlock(&spread->choosing);
	return ret;
}
