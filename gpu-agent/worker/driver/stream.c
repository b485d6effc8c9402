/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events under the names that the shim minted, and what streams do with values in
 * memory.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/capture.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cuda_wire.h"

static void stream_link(struct worker *w, struct worker_stream *stream)
{
	stream->next = w->streams.list;
	stream->link = &w->streams.list;
	if (w->streams.list)
		w->streams.list->link = &stream->next;
	w->streams.list = stream;
}

static void stream_forget(struct worker *w, struct worker_stream *stream)
{
	for (struct pending *p = w->fences.first; p; p = p->next)
		for (uint32_t i = 0; i < p->event_count; i++)
			if (p->events[i].stream == stream)
				p->events[i].stream = NULL;
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
}

CUresult stream_drop(struct worker *w, struct worker_stream *stream)
{
	CUresult status = worker_use(w, stream->context);

	worker_capture_stream_gone(w, stream);
	if (stream->before && !fence_adopt(w, stream->before))
		fence_event_put(w, stream->context, stream->before);
	limits_stream_gone(w, stream);
	stream_forget(w, stream);
	if (!status)
		status = w->cuda.cuStreamDestroy(stream->stream);
	free(stream);
	return status;
}

void context_stream_init(struct worker *w, uint16_t context)
{
	struct worker_stream *stream = &w->streams.legacy[context];

	*stream = (struct worker_stream){.stream = CU_STREAM_LEGACY, .context = context};
	stream_link(w, stream);
}

struct worker_stream *stream_own(struct worker *w, uint16_t context, enum own_stream what)
{
	struct worker_stream *stream = calloc(1, sizeof(*stream));
	int least = 0, priority = 0; /* the greatest is the lowest number */

	if (!stream || worker_use(w, context) ||
		w->cuda.cuCtxGetStreamPriorityRange(&least, &priority) ||
		w->cuda.cuStreamCreateWithPriority(&stream->stream, CU_STREAM_NON_BLOCKING,
			what == OWN_LISTENS && priority < least ? priority + 1 : priority)) {
		free(stream);
		return NULL;
	}
	stream->context = context;
	stream_link(w, stream);
	return stream;
}

CUresult serve_vcudaStreamCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaStreamCreate *req = (const void *)r->body;
	struct worker_stream *stream = calloc(1, sizeof(*stream));
	CUresult status;

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = w->cuda.cuStreamCreateWithPriority(
		&stream->stream, req->flags & ~STREAM_AHEAD, req->priority);
	if (!status) {
		worker_bind(w, r, req->stream, KIND_CUstream, stream);
		status = r->refused;
		if (status)
			w->cuda.cuStreamDestroy(stream->stream);
	}
	if (status) {
		free(stream);
		return status;
	}
	stream->context = r->header.context;
	stream->flags = req->flags;
	stream_link(w, stream);
	return CUDA_SUCCESS;
}

CUresult serve_vcudaStreamDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaStreamDestroy *req = (const void *)r->body;
	struct worker_stream *stream = worker_handle(w, r, req->stream, KIND_CUstream);
	struct pending *p;

	if (!stream)
		return r->refused;
	worker_unbind(w, r, req->stream, KIND_CUstream);
	beside_unused(w, stream);
	/* Its work goes on after the name is gone, and what waits for the context waits for it
	 * too: the stream itself goes when it is done. A capture ends with its stream. */
	if (stream->work != stream->clean && !capture_of(w, stream)) {
		p = fence_new(w, PENDING_STREAM, stream->context);
		if (p && !fence_stream(w, p, stream)) {
			p->stream = stream;
			fence_push(w, p);
			return CUDA_SUCCESS;
		}
		if (p)
			fence_free(w, p);
	}
	return stream_drop(w, stream);
}

CUresult serve_vcudaEventCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventCreate *req = (const void *)r->body;
	CUevent event;
	CUresult status = w->cuda.cuEventCreate(&event, req->flags);

	if (status)
		return status;
	worker_bind(w, r, req->event, KIND_CUevent, event);
	if (worker_refused(r))
		w->cuda.cuEventDestroy(event);
	return r->refused;
}

CUresult serve_vcudaEventDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaEventDestroy *req = (const void *)r->body;
	CUevent event = worker_handle(w, r, req->event, KIND_CUevent);

	worker_unbind(w, r, req->event, KIND_CUevent);
	if (worker_refused(r))
		return r->refused;
	/* Somebody waits for it: then it becomes the fence's own, which returns it to the pool.
	 * An event with timing is as good there. */
	return fence_adopt(w, event) ? CUDA_SUCCESS : w->cuda.cuEventDestroy(event);
}

CUresult stream_record_context(struct worker *w, uint16_t context, CUevent event)
{
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!w->cuda.cuCtxRecordEvent || !w->cuda.cuGreenCtxRecordEvent)
		return worker_lacks(w, "cuCtxRecordEvent");
	return w->greens.contexts[context]
		       ? w->cuda.cuGreenCtxRecordEvent(w->greens.contexts[context], event)
		       : w->cuda.cuCtxRecordEvent(w->contexts[context], event);
}

CUresult serve_cuCtxRecordEvent(struct worker *w, struct request *r)
{
	const struct wire_cuCtxRecordEvent *req = (const void *)r->body;
	CUevent event = worker_handle(w, r, req->hEvent, KIND_CUevent);

	return worker_refused(r) ? r->refused
				 : stream_record_context(w, r->header.context, event);
}

CUresult serve_cuCtxWaitEvent(struct worker *w, struct request *r)
{
	const struct wire_cuCtxWaitEvent *req = (const void *)r->body;
	CUevent event = worker_handle(w, r, req->hEvent, KIND_CUevent);

	if (worker_refused(r))
		return r->refused;
	if (!r->header.context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!w->cuda.cuCtxWaitEvent || !w->cuda.cuGreenCtxWaitEvent)
		return worker_lacks(w, "cuCtxWaitEvent");
	if (w->greens.contexts[r->header.context])
		return w->cuda.cuGreenCtxWaitEvent(
			w->greens.contexts[r->header.context], event);
	return w->cuda.cuCtxWaitEvent(w->contexts[r->header.context], event);
}

/* ---- values in memory ---- */

/* What CUDA keeps for its own use (an alias) is not the client's to say. */
static CUdeviceptr value_range(
	struct worker *w, struct request *r, CUdeviceptr address, size_t bytes, bool nowhere)
{
	return nowhere && !address ? 0 : worker_range(w, r, address, bytes);
}

void stream_value(struct worker *w, struct request *r, const CUstreamBatchMemOpParams *from,
	CUstreamBatchMemOpParams *to, bool nowhere)
{
	memset(to, 0, sizeof(*to));
	to->operation = from->operation;
	switch (from->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		to->waitValue.address = value_range(w, r, from->waitValue.address,
			from->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? 4 : 8, nowhere);
		to->waitValue.value64 = from->waitValue.value64;
		to->waitValue.flags = from->waitValue.flags;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		to->writeValue.address = value_range(w, r, from->writeValue.address,
			from->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4 : 8, nowhere);
		to->writeValue.value64 = from->writeValue.value64;
		to->writeValue.flags = from->writeValue.flags;
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		to->flushRemoteWrites.flags = from->flushRemoteWrites.flags;
		break;
	case CU_STREAM_MEM_OP_BARRIER:
		to->memoryBarrier.flags = from->memoryBarrier.flags;
		break;
	/* What is not known here cannot be checked. */
	default: worker_refuse(r, CUDA_ERROR_INVALID_VALUE); break;
	}
}

CUresult serve_cuStreamBatchMemOp_v2(struct worker *w, struct request *r)
{
	enum { BATCH = 256 }; /* CUDA takes no more at once */
	const struct wire_cuStreamBatchMemOp_v2 *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	const CUstreamBatchMemOpParams *given =
		worker_in(r, &req->paramArray, (uint64_t)req->count * sizeof(*given));
	CUstreamBatchMemOpParams checked[BATCH];

	if (req->count > BATCH)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	for (uint32_t i = 0; i < req->count && !worker_refused(r); i++)
		stream_value(w, r, &given[i], &checked[i], false);
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuStreamBatchMemOp_v2)
		return worker_lacks(w, "cuStreamBatchMemOp_v2");
	return w->cuda.cuStreamBatchMemOp_v2(stream, req->count, checked, req->flags);
}
