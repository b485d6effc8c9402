/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a command, as answers of Redis, and as what a Redis says in the
 * middle of a conversation. Each command is understood or refused with a sentence, each request
 * ends exactly once, and what is taken for a tensor is one.
 *
 * The first byte chooses: 'j' a command, 'r' answers for the reader, else a conversation.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "common/log.h"
#include "gpu-agent/store/registry/commands_json.h"
#include "gpu-agent/store/registry/registry_core.h"
#include "gpu-agent/store/registry/registry_record.h"
#include "tests/fuzz/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define REQUESTS 4
#define PEERS 4 /* the registry's connections */

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_tensor(const struct registry_tensor *tensor)
{
	uint64_t bytes;
	struct error error;

	check(memchr(tensor->name, 0, sizeof(tensor->name)));
	check(!registry_bytes(
		tensor->dtype, tensor->shape, tensor->dimensions, &bytes, &error));
	check(bytes == tensor->bytes && bytes);
}

static void as_command(const char *text, size_t n)
{
	const struct registry_result bad = {REGISTRY_BAD, NULL, "why"};
	struct registry_result good = {REGISTRY_OK, NULL, ""};
	char name[REGISTRY_NAME + 1];
	struct command_text command;
	struct error error = {0};
	char *answer;
	cJSON *json;

	if (command_parse(&command, text, n, &error)) {
		check(error.text[0]);
	} else {
		check(!registry_name(name, "other", command.tensor.name, &error) ||
			!strchr(command.tensor.name, '/'));
		if (command.op == REGISTRY_CREATE)
			check_tensor(&command.tensor);
		good.tensor = &command.tensor;
	}
	check(strncmp(command.reply, "tensor", 6) != 0 &&
		strncmp(command.reply, "node:", 5) != 0);
	answer = command_answer(&command, good.tensor ? &good : &bad);
	json = cJSON_Parse(answer);
	check(json && !!cJSON_GetObjectItem(json, "error") == !good.tensor);
	cJSON_Delete(json);
	free(answer);
}

static void as_answers(const char *bytes, size_t n)
{
	redisReader *reader = redisReaderCreateWithFunctions(&registry_link_functions);
	void *reply = NULL;

	check(reader && !redisReaderFeed(reader, bytes, n));
	while (!redisReaderGetReply(reader, &reply) && reply) {
		struct registry_tensor tensor;
		struct error error = {0};

		if (record_read(reply, &tensor, &error))
			check(error.text[0]);
		else
			check_tensor(&tensor);
		check(tensor.dimensions <= REGISTRY_DIMENSIONS); /* refused or not */
		if (registry_word(reply))
			registry_fields(reply);
		registry_link_functions.freeObject(reply);
	}
	redisReaderFree(reader);
}

/* A store with one tensor. */

static struct registry *registry;
static unsigned answered;

static bool next(void *owner, uint64_t *cursor, struct registry_tensor *tensor,
	const char *const **holders, size_t *count)
{
	static const char *const all[] = {"s1", "s2"};

	if ((*cursor)++)
		return false;
	*tensor = *(const struct registry_tensor *)owner;
	*holders = all;
	*count = 2;
	return true;
}

static void command(void *owner, const struct registry_command *wanted)
{
	const struct registry_result result = {REGISTRY_OK, owner, ""};

	if (wanted->op == REGISTRY_CREATE)
		check_tensor(&wanted->tensor);
	registry_answer(registry, wanted->ticket, &result);
}

static void gone(void *owner, const char *holder)
{
	(void)owner;
	check(!strncmp(holder, "pid:", 4) || !strncmp(holder, "ttl:", 4));
}

static void lost(void *owner, uint32_t count)
{
	(void)owner;
	(void)count;
}

static void first(void *owner, const char *name, bool heir)
{
	(void)owner;
	(void)name;
	(void)heir;
}

static void renamed(void *owner, const char *name, const char *node)
{
	(void)owner;
	check(name[0] && node);
}

static uint32_t devices(void *owner)
{
	(void)owner;
	return 1;
}

static void done(void *argument, const struct registry_result *result)
{
	bool *was = argument;

	check(!*was && (result->status <= REGISTRY_HERE || result->text[0]));
	*was = true;
	answered++;
	if (result->tensor)
		check_tensor(result->tensor);
}

static void turns(void)
{
	for (int i = 0; i < 3; i++)
		registry_turn(registry);
}

static void say_text(int fd, const char *text)
{
	wire_say(fd, text, strlen(text));
	turns();
}

/* What a Redis says until the registry is ready; nobody here reads the scripts, which would be
 * half of an input's time. */
static const char *greeting(void)
{
	static char text[SCRIPTS * 48 + 100];
	struct script_text *scripts = (struct script_text *)(uintptr_t)scripts_all();
	char *at = text;

	if (text[0])
		return text;
	at = stpcpy(at, "+PONG\r\n");
	for (int i = 0; i < SCRIPTS; i++) {
		at += snprintf(at, 48, "$40\r\n%s\r\n", scripts[i].digest);
		scripts[i].n = 8;
	}
	at = stpcpy(at, "*2\r\n$2\r\nOK\r\n*0\r\n"); /* entered */
	at = stpcpy(at, "*1\r\n$2\r\nOK\r\n");	     /* its tensor */
	stpcpy(at, "*1\r\n$2\r\nOK\r\n");	     /* filled */
	return text;
}

static void request(struct registry_tensor *tensor, bool was[REQUESTS])
{
	registry_create(registry, tensor, "s3", done, &was[0]);
	registry_take(registry, "X", "s3", done, &was[1]);
	registry_update(registry, tensor, done, &was[2]);
	registry_delete(registry, "X", "s3", true, done, &was[3]);
	turns();
}

static void as_conversation(uint8_t how, const char *bytes, size_t n)
{
	static const struct registry_store store = {
		next, command, gone, renamed, first, lost, devices};
	struct registry_tensor tensor = {.name = "X", .dtype = "u8", .bytes = 1};
	const struct registry_config config = {
		.address = "unix:///redis", .node = "n1", .commands = true, .epoch = 1};
	int peers[PEERS] = {-1, -1, -1, -1};
	bool was[REQUESTS] = {false};
	struct error error;

	log_level = LOG_ERROR;
	wire_begin();
	check(!registry_open(&registry, &config, &store, &tensor, &error));
	turns();
	peers[0] = wire_accept();
	check(peers[0] >= 0);
	if (how & 1) {
		say_text(peers[0], greeting());
		check(registry_ready(registry));
	}
	request(&tensor, was);
	if (how & 2) {
		say_text(peers[0], "*0\r\n"); /* LRANGE: nothing taken before */
		for (int i = 1; i < PEERS; i++) {
			peers[i] = wire_accept();
			wire_say(peers[i], "+PONG\r\n", 7);
		}
		turns();
	}
	for (int i = 0; i < PEERS; i++)
		wire_say(peers[i], bytes, n);
	turns();
	registry_close(registry);
	wire_end();
	for (int i = 0; i < REQUESTS; i++)
		check(was[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	if (!n || n > 60000)
		return 0;
	if (*bytes == 'j')
		as_command((const char *)bytes + 1, n - 1);
	else if (*bytes == 'r')
		as_answers((const char *)bytes + 1, n - 1);
	else
		as_conversation(*bytes, (const char *)bytes + 1, n - 1);
	return 0;
}
