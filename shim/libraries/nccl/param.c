/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of the agent's NCCL: each is asked for once and kept for as long as the process
 * runs, since a handle of one is valid for that long.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/engine/lock.h"
#include "shim/libraries/nccl/nccl.h"

struct ncclParamHandle {
	char key[NCCL_KEY];
	struct wire_ncclParamBind_reply is;
	struct ncclParamHandle *next;
};

static struct {
	pthread_mutex_t lock;
	struct ncclParamHandle *first;
	const char **keys; /* all; in one allocation with their texts */
	int count;
} params = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(nccl_params, params.lock, LOCK_PARAM);

/* The one of that key, and if there is none FRESH. */
static struct ncclParamHandle *param_keep(const char *key, struct ncclParamHandle *fresh)
{
	struct ncclParamHandle *p;

	pthread_mutex_lock(&params.lock);
	for (p = params.first; p && strcmp(p->key, key); p = p->next)
		;
	if (!p && fresh) {
		fresh->next = params.first;
		params.first = p = fresh;
	}
	pthread_mutex_unlock(&params.lock);
	return p;
}

/* The one of that key; NULL: *STATUS says why. */
static struct ncclParamHandle *param_find(const char *key, ncclResult_t *status)
{
	struct wire_ncclParamBind body = {.major = VCUDA_ABI};
	struct ncclParamHandle *kept, *p = param_keep(key, NULL);

	*status = ncclSuccess;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || strlen(key) >= NCCL_KEY) {
		*status = p ? nccl_fault(ncclInvalidArgument, "no parameter has such a key")
			    : nccl_fault(ncclSystemError, "no memory");
		free(p);
		return NULL;
	}
	memcpy(p->key, key, strlen(key));
	memcpy(body.key, p->key, sizeof(body.key));
	*status = nccl_answered(vcuda_library_ask(&nccl_front, OP_ncclParamBind, &body,
		sizeof(body), &p->is, sizeof(p->is), "ncclParamBind"));
	if (!*status && p->is.bytes > NCCL_TEXT)
		*status = nccl_fault(ncclInternalError, "the agent answers beyond its answer");
	if (*status) {
		free(p);
		return NULL;
	}
	p->is.text[NCCL_TEXT - 1] = 0;
	kept = param_keep(key, p);
	if (kept != p)
		free(p); /* another thread has asked meanwhile */
	return kept;
}

STUB_EXPORT ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key)
{
	ncclResult_t status;

	COUNT(ncclParamBind);
	if (!out || !key)
		return nccl_fault(ncclInvalidArgument, "no key, or no place for a handle");
	*out = param_find(key, &status);
	return status;
}

static ncclResult_t param_get(
	ncclParamHandle_t h, enum nccl_param type, void *out, size_t bytes)
{
	if (!h || !out)
		return nccl_fault(ncclInvalidArgument, "no parameter, or no place for it");
	if (h->is.type != type || h->is.bytes != bytes)
		return nccl_fault(ncclInvalidArgument, "%s has another type", h->key);
	memcpy(out, h->is.value, bytes);
	return ncclSuccess;
}

#define GETTER(NAME, TYPE)                                                                     \
	STUB_EXPORT ncclResult_t ncclParamGet##NAME(ncclParamHandle_t h, TYPE *out)            \
	{                                                                                      \
		COUNT(ncclParamGet##NAME);                                                     \
		return param_get(h, NCCL_PARAM_##NAME, out, sizeof(*out));                     \
	}                                                                                      \
	SECOND(ncclParamGet##NAME)

GETTER(I8, int8_t)
GETTER(I16, int16_t)
GETTER(I32, int32_t)
GETTER(I64, int64_t)
GETTER(U8, uint8_t)
GETTER(U16, uint16_t)
GETTER(U32, uint32_t)
GETTER(U64, uint64_t)

STUB_EXPORT ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char **out)
{
	COUNT(ncclParamGetStr);
	if (!h || !out)
		return nccl_fault(ncclInvalidArgument, "no parameter, or no place for it");
	if (h->is.type != NCCL_PARAM_TEXT)
		return nccl_fault(ncclInvalidArgument, "%s is no text", h->key);
	*out = h->is.text;
	return ncclSuccess;
}

STUB_EXPORT ncclResult_t ncclParamGet(ncclParamHandle_t h, void *out, int maxLen, int *len)
{
	COUNT(ncclParamGet);
	if (len)
		*len = 0;
	if (!h || !out || !len || maxLen < 1 || (uint32_t)maxLen < h->is.bytes)
		return nccl_fault(
			ncclInvalidArgument, "no parameter, or no place for its bytes");
	memcpy(out, h->is.value, h->is.bytes);
	*len = (int)h->is.bytes;
	return ncclSuccess;
}

STUB_EXPORT ncclResult_t ncclParamGetParameter(
	const char *key, const char **value, int *valueLen)
{
	const struct ncclParamHandle *p;
	ncclResult_t status;

	COUNT(ncclParamGetParameter);
	if (!key || !value || !valueLen)
		return nccl_fault(ncclInvalidArgument, "no key, or no place for a value");
	p = param_find(key, &status);
	*value = p ? p->is.text : NULL;
	*valueLen = p ? (int)strlen(p->is.text) : 0;
	return status;
}

/* --- all keys ----------------------------------------------------------------------------- */

/* From FROM on, into TO, which has room for them; how many, or -1. */
static int keys_split(const struct wire_ncclParamGetAllParameterKeys_reply *reply, char *to,
	uint32_t from, const char **table)
{
	size_t at = 0, length;

	for (uint32_t i = 0; i < reply->here; i++) {
		length = strnlen(reply->keys + at, NCCL_KEYS_BYTES - at);
		if (length == NCCL_KEYS_BYTES - at || length >= NCCL_KEY)
			return -1;
		table[from + i] = memcpy(
			to + (size_t)(from + i) * NCCL_KEY, reply->keys + at, length + 1);
		at += length + 1;
	}
	return (int)reply->here;
}

#define MOST_KEYS 4096u

/* Asks for all; NULL: *STATUS says why. *COUNT of them. */
static const char **keys_ask(int *count, ncclResult_t *status)
{
	struct wire_ncclParamGetAllParameterKeys body = {.major = VCUDA_ABI};
	struct wire_ncclParamGetAllParameterKeys_reply reply = {0};
	const char **table = NULL;
	uint32_t all = 0;
	int more = 0;

	do {
		*status = nccl_answered(vcuda_library_ask(&nccl_front,
			OP_ncclParamGetAllParameterKeys, &body, sizeof(body), &reply,
			sizeof(reply), "ncclParamGetAllParameterKeys"));
		if (!table && !*status && reply.count <= MOST_KEYS) {
			all = reply.count;
			table = calloc(all + 1, sizeof(*table) + NCCL_KEY);
		}
		more = table && !*status && reply.here && reply.here <= all - body.from
			       ? keys_split(&reply, (char *)(table + all + 1), body.from, table)
			       : 0;
		body.from += more > 0 ? (uint32_t)more : 0;
	} while (more > 0 && body.from < all);
	if (!*status && (!table || body.from != all))
		*status = nccl_fault(ncclInternalError, "the agent tells no keys");
	if (*status) {
		free(table);
		table = NULL;
	}
	*count = (int)all;
	return table;
}

STUB_EXPORT ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *tableLen)
{
	ncclResult_t status = ncclSuccess;
	const char **asked;
	int count;

	COUNT(ncclParamGetAllParameterKeys);
	if (!table || !tableLen)
		return nccl_fault(ncclInvalidArgument, "no place for keys");
	pthread_mutex_lock(&params.lock);
	*table = params.keys;
	*tableLen = params.count;
	pthread_mutex_unlock(&params.lock);
	if (*table)
		return ncclSuccess;
	asked = keys_ask(&count, &status);
	if (!asked)
		return status;
	pthread_mutex_lock(&params.lock);
	if (!params.keys) {
		params.keys = asked;
		params.count = count;
		asked = NULL;
	}
	*table = params.keys;
	*tableLen = params.count;
	pthread_mutex_unlock(&params.lock);
	free(asked); /* another thread was first */
	return ncclSuccess;
}

SECOND(ncclParamBind)
SECOND(ncclParamGetStr)
SECOND(ncclParamGet)
SECOND(ncclParamGetParameter)
SECOND(ncclParamGetAllParameterKeys)
