/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution contexts, CUDA 13.1's: a device's primary context, or a green one.  The handle is
 * the driver's CUcontext or CUgreenCtx, which the driver front tells apart.
 */
#include "shim/generated/cudart_hand.h"
#include "shim/runtime/runtime.h"

#if CUDART_VERSION >= 13000

cudaError_t execution_context(cudaExecutionContext_t ctx, CUcontext *context)
{
	cudaError_t error = runtime_enter();

	if (error)
		return error;
	if (!ctx)
		return cudaErrorInvalidValue;
	if (cuCtxFromGreenCtx(context, (CUgreenCtx)ctx))
		*context = (CUcontext)ctx;
	return cudaSuccess;
}

cudaError_t hand_cudaGreenCtxCreate(cudaExecutionContext_t *phCtx, cudaDevResourceDesc_t desc,
	int device, unsigned int flags)
{
	CUdevice found;
	cudaError_t error = runtime_device(device, &found);

	if (error)
		return error;
	if (!phCtx || flags)
		return cudaErrorInvalidValue;
	return runtime_status(cuGreenCtxCreate(
		(CUgreenCtx *)phCtx, desc, found, CU_GREEN_CTX_DEFAULT_STREAM));
}

cudaError_t hand_cudaDeviceGetExecutionCtx(cudaExecutionContext_t *ctx, int device)
{
	CUcontext primary;
	cudaError_t error = runtime_enter();

	if (!error && !ctx)
		error = cudaErrorInvalidValue;
	if (!error)
		error = runtime_primary(device, &primary);
	if (!error)
		*ctx = (cudaExecutionContext_t)primary;
	return error;
}

cudaError_t hand_cudaExecutionCtxGetDevResource(
	cudaExecutionContext_t ctx, cudaDevResource *resource, enum cudaDevResourceType type)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	return error ? error
		     : runtime_status(
			       cuCtxGetDevResource(context, resource, (CUdevResourceType)type));
}

cudaError_t hand_cudaExecutionCtxGetDevice(int *device, cudaExecutionContext_t ctx)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	return error ? error : runtime_status(cuCtxGetDevice_v2(device, context));
}

cudaError_t hand_cudaExecutionCtxGetId(cudaExecutionContext_t ctx, unsigned long long *ctxId)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	return error ? error : runtime_status(cuCtxGetId(context, ctxId));
}

cudaError_t hand_cudaExecutionCtxStreamCreate(
	cudaStream_t *phStream, cudaExecutionContext_t ctx, unsigned int flags, int priority)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	if (!error)
		error = runtime_status(cuCtxPushCurrent(context));
	if (error)
		return error;
	error = runtime_status(
		cuStreamCreateWithPriority((CUstream *)phStream, flags, priority));
	cuCtxPopCurrent(&context);
	return error;
}

cudaError_t hand_cudaExecutionCtxSynchronize(cudaExecutionContext_t ctx)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	return error ? error : runtime_status(cuCtxSynchronize_v2(context));
}

cudaError_t hand_cudaExecutionCtxRecordEvent(cudaExecutionContext_t ctx, cudaEvent_t event)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	return error ? error : runtime_status(cuCtxRecordEvent(context, (CUevent)event));
}

cudaError_t hand_cudaExecutionCtxWaitEvent(cudaExecutionContext_t ctx, cudaEvent_t event)
{
	CUcontext context;
	cudaError_t error = execution_context(ctx, &context);

	return error ? error : runtime_status(cuCtxWaitEvent(context, (CUevent)event));
}

#endif
