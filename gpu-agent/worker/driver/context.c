/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts.  The primary ones are retained when the worker starts; others come under the
 * numbers that the shim chose.
 */
#include <stdlib.h>

#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/driver/graph/graph_modules.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/peer.h"
#include "gpu-agent/worker/driver/module/module.h"
#include "gpu-agent/worker/limits/extra.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

CUresult context_new_check(const struct worker *w, int32_t device, uint32_t number)
{
	if (device < 0 || (uint32_t)device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (number < CONTEXT_CREATED || number >= CONTEXT_MAX || w->contexts[number])
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaContextCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaContextCreate *req = (const void *)r->body;
	CUcontext context;
	CUresult status;

	status = context_new_check(w, req->device, req->number);
	if (status)
		return status;
	status = extra_context(w, (uint16_t)req->number, (uint32_t)req->device);
	if (status)
		return status;
	status =
		w->cuda.cuCtxCreate(&context, NULL, req->flags, w->devices[req->device].device);
	w->current = CONTEXT_NONE; /* it became current */
	if (status) {
		extra_context_gone(w, (uint16_t)req->number);
		return status;
	}
	w->contexts[req->number] = context;
	context_stream_init(w, (uint16_t)req->number);
	return CUDA_SUCCESS;
}

/* Everything of a context that the loop knows, before the context itself goes. */
static void context_forget(struct worker *w, uint16_t context)
{
	struct worker_stream *stream, *next;

	/* The loop holds this call back while a host function is outstanding, so the driver
	 * waits for nothing that has to come through here. */
	worker_use(w, context);
	beside_forget(w, context);
	/* What was closed may be this context's, and wait for calls in another. */
	if (w->kept.closings)
		beside_drain(w);
	closing_poll(w);
	worker_use(w, context);
	w->cuda.cuCtxSynchronize();
	fence_poll(w);
	/* What the poll had no room to tell is done all the same. */
	fence_forget(w, context);
	staging_forget(w, &w->in, context);
	local_forget(w, context);
	stripes_forget(w, context);
	direct_forget(w, context);
	staging_reap(w, &w->in);
	for (stream = w->streams.list; stream; stream = next) {
		next = stream->next;
		if (stream->context == context && stream != &w->streams.legacy[context])
			stream_drop(w, stream);
	}
	peer_forget(w, context);
	warm_forget(context);
	/* Graphs before the modules whose kernels they have. */
	graph_modules_hold(w, context);
	for (uint32_t i = 0; i < w->name_count; i++) {
		struct name *name = &w->names[i];

		if (name->object && name->context == context &&
			(name->kind == KIND_CUgraph || name->kind == KIND_CUgraphExec))
			graph_forget(w, (enum handle_kind)name->kind, name->object);
	}
	/* cuModuleUnload wants it, and what was ended above may have left another. */
	worker_use(w, context);
	graph_modules_let(w, context);
	for (uint32_t i = 0; i < w->name_count; i++) {
		struct name *name = &w->names[i];

		if (!name->object || name->context != context)
			continue;
		if (name->kind == KIND_CUevent)
			w->cuda.cuEventDestroy(name->object);
		else if (name->kind == KIND_CUmodule)
			worker_module_unload(w, name->object);
		else if (name->kind == KIND_CUarray)
			array_forget(w, name->object);
		else if (name->kind == KIND_CUtexObject)
			texture_forget(w, name->object);
		else if (name->kind == KIND_CUtexref && !name->owner)
			w->cuda.cuTexRefDestroy(name->object);
	}
	handles_drop_context(w, context);
}

/* The pool's events go with their context; those of a green one are the primary context's. */
static void context_events_free(struct worker *w, uint16_t context)
{
	struct fences *f = &w->fences;

	for (uint32_t i = 0; w->greens.contexts[context] && i < f->event_count[context]; i++)
		w->cuda.cuEventDestroy(f->event_pool[context][i]);
	free(f->event_pool[context]);
	f->event_pool[context] = NULL;
	f->event_count[context] = 0;
}

CUresult serve_vcudaContextDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaContextDestroy *req = (const void *)r->body;
	struct worker_stream *legacy;
	CUresult status;

	if (req->number < CONTEXT_CREATED || req->number >= CONTEXT_MAX ||
		!w->contexts[req->number])
		return CUDA_ERROR_INVALID_CONTEXT;
	context_forget(w, (uint16_t)req->number);
	limits_stream_gone(w, &w->streams.legacy[req->number]);
	context_events_free(w, (uint16_t)req->number);
	legacy = &w->streams.legacy[req->number];
	*legacy->link = legacy->next;
	if (legacy->next)
		legacy->next->link = legacy->link;
	status = w->greens.contexts[req->number]
			 ? w->cuda.cuGreenCtxDestroy(w->greens.contexts[req->number])
			 : w->cuda.cuCtxDestroy(w->contexts[req->number]);
	w->greens.contexts[req->number] = NULL;
	extra_context_gone(w, (uint16_t)req->number);
	w->contexts[req->number] = NULL;
	w->current = CONTEXT_NONE;
	return status;
}

/* What was set on it goes with it. */
static void primary_settings_reset(
	struct worker *w, const struct worker_device *d, uint16_t context)
{
	size_t now;

	if (worker_use(w, context))
		return;
	w->cuda.cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE);
	w->cuda.cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE);
	for (int l = 0; l < OPEN_LIMITS; l++)
		if (~d->open.limits[l] && !w->cuda.cuCtxGetLimit(&now, (CUlimit)l) &&
			now != d->open.limits[l])
			w->cuda.cuCtxSetLimit((CUlimit)l, d->open.limits[l]);
}

/* The context itself stays, since it is warm: what it held goes, as cuDevicePrimaryCtxReset
 * promises; the memory's unmapping follows, as for memory that is freed. A broken context
 * cannot be mended from inside: the error stays, and the app sees it. */
CUresult serve_vcudaPrimaryReset(struct worker *w, struct request *r)
{
	const struct wire_vcudaPrimaryReset *req = (const void *)r->body;
	uint16_t context;

	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (w->sticky)
		return w->sticky;
	context = (uint16_t)CONTEXT_PRIMARY(req->device);
	context_forget(w, context);
	primary_settings_reset(w, &w->devices[req->device], context);
	return CUDA_SUCCESS;
}
