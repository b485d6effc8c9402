/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking commands, see commands.h: a connection for each list, which waits in BLMOVE, and now
 * and then a look at what this agent has taken.
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/store/registry/commands_core.h"

static void take(struct intake *intake);

static void list_name(const struct commands *commands, char out[REGISTRY_NODE + 16])
{
	snprintf(out, REGISTRY_NODE + 16, "tensor-taken:%s", commands->registry->config.node);
}

static void taken(void *argument, const redisReply *reply)
{
	struct intake *intake = argument;

	intake->waiting = false;
	if (!reply)
		return;
	if (reply->type == REDIS_REPLY_STRING)
		commands_arrive(intake->commands, reply->str, reply->len);
	else if (reply->type == REDIS_REPLY_ERROR) {
		registry_link_close(&intake->link, reply->str);
		return;
	}
	take(intake);
}

static void take(struct intake *intake)
{
	struct commands *commands = intake->commands;
	struct link_arguments arguments = {0};
	char mine[REGISTRY_NODE + 16];

	if (intake->waiting || !intake->link.ready || !commands->ready || !commands->looked ||
		commands->count >= UNDER_WAY)
		return;
	list_name(commands, mine);
	link_argument_text(&arguments, "BLMOVE");
	link_argument_text(&arguments, intake->list);
	link_argument_text(&arguments, mine);
	link_argument_text(&arguments, "RIGHT");
	link_argument_text(&arguments, "LEFT");
	link_argument_text(&arguments, WAIT_S);
	intake->waiting = !registry_link_send(&intake->link, &arguments, taken, intake);
	intake->until = registry_ns(ANSWER_MS);
}

static void intake_opened(struct registry_link *link)
{
	take(link->owner);
}

static void intake_closed(struct registry_link *link, const char *why)
{
	struct intake *intake = link->owner;

	if (intake->commands->registry->closing)
		return;
	log_debug("registry.intake", "list=%s why=\"%s\"", intake->list, why);
	intake->waiting = false;
	intake->commands->connect_at = registry_ns(AGAIN_MS);
	registry_arm(intake->commands->registry);
}

static void connect_all(struct commands *commands)
{
	struct error error;

	commands->connect_at = 0;
	for (int i = 0; i < LISTS; i++) {
		struct intake *intake = &commands->intakes[i];

		if (!intake->link.redis && registry_link_open(&intake->link, NULL, &error))
			intake_closed(&intake->link, error.text);
		take(intake);
	}
}

/* Looking for what is in our list and not here: of an earlier life, or of an answer that got
 * lost with its connection. */

static size_t count_entries(const struct commands *commands, const char *raw, size_t n)
{
	size_t count = 0;

	for (const struct entry *entry = commands->entries; entry; entry = entry->next)
		count += entry->n == n && !memcmp(entry->raw, raw, n);
	return count;
}

static size_t count_replies(const redisReply *reply, size_t until, const redisReply *one)
{
	size_t count = 0;

	for (size_t i = 0; i < until; i++)
		count += reply->element[i]->len == one->len &&
			 !memcmp(reply->element[i]->str, one->str, one->len);
	return count;
}

static void free_strays(struct commands *commands)
{
	for (size_t i = 0; i < commands->stray_count; i++)
		free(commands->strays[i]);
	free(commands->strays);
	commands->strays = NULL;
	commands->stray_count = 0;
}

static bool was_stray(const struct commands *commands, const redisReply *one)
{
	for (size_t i = 0; i < commands->stray_count; i++) {
		if (strlen(commands->strays[i]) == one->len &&
			!strcmp(commands->strays[i], one->str))
			return true;
	}
	return false;
}

static void looked(void *argument, const redisReply *reply)
{
	struct commands *commands = argument;
	const bool first = !commands->looked;
	char **strays = NULL;
	size_t count = 0, had = commands->count;

	commands->looking = false;
	if (!reply || reply->type != REDIS_REPLY_ARRAY)
		return;
	strays = calloc(reply->elements + 1, sizeof(*strays));
	for (size_t i = 0; strays && i < reply->elements; i++) {
		const redisReply *one = reply->element[i];

		if (!one || one->type != REDIS_REPLY_STRING)
			break;
		if (count_entries(commands, one->str, one->len) > count_replies(reply, i, one))
			continue;
		if (first || was_stray(commands, one))
			commands_arrive(commands, one->str, one->len);
		else if ((strays[count] = strdup(one->str)))
			count++;
	}
	free_strays(commands);
	commands->strays = strays;
	commands->stray_count = count;
	commands->looked = true;
	if (first && commands->count > had)
		log_info("registry.taken_before", "commands=%u",
			commands->count - (unsigned)had);
	if (first)
		connect_all(commands);
}

static void look(struct commands *commands)
{
	struct registry *registry = commands->registry;
	struct link_arguments arguments = {0};
	char mine[REGISTRY_NODE + 16];

	commands->look_at = registry_ns(LOOK_MS);
	if (commands->looking)
		return;
	list_name(commands, mine);
	link_argument_text(&arguments, "LRANGE");
	link_argument_text(&arguments, mine);
	link_argument_text(&arguments, "0");
	link_argument_text(&arguments, "1023");
	commands->looking = !registry_link_send(&registry->link, &arguments, looked, commands);
}

void taking_go(struct commands *commands)
{
	if (commands->ready && !commands->looked)
		look(commands);
	for (int i = 0; i < LISTS; i++)
		take(&commands->intakes[i]);
}

void taking_stop(struct commands *commands)
{
	commands->looked = commands->looking = false;
	for (int i = 0; i < LISTS; i++)
		registry_link_close(&commands->intakes[i].link, "the index is away");
	commands->connect_at = 0;
}

uint64_t taking_until(const struct commands *commands)
{
	uint64_t until = 0;

	if (!commands->ready)
		return 0;
	if (commands->looked)
		until = commands_sooner(commands->look_at, commands->connect_at);
	for (int i = 0; i < LISTS; i++) {
		const struct intake *intake = &commands->intakes[i];

		if (intake->link.redis && !intake->link.ready)
			until = commands_sooner(until, intake->link.deadline);
		else if (intake->link.redis && intake->waiting)
			until = commands_sooner(until, intake->until);
	}
	return until;
}

void taking_tick(struct commands *commands, uint64_t now)
{
	for (int i = 0; i < LISTS; i++) {
		struct intake *intake = &commands->intakes[i];
		const uint64_t until =
			intake->link.ready ? intake->until : intake->link.deadline;

		if (intake->link.redis && (!intake->link.ready || intake->waiting) &&
			until <= now)
			registry_link_close(&intake->link, "it does not answer");
	}
	if (commands->ready && commands->looked && commands->look_at <= now)
		look(commands);
	if (commands->ready && commands->connect_at && commands->connect_at <= now)
		connect_all(commands);
}

void taking_init(struct commands *commands)
{
	strcpy(commands->intakes[0].list, "tensor:cmd");
	strcpy(commands->intakes[1].list, "tensor_lifecycle");
	snprintf(commands->intakes[2].list, sizeof(commands->intakes[2].list), "tensor-cmd:%s",
		commands->registry->config.node);
	for (int i = 0; i < LISTS; i++) {
		commands->intakes[i].commands = commands;
		registry_link_init(&commands->intakes[i].link, commands->registry->epoll,
			&commands->registry->config, &commands->intakes[i], intake_opened,
			intake_closed);
	}
}

void taking_close(struct commands *commands)
{
	for (int i = 0; i < LISTS; i++)
		registry_link_close(&commands->intakes[i].link, "the store ends");
	free_strays(commands);
}
