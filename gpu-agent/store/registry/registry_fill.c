/* SPDX-License-Identifier: Apache-2.0
 *
 * From a new connection to an index that says what the store knows, and the renewal of the
 * agent's key: entering takes a new token, and every script looks whether it is still there, so
 * that an index that was emptied is found with the first request, or the next renewal.
 */
#include "gpu-agent/store/registry/registry_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/store/registry/commands.h"
#include "gpu-agent/store/registry/registry_record.h"
#include "transport/transport.h"

#define PUTS 64	    /* under way at once */
#define HOLDERS 64u /* in one script */

/* What is under way in a round of entering and filling. */
struct step {
	struct registry *registry;
	unsigned round;
	enum script script;
	char name[REGISTRY_NAME + 1]; /* of a put */
};

static void enter(struct registry *registry);
static void walk(struct registry *registry);

static void fail(struct registry *registry, const redisReply *reply)
{
	char why[REGISTRY_TEXT];

	if (reply->type == REDIS_REPLY_ERROR)
		snprintf(why, sizeof(why), "Redis says: %.200s", reply->str);
	else
		snprintf(why, sizeof(why), "its answer is none of a script of ours");
	registry_link_close(&registry->link, why);
}

/* A replica is there before what it is of: that may come for as long as an agent may be silent.
 */
static bool waited(struct registry *registry)
{
	const uint64_t now = wait_now();

	if (!registry->waits_since)
		registry->waits_since = now;
	registry->waits = now - registry->waits_since < REGISTRY_ALIVE_MS * 1000000ull;
	return !registry->waits;
}

static void said(struct registry *registry, const struct step *step, const redisReply *reply)
{
	const char *word = registry_word(reply);
	const redisReply *fields = registry_fields(reply);
	struct registry_tensor tensor;
	struct error error;

	if (registry->leaving) {
		return; /* what it says is of an entry that goes */
	} else if (reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "NOSCRIPT", 8)) {
		fill_again(registry, true);
	} else if (!word) {
		fail(registry, reply);
	} else if (!strcmp(word, "REFILL")) {
		fill_again(registry, false);
	} else if (!strcmp(word, "NEWER")) {
		registry_link_close(
			&registry->link, "another agent has this node's ID, and a newer epoch");
	} else if (step->script == SCRIPT_ENTER) {
		registry->phase = PHASE_FILLING;
		registry->renew_at = registry_ns(REGISTRY_RENEW_MS);
		walk(registry);
	} else if (step->script == SCRIPT_FILLED) {
		log_debug(
			"registry.filled", "tensors=%llu", (unsigned long long)registry->puts);
		registry->phase = PHASE_READY;
		if (!registry->waits)
			registry->waits_since = 0;
		requests_go(registry);
	} else {
		registry->outstanding--;
		if (!strcmp(word, "ELSEWHERE") && fields &&
			!record_read(fields, &tensor, &error))
			registry->store->renamed(registry->owner, step->name, tensor.node);
		else if (!strcmp(word, "GONE") || (!strcmp(word, "WAIT") && waited(registry)))
			registry->store->renamed(registry->owner, step->name, "");
		else if (!strcmp(word, "FIRST") || !strcmp(word, "HEIR"))
			registry->store->first(registry->owner, step->name, *word == 'H');
		walk(registry);
	}
}

static void step_replied(void *argument, const redisReply *reply)
{
	struct step *step = argument;
	struct registry *registry = step->registry;

	if (reply && step->round == registry->round) {
		registry->step_until = registry_ns(REGISTRY_STEP_MS);
		said(registry, step, reply);
	}
	free(step);
}

static void go(struct registry *registry, const struct link_arguments *arguments,
	enum script script, const char *name)
{
	struct step *step = calloc(1, sizeof(*step));

	if (!step)
		abort();
	*step = (struct step){.registry = registry, .round = registry->round, .script = script};
	snprintf(step->name, sizeof(step->name), "%s", name);
	/* Where it is not sent the connection is ending, and all begins anew. */
	if (registry_link_send(&registry->link, arguments, step_replied, step))
		free(step);
}

static void put(struct registry *registry, const struct registry_tensor *tensor,
	const char *const *holders, size_t count)
{
	size_t n = count < HOLDERS ? count : HOLDERS;
	struct link_arguments arguments;
	struct record_texts texts;

	registry_script(registry, &arguments, SCRIPT_PUT);
	link_argument_text(&arguments, tensor->name);
	link_argument_text(&arguments, tensor->replica ? "1" : "");
	link_argument_unsigned(&arguments, n);
	for (size_t i = 0; i < n; i++)
		link_argument_text(&arguments, holders[i]);
	record_fields(
		&arguments, tensor, registry->config.node, registry->config.epoch, &texts);
	registry->outstanding++;
	registry->puts++;
	go(registry, &arguments, SCRIPT_PUT, tensor->name);
	while (n < count) {
		registry_script(registry, &arguments, SCRIPT_HOLD);
		link_argument_text(&arguments, tensor->name);
		for (size_t i = 0; i < HOLDERS && n < count; i++)
			link_argument_text(&arguments, holders[n++]);
		registry->outstanding++;
		go(registry, &arguments, SCRIPT_HOLD, tensor->name);
	}
}

/* Says as many tensors as may be under way; after the last, that it was. */
static void walk(struct registry *registry)
{
	struct link_arguments arguments;
	struct registry_tensor tensor;
	const char *const *holders;
	size_t count;

	while (!registry->walked && registry->outstanding < PUTS) {
		memset(&tensor, 0, sizeof(tensor));
		if (!registry->store->next(
			    registry->owner, &registry->cursor, &tensor, &holders, &count)) {
			registry->walked = true;
			break;
		}
		for (size_t i = 0; registry->commands && i < count; i++)
			commands_watch(registry->commands, holders[i]);
		put(registry, &tensor, holders, count);
	}
	if (!registry->walked || registry->outstanding)
		return;
	registry_script(registry, &arguments, SCRIPT_FILLED);
	go(registry, &arguments, SCRIPT_FILLED, "");
}

/* What the entry says of a network, as the last arguments. */
static void add_about(struct link_arguments *arguments, const struct registry_about *about)
{
	const char *const fields[][2] = {{"network", about->network}, {"driver", about->driver},
		{"version", about->version}, {"free_bytes", about->free_bytes}};

	for (size_t i = 0; about->network[0] && i < sizeof(fields) / sizeof(fields[0]); i++) {
		link_argument_text(arguments, fields[i][0]);
		link_argument_text(arguments, fields[i][1]);
	}
}

static bool new_token(struct registry *registry)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		snprintf(registry->token + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

/* Where other agents find this one. */
static void where(const struct registry *registry, char *out, size_t n)
{
	const struct registry_config *config = &registry->config;
	char host[64];

	if (config->at[0])
		snprintf(out, n, "%s", config->at);
	else if (transport_own_address(registry->link.redis->c.fd, host))
		snprintf(out, n, "%s:%u", config->node, config->port);
	else
		snprintf(out, n, "%s:%u", host, config->port);
}

static void enter(struct registry *registry)
{
	struct link_arguments arguments;
	char at[300];

	if (!new_token(registry)) {
		registry_link_close(&registry->link, "there are no random numbers");
		return;
	}
	requests_forget_drops(registry);
	registry->phase = PHASE_ENTERING;
	registry->round++;
	registry->cursor = registry->puts = 0;
	registry->walked = registry->waits = false;
	registry->outstanding = 0;
	registry->stale = false;
	registry->step_until = registry_ns(REGISTRY_STEP_MS);
	registry_script(registry, &arguments, SCRIPT_ENTER);
	where(registry, at, sizeof(at));
	link_argument_text(&arguments, at);
	link_argument_text(&arguments, registry->config.gpus);
	link_argument_unsigned(&arguments, registry->store->devices(registry->owner));
	link_argument_unsigned(&arguments, registry->config.memory);
	add_about(&arguments, &registry->config.about);
	go(registry, &arguments, SCRIPT_ENTER, "");
}

static void loaded(void *argument, const redisReply *reply)
{
	struct step *step = argument;
	struct registry *registry = step->registry;

	if (reply && step->round == registry->round) {
		if (reply->type != REDIS_REPLY_STRING ||
			strcmp(reply->str, registry->scripts[step->script].digest) != 0)
			fail(registry, reply);
		else if (!--registry->outstanding)
			enter(registry);
	}
	free(step);
}

static void load(struct registry *registry)
{
	registry->phase = PHASE_LOADING;
	registry->round++;
	registry->outstanding = SCRIPTS;
	registry->step_until = registry_ns(REGISTRY_STEP_MS);
	for (int i = 0; i < SCRIPTS; i++) {
		struct link_arguments arguments = {0};
		struct step *step = calloc(1, sizeof(*step));

		if (!step)
			abort();
		*step = (struct step){.registry = registry,
			.round = registry->round,
			.script = (enum script)i};
		link_argument_text(&arguments, "SCRIPT");
		link_argument_text(&arguments, "LOAD");
		link_argument_bytes(
			&arguments, registry->scripts[i].text, registry->scripts[i].n);
		if (registry_link_send(&registry->link, &arguments, loaded, step)) {
			free(step);
			return;
		}
	}
}

void fill_opened(struct registry_link *link)
{
	load(link->owner);
}

void fill_again(struct registry *registry, bool reload)
{
	if (registry->phase != PHASE_READY && registry->phase != PHASE_FILLING &&
		registry->phase != PHASE_ENTERING)
		return;
	if (reload)
		load(registry);
	else
		enter(registry);
}

void fill_connect(struct registry *registry)
{
	struct error error;

	registry->phase = PHASE_CONNECTING;
	if (registry_link_open(&registry->link, NULL, &error))
		registry->link.closed(&registry->link, error.text);
}

static void lapsed_replied(void *argument, const redisReply *reply);

/* NODE did not renew its key. */
static void lapse(struct registry *registry, const char *node)
{
	struct link_arguments arguments;
	struct step *step = calloc(1, sizeof(*step));

	if (!step)
		abort();
	*step = (struct step){
		.registry = registry, .round = registry->round, .script = SCRIPT_LAPSED};
	snprintf(step->name, sizeof(step->name), "%s", node);
	registry_script(registry, &arguments, SCRIPT_LAPSED);
	link_argument_text(&arguments, step->name);
	if (registry_link_send(&registry->link, &arguments, lapsed_replied, step))
		free(step);
}

static const redisReply *behind(const redisReply *reply, size_t at, int type)
{
	const redisReply *found = at < reply->elements ? reply->element[at] : NULL;

	return found && found->type == type ? found : NULL;
}

static void lapsed_replied(void *argument, const redisReply *reply)
{
	struct step *step = argument;
	const char *word = reply ? registry_word(reply) : NULL;
	const redisReply *count = word ? behind(reply, 1, REDIS_REPLY_INTEGER) : NULL;

	if (count && count->integer > 0 && count->integer <= UINT32_MAX) {
		step->registry->store->lost(step->registry->owner, (uint32_t)count->integer);
		log_error("tensors.lost", "tensors=%lld node=%s", count->integer, step->name);
	}
	if (word && !strcmp(word, "MORE"))
		lapse(step->registry, step->name);
	else if (word && !strcmp(word, "OK"))
		log_info("registry.lapsed", "node=%s", step->name);
	free(step);
}

/* What became of this agent's replicas; and when to look whether the next one has lapsed. */
static void heard(struct registry *registry, const redisReply *reply)
{
	const redisReply *words = behind(reply, 2, REDIS_REPLY_ARRAY);
	const redisReply *soonest = behind(reply, 3, REDIS_REPLY_STRING);
	unsigned long ms = soonest ? strtoul(soonest->str, NULL, 10) : REGISTRY_RENEW_MS;
	uint64_t look;

	for (size_t i = 0; words && i < words->elements; i++) {
		const redisReply *word = behind(words, i, REDIS_REPLY_STRING);

		if (!word || word->len < 2 || word->len > REGISTRY_NAME + 1)
			continue;
		if (word->str[0] == '-')
			registry->store->renamed(registry->owner, word->str + 1, "");
		else
			registry->store->first(
				registry->owner, word->str + 1, word->str[0] == '^');
	}
	if (ms < REGISTRY_RENEW_MS) {
		look = registry_ns((unsigned)ms + REGISTRY_LOOK_MS);
		if (look < registry->renew_at)
			registry->renew_at = look;
	}
	if (registry->waits)
		registry->stale = true;
}

static void renewed(void *argument, const redisReply *reply)
{
	struct registry *registry = argument;
	const char *word = reply ? registry_word(reply) : NULL;
	const redisReply *lapsed = reply ? registry_fields(reply) : NULL;

	if (!reply || registry->leaving)
		return;
	if (reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "NOSCRIPT", 8)) {
		fill_again(registry, true);
		return;
	}
	if (!word) {
		fail(registry, reply);
		return;
	}
	if (!strcmp(word, "REFILL")) {
		fill_again(registry, false);
		return;
	}
	for (size_t i = 0; lapsed && i < lapsed->elements; i++) {
		const redisReply *node = lapsed->element[i];

		if (node && node->type == REDIS_REPLY_STRING && node->len &&
			node->len <= REGISTRY_NODE)
			lapse(registry, node->str);
	}
	heard(registry, reply);
}

void fill_renew(struct registry *registry)
{
	struct link_arguments arguments;

	registry->renew_at = registry_ns(REGISTRY_RENEW_MS);
	registry_script(registry, &arguments, SCRIPT_RENEW);
	add_about(&arguments, &registry->config.about);
	registry_link_send(&registry->link, &arguments, renewed, registry);
}

static void has_left(void *argument, const redisReply *reply)
{
	(void)reply; /* one that refuses it has no more to say to us */
	((struct registry *)argument)->left = true;
}

void fill_leave(struct registry *registry)
{
	struct link_arguments arguments;

	registry_script(registry, &arguments, SCRIPT_LEAVE);
	if (registry_link_send(&registry->link, &arguments, has_left, registry))
		registry->left = true;
}
