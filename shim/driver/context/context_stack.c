/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of contexts that each thread has, and what is asked of the one on top.
 */
#include "shim/driver/forms.h"
#include "shim/driver/context/context_state.h"

#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/generated/cuda_hand.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"

/* What NVIDIA's driver answers for contexts of cuCtxCreate_v2 and of the one before. */
#define CONTEXT_API_VERSION 3020
#define CONTEXT_API_FIRST 3010

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

	/* Only one of the program's own that cuCtxPopCurrent has given back or that is current
	 * to no thread, or is no more. */
	if (context && !atomic_exchange(&context->floating, false) &&
		(context->primary || context->green ||
			(atomic_load(&context->live) && atomic_load(&context->attached))))
		return CUDA_ERROR_INVALID_CONTEXT;
	return hand_cuCtxPushCurrent_v2(ctx);
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
	struct context *context = thread_self.current;
	CUresult status;

	if (context && context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context && (atomic_load(&context->retained) > 1 ||
			       (context->primary && !atomic_load(&context->live))))
		return CUDA_SUCCESS;
	status = hand_cuCtxPopCurrent_v2(pctx);
	if (!status && !context->primary && !thread_has(context))
		atomic_store(&context->floating, true);
	return status;
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

const uint64_t *vcuda_current(void)
{
	return atomic_load(&shim_watched) & SHIM_COUNTING ? NULL : &thread_self.handle;
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
	context = context->home; /* a green one has the primary one's */
	if (!context->primary)
		*flags = atomic_load(&context->flags);
	else if (atomic_load(&context->live))
		*flags = atomic_load(&context->flags) | CU_CTX_MAP_HOST;
	else /* what was set since is the next one's */
		*flags = 0;
	return CUDA_SUCCESS;
}

/* As NVIDIA's driver: its graphs' kernels are not to wait for memory. */
void context_keeps(void)
{
	struct context *context = context_current();

	if (context)
		atomic_fetch_or(&context->home->flags, CU_CTX_LMEM_RESIZE_TO_MAX);
}

CUresult hand_cuCtxSetFlags(unsigned int flags)
{
	struct context *context = context_current();

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&context->home->flags, flags);
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

/* What was accepted once is accepted again, without an answer that is waited for; but not how
 * much there is of the heap and of printf's buffer, which the driver refuses once kernels use
 * them. */
CUresult hand_cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct wire_cuCtxSetLimit *body;
	struct shim_call call;
	CUresult status;

	body = shim_begin(&call, OP_cuCtxSetLimit, sizeof(*body));
	body->limit = (uint32_t)limit;
	body->value = value;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE) {
		shim_wait(&call, 0);
		status = shim_end(&call);
	} else {
		status = shim_learned(&call);
	}
	shim_forget(OP_cuCtxGetLimit);
	return status;
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
