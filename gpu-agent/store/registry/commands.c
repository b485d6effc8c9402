/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands from Redis' lists, see commands.h.
 *
 * One entry's way: see commands_core.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/store/registry/commands_core.h"

static void step(struct entry *entry);

static void forget(struct entry *entry)
{
	struct commands *commands = entry->commands;
	struct entry **at = &commands->entries;

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	commands->count--;
	free(entry->answer);
	free(entry);
	taking_go(commands);
}

static void set_answer(struct entry *entry, char *answer, const char *fault)
{
	if (!answer)
		abort(); /* no memory: the promise to answer could not be kept */
	free(entry->answer);
	entry->answer = answer;
	snprintf(entry->fault, sizeof(entry->fault), "%s", fault);
	entry->state = ENTRY_ANSWERED;
	step(entry);
}

static void refuse(struct entry *entry, const char *why)
{
	const struct registry_result result = {REGISTRY_BAD, NULL, why};

	log_warn("registry.command", "op=%s error=\"%s\"", entry->text.op_name, why);
	set_answer(entry, command_answer(&entry->text, &result), why);
}

/* Nothing is done and nothing said: somebody else answers. */
static void leave(struct entry *entry)
{
	set_answer(entry, strdup(""), "");
}

static bool is_ours(const struct entry *entry)
{
	return !strcmp(entry->text.node, entry->commands->registry->config.node);
}

static void forward(struct entry *entry, const char *node)
{
	snprintf(entry->other, sizeof(entry->other), "%s", node);
	entry->state = ENTRY_SENDING;
	step(entry);
}

static void run(struct entry *entry)
{
	struct registry *registry = entry->commands->registry;
	struct registry_command command = {.op = entry->text.op, .ticket = entry->ticket};
	struct error error;

	if (entry->text.op == REGISTRY_CREATE &&
		entry->text.tensor.device >= registry->store->devices(registry->owner)) {
		forward(entry, entry->text.node);
		return;
	}
	if (entry->text.pid && holder_of_pid(entry->holder, entry->text.pid, &error)) {
		refuse(entry, error.text);
		return;
	}
	if (entry->text.ttl_s && !entry->holder[0])
		holder_of_ttl(entry->holder, entry->text.ttl_s);
	if (entry->holder[0] && entry->text.op != REGISTRY_DELETE &&
		holders_watch(&entry->commands->holders, entry->holder, &error)) {
		refuse(entry, error.text);
		return;
	}
	command.tensor = entry->text.tensor;
	strcpy(command.holder, entry->holder);
	entry->state = ENTRY_RUNNING;
	registry->store->command(registry->owner, &command);
}

static struct entry *of_id(const struct commands *commands, const struct entry *but)
{
	struct entry *entry = commands->entries;

	while (entry && (entry == but || strcmp(entry->text.id, but->text.id)))
		entry = entry->next;
	return entry;
}

/* Whose it is, before anything is done. */
static void begin(struct entry *entry)
{
	struct error error = {0};

	if (command_parse(&entry->text, entry->raw, entry->n, &error)) {
		entry->broken = true;
		refuse(entry, error.text);
	} else if (entry->text.id[0] && of_id(entry->commands, entry)) {
		leave(entry);
	} else if (entry->text.node[0] && !is_ours(entry)) {
		forward(entry, entry->text.node);
	} else {
		step(entry);
	}
}

static void again_later(struct entry *entry)
{
	entry->state = ENTRY_NEW;
	entry->again_at = registry_ns(AGAIN_MS);
	registry_arm(entry->commands->registry);
}

/* A command without a sentence from Redis' side: it is asked again. */
static bool no_answer(struct entry *entry, const redisReply *reply, const char **word)
{
	struct registry *registry = entry->commands->registry;

	entry->asking = false;
	*word = reply ? registry_word(reply) : NULL;
	if (reply && !*word && reply->type == REDIS_REPLY_ERROR &&
		!strncmp(reply->str, "NOSCRIPT", 8))
		fill_again(registry, true);
	else if (reply && !*word)
		registry_link_close(&registry->link, "its answer is none of a script of ours");
	else if (*word && !strcmp(*word, "REFILL"))
		fill_again(registry, false);
	else
		return !*word;
	return true;
}

static void began(void *argument, const redisReply *reply)
{
	struct entry *entry = argument;
	const char *word;

	if (no_answer(entry, reply, &word))
		return;
	if (!strcmp(word, "DONE") && reply->elements > 1 &&
		reply->element[1]->type == REDIS_REPLY_ARRAY &&
		reply->element[1]->elements == 1 &&
		reply->element[1]->element[0]->type == REDIS_REPLY_STRING) {
		set_answer(entry, strdup(reply->element[1]->element[0]->str), "");
	} else if (!strcmp(word, "BUSY")) {
		leave(entry);
	} else {
		entry->repeated = !strcmp(word, "AGAIN");
		run(entry);
	}
}

static void finished(void *argument, const redisReply *reply)
{
	struct entry *entry = argument;
	const char *word;

	if (!no_answer(entry, reply, &word))
		forget(entry);
}

static void forwarded(void *argument, const redisReply *reply)
{
	struct entry *entry = argument;
	char why[128];
	const char *word;

	if (no_answer(entry, reply, &word))
		return;
	if (strcmp(word, "MISSING") != 0) {
		forget(entry);
		return;
	}
	if (entry->other[0] && !is_ours(entry))
		snprintf(why, sizeof(why), "there is no agent %s", entry->other);
	else
		snprintf(why, sizeof(why), "no agent has a device %u",
			entry->text.tensor.device);
	if (is_ours(entry))
		snprintf(why, sizeof(why), "the agent %s has no device %u", entry->text.node,
			entry->text.tensor.device);
	refuse(entry, why);
}

static void send_finish(struct entry *entry)
{
	struct registry *registry = entry->commands->registry;
	struct link_arguments arguments;

	registry_script(registry, &arguments, SCRIPT_FINISH);
	link_argument_bytes(&arguments, entry->raw, entry->n);
	link_argument_text(&arguments, entry->broken ? "" : entry->text.id);
	link_argument_text(&arguments, entry->text.reply);
	link_argument_text(&arguments, entry->answer);
	link_argument_text(&arguments, entry->text.tensor.name);
	link_argument_text(&arguments, entry->fault);
	entry->asking = !registry_link_send(&registry->link, &arguments, finished, entry);
}

static void send_forward(struct entry *entry)
{
	struct registry *registry = entry->commands->registry;
	struct link_arguments arguments;

	registry_script(registry, &arguments, SCRIPT_FORWARD);
	link_argument_bytes(&arguments, entry->raw, entry->n);
	link_argument_text(&arguments, entry->other);
	link_argument_unsigned(&arguments, entry->text.tensor.device);
	entry->asking = !registry_link_send(&registry->link, &arguments, forwarded, entry);
}

static void send_begin(struct entry *entry)
{
	struct registry *registry = entry->commands->registry;
	struct link_arguments arguments;

	registry_script(registry, &arguments, SCRIPT_BEGIN);
	link_argument_text(&arguments, entry->text.id);
	entry->asking = !registry_link_send(&registry->link, &arguments, began, entry);
}

static void step(struct entry *entry)
{
	if (entry->asking || entry->commands->registry->phase != PHASE_READY)
		return;
	if (entry->again_at)
		return;
	if (entry->state == ENTRY_NEW && entry->text.id[0])
		send_begin(entry);
	else if (entry->state == ENTRY_NEW)
		run(entry);
	else if (entry->state == ENTRY_ANSWERED)
		send_finish(entry);
	else if (entry->state == ENTRY_SENDING)
		send_forward(entry);
}

void registry_answer(
	struct registry *registry, uint64_t ticket, const struct registry_result *result)
{
	const struct registry_result deleted = {REGISTRY_OK, NULL, ""};
	struct entry *entry = registry->commands ? registry->commands->entries : NULL;

	while (entry && entry->ticket != ticket)
		entry = entry->next;
	if (!entry || entry->state != ENTRY_RUNNING)
		return;
	if (result->status == REGISTRY_AWAY && entry->tries++ < TRIES) {
		again_later(entry);
		return;
	}
	if (result->status == REGISTRY_ELSEWHERE && result->tensor && !entry->text.node[0]) {
		forward(entry, result->tensor->node);
		return;
	}
	/* Who began it before had come so far. */
	if (result->status == REGISTRY_MISSING && entry->text.op == REGISTRY_DELETE &&
		entry->repeated)
		result = &deleted;
	set_answer(entry, command_answer(&entry->text, result),
		result->status <= REGISTRY_HERE ? ""
		: result->text[0]		? result->text
						: "refused");
}

void commands_arrive(struct commands *commands, const char *raw, size_t n)
{
	struct entry *entry = calloc(1, sizeof(*entry) + n + 1);

	if (!entry)
		abort();
	entry->commands = commands;
	entry->ticket = ++commands->tickets;
	entry->n = n;
	memcpy(entry->raw, raw, n);
	entry->next = commands->entries;
	commands->entries = entry;
	commands->count++;
	begin(entry);
}

void commands_ready(struct commands *commands)
{
	struct entry *next;

	commands->ready = true;
	for (struct entry *entry = commands->entries; entry; entry = next) {
		next = entry->next;
		step(entry);
	}
	taking_go(commands);
}

void commands_away(struct commands *commands)
{
	commands->ready = false;
	taking_stop(commands);
}

static bool holder_busy(void *argument, const char *name)
{
	const struct commands *commands = argument;

	for (const struct entry *entry = commands->entries; entry; entry = entry->next) {
		if (!strcmp(entry->holder, name) && entry->state == ENTRY_RUNNING)
			return true;
	}
	return false;
}

uint64_t commands_until(const struct commands *commands)
{
	uint64_t until =
		commands_sooner(holders_until(&commands->holders), taking_until(commands));

	for (const struct entry *entry = commands->entries; entry; entry = entry->next)
		until = commands_sooner(until, entry->again_at);
	return until;
}

void commands_tick(struct commands *commands, uint64_t now)
{
	struct registry *registry = commands->registry;
	char holder[REGISTRY_HOLDER + 1];
	struct entry *next;

	while (holders_ended(&commands->holders, holder_busy, commands, holder))
		registry->store->gone(registry->owner, holder);
	for (struct entry *entry = commands->entries; entry; entry = next) {
		next = entry->next;
		if (!entry->again_at || entry->again_at > now)
			continue;
		entry->again_at = 0;
		step(entry);
	}
	taking_tick(commands, now);
}

void commands_watch(struct commands *commands, const char *holder)
{
	struct error error;

	if (holders_watch(&commands->holders, holder, &error))
		log_warn("registry.holder", "holder=%s error=\"%s\"", holder, error.text);
}

int commands_open(struct commands **out, struct registry *registry, struct error *error)
{
	struct commands *commands = calloc(1, sizeof(*commands));

	if (!commands)
		return error_set(error, ENOMEM, "the commands");
	commands->registry = registry;
	commands->holders.epoll = registry->epoll;
	taking_init(commands);
	*out = commands;
	return 0;
}

void commands_close(struct commands *commands)
{
	if (!commands)
		return;
	taking_close(commands);
	while (commands->entries) {
		struct entry *entry = commands->entries;

		commands->entries = entry->next;
		free(entry->answer);
		free(entry);
	}
	holders_close(&commands->holders);
	free(commands);
}
