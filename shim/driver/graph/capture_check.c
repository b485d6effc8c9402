/* SPDX-License-Identifier: Apache-2.0
 *
 * What captures forbid to other calls: see capture.h.
 */
#include "shim/driver/graph/capture_state.h"

#include "shim/generated/cuda_hand.h"
#include "shim/engine/handle.h"

static _Thread_local CUstreamCaptureMode thread_mode __attribute__((tls_model("initial-exec")));

struct blocking {
	const struct context *context;
	bool ends, found;
};

static void capture_blocking(void *object, void *argument)
{
	const struct stream *stream = object;
	struct blocking *blocking = argument;
	struct capture *c;

	if (!stream || stream->context != blocking->context ||
		stream->flags & CU_STREAM_NON_BLOCKING)
		return;
	c = capture_of_stream(stream);
	if (!c)
		return;
	c->invalid |= blocking->ends;
	blocking->found = true;
}

/* With the lock held: work on the context's legacy stream ends the captures of all streams that
 * wait for it. False: there is none. */
static bool captures_end_around_legacy(const struct context *context)
{
	struct blocking blocking = {.context = context, .ends = true};

	handle_each(KIND_CUstream, capture_blocking, &blocking);
	return blocking.found;
}

CUresult capture_use(const struct context *context, const struct stream *stream)
{
	CUresult status = CUDA_SUCCESS;
	struct capture *c;

	pthread_mutex_lock(&captures.lock);
	if (stream && stream->handle) {
		c = capture_of_stream(stream);
		if (c && c->invalid)
			status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else {
		if (captures_end_around_legacy(context))
			status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	pthread_mutex_unlock(&captures.lock);
	return status;
}

CUresult capture_asked(const struct context *context)
{
	struct blocking blocking = {.context = context};

	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	handle_each(KIND_CUstream, capture_blocking, &blocking);
	pthread_mutex_unlock(&captures.lock);
	return blocking.found ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult capture_node(CUstream stream)
{
	uint64_t number;

	/* Where there is no such stream, the call itself says so. */
	if (!capture_any() || stream_plain(stream, &number))
		return CUDA_SUCCESS;
	return capture_use(context_current(), stream_find(number));
}

CUresult capture_never(CUstream stream)
{
	uint64_t number;

	if (!capture_any() || stream_plain(stream, &number))
		return CUDA_SUCCESS;
	return number ? capture_refuse(number) : capture_use(context_current(), NULL);
}

CUresult capture_refuse(uint64_t stream)
{
	CUresult status = CUDA_SUCCESS;
	struct capture *c;

	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	c = capture_of_number(stream);
	if (c) {
		c->invalid = true;
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&captures.lock);
	return status;
}

CUresult capture_refuse_context(const struct context *context)
{
	CUresult status = CUDA_SUCCESS;

	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	for (struct capture *c = captures.first; c; c = c->next)
		if (c->context == context) {
			c->invalid = true;
			status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&captures.lock);
	return status;
}

CUresult capture_unsafe_slow(void)
{
	CUresult status = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	for (struct capture *c = captures.first; c; c = c->next) {
		bool own = pthread_equal(c->thread, pthread_self());

		if (own ? c->mode == CU_STREAM_CAPTURE_MODE_RELAXED
			: c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
					thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
			continue;
		c->invalid = true;
		status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	pthread_mutex_unlock(&captures.lock);
	return status;
}

CUresult capture_elsewhere(CUstream stream)
{
	uint64_t number;
	bool captures_here;

	if (!capture_any() || stream_plain(stream, &number))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	captures_here = capture_of_number(number) != NULL;
	pthread_mutex_unlock(&captures.lock);
	return captures_here ? CUDA_SUCCESS : capture_unsafe_slow();
}

CUresult hand_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	/* NVIDIA's driver keeps any number. */
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
