/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's error log (cuLogs…): what was refused here and why, the newest LINES of it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

#define LINES 100
#define LINE_BYTES 256 /* with LINES: the 25600 bytes that cuda.h names */
#define LISTENERS 16

static const char left_out[] = "(older messages are left out)\n";

struct listener {
	CUlogsCallback call; /* NULL: a free place */
	void *data;
};

static struct {
	pthread_mutex_t lock;
	unsigned next; /* number of the next message: it goes to lines[next % LINES] */
	char lines[LINES][LINE_BYTES];
	struct listener listeners[LISTENERS]; /* a handle is the address of one */
} logs = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(logs, logs.lock, LOCK_LOGS);

void logs_add(const char *name, const char *reason)
{
	struct listener listeners[LISTENERS];
	char line[LINE_BYTES];
	struct timespec now;
	struct tm when;
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &when);
	n = snprintf(line, sizeof(line), "[%02d:%02d:%02d.%03ld][%d][vcuda][E] %s: %s\n",
		when.tm_hour, when.tm_min, when.tm_sec, now.tv_nsec / 1000000, (int)getpid(),
		name, reason);
	if (n >= (int)sizeof(line)) {
		n = (int)sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	pthread_mutex_lock(&logs.lock);
	memcpy(logs.lines[logs.next++ % LINES], line, (size_t)n + 1);
	memcpy(listeners, logs.listeners, sizeof(listeners));
	pthread_mutex_unlock(&logs.lock);
	for (unsigned i = 0; i < LISTENERS; i++)
		if (listeners[i].call)
			listeners[i].call(
				listeners[i].data, CU_LOG_LEVEL_ERROR, line, (size_t)n);
}

CUresult hand_cuLogsRegisterCallback(
	CUlogsCallback callbackFunc, void *userData, CUlogsCallbackHandle *callback_out)
{
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (!callbackFunc)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&logs.lock);
	for (unsigned i = 0; status && i < LISTENERS; i++)
		if (!logs.listeners[i].call) {
			logs.listeners[i] = (struct listener){callbackFunc, userData};
			if (callback_out)
				*callback_out = (CUlogsCallbackHandle)&logs.listeners[i];
			status = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&logs.lock);
	return status;
}

CUresult hand_cuLogsUnregisterCallback(CUlogsCallbackHandle callback)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&logs.lock);
	for (unsigned i = 0; i < LISTENERS; i++)
		if ((CUlogsCallbackHandle)&logs.listeners[i] == callback &&
			logs.listeners[i].call) {
			logs.listeners[i].call = NULL;
			status = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&logs.lock);
	return status;
}

CUresult hand_cuLogsCurrent(CUlogIterator *iterator_out, unsigned int flags)
{
	(void)flags; /* cuda.h: must be 0. NVIDIA's driver takes any */
	if (!iterator_out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&logs.lock);
	*iterator_out = logs.next;
	pthread_mutex_unlock(&logs.lock);
	return CUDA_SUCCESS;
}

/* The oldest message that is still there, at *ITERATOR (NULL: of all) or behind; *LOST: some
 * are not. Under the lock. */
static unsigned logs_from(const CUlogIterator *iterator, bool *lost)
{
	unsigned kept = logs.next < LINES ? logs.next : LINES;
	unsigned asked = iterator ? logs.next - *iterator : logs.next;

	*lost = asked > kept;
	return logs.next - (asked > kept ? kept : asked);
}

CUresult hand_cuLogsDumpToMemory(
	CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	size_t need = 0, at = 0, room;
	unsigned from;
	bool lost;
	CUresult status = CUDA_SUCCESS;

	(void)flags; /* as of cuLogsCurrent */
	if (!buffer || !size || !*size)
		return CUDA_ERROR_INVALID_VALUE;
	room = *size - 1;
	pthread_mutex_lock(&logs.lock);
	from = logs_from(iterator, &lost);
	for (unsigned i = from; i != logs.next; i++)
		need += strlen(logs.lines[i % LINES]);
	/* The newest are told, behind a line that says that others are not. */
	for (; from != logs.next && need + (lost ? sizeof(left_out) - 1 : 0) > room; from++) {
		need -= strlen(logs.lines[from % LINES]);
		lost = true;
	}
	if (from == logs.next && lost)
		status = CUDA_ERROR_INVALID_VALUE;
	else if (lost)
		at = (size_t)(stpcpy(buffer, left_out) - buffer);
	for (; !status && from != logs.next; from++)
		at = (size_t)(stpcpy(buffer + at, logs.lines[from % LINES]) - buffer);
	buffer[at] = 0;
	*size = at;
	if (!status && iterator)
		*iterator = logs.next;
	pthread_mutex_unlock(&logs.lock);
	return status;
}

CUresult hand_cuLogsDumpToFile(
	CUlogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	char text[LINES * LINE_BYTES + sizeof(left_out)];
	size_t size = sizeof(text);
	CUresult status;
	FILE *file;
	bool good;

	if (!pathToFile || flags)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(pathToFile, "we");
	if (!file)
		return CUDA_ERROR_INVALID_VALUE;
	status = hand_cuLogsDumpToMemory(iterator, text, &size, 0);
	good = fwrite(text, 1, size, file) == size;
	if (fclose(file) || !good)
		return CUDA_ERROR_INVALID_VALUE;
	return status;
}
