/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the agent's NCCL: all keys, each by its handle and as a text, and what is
 * asked again is the same, by two threads at once too; a key that does not exist, and a type
 * that is another, are refused.
 */
#include "tests/nccl/check.h"

#include <pthread.h>

/* One getter of all takes it, and says what the text does. */
static int typed(ncclParamHandle_t h, const char *text)
{
	int taken = 0;

#define TRY(NAME, TYPE)                                                                        \
	{                                                                                      \
		TYPE value;                                                                    \
		char shown[32];                                                                \
		if (!ncclParamGet##NAME(h, &value)) {                                          \
			taken++;                                                               \
			snprintf(shown, sizeof(shown), "%lld", (long long)value);              \
			if (strcmp(shown, text))                                               \
				DIE("a number is %s, and its text %s", shown, text);           \
		}                                                                              \
	}
	TRY(I8, int8_t)
	TRY(I16, int16_t)
	TRY(I32, int32_t)
	TRY(I64, int64_t)
	TRY(U8, uint8_t)
	TRY(U16, uint16_t)
	TRY(U32, uint32_t)
	TRY(U64, uint64_t)
#undef TRY
	return taken;
}

static void look(const char *key)
{
	const char *text, *again, *string;
	ncclParamHandle_t h, same;
	unsigned char bytes[512];
	int length, size;

	NCCL(ncclParamGetParameter(key, &text, &length));
	if ((int)strlen(text) != length)
		DIE("%s: %d characters of %s", key, length, text);
	NCCL(ncclParamBind(&h, key));
	NCCL(ncclParamBind(&same, key));
	if (h != same)
		DIE("%s: two handles", key);
	if (!ncclParamGetStr(h, &string)) {
		if (strcmp(string, text) || typed(h, text))
			DIE("%s: %s and %s", key, string, text);
		NCCL(ncclParamGet(h, bytes, sizeof(bytes), &size));
		if (size != length + 1 || strcmp((char *)bytes, text))
			DIE("%s: %d bytes", key, size);
	} else if (typed(h, text) > 1) {
		DIE("%s has several types", key);
	} else {
		NCCL(ncclParamGet(h, bytes, sizeof(bytes), &size));
		ANSWERS(ncclParamGet(h, bytes, 0, &size), ncclInvalidArgument);
	}
	NCCL(ncclParamGetParameter(key, &again, &size));
	if (size != length)
		DIE("%s: %s, then %s", key, text, again);
}

static pthread_barrier_t together;

static void *bind(void *key)
{
	ncclParamHandle_t h;

	pthread_barrier_wait(&together);
	NCCL(ncclParamBind(&h, key));
	return h;
}

/* The first to ask for it, both of them. */
static void two_bind(const char *key)
{
	void *here, *there;
	pthread_t thread;

	if (pthread_create(&thread, NULL, bind, (void *)(uintptr_t)key))
		DIE("no thread");
	here = bind((void *)(uintptr_t)key);
	pthread_join(thread, &there);
	if (here != there)
		DIE("%s: a handle for each of two threads", key);
}

int main(int argc, char **argv)
{
	ncclParamHandle_t h;
	const char **keys, **again, *text;
	int count, same;

	devices_begin_with(1);
	if (argc == 2) {
		NCCL(ncclParamGetParameter(argv[1], &text, &same));
		printf("%s=%s\n", argv[1], text);
		return 0;
	}
	NCCL(ncclParamGetAllParameterKeys(&keys, &count));
	if (count < 1)
		DIE("%d parameters", count);
	pthread_barrier_init(&together, NULL, 2);
	for (int i = 0; i < count; i++)
		two_bind(keys[i]);
	for (int i = 0; i < count; i++)
		look(keys[i]);
	NCCL(ncclParamGetAllParameterKeys(&again, &same));
	if (same != count)
		DIE("%d keys, then %d", count, same);
	ANSWERS(ncclParamBind(&h, "NCCL_NO_SUCH_THING"), ncclInvalidArgument);
	ANSWERS(ncclParamGetParameter("NCCL_NO_SUCH_THING", &text, &same), ncclInvalidArgument);
	ANSWERS(ncclParamBind(NULL, keys[0]), ncclInvalidArgument);
	ANSWERS(ncclParamBind(&h, NULL), ncclInvalidArgument);
	ANSWERS(ncclParamGetAllParameterKeys(NULL, &same), ncclInvalidArgument);
	ANSWERS(ncclParamGetStr(NULL, &text), ncclInvalidArgument);
	printf("%d parameters\n", count);
	return 0;
}
