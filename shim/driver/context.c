/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: the stack of each thread, the primary contexts' reference counts, and contexts that
 * the app creates.  See context.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/array.h"
#include "shim/driver/context_state.h"
#include "shim/driver/coredump.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine/cache.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/host.h"
#include "shim/driver/memory/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/module/module.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/memory/pool.h"
#include "shim/driver/memory/share.h"
#include "shim/driver/order.h"
#include "shim/driver/stream.h"
#include "shim/driver/memory/vmm.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

/* What NVIDIA's driver answers for contexts of cuCtxCreate_v2 and of the one before. */
#define CONTEXT_API_VERSION 3020
#define CONTEXT_API_FIRST 3010

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

struct session *context_session(const struct context *context)
{
	return context->session;
}

struct context *context_current(void)
{
	struct context *context = thread_self.current;

	/* A primary context that was released, or one that another thread destroyed. */
	if (context && !atomic_load_explicit(&context->live, memory_order_relaxed))
		return NULL;
	return context;
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

bool home_lend_slow(uint64_t handle)
{
	struct context *home = session_count > 1 ? handle_home(handle) : NULL;

	return home && home->session != session_here() && thread_push(home);
}

void home_lent(void)
{
	struct context *popped;

	thread_pop(&popped);
}

/* ---- primary contexts ---- */

static void others_look(void *object, void *argument)
{
	const struct context *context = object;
	struct context_others *others = argument;

	if (context->device != others->device || context != context->home || context->primary ||
		!atomic_load(&context->live))
		return;
	others->any = true;
	others->first |= context->first;
}

struct context_others context_others(int device)
{
	struct context_others others = {.device = device};

	handle_each(KIND_CUcontext, others_look, &others);
	return others;
}

CUresult hand_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct device *device = device_of(dev);
	struct context *primary;
	CUresult status = CUDA_SUCCESS;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	primary = &device->primary;
	pthread_mutex_lock(&contexts.lock);
	if (!primary->handle) {
		primary->number = device_primary(dev);
		primary->primary = true;
		primary->home = primary;
		primary->device = dev;
		primary->session = device->session;
		primary->id = atomic_fetch_add(&contexts.last_id, 1) + 1;
		primary->legacy = stream_legacy(primary);
		if (primary->legacy)
			primary->handle = shim_mint(KIND_CUcontext, primary);
		if (!primary->handle)
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!status && !atomic_load(&primary->live) && context_others(dev).first)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!status) {
		atomic_fetch_add(&primary->retained, 1);
		atomic_store(&primary->live, true);
		*pctx = context_handle(primary);
	}
	pthread_mutex_unlock(&contexts.lock);
	return status;
}

/* The worker's side of a reset: everything that the context holds is destroyed. */
static CUresult context_reset(struct context *primary)
{
	struct session_visit visit;
	struct shim_call call;
	struct wire_vcudaPrimaryReset *body;
	CUresult status;
	bool last;

	host_context_drain(primary);
	visit = session_visit(primary->session);
	body = shim_begin(&call, OP_vcudaPrimaryReset, sizeof(*body));
	body->device = device_wire(primary->device);
	shim_wait(&call, 0);
	status = shim_end(&call);
	session_leave(visit);
	if (status)
		return status;
	atomic_store(&primary->live, false);
	atomic_store(&devices.at[primary->device].primary_flags, 0);
	atomic_fetch_add(&vcuda_resets, 1);
	graph_context_gone(primary);
	last = !context_others(primary->device).any;
	managed_context_gone(primary);
	array_reset(primary);
	if (last)
		vmm_reset(primary->device);
	memory_context_gone(primary, last);
	host_context_gone(primary);
	ipc_reset();
	pool_reset(primary->device);
	graph_memory_reset(primary, last);
	coredump_drop(primary);
	module_reset(primary);
	stream_reset(primary);
	cache_drop(primary->number);
	primary->id = atomic_fetch_add(&contexts.last_id, 1) + 1;
	return CUDA_SUCCESS;
}

CUresult hand_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct device *device = device_of(dev);
	struct context *primary;
	CUresult status = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	primary = &device->primary;
	pthread_mutex_lock(&contexts.lock);
	if (!atomic_load(&primary->retained))
		status = CUDA_ERROR_INVALID_CONTEXT;
	else if (atomic_fetch_sub(&primary->retained, 1) == 1 && atomic_load(&primary->live))
		status = context_reset(primary);
	pthread_mutex_unlock(&contexts.lock);
	return status;
}

static CUresult primary_reset(CUdevice dev, bool forget)
{
	struct device *device = device_of(dev);
	CUresult status = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&contexts.lock);
	atomic_store(&device->primary_flags, 0);
	if (device->primary.handle && atomic_load(&device->primary.live)) {
		status = context_reset(&device->primary);
		if (!status && forget)
			atomic_store(&device->primary.retained, 1);
	}
	pthread_mutex_unlock(&contexts.lock);
	return status;
}

CUresult hand_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return primary_reset(dev, true);
}

/* The runtime front's: as natively, cudaDeviceReset gives back the runtime's reference and
 * leaves the program's, where the driver's own call leaves one of all. */
__attribute__((visibility("default"))) CUresult vcuda_primary_reset(CUdevice dev);
CUresult vcuda_primary_reset(CUdevice dev)
{
	return primary_reset(dev, false);
}

CUresult hand_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct device *device = device_of(dev);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	/* Memory of the host is mapped whatever is asked. */
	if (!context_flags_valid(flags) || flags & CU_CTX_MAP_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	/* They say how the app's threads wait, which the shim decides for itself. */
	atomic_store(&device->primary_flags, flags);
	return CUDA_SUCCESS;
}

/* Before CUDA 11 the flags of a context that there is could not change. */
CUresult primary_flags_first(CUdevice dev, unsigned flags)
{
	struct device *device = device_of(dev);

	if (device && context_flags_valid(flags) && !(flags & CU_CTX_MAP_HOST) &&
		atomic_load(&device->primary.live))
		return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	return hand_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult hand_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct device *device = device_of(dev);

	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = atomic_load(&device->primary_flags);
	*active = atomic_load(&device->primary.live);
	return CUDA_SUCCESS;
}

/* ---- contexts of the app's own ---- */

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
	struct wire_vcudaContextCreate *body;
	struct shim_call call;
	CUresult status;

	(void)argument;
	body = shim_begin(&call, OP_vcudaContextCreate, sizeof(*body));
	body->number = context->number;
	body->device = device_wire(context->device);
	body->flags = context->flags;
	shim_wait(&call, 0);
	status = shim_end(&call);
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
	if (numParams && !paramsArray)
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
	struct shim_call call;
	struct wire_vcudaContextDestroy *body;
	CUresult status;

	if (atomic_load(&context->live))
		host_context_drain(context);
	if (!atomic_exchange(&context->live, false))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	atomic_fetch_add(&vcuda_resets, 1);
	atomic_store(&context->retained, 0);
	coredump_drop(context);
	managed_context_gone(context);
	module_reset(context);
	order_context_gone(context);
	stream_reset(context);
	pool_context_gone(context->number);
	cache_drop(context->number);
	thread_forget(context);
	visit = session_visit(context->session);
	body = shim_begin(&call, OP_vcudaContextDestroy, sizeof(*body));
	body->number = context->number;
	status = shim_post(&call);
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

/* ---- the thread's stack ---- */

CUresult hand_cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct context *context = context_of(ctx);

	if (!context)
		return ctx ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	if (!thread_push(context))
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_fetch_add(&context->attached, 1);
	return CUDA_SUCCESS;
}

CUresult context_push_first(CUcontext ctx)
{
	struct context *context = context_of(ctx);

	/* Only one that is current to no thread, or is no more. */
	return context && (context->primary || (atomic_load(&context->live) &&
						       atomic_load(&context->attached)))
		       ? CUDA_ERROR_INVALID_CONTEXT
		       : hand_cuCtxPushCurrent_v2(ctx);
}

CUresult hand_cuCtxPopCurrent_v2(CUcontext *pctx)
{
	struct context *context;

	if (!thread_pop(&context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (atomic_load(&context->attached))
		atomic_fetch_sub(&context->attached, 1);
	if (pctx)
		*pctx = context_handle(context);
	return CUDA_SUCCESS;
}

/* A context that is used more than once stays, and is not told; that is no error. So does a
 * primary one that was reset. */
CUresult context_pop_first(CUcontext *pctx)
{
	const struct context *context = thread_self.current;

	if (context && (atomic_load(&context->retained) > 1 ||
			       (context->primary && !atomic_load(&context->live))))
		return CUDA_SUCCESS;
	return hand_cuCtxPopCurrent_v2(pctx);
}

CUresult hand_cuCtxSetCurrent(CUcontext ctx)
{
	struct context *context = context_of(ctx);
	struct context *old;

	if (!ctx) {
		thread_pop(&old);
		return CUDA_SUCCESS;
	}
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context != thread_self.current)
		atomic_fetch_add(&context->attached, 1);
	thread_set(context);
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetCurrent(CUcontext *pctx)
{
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = context_handle(thread_self.current);
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetDevice(CUdevice *device)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!thread_self.current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = thread_self.current->device;
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct context *context = context_or_current(ctx);

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetFlags(unsigned int *flags)
{
	const struct context *context = thread_self.current;

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* Of one that is no more too. */
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context->primary)
		*flags = context->flags;
	else if (atomic_load(&context->live))
		*flags = atomic_load(&devices.at[context->device].primary_flags) |
			 CU_CTX_MAP_HOST;
	else /* what was set since is the next one's */
		*flags = 0;
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxSetFlags(unsigned int flags)
{
	struct context *context = context_current();

	if (flags & ~CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context->primary)
		atomic_store(&devices.at[context->device].primary_flags, flags);
	else
		context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct context *context = ctx ? context_of(ctx) : context_current();

	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return ctx ? CUDA_ERROR_INVALID_CONTEXT : context_missing();
	if (!atomic_load(&context->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ctxId = context->id;
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct context *context = ctx ? context_of(ctx) : context_current();

	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context || !atomic_load(&context->live))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = context->first ? CONTEXT_API_FIRST : CONTEXT_API_VERSION;
	return CUDA_SUCCESS;
}

CUresult hand_cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	const struct context *context = context_current();

	if (leastPriority)
		*leastPriority = devices.at[context->device].open.stream_priority_least;
	if (greatestPriority)
		*greatestPriority = devices.at[context->device].open.stream_priority_greatest;
	return CUDA_SUCCESS;
}

/* What is measured is the agent's: a range of the program has nothing to begin or end there. */
CUresult hand_cuProfilerStart(void)
{
	return context_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult hand_cuProfilerStop(void)
{
	return context_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* A context has all of its device, unless it is a green one. */
CUresult hand_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	const struct context *context = context_current();

	if (!pExecAffinity)
		return CUDA_ERROR_INVALID_VALUE;
	pExecAffinity->type = type;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT || context->green)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	pExecAffinity->param.smCount.val =
		(unsigned)devices.at[context->device]
			.open.attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
	return CUDA_SUCCESS;
}
