/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and host functions: the driver's own objects under the runtime's names.
 */
#include "shim/runtime/runtime.h"

#include <stdlib.h>

_Static_assert(cudaStreamNonBlocking == CU_STREAM_NON_BLOCKING, "stream flags");
_Static_assert(cudaEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
		       cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING &&
		       cudaEventInterprocess == CU_EVENT_INTERPROCESS,
	"event flags");

cudaError_t hand_cudaStreamCreate(cudaStream_t *pStream)
{
	return hand_cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t hand_cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuStreamCreate((CUstream *)pStream, flags));
}

cudaError_t hand_cudaStreamCreateWithPriority(
	cudaStream_t *pStream, unsigned int flags, int priority)
{
	return RUNTIME_DRIVER(cuStreamCreateWithPriority((CUstream *)pStream, flags, priority));
}

cudaError_t hand_cudaStreamDestroy(cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	/* The default streams cannot be destroyed. */
	if (!error && (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread))
		return cudaErrorInvalidResourceHandle;
	return error ? error : runtime_status(cuStreamDestroy((CUstream)stream));
}

cudaError_t hand_cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuStreamGetPriority((CUstream)hStream, priority));
}

cudaError_t hand_cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuStreamGetFlags((CUstream)hStream, flags));
}

cudaError_t hand_cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuStreamGetId((CUstream)hStream, streamId));
}

cudaError_t hand_cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
	CUcontext context, current = NULL;
	CUdevice found, other;
	CUresult status;
	int count;
	cudaError_t error = runtime_enter();

	if (!device)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuStreamGetCtx((CUstream)hStream, &context));
	if (!error)
		error = runtime_status(cuDeviceGetCount(&count));
	if (error)
		return error;

	/* cuCtxGetDevice asks the current context. */
	(void)cuCtxGetCurrent(&current);
	status = current == context ? CUDA_SUCCESS : cuCtxPushCurrent(context);
	if (status)
		return runtime_status(status);
	status = cuCtxGetDevice(&found);
	if (current != context)
		(void)cuCtxPopCurrent(&context);
	if (status)
		return runtime_status(status);

	for (int i = 0; i < count; i++) {
		if (cuDeviceGet(&other, i) == CUDA_SUCCESS && other == found) {
			*device = i;
			return cudaSuccess;
		}
	}
	return cudaErrorInvalidDevice;
}

_Static_assert(
	sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue), "attribute layout");

cudaError_t hand_cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
	cudaError_t error = runtime_enter();

	return error ? error
		     : runtime_status(cuStreamCopyAttributes((CUstream)dst, (CUstream)src));
}

cudaError_t hand_cudaStreamGetAttribute(
	cudaStream_t hStream, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value_out)
{
	return RUNTIME_DRIVER(cuStreamGetAttribute(
		(CUstream)hStream, (CUstreamAttrID)attr, (CUstreamAttrValue *)value_out));
}

cudaError_t hand_cudaStreamSetAttribute(
	cudaStream_t hStream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value)
{
	return RUNTIME_DRIVER(cuStreamSetAttribute(
		(CUstream)hStream, (CUstreamAttrID)attr, (const CUstreamAttrValue *)value));
}

cudaError_t hand_cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return RUNTIME_DRIVER(cuStreamWaitEvent((CUstream)stream, (CUevent)event, flags));
}

cudaError_t hand_cudaStreamSynchronize(cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuStreamSynchronize((CUstream)stream));
}

cudaError_t hand_cudaStreamQuery(cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuStreamQuery((CUstream)stream));
}

cudaError_t hand_cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
	cudaError_t error = runtime_enter();

	return error ? error
		     : runtime_status(
			       cuLaunchHostFunc((CUstream)stream, (CUhostFn)fn, userData));
}

/* The runtime's callback takes a cudaError_t where the driver's takes a CUresult. */
struct callback {
	cudaStreamCallback_t function;
	void *data;
};

static void CUDA_CB callback_run(CUstream stream, CUresult status, void *data)
{
	struct callback callback = *(struct callback *)data;

	free(data);
	callback.function((cudaStream_t)stream, runtime_status(status), callback.data);
}

cudaError_t hand_cudaStreamAddCallback(
	cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned int flags)
{
	struct callback *passed;
	cudaError_t error = runtime_enter();

	if (error)
		return error;
	if (!callback || flags)
		return cudaErrorInvalidValue;
	passed = malloc(sizeof(*passed));
	if (!passed)
		return cudaErrorMemoryAllocation;
	passed->function = callback;
	passed->data = userData;
	error = runtime_status(cuStreamAddCallback((CUstream)stream, callback_run, passed, 0));
	if (error)
		free(passed);
	return error;
}

cudaError_t hand_cudaEventCreate(cudaEvent_t *event)
{
	return hand_cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t hand_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuEventCreate((CUevent *)event, flags));
}

cudaError_t hand_cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuEventRecord((CUevent)event, (CUstream)stream));
}

cudaError_t hand_cudaEventRecordWithFlags(
	cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return RUNTIME_DRIVER(cuEventRecordWithFlags((CUevent)event, (CUstream)stream, flags));
}

cudaError_t hand_cudaEventQuery(cudaEvent_t event)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuEventQuery((CUevent)event));
}

cudaError_t hand_cudaEventSynchronize(cudaEvent_t event)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuEventSynchronize((CUevent)event));
}

cudaError_t hand_cudaEventDestroy(cudaEvent_t event)
{
	cudaError_t error = runtime_enter();

	return error ? error : runtime_status(cuEventDestroy((CUevent)event));
}

cudaError_t hand_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return RUNTIME_DRIVER(cuEventElapsedTime(ms, (CUevent)start, (CUevent)end));
}

#if CUDART_VERSION < 13000
cudaError_t hand_cudaEventElapsedTime_v2(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return hand_cudaEventElapsedTime(ms, start, end);
}
#endif
