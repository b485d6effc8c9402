/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a call failed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/nccl/nccl.h"

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static char last[256];

ncclResult_t softnccl_fail(ncclResult_t status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	pthread_mutex_lock(&last_lock);
	vsnprintf(last, sizeof(last), format, args);
	pthread_mutex_unlock(&last_lock);
	va_end(args);
	return status;
}

NCCL_EXPORT const char *ncclGetLastError(ncclComm_t comm);
NCCL_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
	static _Thread_local char text[sizeof(last)];

	(void)comm;
	pthread_mutex_lock(&last_lock);
	memcpy(text, last, sizeof(text));
	pthread_mutex_unlock(&last_lock);
	return text;
}
