/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts that the program makes.  See context.h and context_state.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/context/context_state.h"
#include "shim/driver/context/coredump.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/engine/cache.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/module/module.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/device/peer.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

bool context_flags_valid(unsigned flags)
{
	unsigned wait = flags & (unsigned)CU_CTX_SCHED_MASK;

	return !(flags & ~CONTEXT_FLAGS) && wait <= CU_CTX_SCHED_BLOCKING_SYNC &&
	       !(wait & (wait - 1));
}

struct contexts contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(context, contexts.lock, LOCK_CONTEXT);

uint16_t context_number(const struct context *context)
{
	return context->number;
}

uint64_t context_told(const struct context *context)
{
	return context->handle;
}

struct session *context_session(const struct context *context)
{
	return context->session;
}

_Atomic uint32_t vcuda_resets;

CUresult context_missing(void)
{
	if (!thread_self.current)
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_current() ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct context *context_of(CUcontext handle)
{
	return shim_object_of((uint64_t)(uintptr_t)handle, KIND_CUcontext);
}

/* Programs that prefer a name with _v2 to one without (Numba does) call functions that have got
 * a second form with the arguments of the first, and whatever a register holds is the context.
 */
struct context *context_or_current(CUcontext handle)
{
	struct context *context = context_of(handle);

	return context ? context : thread_self.current;
}

bool context_home_lend_slow(uint64_t handle)
{
	struct context *home = session_count > 1 ? handle_home(handle) : NULL;

	return home && home->session != session_here() && thread_push(home);
}

void context_home_lent(void)
{
	struct context *popped;

	thread_pop(&popped);
}

static uint16_t number_alloc(void)
{
	/* CONTEXT_CREATED itself is the primary context of the last of 64 devices. */
	for (uint16_t n = CONTEXT_CREATED + 1; n < CONTEXT_MAX; n++)
		if (!contexts.numbers_used[n]) {
			contexts.numbers_used[n] = true;
			return n;
		}
	return 0;
}

static void number_free(uint16_t number)
{
	pthread_mutex_lock(&contexts.lock);
	contexts.numbers_used[number] = false;
	pthread_mutex_unlock(&contexts.lock);
}

CUresult context_make(CUdevice dev, unsigned flags,
	CUresult (*ask)(struct context *context, const void *argument), const void *argument,
	struct context **out)
{
	struct context *context = calloc(1, sizeof(*context));
	CUresult status;

	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&contexts.lock);
	context->number = number_alloc();
	pthread_mutex_unlock(&contexts.lock);
	context->device = dev;
	context->session = device_of(dev)->session;
	context->flags = flags;
	context->home = context;
	context->id = atomic_fetch_add(&contexts.last_id, 1) + 1;
	context->retained = 1;
	context->live = true;
	context->legacy = stream_legacy(context);
	status = context->number && context->legacy ? ask(context, argument)
						    : CUDA_ERROR_OUT_OF_MEMORY;
	if (!status) {
		/* A reset either knows of it or is over (others_of). */
		pthread_mutex_lock(&contexts.lock);
		context->handle = shim_mint(KIND_CUcontext, context);
		pthread_mutex_unlock(&contexts.lock);
		if (!context->handle)
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status) {
		number_free(context->number);
		free(context->legacy);
		free(context);
		return status;
	}
	*out = context;
	return CUDA_SUCCESS;
}

/* The worker's half of one that is being made. */
static CUresult context_ask(struct context *context, const void *argument)
{
	struct session_visit visit = session_visit(context->session);
	CUresult status;

	(void)argument;
	status = send_vcudaContextCreate(
		context->number, device_wire(context->device), context->flags);
	session_leave(visit);
	return status;
}

CUresult context_create(CUcontext *pctx, unsigned flags, CUdevice dev)
{
	struct context *context;
	CUresult status;

	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx || !context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	status = context_make(dev, flags, context_ask, NULL, &context);
	if (status)
		return status;
	if (!thread_push(context)) {
		context_end(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_fetch_add(&context->attached, 1);
	*pctx = context_handle(context);
	return CUDA_SUCCESS;
}

CUresult context_create_first(CUcontext *pctx, unsigned flags, CUdevice dev)
{
	CUresult status;

	if (device_of(dev) && pctx && context_flags_valid(flags) &&
		(atomic_load(&devices.at[dev].primary.live) || context_others(dev).any))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = context_create(pctx, flags, dev);
	if (!status)
		thread_self.current->first = true;
	return status;
}

CUresult hand_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
	unsigned int flags, CUdevice dev)
{
	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx || (numParams && !paramsArray))
		return CUDA_ERROR_INVALID_VALUE;
	if (numParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return context_create(pctx, flags, dev);
}

CUresult hand_cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	/* As on a device without MPS, and with no graphics to share a queue with. */
	if (ctxCreateParams && ctxCreateParams->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (ctxCreateParams && ctxCreateParams->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return context_create(pctx, flags, dev);
}

/* Its handle stays for a while. */
static void context_bury(struct context *context)
{
	struct context *old;

	pthread_mutex_lock(&contexts.lock);
	old = contexts.dead[contexts.dead_next];
	contexts.dead[contexts.dead_next] = context;
	contexts.dead_next = (contexts.dead_next + 1) % CONTEXT_DEAD;
	pthread_mutex_unlock(&contexts.lock);
	if (old)
		handle_release(old->handle);
}

/* The object stays: other threads may have it on their stacks, and find it gone (retained = 0).
 * A few dozen bytes for each context that a process ever destroyed. */
CUresult context_end(struct context *context)
{
	struct session_visit visit;
	CUresult status;

	if (atomic_load(&context->live))
		host_context_drain(context);
	if (!atomic_exchange(&context->live, false))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	atomic_fetch_add(&vcuda_resets, 1);
	atomic_store(&context->retained, 0);
	coredump_drop(context);
	managed_context_gone(context);
	peer_access_ends(context);
	module_reset(context);
	order_context_gone(context);
	stream_reset(context);
	pool_context_gone(context->number);
	cache_drop(context->number);
	thread_forget(context);
	visit = session_visit(context->session);
	status = send_vcudaContextDestroy(context->number);
	session_leave(visit);
	array_reset(context);
	graph_context_gone(context);
	memory_context_gone(context, false);
	host_context_gone(context);
	ipc_reset();
	number_free(context->number);
	context_bury(context);
	return status;
}

CUresult hand_cuCtxDestroy_v2(CUcontext ctx)
{
	struct context *context = context_of(ctx);

	if (!context)
		return ctx ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	if (context->primary || context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_end(context);
}

CUresult context_destroy_first(CUcontext ctx)
{
	struct context *context = context_of(ctx);

	return context && atomic_load(&context->live) && context != thread_self.current
		       ? CUDA_ERROR_INVALID_CONTEXT
		       : hand_cuCtxDestroy_v2(ctx);
}

CUresult hand_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct context *context = context_current();

	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context->primary || context->green)
		return CUDA_ERROR_NOT_SUPPORTED;
	atomic_fetch_add(&context->retained, 1);
	*pctx = context_handle(context);
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxDetach(CUcontext ctx)
{
	struct context *context = context_of(ctx);

	if (!context || context->primary || context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (atomic_load(&context->retained) > 1) {
		atomic_fetch_sub(&context->retained, 1);
		return CUDA_SUCCESS;
	}
	return hand_cuCtxDestroy_v2(ctx);
}
