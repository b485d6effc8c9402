/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the store to the index, see registry.h: each is one script, sent in order, with a
 * deadline.  One that finds the index strange comes back after it was filled again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "gpu-agent/store/registry/commands.h"
#include "gpu-agent/store/registry/registry_core.h"
#include "gpu-agent/store/registry/registry_record.h"

#define NEVER UINT64_MAX /* a drop has no deadline before it is sent: nobody waits for it */

static void append(struct request_list *list, struct request *request)
{
	request->next = NULL;
	*list->last = request;
	list->last = &request->next;
	list->count++;
}

static struct request *shift(struct request_list *list)
{
	struct request *request = list->first;

	if (!request)
		return NULL;
	list->first = request->next;
	if (!list->first)
		list->last = &list->first;
	list->count--;
	return request;
}

static void end(struct request *request, enum registry_status status,
	const struct registry_tensor *tensor, const char *text)
{
	const struct registry_result result = {status, tensor, text};

	/* The store has changed it, and Redis may not know. */
	if (status == REGISTRY_AWAY && request->script == SCRIPT_UPDATE)
		request->registry->stale = true;
	if (request->done)
		request->done(request->argument, &result);
	free(request);
}

static void away(struct request *request)
{
	const struct registry *registry = request->registry;
	char text[REGISTRY_TEXT * 2];

	snprintf(text, sizeof(text), "Redis at %.200s does not answer%s%s",
		registry->config.address, registry->why[0] ? ": " : "", registry->why);
	end(request, REGISTRY_AWAY, NULL, text);
}

void registry_script(
	const struct registry *registry, struct link_arguments *arguments, enum script script)
{
	arguments->count = 0;
	arguments->used = 0;
	link_argument_text(arguments, "EVALSHA");
	link_argument_text(arguments, registry->scripts[script].digest);
	link_argument_text(arguments, "0");
	link_argument_text(arguments, registry->config.node);
	link_argument_text(arguments, registry->token);
	link_argument_unsigned(arguments, registry->config.epoch);
}

const char *registry_word(const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ARRAY || !reply->elements || !reply->element[0] ||
		reply->element[0]->type != REDIS_REPLY_STRING)
		return NULL;
	return reply->element[0]->str;
}

const redisReply *registry_fields(const redisReply *reply)
{
	const redisReply *fields = reply->elements > 1 ? reply->element[1] : NULL;

	return fields && fields->type == REDIS_REPLY_ARRAY && fields->elements ? fields : NULL;
}

/* It goes out again when the index is filled; of many, the first has it filled. */
static void once_more(struct request *request, bool reload)
{
	struct registry *registry = request->registry;

	append(&registry->back, request);
	if (registry->phase == PHASE_READY)
		fill_again(registry, reload);
}

static void edited(struct request *request, const char *text)
{
	if (request->edited) {
		end(request, REGISTRY_BAD, NULL, text);
		return;
	}
	request->edited = true;
	once_more(request, false);
}

static bool word_status(const char *word, enum registry_status *status)
{
	static const char *const words[] = {[REGISTRY_OK] = "OK",
		[REGISTRY_MADE] = "MADE",
		[REGISTRY_HERE] = "HERE",
		[REGISTRY_ELSEWHERE] = "ELSEWHERE",
		[REGISTRY_UNLIKE] = "UNLIKE",
		[REGISTRY_MISSING] = "MISSING",
		[REGISTRY_HELD] = "HELD"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcmp(words[i], word)) {
			*status = (enum registry_status)i;
			return true;
		}
	}
	return false;
}

static const char *sentence(
	enum registry_status status, const struct registry_tensor *tensor, char *out, size_t n)
{
	char shape[400];

	out[0] = 0;
	if (status == REGISTRY_MISSING && tensor)
		snprintf(out, n, "the tensor is lost: %.240s", tensor->error);
	else if (status == REGISTRY_MISSING)
		snprintf(out, n, "there is no tensor with this name");
	else if (status == REGISTRY_ELSEWHERE)
		snprintf(out, n, "the agent %.63s has the tensor", tensor->node);
	else if (status == REGISTRY_HELD)
		snprintf(out, n, "%llu hold the tensor", (unsigned long long)tensor->refcount);
	if (status == REGISTRY_UNLIKE) {
		record_shape(shape, sizeof(shape), tensor);
		snprintf(out, n, "the tensor is there with dtype %s and shape %s",
			tensor->dtype, shape);
	}
	return out;
}

static void answer(struct request *request, const char *word, const redisReply *fields)
{
	enum registry_status status;
	struct registry_tensor tensor;
	struct error error = {0};
	char text[512];

	if (!word_status(word, &status)) {
		end(request, REGISTRY_AWAY, NULL, "Redis' answer is none of a script of ours");
		return;
	}
	if (fields && record_read(fields, &tensor, &error) && status != REGISTRY_MISSING) {
		edited(request, error.text);
		return;
	}
	if (error.text[0])
		fields = NULL;
	if (!fields && (status == REGISTRY_ELSEWHERE || status == REGISTRY_UNLIKE ||
			       status == REGISTRY_HELD)) {
		end(request, REGISTRY_AWAY, NULL, "Redis' answer is none of a script of ours");
		return;
	}
	end(request, status, fields ? &tensor : NULL,
		sentence(status, fields ? &tensor : NULL, text, sizeof(text)));
}

static void replied(void *argument, const redisReply *reply)
{
	struct request *request = shift(&((struct registry *)argument)->sent);
	const char *word = reply ? registry_word(reply) : NULL;
	char text[REGISTRY_TEXT];

	if (!reply) {
		away(request);
	} else if (reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "NOSCRIPT", 8)) {
		once_more(request, true);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		snprintf(text, sizeof(text), "Redis says: %.200s", reply->str);
		end(request, REGISTRY_AWAY, NULL, text);
	} else if (!word) {
		end(request, REGISTRY_AWAY, NULL, "Redis' answer is none of a script of ours");
	} else if (!strcmp(word, "REFILL")) {
		once_more(request, false);
	} else if (!strcmp(word, "EDITED")) {
		snprintf(text, sizeof(text), "somebody else has changed the hash tensor:%.180s",
			request->tensor.name);
		edited(request, text);
	} else {
		answer(request, word, registry_fields(reply));
	}
}

static int transmit(struct registry *registry, const struct request *request)
{
	struct link_arguments arguments;
	struct record_texts texts;

	registry_script(registry, &arguments, request->script);
	link_argument_text(&arguments, request->tensor.name);
	link_argument_text(&arguments, request->holder);
	if (request->script == SCRIPT_DELETE)
		link_argument_text(&arguments, request->refuse ? "1" : "");
	if (request->script == SCRIPT_YIELD || request->script == SCRIPT_TICKET)
		link_argument_text(&arguments, request->text);
	if (request->script == SCRIPT_CREATE || request->script == SCRIPT_UPDATE ||
		request->script == SCRIPT_REPLICA)
		record_fields(&arguments, &request->tensor, registry->config.node,
			registry->config.epoch, &texts);
	return registry_link_send(&registry->link, &arguments, replied, registry);
}

static void pump(struct registry *registry)
{
	while (registry->phase == PHASE_READY && registry->waiting.first) {
		if (registry->waiting.first->deadline == NEVER)
			registry->waiting.first->deadline = registry_ns(REGISTRY_DEADLINE_MS);
		if (transmit(registry, registry->waiting.first))
			return;
		append(&registry->sent, shift(&registry->waiting));
	}
}

void requests_go(struct registry *registry)
{
	if (registry->back.first) {
		*registry->back.last = registry->waiting.first;
		if (registry->waiting.first)
			registry->back.last = registry->waiting.last;
		registry->back.count += registry->waiting.count;
		registry->waiting = registry->back;
		registry->back = (struct request_list){.last = &registry->back.first};
	}
	if (registry->said_away)
		log_info("registry.back", "redis=%s", registry->config.address);
	registry->said_away = false;
	registry->why[0] = 0;
	registry->retry_ms = 0;
	pump(registry);
	if (registry->commands)
		commands_ready(registry->commands);
}

static struct request *make(struct registry *registry, enum script script, const char *name,
	const char *holder, registry_done done, void *argument)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		abort(); /* a promise to answer could not be kept */
	request->registry = registry;
	request->script = script;
	request->done = done;
	request->argument = argument;
	request->deadline = registry_ns(REGISTRY_DEADLINE_MS);
	snprintf(request->tensor.name, sizeof(request->tensor.name), "%s", name);
	snprintf(request->holder, sizeof(request->holder), "%s", holder);
	return request;
}

static void submit(struct registry *registry, struct request *request)
{
	if (registry->waiting.count >= REGISTRY_REQUESTS)
		request->deadline = 0; /* the next turn says so */
	append(&registry->waiting, request);
	pump(registry);
	registry_arm(registry);
}

/* With all that is known of the tensor. */
static void submit_tensor(struct registry *registry, enum script script,
	const struct registry_tensor *tensor, const char *holder, registry_done done,
	void *argument)
{
	struct request *request = make(registry, script, tensor->name, holder, done, argument);

	request->tensor = *tensor;
	submit(registry, request);
}

/* Nobody waits for it. The filling that is to come reads it from the store. */
static void submit_after(struct registry *registry, enum script script, const char *name,
	const char *holder, const char *text)
{
	struct request *request;

	if (registry->phase < PHASE_FILLING)
		return;
	request = make(registry, script, name, holder, NULL, NULL);
	request->deadline = NEVER;
	snprintf(request->text, sizeof(request->text), "%s", text);
	submit(registry, request);
}

void registry_create(struct registry *registry, const struct registry_tensor *tensor,
	const char *holder, registry_done done, void *argument)
{
	submit_tensor(registry, SCRIPT_CREATE, tensor, holder, done, argument);
}

void registry_take(struct registry *registry, const char *name, const char *holder,
	registry_done done, void *argument)
{
	submit(registry, make(registry, SCRIPT_TAKE, name, holder, done, argument));
}

void registry_drop(struct registry *registry, const char *name, const char *holder)
{
	submit_after(registry, SCRIPT_DROP, name, holder, "");
}

void registry_update(struct registry *registry, const struct registry_tensor *tensor,
	registry_done done, void *argument)
{
	submit_tensor(registry, SCRIPT_UPDATE, tensor, "", done, argument);
}

void registry_delete(struct registry *registry, const char *name, const char *holder,
	bool refuse, registry_done done, void *argument)
{
	struct request *request = make(registry, SCRIPT_DELETE, name, holder, done, argument);

	request->refuse = refuse;
	submit(registry, request);
}

void registry_replica(struct registry *registry, const struct registry_tensor *tensor,
	registry_done done, void *argument)
{
	submit_tensor(registry, SCRIPT_REPLICA, tensor, "", done, argument);
}

void registry_yield(struct registry *registry, const char *name, const char *why)
{
	submit_after(registry, SCRIPT_YIELD, name, "", why);
}

void registry_ticket(struct registry *registry, const char *name,
	const char ticket[REGISTRY_TICKET], const char *space, registry_done done,
	void *argument)
{
	struct request *request = make(registry, SCRIPT_TICKET, name, ticket, done, argument);

	snprintf(request->text, sizeof(request->text), "%s", space);
	submit(registry, request);
}

void registry_redeem(struct registry *registry, const char ticket[REGISTRY_TICKET],
	registry_done done, void *argument)
{
	submit(registry, make(registry, SCRIPT_REDEEM, "", ticket, done, argument));
}

/* Takes those that are due, or all drops, out of LIST and ends them. */
static void expire(struct request_list *list, uint64_t now, bool drops)
{
	struct request_list kept = {.last = &kept.first}, over = {.last = &over.first};
	struct request *request;

	while ((request = shift(list)))
		append(request->deadline <= now || (drops && request->script == SCRIPT_DROP)
				? &over
				: &kept,
			request);
	*list = kept;
	if (!list->first)
		list->last = &list->first;
	while ((request = shift(&over)))
		away(request);
}

void requests_forget_drops(struct registry *registry)
{
	expire(&registry->back, 0, true);
	expire(&registry->waiting, 0, true);
}

/* They rise, but for those that have none. */
static uint64_t first_deadline(const struct request_list *list)
{
	const struct request *request = list->first;

	while (request && request->deadline == NEVER)
		request = request->next;
	return request ? request->deadline + !request->deadline : 0;
}

uint64_t requests_until(const struct registry *registry)
{
	const struct request_list *lists[] = {
		&registry->waiting, &registry->back, &registry->sent};
	uint64_t until = 0;

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const uint64_t first = first_deadline(lists[i]);

		if (first && (!until || first < until))
			until = first;
	}
	return until;
}

void requests_tick(struct registry *registry, uint64_t now)
{
	struct request_list *lists[] = {&registry->back, &registry->waiting};

	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const uint64_t first = first_deadline(lists[i]);

		if ((first && first <= now) || now == UINT64_MAX)
			expire(lists[i], now, false);
	}
}
