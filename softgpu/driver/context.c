/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: what a device's streams, memory and modules belong to, and where a device fault
 * sticks.  Each thread has a stack of them; a destroyed one stays in memory until the last
 * stack, stream or module lets go of it, and every call says CONTEXT_IS_DESTROYED.
 */
#include "softgpu/driver/array.h"
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/context_core.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/peer.h"

#define STACK_MAX 256
/* How long a dying context's work may go on before its kernels are cancelled, and after. */
#define DRAIN_NS 2000000000u
#define CANCEL_NS 10000000000u

pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;

static struct CUctx_st *contexts; /* under context_lock */
static unsigned long long next_id = 1;

static __thread struct CUctx_st *stack[STACK_MAX];
static __thread unsigned depth;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

void context_ref(struct CUctx_st *context)
{
	atomic_fetch_add(&context->refs, 1);
}

void context_unref(struct CUctx_st *context)
{
	if (context && atomic_fetch_sub(&context->refs, 1) == 1)
		free(context);
}

/* A thread ends: what its stack holds is let go. */
static void thread_end(void *unused)
{
	(void)unused;
	while (depth)
		context_unref(stack[--depth]);
}

static void thread_init(void)
{
	pthread_key_create(&thread_key, thread_end);
}

static CUresult context_push(struct CUctx_st *context)
{
	if (depth == STACK_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_once(&thread_once, thread_init);
	pthread_setspecific(thread_key, &depth);
	context_ref(context);
	stack[depth++] = context;
	return CUDA_SUCCESS;
}

CUresult context_current_any(struct CUctx_st **context)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!depth || !stack[depth - 1])
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = stack[depth - 1];
	if (atomic_load(&(*context)->destroyed))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return CUDA_SUCCESS;
}

CUresult soft_context_current(struct CUctx_st **context)
{
	CUresult ret = context_current_any(context);

	return ret ? ret : context_fault_of(*context);
}

CUresult context_fault_of(const struct CUctx_st *context)
{
	return (CUresult)atomic_load(&context->fault);
}

void context_fault(struct CUctx_st *context, CUresult fault)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&context->fault, &none, (int)fault))
		soft_log_note("context %llu: sticky error %d", context->id, (int)fault);
}

CUresult context_check(CUcontext context)
{
	if (!object_is(context, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_fault_of(context);
}

struct CUctx_st *context_with_library(const struct CUlib_st *library)
{
	struct CUctx_st *found = NULL;

	pthread_mutex_lock(&context_lock);
	for (struct CUctx_st *context = contexts; context && !found; context = context->next)
		for (struct CUmod_st *module = context->modules; module; module = module->next)
			if (module->library == library)
				found = context;
	if (found)
		context_ref(found);
	pthread_mutex_unlock(&context_lock);
	return found;
}

bool soft_context_flags_valid(unsigned flags)
{
	unsigned schedule = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
	       (schedule == 0 || schedule == 1 || schedule == 2 || schedule == 4);
}

CUresult soft_context_new(struct device *device, unsigned flags, struct CUctx_st **out)
{
	struct CUctx_st *context;

	if (device_fallen(device->ordinal))
		return CUDA_ERROR_ECC_UNCORRECTABLE;
	context = calloc(1, sizeof(*context));
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->device = device;
	context->refs = 1;
	context->flags = flags;
	context->api_version = 3020;
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8 * MIB + 256 * KIB;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * MIB;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->limits[CU_LIMIT_SHMEM_SIZE] = SHARED_PER_BLOCK_OPTIN;
	context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = L2_MOST;
	context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	context->legacy = queue_stream_new(context, 0, 0, true);
	if (!context->legacy || !object_add(context, OBJECT_CONTEXT)) {
		if (context->legacy)
			queue_stream_close(context->legacy);
		context_unref(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	context->id = next_id++;
	context->next = contexts;
	contexts = context;
	*out = context;
	return CUDA_SUCCESS;
}

void soft_context_end(struct CUctx_st *context)
{
	capture_context_gone(context);
	if (!queue_drain(context, DRAIN_NS)) {
		atomic_store(&context->cancel, true);
		context_fault(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
		if (!queue_drain(context, CANCEL_NS)) {
			soft_log_problem("context %llu: work does not end, its memory is kept",
				context->id);
			atomic_store(&context->destroyed, true);
			return;
		}
	}
	atomic_store(&context->destroyed, true);
	context_fault(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	event_release_context(context);
	pthread_mutex_lock(&context_lock);
	while (context->modules)
		module_free(context->modules);
	pthread_mutex_unlock(&context_lock);
	reference_release_context(context);
	texture_release_context(context);
	array_release_context(context);
	memory_release_context(context);
	pthread_mutex_lock(&context_lock);
	peer_context_gone(context, contexts);
	pthread_mutex_unlock(&context_lock);
	for (;;) {
		struct CUstream_st *stream;

		pthread_mutex_lock(&queue_lock);
		stream = context->streams;
		while (stream && stream->doomed)
			stream = stream->next;
		pthread_mutex_unlock(&queue_lock);
		if (!stream)
			break;
		queue_stream_close(stream);
	}
	context_unref(context);
}

void soft_context_unlist(struct CUctx_st *context)
{
	struct CUctx_st **at = &contexts;

	while (*at && *at != context)
		at = &(*at)->next;
	if (*at)
		*at = context->next;
	object_remove(context);
}

static CUresult context_create(CUcontext *pctx, unsigned flags, CUdevice dev)
{
	struct device *device = device_get(dev);
	struct CUctx_st *context;
	CUresult ret;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!pctx || !soft_context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&context_lock);
	ret = soft_context_new(device, flags, &context);
	pthread_mutex_unlock(&context_lock);
	if (ret)
		return ret;
	ret = context_push(context);
	if (ret) {
		cuCtxDestroy_v2(context);
		return ret;
	}
	*pctx = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return context_create(pctx, flags, dev);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return context_create(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
	unsigned int flags, CUdevice dev)
{
	(void)paramsArray;
	if (numParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return context_create(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	if (ctxCreateParams && ctxCreateParams->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	if (ctxCreateParams && ctxCreateParams->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return context_create(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&context_lock);
	if (!object_is(ctx, OBJECT_CONTEXT) || ctx->primary) {
		pthread_mutex_unlock(&context_lock);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	soft_context_unlist(ctx);
	pthread_mutex_unlock(&context_lock);
	if (depth && stack[depth - 1] == ctx)
		context_unref(stack[--depth]);
	soft_context_end(ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!object_is(ctx, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return context_push(ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (pctx)
		*pctx = stack[depth];
	context_unref(stack[depth]);
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ctx && !object_is(ctx, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (ctx && depth && stack[depth - 1] == ctx)
		return CUDA_SUCCESS;
	if (depth)
		context_unref(stack[--depth]);
	return ctx ? context_push(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = depth ? stack[depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	struct CUctx_st *context;
	CUresult ret = context_current_any(&context);

	if (ret)
		return ret;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device->ordinal;
	return CUDA_SUCCESS;
}

/* The context that a call names, or the current one for NULL. */
static CUresult context_named(CUcontext ctx, struct CUctx_st **context)
{
	if (!ctx)
		return context_current_any(context);
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!object_is(ctx, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct CUctx_st *context;
	CUresult ret = context_named(ctx, &context);

	if (ret)
		return ret;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device->ordinal;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct CUctx_st *context;
	CUresult ret = context_named(ctx, &context);

	if (ret)
		return ret;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	*ctxId = context->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct CUctx_st *context;
	CUresult ret = context_named(ctx, &context);

	if (ret)
		return ret;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = context->api_version;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = context->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!soft_context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct CUctx_st *context;
	CUresult ret = context_named(ctx, &context);

	if (!ret)
		ret = capture_context(context);
	if (ret)
		return ret;
	context_ref(context);
	queue_drain(context, 0);
	ret = context_fault_of(context);
	context_unref(context);
	return ret;
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}
