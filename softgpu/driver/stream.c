/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls about streams.  NULL is the context's legacy stream; each thread has one of its own
 * per context, made when it is first used.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"

#define PRIORITY_LEAST 0
#define PRIORITY_GREATEST (-5)

/* This thread's own streams, one a context. */
struct own {
	struct own *next;
	unsigned long long context_id;
	struct CUstream_st *stream; /* referenced */
};
static __thread struct own *owns;
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void own_drop(struct own *own)
{
	queue_stream_close(own->stream);
	pthread_mutex_lock(&queue_lock);
	queue_unref(own->stream);
	pthread_mutex_unlock(&queue_lock);
	free(own);
}

static void own_end(void *unused)
{
	(void)unused;
	while (owns) {
		struct own *own = owns;

		owns = own->next;
		own_drop(own);
	}
}

static void own_init(void)
{
	pthread_key_create(&own_key, own_end);
}

static struct CUstream_st *own_stream(struct CUctx_st *context)
{
	struct own *own;

	for (own = owns; own; own = own->next)
		if (own->context_id == context->id)
			return own->stream;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->stream = queue_stream_new(context, 0, 0, false);
	if (!own->stream) {
		free(own);
		return NULL;
	}
	own->stream->per_thread = true;
	pthread_mutex_lock(&queue_lock);
	queue_ref(own->stream);
	pthread_mutex_unlock(&queue_lock);
	own->context_id = context->id;
	own->next = owns;
	owns = own;
	pthread_once(&own_once, own_init);
	pthread_setspecific(own_key, &owns);
	return own->stream;
}

CUresult soft_stream_find(CUstream handle, struct CUstream_st **stream)
{
	struct CUctx_st *context;
	CUresult ret;

	if (handle != NULL && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		if (!device_initialised())
			return CUDA_ERROR_NOT_INITIALIZED;
		pthread_mutex_lock(&queue_lock);
		if (!object_is(handle, OBJECT_STREAM)) {
			pthread_mutex_unlock(&queue_lock);
			return CUDA_ERROR_INVALID_HANDLE;
		}
		queue_ref(handle);
		pthread_mutex_unlock(&queue_lock);
		*stream = handle;
		return CUDA_SUCCESS;
	}
	ret = context_current_any(&context);
	if (ret)
		return ret;
	*stream = handle == CU_STREAM_PER_THREAD ? own_stream(context) : context->legacy;
	if (!*stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&queue_lock);
	queue_ref(*stream);
	pthread_mutex_unlock(&queue_lock);
	return CUDA_SUCCESS;
}

void stream_done(struct CUstream_st *stream)
{
	pthread_mutex_lock(&queue_lock);
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
}

CUresult stream_use(CUstream handle, struct CUstream_st **stream)
{
	CUresult ret = soft_stream_find(handle, stream);

	if (ret)
		return ret;
	ret = context_fault_of((*stream)->context);
	if (!ret) {
		pthread_mutex_lock(&queue_lock);
		ret = soft_capture_use(*stream);
		pthread_mutex_unlock(&queue_lock);
	}
	if (ret)
		stream_done(*stream);
	return ret;
}

/* Greatest is the lower number. */
static int priority_within(int priority)
{
	if (priority > PRIORITY_LEAST)
		return PRIORITY_LEAST;
	return priority < PRIORITY_GREATEST ? PRIORITY_GREATEST : priority;
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!phStream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	stream = queue_stream_new(context, flags, priority_within(priority), false);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!object_add(stream, OBJECT_STREAM)) {
		queue_stream_close(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*phStream = stream;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, PRIORITY_LEAST);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!object_is(hStream, OBJECT_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	queue_stream_close(hStream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream hStream)
{
	return cuStreamDestroy_v2(hStream);
}

/* The legacy stream is done when every blocking stream is. */
static bool stream_busy(const struct CUstream_st *stream)
{
	if (stream->first)
		return true;
	if (stream->legacy)
		for (struct CUstream_st *s = stream->context->streams; s; s = s->next)
			if (s->first && !(s->flags & CU_STREAM_NON_BLOCKING))
				return true;
	return false;
}

CUresult cuStreamQuery(CUstream hStream)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	ret = soft_capture_refuse(stream);
	if (!ret && stream_busy(stream))
		ret = CUDA_ERROR_NOT_READY;
	if (!ret)
		ret = context_fault_of(stream->context);
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamSynchronize(CUstream hStream)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	ret = soft_capture_refuse(stream);
	if (ret) {
		queue_unref(stream);
		pthread_mutex_unlock(&queue_lock);
		return ret;
	}
	if (stream->legacy) {
		/* Whatever was queued before now on any blocking stream. */
		size_t count = 0;
		uint64_t last = stream->submitted;

		for (struct CUstream_st *s = stream->context->streams; s; s = s->next)
			count +=
				s != stream && s->first && !(s->flags & CU_STREAM_NON_BLOCKING);
		for (; count; count--) {
			struct CUstream_st *s = stream->context->streams;

			while (s &&
				(s == stream || !s->first || s->flags & CU_STREAM_NON_BLOCKING))
				s = s->next;
			if (!s)
				break;
			queue_wait_locked(s, s->submitted);
		}
		queue_wait_locked(stream, last);
	} else {
		queue_wait_locked(stream, stream->submitted);
	}
	ret = context_fault_of(stream->context);
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (priority)
		*priority = stream->priority;
	stream_done(stream);
	return priority ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (flags)
		*flags = stream->flags;
	stream_done(stream);
	return flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (streamId)
		*streamId = stream->id;
	stream_done(stream);
	return streamId ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (device)
		*device = stream->context->device->ordinal;
	stream_done(stream);
	return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (pctx)
		*pctx = stream->context;
	stream_done(stream);
	return pctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	CUresult ret = cuStreamGetCtx(hStream, pCtx);

	if (!ret && pGreenCtx)
		*pGreenCtx = NULL;
	return ret;
}

/* Attributes are kept and given back; none changes what a CPU does. */
static CUstreamAttrValue *attribute_of(struct CUstream_st *stream, CUstreamAttrID attr)
{
	switch (attr) {
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: return &stream->policy;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return &stream->window;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: return &stream->domain_map;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return &stream->domain;
	default: return NULL;
	}
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (!value) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		value->priority = stream->priority;
	} else if (attribute_of(stream, attr)) {
		pthread_mutex_lock(&queue_lock);
		*value = *attribute_of(stream, attr);
		pthread_mutex_unlock(&queue_lock);
	} else {
		ret = CUDA_ERROR_INVALID_VALUE;
	}
	stream_done(stream);
	return ret;
}

static bool policy_valid(CUsynchronizationPolicy policy)
{
	return policy >= CU_SYNC_POLICY_AUTO && policy <= CU_SYNC_POLICY_BLOCKING_SYNC;
}

CUresult cuStreamSetAttribute(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	if (value && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		pthread_mutex_lock(&queue_lock);
		stream->priority = priority_within(value->priority);
		pthread_mutex_unlock(&queue_lock);
	} else if (!value || !attribute_of(stream, attr) ||
		   (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY &&
			   !policy_valid(value->syncPolicy))) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else {
		pthread_mutex_lock(&queue_lock);
		*attribute_of(stream, attr) = *value;
		pthread_mutex_unlock(&queue_lock);
	}
	stream_done(stream);
	return ret;
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	struct CUstream_st *to, *from;
	CUresult ret = stream_use(dst, &to);

	if (ret)
		return ret;
	ret = stream_use(src, &from);
	if (!ret) {
		pthread_mutex_lock(&queue_lock);
		to->policy = from->policy;
		to->window = from->window;
		to->domain_map = from->domain_map;
		to->domain = from->domain;
		queue_unref(from);
		pthread_mutex_unlock(&queue_lock);
	}
	stream_done(to);
	return ret;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (leastPriority)
		*leastPriority = PRIORITY_LEAST;
	if (greatestPriority)
		*greatestPriority = PRIORITY_GREATEST;
	return CUDA_SUCCESS;
}
