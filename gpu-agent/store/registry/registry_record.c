/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor as fields of a hash, see registry_record.h.
 */
#include "gpu-agent/store/registry/registry_record.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const states[] = {"created", "sealed", "lost"};

const char *record_state(enum registry_state state)
{
	return states[state];
}

void record_shape(char *out, size_t n, const struct registry_tensor *tensor)
{
	size_t at = (size_t)snprintf(out, n, "[");

	for (uint32_t i = 0; i < tensor->dimensions; i++)
		at += (size_t)snprintf(
			out + at, n - at, "%s%" PRIu64, i ? "," : "", tensor->shape[i]);
	snprintf(out + at, n - at, "]");
}

void record_base64(char out[92], const uint8_t handle[REGISTRY_HANDLE])
{
	EVP_EncodeBlock((unsigned char *)out, handle, REGISTRY_HANDLE);
}

static void put_text(struct link_arguments *arguments, const char *field, const char *text)
{
	link_argument_text(arguments, field);
	link_argument_text(arguments, text);
}

static void put_unsigned(struct link_arguments *arguments, const char *field, uint64_t number)
{
	link_argument_text(arguments, field);
	link_argument_unsigned(arguments, number);
}

static void put_number(struct link_arguments *arguments, const char *field, int64_t number)
{
	link_argument_text(arguments, field);
	link_argument_number(arguments, number);
}

void record_fields(struct link_arguments *arguments, const struct registry_tensor *tensor,
	const char *node, uint64_t epoch, struct record_texts *texts)
{
	record_shape(texts->shape, sizeof(texts->shape), tensor);
	record_base64(texts->handle, tensor->ipc_handle);
	put_text(arguments, "name", tensor->name);
	put_text(arguments, "dtype", tensor->dtype);
	put_text(arguments, "shape", texts->shape);
	put_unsigned(arguments, "device", tensor->device);
	put_unsigned(arguments, "bytes", tensor->bytes);
	link_argument_text(arguments, "ipc_handle");
	link_argument_bytes(arguments, tensor->ipc_handle, REGISTRY_HANDLE);
	put_text(arguments, "ipc_handle_b64", texts->handle);
	put_number(arguments, "owner_pid", tensor->owner_pid);
	put_number(arguments, "ctime", tensor->ctime);
	put_number(arguments, "mtime", tensor->mtime);
	put_text(arguments, "node", node);
	put_text(arguments, "gpu_uuid", tensor->gpu_uuid);
	put_text(arguments, "state", record_state(tensor->state));
	put_unsigned(arguments, "epoch", epoch);
	put_unsigned(arguments, "offset", tensor->offset);
	put_unsigned(arguments, "version", tensor->version);
	put_text(arguments, "replicas", tensor->replicas);
	put_text(arguments, "error", tensor->error);
	put_text(arguments, "share", tensor->share);
}

/* Digits alone, as we write them. */
static bool read_unsigned(const redisReply *value, uint64_t most, uint64_t *number)
{
	uint64_t all = 0;

	if (!value->len || value->len > 20)
		return false;
	for (size_t i = 0; i < value->len; i++) {
		uint64_t digit = (uint64_t)(value->str[i] - '0');

		if (value->str[i] < '0' || value->str[i] > '9' ||
			__builtin_mul_overflow(all, 10, &all) ||
			__builtin_add_overflow(all, digit, &all))
			return false;
	}
	*number = all;
	return all <= most;
}

static bool read_u32(const redisReply *value, uint64_t most, uint32_t *number)
{
	uint64_t wide;

	if (!read_unsigned(value, most, &wide))
		return false;
	*number = (uint32_t)wide;
	return true;
}

static bool read_time(const redisReply *value, int64_t *number)
{
	uint64_t wide;

	if (!read_unsigned(value, INT64_MAX, &wide))
		return false;
	*number = (int64_t)wide;
	return true;
}

static bool read_text(const redisReply *value, char *out, size_t n)
{
	if (value->len >= n || memchr(value->str, 0, value->len))
		return false;
	memcpy(out, value->str, value->len + 1);
	return true;
}

/* One that is shown only: what does not fit is cut off. */
static bool read_shown(const redisReply *value, char *out, size_t n)
{
	size_t length = value->len < n - 1 ? value->len : n - 1;

	memcpy(out, value->str, length);
	out[length] = 0;
	return true;
}

static bool read_shape(const redisReply *value, struct registry_tensor *tensor)
{
	const char *at = value->str, *end = at + value->len;

	tensor->dimensions = 0;
	if (value->len < 2 || *at++ != '[' || *--end != ']')
		return false;
	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		redisReply one = {.str = (char *)(uintptr_t)at};

		one.len = (size_t)((comma ? comma : end) - at);
		if (tensor->dimensions == REGISTRY_DIMENSIONS ||
			!read_unsigned(&one, UINT64_MAX, &tensor->shape[tensor->dimensions++]))
			return false;
		at += one.len + 1;
		if (comma && at >= end)
			return false;
	}
	return true;
}

static bool read_state(const redisReply *value, enum registry_state *state)
{
	for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (!strcmp(value->str, states[i])) {
			*state = (enum registry_state)i;
			return true;
		}
	}
	return false;
}

enum field {
	FIELD_NAME,
	FIELD_DTYPE,
	FIELD_SHAPE,
	FIELD_DEVICE,
	FIELD_BYTES,
	FIELD_HANDLE,
	FIELD_OWNER_PID,
	FIELD_CTIME,
	FIELD_MTIME,
	FIELD_NODE,
	FIELD_GPU_UUID,
	FIELD_STATE,
	FIELD_EPOCH,
	FIELD_OFFSET,
	FIELD_VERSION,
	FIELD_REFCOUNT,
	FIELDS_NEEDED,
	FIELD_REPLICAS = FIELDS_NEEDED,
	FIELD_ERROR,
	FIELD_SHARE,
	FIELD_ADDRESS,
	FIELD_FOR,
	FIELD_BY,
	FIELDS
};

static const char *const names[] = {"name", "dtype", "shape", "device", "bytes", "ipc_handle",
	"owner_pid", "ctime", "mtime", "node", "gpu_uuid", "state", "epoch", "offset",
	"version", "refcount", "replicas", "error", "share", "address", "for", "by"};

static bool read_field(
	enum field field, const redisReply *value, struct registry_tensor *tensor)
{
	uint32_t pid;

	switch (field) {
	case FIELD_NAME: return read_text(value, tensor->name, sizeof(tensor->name));
	case FIELD_DTYPE:
		return read_text(value, tensor->dtype, sizeof(tensor->dtype)) &&
		       registry_dtype(tensor->dtype);
	case FIELD_SHAPE: return read_shape(value, tensor);
	case FIELD_DEVICE: return read_u32(value, UINT16_MAX, &tensor->device);
	case FIELD_BYTES: return read_unsigned(value, REGISTRY_BYTES_MAX, &tensor->bytes);
	case FIELD_HANDLE:
		if (value->len != REGISTRY_HANDLE)
			return false;
		memcpy(tensor->ipc_handle, value->str, REGISTRY_HANDLE);
		return true;
	case FIELD_OWNER_PID:
		if (!read_u32(value, INT32_MAX, &pid))
			return false;
		tensor->owner_pid = (int32_t)pid;
		return true;
	case FIELD_CTIME: return read_time(value, &tensor->ctime);
	case FIELD_MTIME: return read_time(value, &tensor->mtime);
	case FIELD_NODE: return read_text(value, tensor->node, sizeof(tensor->node));
	case FIELD_GPU_UUID:
		return read_text(value, tensor->gpu_uuid, sizeof(tensor->gpu_uuid));
	case FIELD_STATE: return read_state(value, &tensor->state);
	case FIELD_EPOCH: return read_unsigned(value, UINT64_MAX, &tensor->epoch);
	case FIELD_OFFSET: return read_unsigned(value, REGISTRY_BYTES_MAX, &tensor->offset);
	case FIELD_VERSION: return read_unsigned(value, UINT64_MAX, &tensor->version);
	case FIELD_REFCOUNT: return read_unsigned(value, UINT64_MAX, &tensor->refcount);
	case FIELD_REPLICAS:
		return read_shown(value, tensor->replicas, sizeof(tensor->replicas));
	case FIELD_ERROR: return read_shown(value, tensor->error, sizeof(tensor->error));
	case FIELD_SHARE: return read_text(value, tensor->share, sizeof(tensor->share));
	case FIELD_ADDRESS: return read_text(value, tensor->address, sizeof(tensor->address));
	case FIELD_FOR: return read_text(value, tensor->for_space, sizeof(tensor->for_space));
	case FIELD_BY: return read_text(value, tensor->by, sizeof(tensor->by));
	default: return true;
	}
}

static enum field field_of(const redisReply *name)
{
	unsigned i = 0;

	while (i < FIELDS && strcmp(names[i], name->str))
		i++;
	return (enum field)i;
}

int record_read(const redisReply *fields, struct registry_tensor *tensor, struct error *error)
{
	uint32_t seen = 0;
	uint64_t bytes;
	struct error why;

	memset(tensor, 0, sizeof(*tensor));
	if (fields->type != REDIS_REPLY_ARRAY || fields->elements % 2)
		return error_set(error, 0, "Redis' answer has no fields of a hash");
	for (size_t i = 0; i < fields->elements; i += 2) {
		const redisReply *name = fields->element[i], *value = fields->element[i + 1];
		enum field field;

		if (!name || !value || name->type != REDIS_REPLY_STRING ||
			value->type != REDIS_REPLY_STRING)
			return error_set(error, 0, "Redis' answer has no fields of a hash");
		field = field_of(name);
		if (!read_field(field, value, tensor))
			return error_set(error, 0, "the field %s of the hash cannot be read",
				names[field]);
		seen |= 1u << field;
	}
	for (unsigned i = 0; i < FIELDS_NEEDED; i++) {
		if (!(seen & 1u << i))
			return error_set(error, 0, "the hash has no field %s", names[i]);
	}
	if (registry_bytes(tensor->dtype, tensor->shape, tensor->dimensions, &bytes, &why))
		return error_set(error, 0, "the hash cannot be: %.180s", why.text);
	if (bytes != tensor->bytes)
		return error_set(error, 0,
			"the field bytes of the hash is not what dtype and shape say");
	return 0;
}
