/* SPDX-License-Identifier: Apache-2.0
 *
 * See order.h.  A session remembers one stream with such copies; where a second one gets some,
 * it is made to wait for the first, so that waiting for it is waiting for both: on another
 * device, too, whose kernels and copies may reach what was copied.
 */
#include "shim/driver/stream/order.h"

#include <pthread.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/stream/function_order.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_RANK(order, order_lock, LOCK_ORDER);

/* An event of the context's own, made when it is first needed. Green contexts have that of
 * their primary one. */
static CUresult order_event(struct context *context)
{
	struct shim_call call;
	struct wire_vcudaEventCreate *body;

	if (context->order_event)
		return CUDA_SUCCESS;
	context->order_event = shim_mint(KIND_CUevent, NULL);
	if (!context->order_event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	body = shim_begin(&call, OP_vcudaEventCreate, sizeof(*body));
	call.context = context->number;
	body->event = context->order_event;
	body->flags = CU_EVENT_DISABLE_TIMING;
	return shim_post(&call);
}

/* With the lock held: stream LATER of CONTEXT waits for what stream EARLIER of BEFORE has so
 * far; 0 is the legacy one of either. */
static CUresult order_wait(
	struct context *before, uint64_t earlier, const struct context *context, uint64_t later)
{
	struct context *home = before->home;
	struct shim_call call;
	struct wire_cuEventRecord *record;
	struct wire_cuStreamWaitEvent *wait;
	CUresult status = order_event(home);

	if (status)
		return status;
	record = shim_begin(&call, OP_cuEventRecord, sizeof(*record));
	record->hEvent = home->order_event;
	record->hStream = earlier;
	call.context = before->number;
	status = shim_post(&call);
	if (status)
		return status;
	wait = shim_begin(&call, OP_cuStreamWaitEvent, sizeof(*wait));
	wait->hStream = later;
	wait->hEvent = home->order_event;
	call.context = context->number;
	return shim_post(&call);
}

/* The same for the stream that has such copies. */
static CUresult order_wait_copied(
	const struct session *session, const struct context *context, uint64_t later)
{
	return order_wait(session->order.context, session->order.stream, context, later);
}

static bool order_known_done(const struct session *session, uint64_t seq)
{
	const struct context *context = session->order.context;
	const struct stream *stream =
		session->order.stream ? shim_object_of(session->order.stream, KIND_CUstream)
				      : context->legacy;

	return atomic_load(&context->home->synced) >= seq ||
	       atomic_load(&context->synced) >= seq ||
	       (stream && atomic_load(&stream->synced) >= seq);
}

/* With the lock held: the frame of such a copy that may not be done; 0: there is none. */
static uint64_t order_left(const struct session *session)
{
	uint64_t loose = atomic_load(&session->order.loose);

	return loose && !order_known_done(session, loose) ? loose : 0;
}

bool order_loose(struct session *session, uint64_t *stream, uint16_t *context)
{
	bool some;

	pthread_mutex_lock(&order_lock);
	some = order_left(session);
	if (some) {
		*stream = session->order.stream;
		*context = session->order.context->number;
	}
	pthread_mutex_unlock(&order_lock);
	return some;
}

/* The stream that has them itself, or one that waits for it anyway: the legacy one and the
 * blocking ones of a context. */
static bool order_behind(const struct session *session, const struct stream *stream)
{
	const struct stream *last =
		session->order.stream ? shim_object_of(session->order.stream, KIND_CUstream)
				      : session->order.context->legacy;

	return stream == last ||
	       (last && stream->context == last->context &&
		       (!stream->handle || !last->handle) &&
		       !((stream->flags | last->flags) & CU_STREAM_NON_BLOCKING));
}

CUresult order_copied(struct context *context, uint64_t number, uint64_t seq)
{
	struct session *session = context->session;
	struct stream *stream =
		number ? shim_object_of(number, KIND_CUstream) : context->legacy;
	CUresult status = CUDA_SUCCESS;

	function_order_copied(number);
	pthread_mutex_lock(&order_lock);
	if (stream && order_left(session) && !order_behind(session, stream))
		status = order_wait_copied(session, context, number);
	session->order.context = context;
	session->order.stream = number;
	if (atomic_load(&session->order.loose) < seq)
		atomic_store(&session->order.loose, seq);
	if (stream)
		stream_raise(&stream->joined, seq);
	pthread_mutex_unlock(&order_lock);
	return status;
}

CUresult order_join_slow(struct stream *stream)
{
	struct session *session = stream->context->session;
	CUresult status = CUDA_SUCCESS;
	uint64_t loose;

	pthread_mutex_lock(&order_lock);
	loose = atomic_load(&session->order.loose);
	if (order_left(session) && !order_behind(session, stream))
		status = order_wait_copied(session, stream->context, stream->handle);
	if (!status)
		stream_raise(&stream->joined, loose);
	pthread_mutex_unlock(&order_lock);
	return status;
}

CUresult order_after(struct context *other, uint64_t stream)
{
	struct context *current = context_current(), *popped;
	CUresult status;
	uint64_t legacy;

	if (!thread_push(other))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = stream_number(CU_STREAM_LEGACY, &legacy);
	thread_pop(&popped);
	if (status)
		return status;
	pthread_mutex_lock(&order_lock);
	status = order_wait(other, legacy, current, stream);
	pthread_mutex_unlock(&order_lock);
	return status;
}

/* Waits for such copies; with ONLY where they are in that stream or a legacy one alone. */
static CUresult order_drain_streams(struct session *session, const uint64_t *only)
{
	struct context *context, *popped;
	CUresult status;
	uint64_t at, seq;
	bool left;

	pthread_mutex_lock(&order_lock);
	at = session->order.stream;
	context = session->order.context;
	left = order_left(session) && (!only || at == *only || !at);
	pthread_mutex_unlock(&order_lock);
	if (!left)
		return CUDA_SUCCESS;
	if (!thread_push(context))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = sync_wait(SYNC_STREAM, at, &seq);
	if (!status)
		stream_synced(at, seq);
	thread_pop(&popped);
	return status;
}

CUresult order_drain(uint64_t stream)
{
	return order_drain_streams(session_here(), &stream);
}

CUresult order_share(struct session *session)
{
	atomic_store(&session->order.shared, true);
	return order_drain_streams(session, NULL);
}

void order_stream_gone(struct stream *stream)
{
	struct session *session = stream->context->session;

	pthread_mutex_lock(&order_lock);
	if (stream->handle && session->order.stream == stream->handle) {
		if (order_left(session))
			order_wait_copied(session, stream->context, 0);
		session->order.stream = 0;
	}
	pthread_mutex_unlock(&order_lock);
}

void order_context_gone(struct context *context)
{
	struct session *session = context->session;

	pthread_mutex_lock(&order_lock);
	if (session->order.context == context) {
		session->order.context = NULL;
		session->order.stream = 0;
		atomic_store(&session->order.loose, 0);
	}
	pthread_mutex_unlock(&order_lock);
}
