/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call says beside that it was made: what was waited for, that an event was recorded or
 * a stream made, between which kinds of memory it copied.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/libraries/cupti/cupti.h"

/* Parameters of the calls below are words: pointers, handles, sizes. */
static uint64_t word(const struct trace_call *call, unsigned at)
{
	uint64_t value;

	memcpy(&value, (const unsigned char *)call->params + 8 * (size_t)at, sizeof(value));
	return value;
}

enum derived {
	DERIVED_NONE,
	DERIVED_COPY,	 /* dst and src: words A and B, NONE: no address; asynchronous: C */
	DERIVED_FILL,	 /* asynchronous: C */
	DERIVED_CONTEXT, /* waits for all */
	DERIVED_STREAM,	 /* waits for the stream A */
	DERIVED_EVENT,	 /* waits for the event A */
	DERIVED_WAIT,	 /* the stream A waits for the event B */
	DERIVED_RECORD,	 /* the event A is recorded on the stream B */
	DERIVED_MADE,	 /* the stream at A is made */
};
#define NONE 15
#define THREADS 1 /* the thread's own stream, where NULL is given */

struct derivation {
	uint8_t derived, a, b, c;
};

/* A form and its per-thread one. */
#define ROW(name, ...) [CALL_##name] = {__VA_ARGS__}
#define ROW_PTSZ(name, derived, a, b, c)                                                       \
	ROW(name, derived, a, b, c), ROW(name##_ptsz, derived, a, b, c)
#define ROW_PTDS(name, derived, a, b, c)                                                       \
	ROW(name, derived, a, b, c), ROW(name##_ptds, derived, a, b, c)
static const struct derivation derivations[CALL_LAST] = {
	ROW_PTDS(cudaMemcpy, DERIVED_COPY, 0, 1, 0),
	ROW_PTSZ(cudaMemcpyAsync, DERIVED_COPY, 0, 1, 1),
	ROW_PTDS(cudaMemcpy2D, DERIVED_COPY, 0, 2, 0),
	ROW_PTSZ(cudaMemcpy2DAsync, DERIVED_COPY, 0, 2, 1),
	ROW_PTDS(cudaMemcpyToSymbol, DERIVED_COPY, NONE, 1, 0),
	ROW_PTSZ(cudaMemcpyToSymbolAsync, DERIVED_COPY, NONE, 1, 1),
	ROW_PTDS(cudaMemcpyFromSymbol, DERIVED_COPY, 0, NONE, 0),
	ROW_PTSZ(cudaMemcpyFromSymbolAsync, DERIVED_COPY, 0, NONE, 1),
	ROW_PTDS(cuMemcpy, DERIVED_COPY, 0, 1, 0),
	ROW_PTSZ(cuMemcpyAsync, DERIVED_COPY, 0, 1, 1),
	ROW(cuMemcpyHtoD_v2, DERIVED_COPY, NONE, 1, 0),
	ROW(cuMemcpyHtoD_v2_ptds, DERIVED_COPY, NONE, 1, 0),
	ROW(cuMemcpyDtoH_v2, DERIVED_COPY, 0, NONE, 0),
	ROW(cuMemcpyDtoH_v2_ptds, DERIVED_COPY, 0, NONE, 0),
	ROW(cuMemcpyDtoD_v2, DERIVED_COPY, NONE, NONE, 0),
	ROW(cuMemcpyDtoD_v2_ptds, DERIVED_COPY, NONE, NONE, 0),
	ROW(cuMemcpyHtoDAsync_v2, DERIVED_COPY, NONE, 1, 1),
	ROW(cuMemcpyHtoDAsync_v2_ptsz, DERIVED_COPY, NONE, 1, 1),
	ROW(cuMemcpyDtoHAsync_v2, DERIVED_COPY, 0, NONE, 1),
	ROW(cuMemcpyDtoHAsync_v2_ptsz, DERIVED_COPY, 0, NONE, 1),
	ROW(cuMemcpyDtoDAsync_v2, DERIVED_COPY, NONE, NONE, 1),
	ROW(cuMemcpyDtoDAsync_v2_ptsz, DERIVED_COPY, NONE, NONE, 1),
	ROW_PTDS(cudaMemset, DERIVED_FILL, 0, 0, 0),
	ROW_PTSZ(cudaMemsetAsync, DERIVED_FILL, 0, 0, 1),
	ROW_PTDS(cudaMemset2D, DERIVED_FILL, 0, 0, 0),
	ROW_PTSZ(cudaMemset2DAsync, DERIVED_FILL, 0, 0, 1),
	ROW_PTDS(cuMemsetD8_v2, DERIVED_FILL, 0, 0, 0),
	ROW_PTDS(cuMemsetD16_v2, DERIVED_FILL, 0, 0, 0),
	ROW_PTDS(cuMemsetD32_v2, DERIVED_FILL, 0, 0, 0),
	ROW_PTSZ(cuMemsetD8Async, DERIVED_FILL, 0, 0, 1),
	ROW_PTSZ(cuMemsetD16Async, DERIVED_FILL, 0, 0, 1),
	ROW_PTSZ(cuMemsetD32Async, DERIVED_FILL, 0, 0, 1),
	ROW(cudaDeviceSynchronize, DERIVED_CONTEXT, 0, 0, 0),
	ROW(cuCtxSynchronize, DERIVED_CONTEXT, 0, 0, 0),
	ROW(cudaStreamSynchronize, DERIVED_STREAM, 0, 0, 0),
	ROW(cudaStreamSynchronize_ptsz, DERIVED_STREAM, 0, 0, THREADS),
	ROW(cuStreamSynchronize, DERIVED_STREAM, 0, 0, 0),
	ROW(cuStreamSynchronize_ptsz, DERIVED_STREAM, 0, 0, THREADS),
	ROW(cudaStreamQuery, DERIVED_STREAM, 0, 0, 0),
	ROW(cudaStreamQuery_ptsz, DERIVED_STREAM, 0, 0, THREADS),
	ROW(cuStreamQuery, DERIVED_STREAM, 0, 0, 0),
	ROW(cuStreamQuery_ptsz, DERIVED_STREAM, 0, 0, THREADS),
	ROW(cudaEventSynchronize, DERIVED_EVENT, 0, 0, 0),
	ROW(cuEventSynchronize, DERIVED_EVENT, 0, 0, 0),
	ROW(cudaEventQuery, DERIVED_EVENT, 0, 0, 0),
	ROW(cuEventQuery, DERIVED_EVENT, 0, 0, 0),
	ROW(cudaStreamWaitEvent, DERIVED_WAIT, 0, 1, 0),
	ROW(cudaStreamWaitEvent_ptsz, DERIVED_WAIT, 0, 1, THREADS),
	ROW(cuStreamWaitEvent, DERIVED_WAIT, 0, 1, 0),
	ROW(cuStreamWaitEvent_ptsz, DERIVED_WAIT, 0, 1, THREADS),
	ROW(cudaEventRecord, DERIVED_RECORD, 0, 1, 0),
	ROW(cudaEventRecord_ptsz, DERIVED_RECORD, 0, 1, THREADS),
	ROW(cudaEventRecordWithFlags, DERIVED_RECORD, 0, 1, 0),
	ROW(cudaEventRecordWithFlags_ptsz, DERIVED_RECORD, 0, 1, THREADS),
	ROW(cuEventRecord, DERIVED_RECORD, 0, 1, 0),
	ROW(cuEventRecord_ptsz, DERIVED_RECORD, 0, 1, THREADS),
	ROW(cuEventRecordWithFlags, DERIVED_RECORD, 0, 1, 0),
	ROW(cuEventRecordWithFlags_ptsz, DERIVED_RECORD, 0, 1, THREADS),
	ROW(cudaStreamCreate, DERIVED_MADE, 0, 0, 0),
	ROW(cudaStreamCreateWithFlags, DERIVED_MADE, 0, 0, 0),
	ROW(cudaStreamCreateWithPriority, DERIVED_MADE, 0, 0, 0),
	ROW(cuStreamCreate, DERIVED_MADE, 0, 0, 0),
	ROW(cuStreamCreateWithPriority, DERIVED_MADE, 0, 0, 0),
};

/* --- copies and fills --------------------------------------------------------------------- */

static unsigned memory_kind(const struct trace_call *call, unsigned at)
{
	unsigned type = 0, managed = 0;
	CUpointer_attribute ask[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *answers[] = {&type, &managed};

	if (at == NONE)
		return CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
	cupti_own++;
	if (cuPointerGetAttributes(2, ask, answers, (CUdeviceptr)word(call, at)))
		type = 0;
	cupti_own--;
	if (managed)
		return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
	switch (type) {
	case CU_MEMORYTYPE_HOST: return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
	case CU_MEMORYTYPE_DEVICE: return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	default: return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
	}
}

static void copied(const struct trace_call *call, const struct derivation *of)
{
	unsigned target, source;

	if (!cupti_enabled(CUPTI_ACTIVITY_KIND_MEMCPY))
		return;
	target = memory_kind(call, of->a);
	source = memory_kind(call, of->b);
	record_add(&(struct recorded){
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		.detail = (uint8_t)(source | target << 4),
		.number = of->c,
		.correlation = call->number,
	});
}

static void filled(const struct trace_call *call, const struct derivation *of)
{
	if (cupti_enabled(CUPTI_ACTIVITY_KIND_MEMSET))
		record_add(&(struct recorded){
			.kind = CUPTI_ACTIVITY_KIND_MEMSET,
			.number = of->c,
			.correlation = call->number,
		});
}

bool derive_is_hint(const struct recorded *one)
{
	return one->kind == CUPTI_ACTIVITY_KIND_MEMCPY ||
	       one->kind == CUPTI_ACTIVITY_KIND_MEMSET;
}

/* --- waiting, events, streams ------------------------------------------------------------- */

static CUstream stream_of(uint64_t handle, bool threads)
{
	return handle || !threads ? (CUstream)(uintptr_t)handle : CU_STREAM_PER_THREAD;
}

static void waited(const struct trace_call *call, const struct derivation *of, uint64_t end)
{
	struct recorded one = {
		.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		.correlation = call->number,
		.result = call_result(call),
		.start = call->start,
		.end = end,
		.stream = CUPTI_SYNCHRONIZATION_INVALID_VALUE,
		.event = CUPTI_SYNCHRONIZATION_INVALID_VALUE,
		.id = UINT64_MAX,
	};

	if (!cupti_enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
		return;
	one.context = number_context(NULL);
	switch (of->derived) {
	case DERIVED_CONTEXT:
		one.detail = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
		break;
	case DERIVED_STREAM:
		one.detail = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
		one.stream = number_stream(NULL, stream_of(word(call, of->a), of->c));
		break;
	case DERIVED_EVENT:
		one.detail = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
		one.event = number_event((CUevent)(uintptr_t)word(call, of->a), false, &one.id);
		break;
	default:
		one.detail = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
		one.stream = number_stream(NULL, stream_of(word(call, of->a), of->c));
		one.event = number_event((CUevent)(uintptr_t)word(call, of->b), false, &one.id);
	}
	record_add(&one);
}

/* Counted whether told or not: a wait says which recording it was for. */
static void event_recorded(const struct trace_call *call, const struct derivation *of)
{
	struct recorded one = {
		.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT, .correlation = call->number};
	bool told = cupti_enabled(CUPTI_ACTIVITY_KIND_CUDA_EVENT);

	if (!told && !cupti_enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
		return;
	one.event = number_event((CUevent)(uintptr_t)word(call, of->a), true, &one.id);
	if (!told)
		return;
	one.context = number_context(NULL);
	one.stream = number_stream(NULL, stream_of(word(call, of->b), of->c));
	record_add(&one);
}

static void stream_made(const struct trace_call *call, const struct derivation *of)
{
	struct recorded one = {.kind = CUPTI_ACTIVITY_KIND_STREAM, .correlation = call->number};
	const CUstream *at = (const CUstream *)(uintptr_t)word(call, of->a);
	unsigned flags = 0;
	int priority = 0;

	if (!at || !cupti_enabled(CUPTI_ACTIVITY_KIND_STREAM))
		return;
	cupti_own++;
	(void)cuStreamGetFlags(*at, &flags);
	(void)cuStreamGetPriority(*at, &priority);
	cupti_own--;
	one.detail = flags & CU_STREAM_NON_BLOCKING
			     ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
			     : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
	one.result = (uint32_t)priority;
	one.context = number_context(NULL);
	one.stream = number_stream(NULL, *at);
	record_add(&one);
}

bool derive_is_finish(const struct trace_call *call)
{
	return call->call < CALL_LAST && derivations[call->call].derived == DERIVED_CONTEXT &&
	       !call_result(call);
}

void derive_records(const struct trace_call *call, uint64_t end)
{
	const struct derivation *of = call->call < CALL_LAST ? &derivations[call->call] : NULL;

	if (!of || !of->derived || !call->params)
		return;
	switch (of->derived) {
	case DERIVED_COPY: copied(call, of); return;
	case DERIVED_FILL: filled(call, of); return;
	case DERIVED_RECORD:
		if (!call_result(call))
			event_recorded(call, of);
		return;
	case DERIVED_MADE:
		if (!call_result(call))
			stream_made(call, of);
		return;
	default: waited(call, of, end);
	}
}

static void put_wait(const struct recorded *one)
{
	CUpti_ActivitySynchronization2 out = {
		.kind = one->kind,
		.type = one->detail,
		.start = one->start,
		.end = one->end,
		.correlationId = one->correlation,
		.contextId = one->context,
		.streamId = one->stream,
		.cudaEventId = one->event,
		.cudaEventSyncId = one->id,
		.returnValue = one->result,
	};

	deliver_record(&out, sizeof(out));
}

static void put_event(const struct recorded *one)
{
	CUpti_ActivityCudaEvent2 out = {
		.kind = one->kind,
		.correlationId = one->correlation,
		.contextId = one->context,
		.streamId = one->stream,
		.eventId = one->event,
		.cudaEventSyncId = one->id,
	};

	deliver_record(&out, sizeof(out));
}

static void put_stream(const struct recorded *one)
{
	CUpti_ActivityStream out = {
		.kind = one->kind,
		.contextId = one->context,
		.streamId = one->stream,
		.priority = one->result,
		.flag = one->detail,
		.correlationId = one->correlation,
	};

	deliver_record(&out, sizeof(out));
}

void derive_put(const struct recorded *one)
{
	switch (one->kind) {
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: put_wait(one); break;
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT: put_event(one); break;
	case CUPTI_ACTIVITY_KIND_STREAM: put_stream(one); break;
	default: break; /* a hint */
	}
}
