/* SPDX-License-Identifier: Apache-2.0
 *
 * Records on their way to the program: into buffers that it gives, by cuptiActivityFlushAll or
 * by a thread of the front's own where there is much, or where the program wants it now and
 * then.  The thread does not exist before.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/wait.h"
#include "shim/engine/lock.h"
#include "shim/libraries/cupti/cupti.h"

static struct {
	pthread_mutex_t lock;
	CUpti_BuffersCallbackRequestFunc request;
	CUpti_BuffersCallbackCompleteFunc complete;
	/* The program's buffer that is being filled. */
	uint8_t *buffer;
	size_t size, used, most, count;
	_Atomic bool prepared; /* there is one */
	_Atomic uint64_t told_dropped;
	_Atomic uint64_t dropped; /* for lack of a buffer */
} out = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(out, out.lock, LOCK_CUPTI);
static __thread bool delivering; /* the program's function asks for more */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pid_t runs; /* in that process */
	bool soon;
	uint32_t period; /* ms; 0: none */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
LOCK_RANK(own, own.lock, LOCK_CUPTI_OWN);

void deliver_to(
	CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete)
{
	pthread_mutex_lock(&out.lock);
	out.request = request;
	out.complete = complete;
	pthread_mutex_unlock(&out.lock);
}

/* --- buffers ------------------------------------------------------------------------------ */

static void buffer_done(void)
{
	uint8_t *buffer = out.buffer;

	out.buffer = NULL;
	if (buffer)
		out.complete(NULL, 0, buffer, out.size, out.used);
}

static void buffer_begin(void)
{
	out.size = out.used = out.most = out.count = 0;
	if (out.request)
		out.request(&out.buffer, &out.size, &out.most);
}

static bool buffer_has(size_t bytes)
{
	return out.buffer && out.size - out.used >= bytes &&
	       (!out.most || out.count < out.most);
}

/* Newer forms of records append to older ones, as far as CUDA 13.5: what they append is there,
 * and 0. */
#define TAIL 32

void deliver_record(const void *record, size_t record_bytes)
{
	size_t bytes = record_bytes + TAIL;

	if (!buffer_has(bytes)) {
		buffer_done();
		buffer_begin();
	}
	if (!buffer_has(bytes)) {
		out.dropped++;
		return;
	}
	memcpy(out.buffer + out.used, record, record_bytes);
	memset(out.buffer + out.used + record_bytes, 0, TAIL);
	out.used += bytes;
	out.count++;
}

/* Bytes of a record, as the front writes it. */
static size_t record_bytes(CUpti_ActivityKind kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
	case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
	case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
	case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		return sizeof(CUpti_ActivityExternalCorrelation);
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(CUpti_ActivityCudaEvent2);
	case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(CUpti_ActivityDevice5);
	case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(CUpti_ActivityContext3);
	case CUPTI_ACTIVITY_KIND_STREAM: return sizeof(CUpti_ActivityStream);
	default: return 0;
	}
}

EXPORT CUptiResult cuptiActivityGetNextRecord(
	uint8_t *buffer, size_t validBufferSizeBytes, CUpti_Activity **record)
{
	CUpti_Activity first;
	size_t at = 0, bytes;

	COUNT(cuptiActivityGetNextRecord);
	if (!buffer || !record)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	if (*record) {
		memcpy(&first, *record, sizeof(first));
		bytes = record_bytes(first.kind);
		if ((uint8_t *)*record < buffer || !bytes)
			return cupti_result(CUPTI_ERROR_INVALID_KIND);
		at = (size_t)((uint8_t *)*record - buffer) + bytes + TAIL;
	}
	if (at + sizeof(first) > validBufferSizeBytes)
		return cupti_result(CUPTI_ERROR_MAX_LIMIT_REACHED);
	*record = (CUpti_Activity *)(void *)(buffer + at);
	return CUPTI_SUCCESS;
}

#if VCUDA_ABI == 13
EXPORT CUptiResult cuptiActivityGetStructSize(
	CUpti_ActivityKind activityKind, uint32_t version, size_t *activityStructSize)
{
	size_t bytes = record_bytes(activityKind);

	COUNT(cuptiActivityGetStructSize);
	if (!activityStructSize)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	if (!bytes)
		return cupti_result(CUPTI_ERROR_INVALID_KIND);
	if (version && version < 130000)
		return cupti_result(CUPTI_ERROR_NOT_SUPPORTED);
	*activityStructSize = bytes + TAIL;
	return CUPTI_SUCCESS;
}
#endif

/* As NVIDIA's asks for one when there is a first record: a program may flush only where it gave
 * a buffer. */
void deliver_prepare(void)
{
	if (delivering || atomic_load_explicit(&out.prepared, memory_order_relaxed) ||
		pthread_mutex_trylock(&out.lock))
		return;
	delivering = true;
	if (!out.buffer && out.request)
		buffer_begin();
	out.prepared = out.buffer != NULL;
	delivering = false;
	pthread_mutex_unlock(&out.lock);
}

/* --- handing out -------------------------------------------------------------------------- */

void deliver_fetch(void)
{
	if (delivering)
		return;
	pthread_mutex_lock(&out.lock);
	assemble_fetch(1);
	pthread_mutex_unlock(&out.lock);
}

void deliver(uint32_t flag)
{
	if (delivering)
		return;
	pthread_mutex_lock(&out.lock);
	delivering = true;
	cupti_time_look();
	assemble_fetch(flag);
	assemble_records();
	buffer_done();
	out.prepared = false;
	frames_end_batch(!activity_any());
	if (!activity_any())
		activity_over();
	delivering = false;
	pthread_mutex_unlock(&out.lock);
}

uint64_t deliver_dropped(void)
{
	uint64_t all = out.dropped + record_dropped() + assemble_dropped(), told;

	/* Those since the program asked last. */
	told = atomic_exchange(&out.told_dropped, all);
	return all > told ? all - told : 0;
}

/* --- by the front's own thread ------------------------------------------------------------ */

static void own_wait(void)
{
	struct timespec until;

	if (!own.period) {
		pthread_cond_wait(&own.cond, &own.lock);
		return;
	}
	until = wait_deadline(own.period * 1000000ull);
	if (pthread_cond_timedwait(&own.cond, &own.lock, &until) == ETIMEDOUT)
		own.soon = true;
}

static void *own_thread(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&own.lock);
	for (;;) {
		while (!own.soon)
			own_wait();
		own.soon = false;
		pthread_mutex_unlock(&own.lock);
		if (activity_any())
			deliver(0);
		pthread_mutex_lock(&own.lock);
	}
	return NULL;
}

/* With the lock held. A child of fork has no thread, and no session either. */
static void own_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (own.runs == getpid() || pthread_attr_init(&attributes))
		return;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	wait_cond_init(&own.cond); /* nobody waits for it yet */
	if (!pthread_create(&thread, &attributes, own_thread, NULL))
		own.runs = getpid();
	pthread_attr_destroy(&attributes);
}

void deliver_soon(void)
{
	pthread_mutex_lock(&own.lock);
	own_start();
	own.soon = true;
	pthread_cond_signal(&own.cond);
	pthread_mutex_unlock(&own.lock);
}

void deliver_period(uint32_t milliseconds)
{
	pthread_mutex_lock(&own.lock);
	own.period = milliseconds;
	if (milliseconds)
		own_start();
	pthread_cond_signal(&own.cond);
	pthread_mutex_unlock(&own.lock);
}
