/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for the device, and asking whether it is done.  A query that is not answered here
 * sends one call: the agent answers it, and will set a completion counter when the work is
 * done. So a program that polls costs one round trip, not one for each query.
 */
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/graph/capture.h"
#include "shim/engine/engine.h"
#include "shim/engine/driver.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/engine/session.h"
#include "shim/driver/stream/host_function.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/completion.h"
#include "shim/engine/thread.h"

/* Values of counters are never used twice (completion.c relies on it). */
static _Atomic uint64_t last_value;

CUresult sync_wait(uint32_t scope, uint64_t handle, uint64_t *seq)
{
	struct shim_call call;
	struct wire_vcudaSync *body;
	CUresult status;

	if (mirror_any()) {
		status = mirror_fetch(scope, handle, seq);
		output_fetch();
		return status;
	}
	body = shim_begin(&call, OP_vcudaSync, sizeof(*body));
	body->scope = scope;
	body->handle = handle;
	shim_wait(&call, 0);
	if (seq)
		*seq = call.seq;
	status = shim_end(&call);
	output_fetch();
	return status;
}

static CUresult watch_ask(struct watch *watch, uint32_t scope, uint64_t handle, uint64_t known)
{
	uint64_t value = atomic_load_explicit(&watch->value, memory_order_acquire);
	struct shim_call call;
	struct wire_vcudaQuery *body;

	if (shim_perf & PERF_PUSH && value) {
		bool set = completion_read(watch->counter) >= value;

		/* Not even what was asked about then is done; or that, and nothing came after.
		 */
		if (!set) {
			session_glance();
			return CUDA_ERROR_NOT_READY;
		}
		if (set && atomic_load(&watch->seq) >= known)
			return CUDA_SUCCESS;
	}
	body = shim_begin(&call, OP_vcudaQuery, sizeof(*body));
	body->scope = scope;
	body->handle = handle;
	if (shim_perf & PERF_PUSH) {
		if (!watch->counter) {
			uint32_t none = 0, counter = completion_get();

			if (!atomic_compare_exchange_strong(&watch->counter, &none, counter))
				completion_put(counter);
		}
		body->counter = watch->counter;
		body->value = atomic_fetch_add(&last_value, 1) + 1;
	}
	value = body->value;
	shim_wait(&call, 0);
	if (call.status == CUDA_ERROR_NOT_READY && watch->counter) {
		atomic_store(&watch->value, 0);
		atomic_store(&watch->seq, call.seq);
		atomic_store_explicit(&watch->value, value, memory_order_release);
	}
	return shim_end(&call);
}

CUresult sync_watch_query(struct watch *watch, uint32_t scope, uint64_t handle, uint64_t known)
{
	CUresult status = watch_ask(watch, scope, handle, known);

	return status ? status : mirror_after();
}

/* Whether no frame of any thread came after those that are known to be done. */
static bool nothing_since(_Atomic uint64_t *synced)
{
	return shim_perf & PERF_PUSH && atomic_load(synced) >= shim_sequence();
}

/* Memory goes back that was freed behind what has been waited for. */
static void context_done(const struct context *context)
{
	later_context(context->number);
	pool_synced();
}

static void stream_done(uint64_t number)
{
	later_synced(number, thread_self.number);
	pool_synced();
}

CUresult hand_cuCtxSynchronize(void)
{
	struct context *context = context_current();
	uint64_t seq;
	CUresult status;

	if (!context)
		return context_missing();
	status = capture_refuse_context(context);
	if (status)
		return status;
	if (nothing_since(&context->synced)) {
		context_done(context);
		return CUDA_SUCCESS;
	}
	status = sync_wait(SYNC_CONTEXT, 0, &seq);
	if (!status) {
		atomic_store(&context->synced, seq);
		context_done(context);
	}
	return status;
}

CUresult hand_cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult status, popped;
	CUcontext old;

	if (context_or_current(ctx) == context_current())
		return hand_cuCtxSynchronize();
	status = hand_cuCtxPushCurrent_v2(ctx);
	if (status)
		return status;
	status = hand_cuCtxSynchronize();
	popped = hand_cuCtxPopCurrent_v2(&old);
	return status ? status : popped;
}

static CUresult stream_finish(uint64_t number)
{
	uint64_t seq;
	CUresult status = sync_wait(SYNC_STREAM, number, &seq);

	if (!status) {
		stream_synced(number, seq);
		stream_done(number);
	}
	return status;
}

CUresult hand_cuStreamSynchronize(CUstream hStream)
{
	uint64_t number;
	CUresult status = stream_waited(hStream, &number);
	struct stream *stream;

	if (!status)
		status = capture_refuse(number);
	if (status)
		return status;
	/* After a copy to pageable memory, as PyTorch's .item() does: that has waited already.
	 */
	stream = stream_find(number);
	if (stream && nothing_since(&stream->synced)) {
		stream_done(number);
		return CUDA_SUCCESS;
	}
	return stream_finish(number);
}

CUresult sync_launched(uint64_t number)
{
	return capture_any() && capture_graph(number) ? CUDA_SUCCESS : stream_finish(number);
}

CUresult hand_cuStreamQuery(CUstream hStream)
{
	uint64_t number, seq;
	struct stream *stream;
	CUresult status;

	/* A host function's thread has none, and a legacy stream brings none. */
	if (!context_current())
		return thread_self.in_function ? CUDA_ERROR_NOT_PERMITTED
					       : CUDA_ERROR_INVALID_CONTEXT;
	status = thread_self.in_function ? stream_plain(hStream, &number)
					 : stream_waited(hStream, &number);
	if (!status)
		status = capture_refuse(number);
	if (status)
		return status;
	stream = stream_find(number);
	if (!stream)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (nothing_since(&stream->synced))
		return CUDA_SUCCESS;
	seq = shim_sequence();
	status = thread_self.in_function
			 ? host_function_query(SYNC_STREAM, number, seq)
			 : sync_watch_query(&stream->watch, SYNC_STREAM, number, seq);
	if (!status)
		stream_synced(number, seq);
	return status;
}
