/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: created, recorded and destroyed by posts; queries are answered from what is known
 * where that is enough.
 */
#include <stdlib.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/copy/direct.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/stream/host_function.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/stream/straight.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/completion.h"

#define EVENT_FLAGS                                                                            \
	(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/* For the stream of an event that stands for all of a context's: no stream's number. */
#define EVENT_OF_CONTEXT UINT64_MAX

struct event *event_of(CUevent hEvent)
{
	return shim_object_of((uint64_t)(uintptr_t)hEvent, KIND_CUevent);
}

CUresult hand_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct event *event;
	CUresult status;

	if (!context_current())
		return context_missing();
	if (!phEvent || Flags & ~EVENT_FLAGS ||
		(Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->flags = Flags;
	event->context = context_current();
	event->handle = shim_mint(KIND_CUevent, event);
	if (!event->handle) {
		free(event);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* The worker's driver does not share it: ipc_event.c. */
	status = send_vcudaEventCreate(event->handle, Flags & ~(unsigned)CU_EVENT_INTERPROCESS);
	if (status) {
		shim_unmint(event->handle);
		free(event);
		return status;
	}
	*phEvent = (CUevent)(uintptr_t)event->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuEventDestroy_v2(CUevent hEvent)
{
	struct event *event = event_of(hEvent);
	uint64_t handle;

	if (!event || !handle_release(event->handle))
		return CUDA_ERROR_INVALID_HANDLE;
	handle = event->handle;
	completion_put(event->watch.counter);
	free(event);
	return send_vcudaEventDestroy(handle);
}

CUresult event_of_launch(CUevent hEvent, int flags)
{
	const struct event *event = event_of(hEvent);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags || event->flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_INVALID_VALUE;
	return event->flags & CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* Another process takes it for done (ipc_event.c): what it is to stand for has to be, before it
 * is recorded. A stream that captures only notes what is before it: nothing is done then. */
static CUresult event_drain(CUstream hStream)
{
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	return status || capture_graph(stream) ? status : sync_wait(SYNC_STREAM, stream, NULL);
}

/* Only a stream that captures can make an external record or wait of it: the graph's. */
static bool event_captures(CUstream hStream)
{
	uint64_t number;

	return capture_any() && !stream_plain(hStream, &number) && capture_graph(number);
}

bool event_goes_with(const struct event *event, uint64_t number)
{
	const struct stream *stream = stream_find(number);

	return !stream || stream->context->home == event->context->home;
}

/* SEQ is the frame that recorded it on STREAM. */
static void event_recorded(struct event *event, uint64_t stream, uint64_t seq)
{
	atomic_store_explicit(&event->stream, stream, memory_order_release);
	atomic_store_explicit(&event->graphed, false, memory_order_release);
	atomic_store(&event->recorded, seq);
}

/* In nearly all cases: the event is this process's alone, and the stream has nothing to wait
 * for first. False: it may be another case, and nothing was done. */
static bool event_record_straight(struct event *event, CUstream hStream, CUresult *status)
{
	struct wire_cuEventRecord *body;
	const struct stream *on;
	uint64_t number, seq;
	bool captured;

	if (!(shim_perf & PERF_POST) || atomic_load(&event->shared) != EVENT_ALONE)
		return false;
	on = stream_straight(hStream, &number);
	if (!on || on->context->home != event->context->home)
		return false;
	/* Another thread may have begun a capture meanwhile. */
	captured = capture_record(event, number, false);
	if (!captured)
		function_order_recorded(event, number);
	*status = CUDA_SUCCESS;
	body = shim_post_begin(OP_cuEventRecord, sizeof(*body), status);
	if (!body)
		return true;
	body->hEvent = event->handle;
	body->hStream = number;
	seq = shim_post_end(OP_cuEventRecord);
	if (!captured)
		event_recorded(event, number, seq);
	return true;
}

CUresult event_record(CUevent hEvent, CUstream hStream, unsigned int flags, uint16_t op)
{
	struct event *event = event_of(hEvent);
	struct shim_call call;
	struct wire_cuEventRecordWithFlags *body;
	bool captured = false;
	uint64_t stream;
	CUresult status;

	if (!event || event->context->session != session_here())
		return stream_plain(hStream, &stream) ?: CUDA_ERROR_INVALID_HANDLE;
	if (op == OP_cuEventRecord && event_record_straight(event, hStream, &status))
		return status;
	if (flags & CU_EVENT_RECORD_EXTERNAL && !event_captures(hStream))
		return CUDA_ERROR_ILLEGAL_STATE;
	if (atomic_load(&event->shared) == EVENT_SHARED && !event_captures(hStream))
		return ipc_event_record(event, hStream);
	if (atomic_load(&event->shared) == EVENT_DRAINED) {
		status = event_drain(hStream);
		if (status)
			return status;
	}
	/* The two bodies differ by the flags at their end. */
	body = shim_begin(&call, op,
		op == OP_cuEventRecord ? sizeof(struct wire_cuEventRecord) : sizeof(*body));
	body->hEvent = event->handle;
	body->hStream = shim_stream(&call, hStream);
	if (op != OP_cuEventRecord)
		body->flags = flags;
	stream = body->hStream;
	if (!call.status && !event_goes_with(event, stream))
		call.status = CUDA_ERROR_INVALID_HANDLE;
	if (!call.status)
		captured = capture_record(event, stream, flags & CU_EVENT_RECORD_EXTERNAL);
	if (!call.status && !captured)
		function_order_recorded(event, stream);
	status = shim_post(&call);
	if (!status && !captured)
		event_recorded(event, stream, call.seq);
	return status;
}

CUresult hand_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	if (event_of(hEvent) && flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	return event_record(hEvent, hStream, flags, OP_cuEventRecordWithFlags);
}

/* Do earlier synchronisations prove that the recording is done? */
static bool event_known(struct event *event, uint64_t recorded)
{
	uint64_t number = atomic_load(&event->stream);
	struct stream *stream;

	if (!recorded || atomic_load(&event->done) == recorded)
		return true;
	if (atomic_load(&event->context->synced) > recorded)
		return true;
	stream = number ? shim_object_of(number, KIND_CUstream) : event->context->legacy;
	return stream && atomic_load(&stream->synced) > recorded;
}

static CUresult event_await(struct event *event)
{
	uint64_t recorded = atomic_load(&event->recorded);
	CUresult status;

	if (ipc_event_is(event))
		return sync_wait(SYNC_SHARED, event->handle, NULL);
	if (shim_perf & PERF_PUSH && event_known(event, recorded))
		return CUDA_SUCCESS;
	status = sync_wait(SYNC_EVENT, event->handle, NULL);
	if (!status)
		atomic_store(&event->done, recorded);
	return status;
}

/* Another agent's: the stream waits for it on the device. Where the agents cannot do that the
 * program's thread does, and whatever the stream gets next comes behind it. */
static CUresult event_await_elsewhere(struct event *event, CUstream hStream)
{
	uint64_t number, recorded;
	CUresult status = stream_number(hStream, &number);
	bool lent;

	if (!status && (capture_graph(number) || atomic_load(&event->capture))) {
		logs_add("cuStreamWaitEvent", "a capture does not span several agents");
		/* That of the stream is invalid, and that in which the event was recorded. */
		(void)capture_refuse(number);
		(void)capture_event(event);
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (status)
		return status;
	function_order_awaited(number, event);
	recorded = atomic_load(&event->recorded);
	if (!ipc_event_is(event) &&
		(event_known(event, recorded) || direct_await(event, number, &status)))
		return status;
	lent = context_home_lend(event->handle);
	status = hand_cuEventSynchronize((CUevent)(uintptr_t)event->handle);
	if (lent)
		context_home_lent();
	return status;
}

CUresult hand_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct event *event = event_of(hEvent);
	struct wire_cuStreamWaitEvent *body;
	struct shim_call call;
	uint64_t number;

	if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!event) {
		CUresult status = stream_plain(hStream, &number);

		/* It ends a capture, as natively. */
		if (!status)
			(void)capture_refuse(number);
		return status ? status : CUDA_ERROR_INVALID_HANDLE;
	}
	if (Flags && !event_captures(hStream))
		return CUDA_ERROR_ILLEGAL_STATE;
	if (event->context->session != session_here())
		return event_await_elsewhere(event, hStream);
	if (ipc_event_is(event) && !atomic_load(&event->capture) && !event_captures(hStream))
		return ipc_event_await(event, hStream);
	body = shim_begin(&call, OP_cuStreamWaitEvent, sizeof(*body));
	body->hStream = shim_stream(&call, hStream);
	body->hEvent = event->handle;
	body->Flags = Flags;
	if (!call.status)
		call.status = capture_wait(
			event, body->hStream, Flags & (unsigned)CU_EVENT_WAIT_EXTERNAL);
	function_order_awaited(body->hStream, event);
	if (Flags)
		function_order_unknown(); /* a graph waits for it, wherever it is launched */
	return shim_post(&call);
}

/* The same of a whole context (event_drain). */
static CUresult context_drain(struct context *context)
{
	struct context *popped;
	CUresult status;

	if (!thread_push(context))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = sync_wait(SYNC_CONTEXT, 0, NULL);
	thread_pop(&popped);
	return status;
}

static CUresult post_record_context(
	const struct event *event, const struct context *context, uint64_t *seq)
{
	struct shim_call call;
	struct wire_cuCtxRecordEvent *body =
		shim_begin(&call, OP_cuCtxRecordEvent, sizeof(*body));
	CUresult status;

	call.context = context->number;
	body->hEvent = event->handle;
	status = shim_post(&call);
	*seq = call.seq;
	return status;
}

CUresult event_record_context(struct context *context, CUevent hEvent)
{
	struct event *event = event_of(hEvent);
	struct session_visit visit;
	uint64_t seq = 0;
	CUresult status;

	if (!atomic_load(&context->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	/* A green context's may be the primary context's. */
	if (!event || (event->context != context &&
			      !(context->green && event->context->home == context->home)))
		return CUDA_ERROR_INVALID_HANDLE;
	status = capture_refuse_context(context);
	if (status)
		return status;
	function_order_recorded_context(event);
	visit = session_visit(context->session);
	if (atomic_load(&event->shared) == EVENT_SHARED)
		status = ipc_event_record_context(event, context, &seq);
	else if (atomic_load(&event->shared) == EVENT_DRAINED)
		status = context_drain(context);
	if (!status && !seq)
		status = post_record_context(event, context, &seq);
	session_leave(visit);
	if (!status) {
		atomic_store(&event->capture, 0);
		atomic_store(&event->graphed, false);
		atomic_store(&event->stream, EVENT_OF_CONTEXT);
		atomic_store(&event->recorded, seq);
	}
	return status;
}

CUresult hand_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct context *context = context_of(hCtx);

	return context ? event_record_context(context, hEvent) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult event_await_context(struct context *context, CUevent hEvent)
{
	struct event *event = event_of(hEvent);
	struct session_visit visit;
	struct wire_cuCtxWaitEvent *body;
	struct shim_call call;
	CUresult status;

	if (!atomic_load(&context->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	status = capture_refuse_context(context);
	if (!status && !event)
		status = CUDA_ERROR_INVALID_HANDLE;
	if (!status && capture_event(event))
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!status && event->context->session != context->session)
		status = CUDA_ERROR_NOT_SUPPORTED;
	if (status)
		return status;
	function_order_awaited_context(event);
	visit = session_visit(context->session);
	/* Another process's recording is no event of the agent's driver. */
	if (ipc_event_is(event))
		status = event_await(event);
	if (!status) {
		body = shim_begin(&call, OP_cuCtxWaitEvent, sizeof(*body));
		call.context = context->number;
		body->hEvent = event->handle;
		status = shim_post(&call);
	}
	session_leave(visit);
	return status;
}

/* What the agent's driver would say of it. */
static bool event_has_time(const struct event *event)
{
	return event && !(event->flags & CU_EVENT_DISABLE_TIMING) &&
	       atomic_load(&event->recorded);
}

CUresult hand_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	const struct wire_cuEventElapsedTime_v2_reply *reply;
	const struct event *start = event_of(hStart), *end = event_of(hEnd);
	struct wire_cuEventElapsedTime_v2 *body;
	struct shim_call call;
	CUresult status;
	bool lent;

	/* As natively, where the time is to go too. */
	if (!event_has_time(start) || !event_has_time(end) || !pMilliseconds ||
		start->context->device != end->context->device)
		return CUDA_ERROR_INVALID_HANDLE;
	if (thread_self.in_function)
		return host_function_elapsed(start, end, pMilliseconds);
	lent = context_home_lend(start->handle);
	body = shim_begin(&call, OP_cuEventElapsedTime_v2, sizeof(*body));
	body->hStart = start->handle;
	body->hEnd = end->handle;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		*pMilliseconds = reply->pMilliseconds;
	status = shim_end(&call);
	if (lent)
		context_home_lent();
	return status;
}

CUresult hand_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	struct context *context = context_of(hCtx);

	return context ? event_await_context(context, hEvent) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult hand_cuEventQuery(CUevent hEvent)
{
	struct event *event = event_of(hEvent);
	uint64_t recorded;
	CUresult status;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	status = capture_event(event);
	if (!status)
		status = capture_unsafe();
	if (status)
		return status;
	if (thread_self.in_function && ipc_event_is(event))
		return host_function_query(SYNC_SHARED, event->handle, shim_sequence());
	if (ipc_event_is(event))
		return ipc_event_query(event);
	recorded = atomic_load(&event->recorded);
	if (shim_perf & PERF_PUSH && event_known(event, recorded))
		return CUDA_SUCCESS;
	if (thread_self.in_function)
		return host_function_query(SYNC_EVENT, event->handle, recorded);
	/* A counter that was armed for an earlier recording says nothing about this one. */
	if (atomic_load(&event->watch.seq) < recorded)
		atomic_store(&event->watch.value, 0);
	status = sync_watch_query(&event->watch, SYNC_EVENT, event->handle, recorded);
	if (!status)
		atomic_store(&event->done, recorded);
	return status;
}

CUresult event_done(struct event *event)
{
	return atomic_load(&event->capture) ? CUDA_SUCCESS : event_await(event);
}

CUresult hand_cuEventSynchronize(CUevent hEvent)
{
	struct event *event = event_of(hEvent);
	CUresult status;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	status = capture_event(event);
	if (!status)
		status = capture_unsafe();
	return status ? status : event_await(event);
}
