/* SPDX-License-Identifier: Apache-2.0
 *
 * Events.  A recorded event is a place in a stream: (stream, number).  Recording on a stream
 * with nothing queued takes no operation at all.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

/* All under queue_lock. */
struct CUevent_st {
	struct CUctx_st *context;   /* referenced */
	struct CUevent_st *next;    /* of all */
	struct CUstream_st *stream; /* recorded there, referenced; NULL: never recorded */
	uint64_t seq;
	uint64_t time; /* when it was reached, CLOCK_MONOTONIC */
	unsigned flags;
	unsigned refs;
	bool closed;
	struct event_capture capture;
};
struct event_op {
	struct op op;
	struct CUevent_st *event;
};

static struct CUevent_st *events;

static void event_unref(struct CUevent_st *event)
{
	if (--event->refs)
		return;
	if (event->stream)
		queue_unref(event->stream);
	node_set_free(&event->capture.tail);
	context_unref(event->context);
	free(event);
}

void event_hold(CUevent event)
{
	event->refs++;
}

void event_let(CUevent event)
{
	event_unref(event);
}

static void event_close(struct CUevent_st *event)
{
	struct CUevent_st **at = &events;

	object_remove(event);
	while (*at != event)
		at = &(*at)->next;
	*at = event->next;
	event_unref(event);
}

void event_release_context(const struct CUctx_st *context)
{
	struct CUevent_st *next;

	pthread_mutex_lock(&queue_lock);
	for (struct CUevent_st *event = events; event; event = next) {
		next = event->next;
		if (event->context == context)
			event_close(event);
	}
	pthread_mutex_unlock(&queue_lock);
}

static bool event_pending(const struct CUevent_st *event)
{
	return event->stream && event->stream->completed < event->seq;
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct CUctx_st *context;
	struct CUevent_st *event;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!phEvent || Flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING |
					    CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS)
		return Flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED
						       : CUDA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->context = context;
	event->flags = Flags;
	event->refs = 1;
	if (!object_add(event, OBJECT_EVENT)) {
		free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context_ref(context);
	pthread_mutex_lock(&queue_lock);
	event->next = events;
	events = event;
	pthread_mutex_unlock(&queue_lock);
	*phEvent = event;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	CUresult ret = CUDA_SUCCESS;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&queue_lock);
	if (object_is(hEvent, OBJECT_EVENT))
		event_close(hEvent);
	else
		ret = CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuEventDestroy(CUevent hEvent)
{
	return cuEventDestroy_v2(hEvent);
}

/* The stream has come to the record: under queue_lock. */
static void record_run(struct op *base)
{
	struct event_op *op = (struct event_op *)base;

	if (op->event->stream == base->stream && op->event->seq == base->seq)
		op->event->time = softgpu_now_ns();
}

static void event_op_drop(struct op *base)
{
	struct event_op *op = (struct event_op *)base;

	if (op->event)
		event_unref(op->event);
	free(op);
}

static void event_place(struct CUevent_st *event, struct CUstream_st *stream, uint64_t seq)
{
	queue_ref(stream);
	if (event->stream)
		queue_unref(event->stream);
	event->stream = stream;
	event->seq = seq;
}

CUresult event_record_locked(CUevent event, struct CUstream_st *stream)
{
	struct event_op *op;

	if (event->context != stream->context)
		return CUDA_ERROR_INVALID_HANDLE;
	event->capture.id = 0;
	if (queue_idle_locked(stream->context)) {
		event_place(event, stream, stream->submitted);
		event->time = softgpu_now_ns();
		return CUDA_SUCCESS;
	}
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_MARK;
	op->op.run = record_run;
	op->op.drop = event_op_drop;
	op->event = event;
	event->refs++;
	event_place(event, stream, stream->submitted + 1);
	return queue_submit_locked(stream, &op->op, false) ? CUDA_SUCCESS
							   : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (!object_is(hEvent, OBJECT_EVENT))
		ret = CUDA_ERROR_INVALID_HANDLE;
	else if (stream->capture)
		ret = soft_capture_record(
			stream, hEvent, &hEvent->capture, flags & CU_EVENT_RECORD_EXTERNAL);
	else
		ret = event_record_locked(hEvent, stream);
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventQuery(CUevent hEvent)
{
	CUresult ret;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	ret = capture_unsafe();
	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (!object_is(hEvent, OBJECT_EVENT)) {
		ret = CUDA_ERROR_INVALID_HANDLE;
	} else if (hEvent->capture.id) {
		ret = CUDA_ERROR_CAPTURED_EVENT;
	} else {
		ret = context_fault_of(hEvent->context);
		if (!ret && event_pending(hEvent))
			ret = CUDA_ERROR_NOT_READY;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	CUresult ret = CUDA_SUCCESS;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&queue_lock);
	if (!object_is(hEvent, OBJECT_EVENT)) {
		ret = CUDA_ERROR_INVALID_HANDLE;
	} else if (hEvent->capture.id) {
		ret = CUDA_ERROR_CAPTURED_EVENT;
	} else {
		struct CUctx_st *context = hEvent->context;

		context_ref(context);
		if (event_pending(hEvent))
			queue_wait_locked(hEvent->stream, hEvent->seq);
		ret = context_fault_of(context);
		context_unref(context);
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	CUresult ret = CUDA_SUCCESS;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&queue_lock);
	if (!object_is(hStart, OBJECT_EVENT) || !object_is(hEnd, OBJECT_EVENT) ||
		(hStart->flags | hEnd->flags) & CU_EVENT_DISABLE_TIMING || !hStart->stream ||
		!hEnd->stream || hStart->context->device != hEnd->context->device)
		ret = CUDA_ERROR_INVALID_HANDLE;
	else if ((ret = context_fault_of(hStart->context)))
		;
	else if (event_pending(hStart) || event_pending(hEnd))
		ret = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (float)((double)(int64_t)(hEnd->time - hStart->time) / 1e6);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

/* The stream's next operation waits until SEQ of OTHER is done. */
static CUresult wait_for_locked(
	struct CUstream_st *stream, struct CUstream_st *other, uint64_t seq)
{
	struct event_op *op;

	if (other == stream || other->completed >= seq)
		return CUDA_SUCCESS;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_MARK;
	op->op.drop = event_op_drop;
	if (!queue_depend(&op->op, other, seq)) {
		free(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return queue_submit_locked(stream, &op->op, false) ? CUDA_SUCCESS
							   : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult event_wait_locked(struct CUstream_st *stream, CUevent event)
{
	return event_pending(event) ? wait_for_locked(stream, event->stream, event->seq)
				    : CUDA_SUCCESS;
}

void event_gate_locked(struct CUstream_st *stream)
{
	struct CUstream_st *gate = stream->context->gate;

	if (gate)
		wait_for_locked(stream, gate, gate->submitted);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct CUstream_st *stream;
	bool handled = false;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (!object_is(hEvent, OBJECT_EVENT))
		ret = CUDA_ERROR_INVALID_HANDLE;
	else
		ret = soft_capture_wait(stream, hEvent, &hEvent->capture,
			hEvent->stream != NULL, Flags & CU_EVENT_WAIT_EXTERNAL, &handled);
	if (!ret && !handled)
		ret = event_wait_locked(stream, hEvent);
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* ---- a whole context at once ---- */

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct event_op *op;
	CUresult ret;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	ret = context_check(hCtx);
	if (ret)
		return ret;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_MARK;
	op->op.run = record_run;
	op->op.drop = event_op_drop;
	pthread_mutex_lock(&queue_lock);
	if (!object_is(hEvent, OBJECT_EVENT) || hEvent->context != hCtx) {
		free(op);
		pthread_mutex_unlock(&queue_lock);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	/* On the NULL stream, which waits for the blocking streams by itself. */
	for (struct CUstream_st *s = hCtx->streams; s && !ret; s = s->next)
		if (s != hCtx->legacy && !queue_depend(&op->op, s, s->submitted))
			ret = CUDA_ERROR_OUT_OF_MEMORY;
	op->event = hEvent;
	hEvent->refs++;
	hEvent->capture.id = 0;
	event_place(hEvent, hCtx->legacy, hCtx->legacy->submitted + 1);
	if (!queue_submit_locked(hCtx->legacy, &op->op, false))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* What is queued later on any stream of the context waits for the event, on one that is made
 * later too. */
CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	struct CUstream_st *gate;
	CUresult ret;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	ret = context_check(hCtx);
	if (ret)
		return ret;
	gate = queue_stream_new(hCtx, CU_STREAM_NON_BLOCKING, 0, false);
	pthread_mutex_lock(&queue_lock);
	if (!hCtx->gate) {
		hCtx->gate = gate;
		gate = NULL;
	}
	if (!object_is(hEvent, OBJECT_EVENT))
		ret = CUDA_ERROR_INVALID_HANDLE;
	else if (!hCtx->gate)
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	for (struct CUstream_st *s = hCtx->streams; s && !ret; s = s->next)
		if (s->flags & CU_STREAM_NON_BLOCKING || s->legacy)
			ret = event_wait_locked(s, hEvent);
	pthread_mutex_unlock(&queue_lock);
	if (gate)
		queue_stream_close(gate);
	return ret;
}
