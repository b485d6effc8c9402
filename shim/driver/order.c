/* SPDX-License-Identifier: Apache-2.0
 *
 * See order.h.  Green contexts are one with their primary context here.  A context remembers
 * one stream with such copies; where a second one gets some, it is made to wait for the first,
 * so that waiting for it is waiting for both.
 */
#include "shim/driver/order.h"

#include <pthread.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/function_order.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"

static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_RANK(order, order_lock, LOCK_ORDER);

/* The context's own event, made when it is first needed. */
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

/* With the lock held: LATER waits for what the stream with such copies has so far. */
static CUresult order_wait(struct context *context, uint64_t later)
{
	struct shim_call call;
	struct wire_cuEventRecord *record;
	struct wire_cuStreamWaitEvent *wait;
	CUresult status = order_event(context);

	if (status)
		return status;
	record = shim_begin(&call, OP_cuEventRecord, sizeof(*record));
	record->hEvent = context->order_event;
	record->hStream = context->loose_stream;
	if (!context->loose_stream)
		call.context = context->loose_number;
	status = shim_post(&call);
	if (status)
		return status;
	wait = shim_begin(&call, OP_cuStreamWaitEvent, sizeof(*wait));
	wait->hStream = later;
	wait->hEvent = context->order_event;
	return shim_post(&call);
}

static bool order_known_done(const struct context *context, uint64_t seq)
{
	struct stream *stream = NULL;

	if (context->loose_stream)
		stream = shim_object_of(context->loose_stream, KIND_CUstream);
	else if (context->loose_number == context->number)
		stream = context->legacy;

	return atomic_load(&context->synced) >= seq ||
	       (stream && atomic_load(&stream->synced) >= seq);
}

bool order_loose(struct context *context, uint64_t *stream, uint16_t *number)
{
	uint64_t loose;
	bool some;

	context = context->home;
	pthread_mutex_lock(&order_lock);
	loose = atomic_load(&context->loose);
	some = loose && !order_known_done(context, loose);
	*stream = context->loose_stream;
	*number = some ? context->loose_number : context->number;
	pthread_mutex_unlock(&order_lock);
	return some;
}

CUresult order_copied(struct context *context, uint64_t stream, uint64_t seq)
{
	CUresult status = CUDA_SUCCESS;
	uint16_t number = context->number;
	uint64_t before;

	function_order_copied(stream);
	context = context->home;
	pthread_mutex_lock(&order_lock);
	before = atomic_load(&context->loose);
	if (before &&
		(context->loose_stream != stream ||
			(!stream && context->loose_number != number)) &&
		!order_known_done(context, before))
		status = order_wait(context, stream);
	context->loose_stream = stream;
	context->loose_number = number;
	if (before < seq)
		atomic_store(&context->loose, seq);
	pthread_mutex_unlock(&order_lock);
	return status;
}

CUresult order_join_slow(struct context *context, struct stream *stream)
{
	CUresult status = CUDA_SUCCESS;
	uint64_t loose;
	bool blocking = !(stream->flags & CU_STREAM_NON_BLOCKING) &&
			stream->context->number == context->loose_number;

	pthread_mutex_lock(&order_lock);
	loose = atomic_load(&context->loose);
	/* The legacy stream and the blocking ones wait for one another anyway. */
	if (stream->handle != context->loose_stream && stream->handle &&
		!(blocking && !context->loose_stream) && !order_known_done(context, loose))
		status = order_wait(context, stream->handle);
	if (!status)
		atomic_store(&stream->joined, loose);
	pthread_mutex_unlock(&order_lock);
	return status;
}

CUresult order_drain(struct context *context, uint64_t stream)
{
	uint64_t at;
	bool left;

	context = context->home;
	pthread_mutex_lock(&order_lock);
	at = context->loose_stream;
	left = (at == stream || !at) && atomic_load(&context->loose) &&
	       !order_known_done(context, atomic_load(&context->loose));
	pthread_mutex_unlock(&order_lock);
	if (!left)
		return CUDA_SUCCESS;
	return at ? hand_cuStreamSynchronize((CUstream)(uintptr_t)at)
		  : hand_cuStreamSynchronize(CU_STREAM_LEGACY);
}

void order_stream_gone(struct context *context, uint64_t stream)
{
	uint16_t number = context->number;

	context = context->home;
	pthread_mutex_lock(&order_lock);
	if (context->loose_stream == stream) {
		if (!order_known_done(context, atomic_load(&context->loose)))
			order_wait(context, 0);
		context->loose_stream = 0;
		context->loose_number = number;
	}
	pthread_mutex_unlock(&order_lock);
}

void order_context_gone(struct context *context)
{
	struct context *home = context->home;
	struct stream *stream;

	pthread_mutex_lock(&order_lock);
	stream = shim_object_of(home->loose_stream, KIND_CUstream);
	if (home->loose_stream ? stream && stream->context == context
			       : home->loose_number == context->number) {
		home->loose_stream = 0;
		home->loose_number = home->number;
		atomic_store(&home->loose, 0);
	}
	pthread_mutex_unlock(&order_lock);
}
