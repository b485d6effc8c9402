/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's buffers: asked for when a record is to go into one, given back when the next
 * record has no room in it, or when the program flushes.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "softgpu/cupti/activity.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* All of these under the lock. */
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static bool thread_runs;
static struct {
	uint8_t *bytes; /* NULL: there is none */
	size_t size, used;
	size_t records, records_max; /* 0: as many as fit */
} buffer;

/* This thread runs one of the program's functions. */
static __thread bool inside;

static void buffer_request(void)
{
	memset(&buffer, 0, sizeof(buffer));
	if (!request)
		return;
	inside = true;
	request(&buffer.bytes, &buffer.size, &buffer.records_max);
	inside = false;
}

static void buffer_complete(void)
{
	uint8_t *bytes = buffer.bytes;

	buffer.bytes = NULL;
	inside = true;
	complete(NULL, 0, bytes, buffer.size, buffer.used);
	inside = false;
}

static bool buffer_has_room(size_t bytes)
{
	return buffer.bytes && buffer.size - buffer.used >= bytes &&
	       (!buffer.records_max || buffer.records < buffer.records_max);
}

/* False: the program gave no buffer. */
static bool buffer_add(const void *record, size_t bytes)
{
	if (!buffer_has_room(bytes)) {
		if (buffer.bytes)
			buffer_complete();
		buffer_request();
		if (!buffer.bytes)
			return false;
	}
	if (!buffer_has_room(bytes)) { /* nor will the next one have it */
		buffer_complete();
		backlog_dropped_add(1);
		return true;
	}
	memcpy(buffer.bytes + buffer.used, record, bytes);
	buffer.used += bytes;
	buffer.records++;
	return true;
}

/* ALL: also the buffer that has room still. The lock is held. */
static void handout(bool all)
{
	_Alignas(8) unsigned char record[RECORD_BYTES_MAX];
	bool given = true;
	size_t bytes;

	while ((bytes = backlog_take(record))) {
		if (given)
			given = buffer_add(record, bytes);
		if (!given)
			backlog_dropped_add(1);
	}
	if (all && buffer.bytes && buffer.used)
		buffer_complete();
}

static CUptiResult flush(void)
{
	if (inside) /* what is there is being given out */
		return CUPTI_SUCCESS;
	pthread_mutex_lock(&lock);
	handout(true);
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

static _Noreturn void *thread_main(void *unused)
{
	(void)unused;
	for (;;) {
		backlog_wait();
		pthread_mutex_lock(&lock);
		handout(false);
		pthread_mutex_unlock(&lock);
	}
}

/* Without it there is what the program flushes. */
static bool thread_start(void)
{
	sigset_t all, old;
	pthread_t thread;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&thread, NULL, thread_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (started)
		pthread_detach(thread);
	return started;
}

CUPTI_CALL(cuptiActivityRegisterCallbacks, CUpti_BuffersCallbackRequestFunc funcBufferRequested,
	CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
	if (!funcBufferRequested || !funcBufferCompleted)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	request = funcBufferRequested;
	complete = funcBufferCompleted;
	if (!thread_runs)
		thread_runs = thread_start();
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUPTI_CALL(cuptiActivityFlushAll, uint32_t flag)
{
	(void)flag; /* what has not run is not complete, whatever it says */
	return flush();
}

CUPTI_CALL(cuptiActivityFlush, CUcontext context, uint32_t streamId, uint32_t flag)
{
	(void)context, (void)streamId, (void)flag;
	return flush();
}

CUPTI_CALL(cuptiActivityGetNumDroppedRecords, CUcontext context, uint32_t streamId,
	size_t *dropped)
{
	(void)context, (void)streamId;
	if (!dropped)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*dropped = backlog_dropped_take();
	return CUPTI_SUCCESS;
}

CUPTI_CALL(cuptiActivityGetNextRecord, uint8_t *buffer_bytes, size_t validBufferSizeBytes,
	CUpti_Activity **record)
{
	size_t at = 0, bytes;

	if (!buffer_bytes || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record) {
		bytes = record_bytes(*record);
		if (!bytes)
			return CUPTI_ERROR_INVALID_KIND;
		at = (size_t)((uint8_t *)*record - buffer_bytes) + bytes;
	}
	if (at >= validBufferSizeBytes)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)(void *)(buffer_bytes + at);
	return CUPTI_SUCCESS;
}

CUPTI_CALL(cuptiFinalize, void)
{
	kinds_end();
	flush();
	if (inside)
		return CUPTI_SUCCESS;
	pthread_mutex_lock(&lock);
	request = NULL;
	if (buffer.bytes)
		buffer_complete();
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}
