/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of GPU core dumps: kept here, for the process and for each context, and answered
 * as NVIDIA's driver does.  No dump is written: the kernels run in the agent's process.
 */
#include "shim/driver/context/coredump.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/driver/context/context.h"
#include "shim/driver/forms.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

struct coredump {
	unsigned set; /* of a context: bit N: setting N is its own */
	bool enable, host, lightweight, user_trigger;
	int flags;
	char file[1024], pipe[1024]; /* cuda.h: up to 1023 characters */
};

static struct {
	pthread_mutex_t lock;
	bool filled;
	unsigned fixed; /* bit N: the environment says it, and stays in force */
	struct coredump process;
} settings = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(coredump, settings.lock, LOCK_SETTINGS);

/* Where a setting lies, and its variable (none: what the flags are called there is cuda-gdb's).
 */
static const struct setting {
	size_t offset, bytes;
	const char *variable;
} table[CU_COREDUMP_MAX] = {
#define SETTING(field) offsetof(struct coredump, field), sizeof(((struct coredump *)0)->field)
	[CU_COREDUMP_ENABLE_ON_EXCEPTION] = {SETTING(enable),
		"CUDA_ENABLE_COREDUMP_ON_EXCEPTION"},
	[CU_COREDUMP_TRIGGER_HOST] = {SETTING(host), "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION"},
	[CU_COREDUMP_LIGHTWEIGHT] = {SETTING(lightweight), "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP"},
	[CU_COREDUMP_ENABLE_USER_TRIGGER] = {SETTING(user_trigger),
		"CUDA_ENABLE_USER_TRIGGERED_COREDUMP"},
	[CU_COREDUMP_FILE] = {SETTING(file), "CUDA_COREDUMP_FILE"},
	[CU_COREDUMP_PIPE] = {SETTING(pipe), "CUDA_COREDUMP_PIPE"},
	[CU_COREDUMP_GENERATION_FLAGS] = {SETTING(flags), NULL},
#undef SETTING
};

static bool is_text(const struct setting *setting)
{
	return setting->bytes == sizeof(settings.process.file);
}

static void *field(struct coredump *of, const struct setting *setting)
{
	return (char *)of + setting->offset;
}

/* NVIDIA's defaults, then the environment. Under the lock. */
static struct coredump *process_settings(void)
{
	struct coredump *p = &settings.process;
	char host[HOST_NAME_MAX + 1] = "";

	if (settings.filled)
		return p;
	gethostname(host, sizeof(host) - 1);
	p->host = true;
	snprintf(p->file, sizeof(p->file), "core.cuda.%s.%d", host, (int)getpid());
	snprintf(p->pipe, sizeof(p->pipe), "corepipe.cuda.%s.%d", host, (int)getpid());
	for (int i = 0; i < CU_COREDUMP_MAX; i++) {
		const char *value = table[i].variable ? secure_getenv(table[i].variable) : NULL;

		if (!value || !*value)
			continue;
		settings.fixed |= 1u << i;
		if (is_text(&table[i]))
			snprintf(field(p, &table[i]), table[i].bytes, "%s", value);
		else
			*(bool *)field(p, &table[i]) = strcmp(value, "0") != 0;
	}
	settings.filled = true;
	return p;
}

static const struct setting *setting_of(CUcoredumpSettings attrib)
{
	return (unsigned)attrib < CU_COREDUMP_MAX && table[attrib].bytes ? &table[attrib]
									 : NULL;
}

static CUresult coredump_get(
	struct context *context, CUcoredumpSettings attrib, void *value, size_t *size)
{
	const struct setting *setting = setting_of(attrib);
	struct coredump *from;
	size_t bytes;
	CUresult status = CUDA_SUCCESS;

	if (!setting || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!value) {
		*size = setting->bytes;
		return CUDA_SUCCESS;
	}
	pthread_mutex_lock(&settings.lock);
	from = process_settings();
	if (context && context->coredump && context->coredump->set >> attrib & 1)
		from = context->coredump;
	bytes = is_text(setting) ? strlen(field(from, setting)) + 1 : setting->bytes;
	if (*size < bytes || (!is_text(setting) && *size != bytes))
		status = CUDA_ERROR_INVALID_VALUE;
	else
		memcpy(value, field(from, setting), bytes);
	pthread_mutex_unlock(&settings.lock);
	return status;
}

/* Under the lock. */
static CUresult coredump_put(
	struct coredump *to, const struct setting *setting, const void *value, size_t size)
{
	if (is_text(setting) ? !size : size != setting->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_text(setting)) {
		memcpy(field(to, setting), value, setting->bytes);
		return CUDA_SUCCESS;
	}
	size = strnlen(value, size);
	if (size >= setting->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(field(to, setting), value, size);
	((char *)field(to, setting))[size] = 0;
	return CUDA_SUCCESS;
}

static CUresult coredump_set(
	struct context *context, CUcoredumpSettings attrib, const void *value, size_t *size)
{
	const struct setting *setting = setting_of(attrib);
	struct coredump *to;
	CUresult status;

	if (!setting || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!value) {
		*size = setting->bytes;
		return CUDA_SUCCESS;
	}
	if (context &&
		(attrib == CU_COREDUMP_ENABLE_USER_TRIGGER || attrib == CU_COREDUMP_PIPE))
		return CUDA_ERROR_NOT_PERMITTED; /* of the process only */
	pthread_mutex_lock(&settings.lock);
	to = process_settings();
	if (context && !context->coredump)
		context->coredump = calloc(1, sizeof(*context->coredump));
	if (context)
		to = context->coredump;
	if (settings.fixed >> attrib & 1)
		status = CUDA_ERROR_NOT_PERMITTED;
	else
		status =
			to ? coredump_put(to, setting, value, *size) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!status)
		to->set |= 1u << attrib;
	pthread_mutex_unlock(&settings.lock);
	return status;
}

CUresult hand_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct context *context = context_current();

	if (!context && setting_of(attrib))
		return CUDA_ERROR_INVALID_CONTEXT;
	return coredump_get(context, attrib, value, size);
}

CUresult hand_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return coredump_get(NULL, attrib, value, size);
}

CUresult hand_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
	struct context *context = context_current();

	if (!context && setting_of(attrib))
		return CUDA_ERROR_INVALID_CONTEXT;
	return coredump_set(context, attrib, value, size);
}

CUresult hand_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
	return coredump_set(NULL, attrib, value, size);
}

/* ---- callbacks of CUDA 13.2: kept, and not called, as no dump is written ---- */

#define CALLBACKS 64

/* A handle is the address of one. */
static _Atomic(CUcoredumpStatusCallback) callbacks[CALLBACKS];

CUresult coredump_register(CUcoredumpStatusCallback callback, void *userData,
	CUcoredumpCallbackHandle *callbackOut)
{
	(void)userData;
	if (!callback || !callbackOut)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < CALLBACKS; i++) {
		CUcoredumpStatusCallback none = NULL;

		if (atomic_compare_exchange_strong(&callbacks[i], &none, callback)) {
			*callbackOut = (CUcoredumpCallbackHandle)&callbacks[i];
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult coredump_unregister(CUcoredumpCallbackHandle callback)
{
	for (int i = 0; i < CALLBACKS; i++)
		if ((CUcoredumpCallbackHandle)&callbacks[i] == callback &&
			atomic_exchange(&callbacks[i], NULL))
			return CUDA_SUCCESS;
	return CUDA_ERROR_INVALID_VALUE;
}

void coredump_drop(struct context *context)
{
	pthread_mutex_lock(&settings.lock);
	free(context->coredump);
	context->coredump = NULL;
	pthread_mutex_unlock(&settings.lock);
}
