/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters, from the environment as NCCL's are: two of texts, and numbers of several types.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/nccl/nccl.h"

enum type { I8, I16, I32, I64, U8, U16, U32, U64, TEXT };
static const int sizes[] = {1, 2, 4, 8, 1, 2, 4, 8};

typedef const struct ncclParamHandle {
	const char *key;
	enum type type;
	int64_t number; /* where the environment has none */
} *ncclParamHandle_t;

static const struct ncclParamHandle all[] = {
	{"NCCL_DEBUG", TEXT, 0},
	{"NCCL_SOCKET_IFNAME", TEXT, 0},
	{"NCCL_NVLS_ENABLE", I64, 2},
	{"NCCL_WIN_ENABLE", I64, 1},
	{"NCCL_BUFFSIZE", I64, 4 << 20},
	{"NCCL_IB_TIMEOUT", I32, 20},
	{"NCCL_IB_TC", I16, 0},
	{"NCCL_IB_SL", I8, 0},
	{"NCCL_MIN_CTAS", U8, 1},
	{"NCCL_SOCKET_PORT", U16, 0},
	{"NCCL_MAX_CTAS", U32, 64},
	{"NCCL_HOSTID", U64, 0},
};
enum { COUNT = sizeof(all) / sizeof(all[0]) };

#define FUNCTION(NAME, ...)                                                                    \
	NCCL_EXPORT ncclResult_t NAME(__VA_ARGS__);                                            \
	NCCL_EXPORT ncclResult_t NAME(__VA_ARGS__)

static const char *text_of(ncclParamHandle_t h)
{
	const char *is = getenv(h->key);

	return is ? is : "";
}

static int64_t number_of(ncclParamHandle_t h)
{
	const char *is = getenv(h->key);

	return is ? strtoll(is, NULL, 0) : h->number;
}

FUNCTION(ncclParamBind, ncclParamHandle_t *out, const char *key)
{
	for (int i = 0; i < COUNT && out && key; i++)
		if (!strcmp(all[i].key, key)) {
			*out = &all[i];
			return ncclSuccess;
		}
	return softnccl_fail(ncclInvalidArgument, "there is no such parameter");
}

/* Little-endian, as the machine is: the low bytes of the number. */
FUNCTION(ncclParamGet, ncclParamHandle_t h, void *out, int most, int *bytes)
{
	int64_t number;
	int size;

	if (!h || !out || !bytes)
		return softnccl_fail(ncclInvalidArgument, "no parameter");
	size = h->type == TEXT ? (int)strlen(text_of(h)) + 1 : sizes[h->type];
	*bytes = size <= most ? size : 0;
	if (size > most)
		return softnccl_fail(ncclInvalidArgument, "%s has %d bytes", h->key, size);
	number = h->type == TEXT ? 0 : number_of(h);
	memcpy(out, h->type == TEXT ? (const void *)text_of(h) : &number, (size_t)size);
	return ncclSuccess;
}

static ncclResult_t typed(ncclParamHandle_t h, enum type type, void *out)
{
	int bytes;

	if (!h || h->type != type)
		return softnccl_fail(ncclInvalidArgument, "the parameter has another type");
	return ncclParamGet(h, out, sizes[type], &bytes);
}

#define GETTER(NAME, TYPE)                                                                     \
	FUNCTION(ncclParamGet##NAME, ncclParamHandle_t h, TYPE *out)                           \
	{                                                                                      \
		return typed(h, NAME, out);                                                    \
	}

GETTER(I8, int8_t)
GETTER(I16, int16_t)
GETTER(I32, int32_t)
GETTER(I64, int64_t)
GETTER(U8, uint8_t)
GETTER(U16, uint16_t)
GETTER(U32, uint32_t)
GETTER(U64, uint64_t)

FUNCTION(ncclParamGetStr, ncclParamHandle_t h, const char **out)
{
	if (!h || !out || h->type != TEXT)
		return softnccl_fail(ncclInvalidArgument, "the parameter is no text");
	*out = text_of(h);
	return ncclSuccess;
}

FUNCTION(ncclParamGetParameter, const char *key, const char **value, int *length)
{
	static _Thread_local char number[24];
	ncclParamHandle_t h;
	ncclResult_t status = ncclParamBind(&h, key);

	if (status)
		return status;
	snprintf(number, sizeof(number), "%lld", (long long)number_of(h));
	*value = h->type == TEXT ? text_of(h) : number;
	*length = (int)strlen(*value);
	return ncclSuccess;
}

FUNCTION(ncclParamGetAllParameterKeys, const char ***table, int *count)
{
	static _Thread_local const char *keys[COUNT];

	if (!table || !count)
		return softnccl_fail(ncclInvalidArgument, "no place for keys");
	for (int i = 0; i < COUNT; i++)
		keys[i] = all[i].key;
	*table = keys;
	*count = COUNT;
	return ncclSuccess;
}
