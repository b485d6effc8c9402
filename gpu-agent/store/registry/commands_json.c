/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands as JSON, see commands_json.h.
 */
#include "gpu-agent/store/registry/commands_json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gpu-agent/store/registry/registry_record.h"

#define EXACT 9007199254740992.0 /* 2^53: what a double tells from its neighbours */

static void free_json(cJSON **json)
{
	cJSON_Delete(*json);
}
#define cleanup_json __attribute__((cleanup(free_json)))

/* cJSON recurses; this does not. */
static bool too_deep(const char *text, size_t n)
{
	int depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < n; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '[') &&
			 ++depth > COMMAND_DEPTH)
			return true;
		else if (!quoted && (text[i] == '}' || text[i] == ']'))
			depth--;
	}
	return false;
}

static int printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x21 || (unsigned char)*text > 0x7e)
			return 0;
	}
	return 1;
}

/* A text of up to N - 1 bytes where the key is there. */
static int get_text(
	const cJSON *json, const char *key, char *out, size_t n, struct error *error)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	if (!item)
		return 0;
	if (!cJSON_IsString(item))
		return error_set(error, 0, "\"%s\" is no text", key);
	if (strlen(item->valuestring) >= n)
		return error_set(error, 0, "\"%s\" has more than %zu bytes", key, n - 1);
	strcpy(out, item->valuestring);
	return 0;
}

static bool whole(const cJSON *item, double least, double most)
{
	return cJSON_IsNumber(item) && item->valuedouble >= least &&
	       item->valuedouble <= most &&
	       (double)(int64_t)item->valuedouble == item->valuedouble;
}

static int get_number(const cJSON *json, const char *key, uint32_t least, uint32_t most,
	uint32_t *out, struct error *error)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

	if (!item)
		return 0;
	if (!whole(item, least, most))
		return error_set(
			error, 0, "\"%s\" is no whole number from %u to %u", key, least, most);
	*out = (uint32_t)item->valuedouble;
	return 0;
}

static int get_shape(const cJSON *json, struct registry_tensor *tensor, struct error *error)
{
	const cJSON *shape = cJSON_GetObjectItemCaseSensitive(json, "shape"), *item;

	if (!cJSON_IsArray(shape))
		return error_set(error, 0, "\"shape\" is no list of numbers");
	cJSON_ArrayForEach(item, shape)
	{
		if (tensor->dimensions == REGISTRY_DIMENSIONS)
			return error_set(error, 0, "\"shape\" has more than %d dimensions",
				REGISTRY_DIMENSIONS);
		if (!whole(item, 1, EXACT))
			return error_set(error, 0,
				"dimension %u of \"shape\" is no whole number from 1 to 2^53",
				tensor->dimensions);
		tensor->shape[tensor->dimensions++] = (uint64_t)item->valuedouble;
	}
	return registry_bytes(
		tensor->dtype, tensor->shape, tensor->dimensions, &tensor->bytes, error);
}

static int no_key_twice(const cJSON *json, struct error *error)
{
	for (const cJSON *item = json->child; item; item = item->next) {
		for (const cJSON *other = item->next; other; other = other->next) {
			if (!strcmp(item->string, other->string))
				return error_set(error, 0, "a key is there twice");
		}
	}
	return 0;
}

/* Who is to be told, before anything that can be wrong with the rest. */
static int get_reply(struct command_text *command, const cJSON *json, struct error *error)
{
	char id[COMMAND_ID + 1] = "", reply[REGISTRY_NAME + 1] = "";
	int ret = get_text(json, "reply", reply, sizeof(reply), error);

	if (!ret && (!strncmp(reply, "tensor", 6) || !strncmp(reply, "node:", 5)))
		ret = error_set(error, 0, "\"reply\" is one of our own keys: tensor…, node:…");
	if (ret)
		return ret;
	strcpy(command->reply, reply);
	ret = get_text(json, "id", id, sizeof(id), error);
	if (!ret && !printable(id))
		ret = error_set(error, 0, "\"id\" has other bytes than printable ASCII");
	if (!ret)
		strcpy(command->id, id);
	return ret;
}

static int get_op(struct command_text *command, const cJSON *json, struct error *error)
{
	static const char *const ops[] = {"create", "get", "delete"};
	char op[16] = "";
	int ret = get_text(json, "op", op, sizeof(op), error);

	if (ret)
		return ret;
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (!strcmp(op, ops[i])) {
			command->op = (enum registry_op)i;
			strcpy(command->op_name, op);
			return 0;
		}
	}
	return error_set(error, 0, "\"op\" is none of create, get, delete");
}

static int get_holder(struct command_text *command, const cJSON *json, struct error *error)
{
	uint32_t pid = 0;
	int ret = get_number(json, "pid", 1, INT32_MAX, &pid, error);

	if (!ret)
		ret = get_number(json, "ttl", 1, COMMAND_TTL_MOST, &command->ttl_s, error);
	if (!ret && pid && command->ttl_s)
		return error_set(error, 0, "\"pid\" and \"ttl\" are there both");
	command->pid = command->tensor.owner_pid = (int32_t)pid;
	return ret;
}

static int get_rest(struct command_text *command, const cJSON *json, struct error *error)
{
	char name[REGISTRY_NAME + 1] = "";
	int ret = get_text(json, "name", name, sizeof(name), error);

	if (!ret)
		ret = registry_name(command->tensor.name, REGISTRY_DEFAULT, name, error);
	if (!ret)
		ret = get_op(command, json, error);
	if (!ret)
		ret = get_text(json, "node", command->node, sizeof(command->node), error);
	if (!ret && strpbrk(command->node, "\n :"))
		ret = error_set(error, 0, "\"node\" is no node's ID");
	if (!ret)
		ret = get_holder(command, json, error);
	if (!ret)
		ret = get_number(json, "device", 0, UINT16_MAX, &command->tensor.device, error);
	if (!ret && command->op == REGISTRY_CREATE) {
		ret = get_text(json, "dtype", command->tensor.dtype,
			sizeof(command->tensor.dtype), error);
		if (!ret)
			ret = get_shape(json, &command->tensor, error);
	}
	return ret;
}

int command_parse(struct command_text *command, const char *text, size_t n, struct error *error)
{
	cleanup_json cJSON *json = NULL;
	const char *end;
	int ret;

	memset(command, 0, sizeof(*command));
	if (n > COMMAND_BYTES)
		return error_set(error, 0, "the command has more than %u bytes", COMMAND_BYTES);
	if (memchr(text, 0, n) || memmem(text, n, "\\u0000", 6))
		return error_set(error, 0, "the command has a NUL");
	if (too_deep(text, n))
		return error_set(
			error, 0, "the command's JSON is more than %d deep", COMMAND_DEPTH);
	json = cJSON_ParseWithLengthOpts(text, n, &end, false);
	while (json && end < text + n && strchr(" \t\r\n", *end))
		end++;
	if (!json || end != text + n)
		return error_set(error, 0, "the command is no JSON");
	if (!cJSON_IsObject(json))
		return error_set(error, 0, "the command is no JSON object");
	ret = get_reply(command, json, error);
	if (!ret)
		ret = no_key_twice(json, error);
	return ret ? ret : get_rest(command, json, error);
}

/* Answers. */

static void add_number(cJSON *json, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	cJSON_AddRawToObject(json, key, text); /* a double would round it */
}

static void add_tensor(cJSON *json, const struct registry_tensor *tensor)
{
	char shape[REGISTRY_DIMENSIONS * 21 + 3], handle[92];

	record_shape(shape, sizeof(shape), tensor);
	record_base64(handle, tensor->ipc_handle);
	cJSON_AddStringToObject(json, "dtype", tensor->dtype);
	cJSON_AddRawToObject(json, "shape", shape);
	add_number(json, "device", tensor->device);
	add_number(json, "bytes", tensor->bytes);
	cJSON_AddStringToObject(json, "ipc_handle_b64", handle);
	add_number(json, "owner_pid", (uint64_t)tensor->owner_pid);
	add_number(json, "refcount", tensor->refcount);
	add_number(json, "ctime", (uint64_t)tensor->ctime);
	add_number(json, "mtime", (uint64_t)tensor->mtime);
	cJSON_AddStringToObject(json, "node", tensor->node);
	cJSON_AddStringToObject(json, "gpu_uuid", tensor->gpu_uuid);
	cJSON_AddStringToObject(json, "state", record_state(tensor->state));
	add_number(json, "epoch", tensor->epoch);
	add_number(json, "offset", tensor->offset);
	add_number(json, "version", tensor->version);
}

char *command_answer(const struct command_text *command, const struct registry_result *result)
{
	static const char *const statuses[] = {[REGISTRY_OK] = "ok",
		[REGISTRY_MADE] = "made",
		[REGISTRY_HERE] = "here",
		[REGISTRY_ELSEWHERE] = "elsewhere",
		[REGISTRY_UNLIKE] = "unlike",
		[REGISTRY_MISSING] = "missing",
		[REGISTRY_HELD] = "held",
		[REGISTRY_BAD] = "bad",
		[REGISTRY_AWAY] = "away"};
	cleanup_json cJSON *json = cJSON_CreateObject();

	if (!json)
		return NULL;
	if (command->id[0])
		cJSON_AddStringToObject(json, "id", command->id);
	if (command->op_name[0])
		cJSON_AddStringToObject(json, "op", command->op_name);
	if (command->tensor.name[0])
		cJSON_AddStringToObject(json, "name", command->tensor.name);
	cJSON_AddStringToObject(json, "status", statuses[result->status]);
	if (result->status > REGISTRY_HERE)
		cJSON_AddStringToObject(json, "error",
			result->text[0] ? result->text : statuses[result->status]);
	else if (result->tensor)
		add_tensor(json, result->tensor);
	return cJSON_PrintUnformatted(json);
}
