/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting on the app's behalf: nothing here blocks; the answer is queued behind a fence.
 */
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/loop/stash.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/worker_state.h"

static CUresult sync_event_fence(
	struct worker *w, struct request *r, struct pending *p, uint64_t handle)
{
	struct name *name = handles_find(w, handle, KIND_CUevent);

	if (!name)
		return CUDA_ERROR_INVALID_HANDLE;
	p->one.event = name->object;
	p->one.context = name->context ? name->context : r->header.context;
	p->context = p->one.context;
	p->event_count = 1;
	return CUDA_SUCCESS;
}

/* Without counting as work on the stream. */
static struct worker_stream *sync_stream(struct worker *w, struct request *r, uint64_t handle)
{
	struct worker_stream *stream = worker_stream_object(w, r, handle);

	if (stream)
		stream->work--;
	return stream;
}

static CUresult sync_fence(
	struct worker *w, struct request *r, struct pending *p, uint32_t scope, uint64_t handle)
{
	struct worker_stream *stream;
	struct name *name;

	switch (scope) {
	case SYNC_CONTEXT: return fence_context(w, p, r->header.context);
	case SYNC_STREAM:
		stream = sync_stream(w, r, handle);
		return stream ? fence_stream(w, p, stream) : r->refused;
	case SYNC_EVENT: return sync_event_fence(w, r, p, handle);
	case SYNC_SHARED:
		name = handles_find(w, handle, KIND_CUevent);
		return name ? ipc_event_fence(name, p) : CUDA_ERROR_INVALID_HANDLE;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* What can be answered at once: SUCCESS or an error. */
static CUresult sync_look(struct worker *w, struct request *r, uint32_t scope, uint64_t handle)
{
	struct worker_stream *stream;
	uint64_t work;
	struct name *name;
	CUresult status = CUDA_ERROR_NOT_READY;

	if (scope == SYNC_STREAM) {
		stream = sync_stream(w, r, handle);
		if (!stream)
			return r->refused;
		work = stream->work;
		status = w->cuda.cuStreamQuery(stream->stream);
		if (!status) {
			stream->clean = work;
			metering_clean(w, stream);
		}
		if (!status || status == CUDA_ERROR_ASSERT) /* prints: see fence_look */
			w->cuda.cuStreamSynchronize(stream->stream);
	} else if (scope == SYNC_EVENT) {
		name = handles_find(w, handle, KIND_CUevent);
		if (!name)
			return CUDA_ERROR_INVALID_HANDLE;
		status = w->cuda.cuEventQuery(name->object);
		if (!status || status == CUDA_ERROR_ASSERT)
			w->cuda.cuEventSynchronize(name->object);
	} else if (scope == SYNC_SHARED) {
		name = handles_find(w, handle, KIND_CUevent);
		status = name ? ipc_event_look(name) : CUDA_ERROR_INVALID_HANDLE;
	}
	/* Told only behind the copies that came before it: else it waits in their list. */
	if (!status && !fence_flush_copies(w))
		return CUDA_ERROR_NOT_READY;
	return status;
}

CUresult sync_await(
	struct worker *w, struct request *r, struct pending *p, uint32_t scope, uint64_t handle)
{
	CUresult status = scope == SYNC_NONE ? CUDA_SUCCESS : sync_look(w, r, scope, handle);

	if (status != CUDA_ERROR_NOT_READY) {
		output_tell(w);
		return status;
	}
	status = sync_fence(w, r, p, scope, handle);
	return status ? status : CUDA_ERROR_NOT_READY;
}

CUresult serve_vcudaSync(struct worker *w, struct request *r)
{
	const struct wire_vcudaSync *req = (const void *)r->body;
	CUresult status = sync_look(w, r, req->scope, req->handle);
	struct pending *p;

	if (status != CUDA_ERROR_NOT_READY) {
		output_tell(w);
		return status;
	}
	p = fence_new(w, PENDING_REPLY, r->header.context);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = sync_fence(w, r, p, req->scope, req->handle);
	if (status) {
		fence_free(w, p);
		return status;
	}
	p->tag = r->header.tag;
	fence_push(w, p);
	r->later = true;
	return CUDA_SUCCESS;
}

static CUresult sync_elapsed(struct worker *w, uint64_t from, uint64_t to, float *milliseconds)
{
	const struct name *start = handles_find(w, from, KIND_CUevent),
			  *end = handles_find(w, to, KIND_CUevent);

	if (!start || !end)
		return CUDA_ERROR_INVALID_HANDLE;
	return w->cuda.cuEventElapsedTime_v2
		       ? w->cuda.cuEventElapsedTime_v2(milliseconds, start->object, end->object)
		       : worker_lacks(w, "cuEventElapsedTime_v2");
}

CUresult serve_vcudaQueryWithin(struct worker *w, struct request *r)
{
	const struct wire_vcudaQueryWithin *req = (const void *)r->body;
	struct wire_vcudaQueryWithin_reply *answer = (void *)r->answer;

	if (stash_driver_waits(w) || stash_has(w, req->behind))
		return CUDA_ERROR_NOT_READY;
	return req->start ? sync_elapsed(w, req->start, req->handle, &answer->milliseconds)
			  : sync_look(w, r, req->scope, req->handle);
}

CUresult serve_vcudaQuery(struct worker *w, struct request *r)
{
	const struct wire_vcudaQuery *req = (const void *)r->body;
	CUresult status = sync_look(w, r, req->scope, req->handle), later;
	struct pending *p;

	if (status != CUDA_ERROR_NOT_READY || !req->counter)
		return status;
	if (req->counter < COUNTER_FIRST_FREE || req->counter >= CHANNEL_COUNTERS)
		return CUDA_ERROR_INVALID_VALUE;
	p = fence_new(w, PENDING_COUNTER, r->header.context);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	later = sync_fence(w, r, p, req->scope, req->handle);
	if (later) {
		fence_free(w, p);
		return later;
	}
	p->counter = req->counter;
	p->value = req->value;
	fence_push(w, p);
	return status;
}
