/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: minted here, created by a post.  A thread's own default stream is an ordinary one,
 * made when the thread first names it.
 */
#include "shim/driver/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/graph/capture.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/stream/straight.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/engine/session.h"
#include "shim/engine/thread.h"
#include "shim/engine/completion.h"
#include "shim/engine/lock.h"

static struct {
	_Atomic uint64_t last_id;   /* 1 and 2 are the default streams */
	pthread_mutex_t ahead_lock; /* one thread makes a context's stream that runs ahead */
} streams = {.last_id = 2, .ahead_lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(ahead, streams.ahead_lock, LOCK_AHEAD);

static struct stream *stream_new(struct context *context, unsigned flags, int priority)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->context = context;
	stream->context_id = context->id;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = atomic_fetch_add(&streams.last_id, 1) + 1;
	return stream;
}

struct stream *stream_legacy(struct context *context)
{
	struct stream *stream = stream_new(context, 0, 0);

	if (stream)
		stream->id = 1;
	return stream;
}

static CUresult stream_create(
	struct context *context, unsigned flags, int priority, uint64_t *number)
{
	struct stream *stream;
	CUresult status;

	stream = stream_new(context, flags, priority);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->handle = shim_mint(KIND_CUstream, stream);
	if (!stream->handle) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	status = send_vcudaStreamCreate(stream->handle, flags, priority);
	if (status) {
		shim_unmint(stream->handle);
		free(stream);
		return status;
	}
	*number = stream->handle;
	return CUDA_SUCCESS;
}

CUresult stream_ahead(struct context *context, CUstream *stream)
{
	CUresult status = CUDA_SUCCESS;
	struct stream *made;

	pthread_mutex_lock(&streams.ahead_lock);
	if (!context->ahead)
		status = stream_create(
			context, CU_STREAM_NON_BLOCKING | STREAM_AHEAD, 0, &context->ahead);
	/* Nothing that others wait for must hold it up. */
	made = status ? NULL : shim_object_of(context->ahead, KIND_CUstream);
	if (made)
		atomic_store(&made->joined, UINT64_MAX);
	pthread_mutex_unlock(&streams.ahead_lock);
	*stream = (CUstream)(uintptr_t)context->ahead;
	return status;
}

/* *FOUND: NULL for the legacy stream. */
static CUresult stream_resolve(CUstream stream, uint64_t *number, struct stream **found)
{
	uint64_t handle = (uint64_t)(uintptr_t)stream;
	struct context *context = context_current();

	*number = 0;
	*found = NULL;
	if (!context)
		return context_missing();
	if (!handle || stream == CU_STREAM_LEGACY)
		return CUDA_SUCCESS;
	if (stream == CU_STREAM_PER_THREAD) {
		*number = thread_stream(context->number, context->id);
		if (!*number) {
			CUresult status = stream_create(context, 0, 0, number);

			if (status)
				return status;
			if (!thread_stream_keep(context->number, context->id, *number))
				return CUDA_ERROR_OUT_OF_MEMORY;
		}
		handle = *number;
	}
	*found = shim_object_of(handle, KIND_CUstream);
	if (!*found)
		return CUDA_ERROR_INVALID_HANDLE;
	*number = handle;
	return CUDA_SUCCESS;
}

CUresult stream_plain(CUstream stream, uint64_t *number)
{
	struct stream *found;

	return stream_resolve(stream, number, &found);
}

static CUresult stream_use(CUstream stream, uint64_t *number, bool work)
{
	struct stream *found;
	CUresult status;

	if (__builtin_expect(stream_straight(stream, number) != NULL, 1))
		return CUDA_SUCCESS;
	status = stream_resolve(stream, number, &found);
	if (status)
		return status;
	if (capture_any()) {
		status = capture_use(context_current(), found);
		/* What came before a capture is before every launch of its graph. */
		if (status || (found && found->capture))
			return status;
	}
	if (__builtin_expect(work && managed_any, 0)) {
		status = managed_push(*number);
		if (status)
			return status;
	}
	return order_join(found ? found : context_current()->legacy);
}

CUresult stream_number(CUstream stream, uint64_t *number)
{
	return stream_use(stream, number, true);
}

bool stream_of_device(uint64_t number, int device)
{
	const struct stream *stream = stream_find(number);

	return stream && stream->context->device == device;
}

CUresult stream_launched(CUstream stream, uint64_t *number)
{
	CUresult status = stream_use(stream, number, true);

	if (!status && devices.count > 1 && *number &&
		!stream_of_device(*number, context_current()->device))
		return CUDA_ERROR_INVALID_HANDLE;
	return status;
}

CUresult stream_waited(CUstream stream, uint64_t *number)
{
	return stream_use(stream, number, false);
}

bool stream_here(CUstream handle)
{
	const struct stream *stream =
		shim_object_of((uint64_t)(uintptr_t)handle, KIND_CUstream);

	return !stream || stream->context->session == session_here();
}

CUresult stream_lend(CUstream handle, uint64_t first, bool *lent)
{
	const struct context *current = context_current(), *home;
	const struct stream *stream =
		shim_object_of((uint64_t)(uintptr_t)handle, KIND_CUstream);

	if (stream && (!current || current->session != stream->context->session))
		*lent = thread_push(stream->context);
	/* What comes before the stream belongs to the same agent. */
	home = session_count > 1 ? handle_home(first) : NULL;
	if (!home || home->session == session_here())
		return CUDA_SUCCESS;
	if (*lent)
		stream_lent();
	*lent = false;
	return CUDA_ERROR_INVALID_HANDLE;
}

void stream_lent(void)
{
	struct context *popped;

	thread_pop(&popped);
}

struct stream *stream_find(uint64_t number)
{
	struct context *context;

	if (number)
		return shim_object_of(number, KIND_CUstream);
	context = context_current();
	return context ? context->legacy : NULL;
}

bool stream_reached(uint64_t number, uint16_t context_number, uint64_t seq)
{
	const struct context *context = context_current();
	bool here = context && context->number == context_number;
	struct stream *stream = here || number ? stream_find(number) : NULL;

	return (here && atomic_load(&context->synced) >= seq) ||
	       (stream && atomic_load(&stream->synced) >= seq);
}

void stream_synced(uint64_t number, uint64_t seq)
{
	struct stream *stream = stream_find(number);

	if (stream)
		stream_raise(&stream->synced, seq);
}

static CUresult stream_destroy(struct stream *stream)
{
	uint64_t handle = stream->handle;

	capture_stream_gone(stream);
	if (!handle_release(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	order_stream_gone(stream);
	pool_stream_gone(handle, atomic_load(&stream->synced));
	managed_stream_gone(handle);
	completion_put(stream->watch.counter);
	free(stream);
	return send_vcudaStreamDestroy(handle);
}

void stream_end(uint64_t number)
{
	struct stream *stream = shim_object_of(number, KIND_CUstream);

	if (!stream)
		return;
	thread_set(stream->context);
	if (atomic_load(&session_here()->phase) == SESSION_READY)
		stream_destroy(stream);
}

struct gone {
	struct context *context;
	enum handle_kind kind;
	void *objects[256];
	uint64_t handles[256];
	uint32_t counters[256];
	unsigned count;
};

static void stream_gone(void *object, void *argument)
{
	struct gone *gone = argument;
	struct context *context;
	uint64_t handle;
	uint32_t counter;

	if (!object)
		return; /* order.c's own event */
	if (gone->kind == KIND_CUstream) {
		context = ((struct stream *)object)->context;
		handle = ((struct stream *)object)->handle;
		counter = ((struct stream *)object)->watch.counter;
	} else {
		context = ((struct event *)object)->context;
		handle = ((struct event *)object)->handle;
		counter = ((struct event *)object)->watch.counter;
	}
	if (context != gone->context || gone->count == 256)
		return;
	gone->counters[gone->count] = counter;
	gone->objects[gone->count] = object;
	gone->handles[gone->count++] = handle;
}

void stream_reset(struct context *context)
{
	static const enum handle_kind kinds[] = {KIND_CUstream, KIND_CUevent};
	/* Counters are given back to the agent that they came from. */
	struct session_visit visit = session_visit(context->session);
	struct gone gone;

	capture_reset(context);
	for (int k = 0; k < 2; k++) {
		do {
			gone = (struct gone){.context = context, .kind = kinds[k]};
			handle_each(kinds[k], stream_gone, &gone);
			for (unsigned i = 0; i < gone.count; i++) {
				if (!handle_release(gone.handles[i]))
					continue;
				completion_put(gone.counters[i]);
				if (kinds[k] == KIND_CUstream)
					pool_stream_gone(gone.handles[i], UINT64_MAX);
				free(gone.objects[i]);
			}
		} while (gone.count);
	}
	session_leave(visit);
	if (context->order_event)
		handle_release(context->order_event);
	context->order_event = 0;
	context->ahead = 0;
}

/* Greatest is the lower number. */
static int priority_within(const struct context *context, int priority)
{
	const struct open_device *open = &devices.at[context->device].open;

	if (priority > open->stream_priority_least)
		return open->stream_priority_least;
	if (priority < open->stream_priority_greatest)
		return open->stream_priority_greatest;
	return priority;
}

void stream_prioritise(uint64_t number, int priority)
{
	struct stream *stream = stream_find(number);

	if (stream)
		stream->priority = priority_within(stream->context, priority);
}

CUresult hand_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct context *context = context_current();
	uint64_t number;
	CUresult status;

	if (!phStream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context) {
		*phStream = (CUstream)UINTPTR_MAX; /* as NVIDIA's driver leaves it */
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	status = stream_create(context, flags, priority_within(context, priority), &number);
	if (!status)
		*phStream = (CUstream)(uintptr_t)number;
	return status;
}

CUresult hand_cuStreamDestroy_v2(CUstream hStream)
{
	struct stream *stream = shim_object_of((uint64_t)(uintptr_t)hStream, KIND_CUstream);

	uint64_t number;

	if (hStream == CU_STREAM_LEGACY)
		return stream_plain(hStream, &number)
			       ?: capture_node(hStream) ?: CUDA_ERROR_INVALID_HANDLE;
	if (hStream == CU_STREAM_PER_THREAD && !context_current())
		return context_missing();
	return stream ? stream_destroy(stream) : CUDA_ERROR_INVALID_HANDLE;
}

/* The object behind a stream parameter; *status where there is none, or where a capture does
 * not let it be asked (capture.h). */
static struct stream *stream_object(
	CUstream hStream, CUresult (*captured)(CUstream), CUresult *status)
{
	uint64_t number;
	struct stream *stream;

	*status = stream_plain(hStream, &number);
	if (!*status && capture_any())
		*status = captured(hStream);
	if (*status)
		return NULL;
	stream = stream_find(number);
	if (!stream)
		*status = CUDA_ERROR_INVALID_CONTEXT;
	return stream;
}

static bool stream_is_green(const struct stream *stream)
{
	return stream->context->green && stream == stream->context->legacy;
}

/* Of a green context the legacy stream is one of its own that blocks no other, and the thread's
 * own stream is none that anything is told of. */
static struct stream *stream_told(
	CUstream handle, CUresult (*captured)(CUstream stream), CUresult *status)
{
	struct stream *stream = stream_object(handle, captured, status);

	if (!stream || handle != CU_STREAM_PER_THREAD || !stream->context->green)
		return stream;
	*status = CUDA_ERROR_INVALID_HANDLE;
	return NULL;
}

CUresult hand_cuStreamGetPriority(CUstream hStream, int *priority)
{
	CUresult status;
	struct stream *stream;

	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_told(hStream, capture_node, &status);
	if (stream)
		*priority = stream->priority;
	return status;
}

CUresult hand_cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	CUresult status;
	struct stream *stream;

	if (!streamId)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_told(hStream, capture_never, &status);
	if (stream)
		*streamId = stream->id;
	return status;
}

CUresult hand_cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	CUresult status;
	struct stream *stream;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_told(hStream, capture_never, &status);
	if (stream)
		*flags = stream_is_green(stream) ? CU_STREAM_NON_BLOCKING : stream->flags;
	return status;
}

CUresult hand_cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	CUresult status;
	struct stream *stream;

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_told(hStream, capture_never, &status);
	if (stream)
		*device = stream->context->device;
	return status;
}

CUresult hand_cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	CUresult status;
	struct stream *stream;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	stream = stream_object(hStream, capture_node, &status);
	if (stream)
		*pctx = (CUcontext)(uintptr_t)stream->context->handle;
	return status;
}
