/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, events and host functions: the driver's own objects under the runtime's names.
 */
#include "shim/runtime/forms.h"
#include "shim/runtime/runtime.h"

#include <stdlib.h>

_Static_assert(cudaStreamNonBlocking == CU_STREAM_NON_BLOCKING, "stream flags");
_Static_assert(cudaEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
		       cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING &&
		       cudaEventInterprocess == CU_EVENT_INTERPROCESS,
	"event flags");

cudaError_t hand_cudaStreamDestroy(cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	/* The default streams cannot be destroyed. */
	if (!error && (!stream || stream == cudaStreamPerThread))
		return cudaErrorInvalidResourceHandle;
	return error ? error : runtime_status(cuStreamDestroy((CUstream)stream));
}

/* A host function may ask, though its thread can have no current context. */
cudaError_t hand_cudaStreamQuery(cudaStream_t stream)
{
	cudaError_t error = runtime_init();

	if (error)
		return error;
	error = runtime_enter();
	return error && error != cudaErrorNotPermitted
		       ? error
		       : runtime_status(cuStreamQuery((CUstream)stream));
}

static cudaError_t elapsed(CUresult (*driver)(float *, CUevent, CUevent), float *ms,
	cudaEvent_t start, cudaEvent_t end)
{
	cudaError_t error = runtime_init();

	if (!ms)
		return cudaErrorInvalidValue;
	return error ? error : runtime_status(driver(ms, (CUevent)start, (CUevent)end));
}

cudaError_t runtime_elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return elapsed(cuEventElapsedTime_v2, ms, start, end);
}

/* CUDA 12's calls the driver's form of before 12.8, which is refused within a host function (an
 * H200). */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd);

cudaError_t hand_cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return elapsed(
		VCUDA_ABI == 12 ? cuEventElapsedTime : cuEventElapsedTime_v2, ms, start, end);
}

cudaError_t hand_cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
	CUdevice found;
	cudaError_t error = runtime_enter_for(hStream);

	if (!device)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuStreamGetDevice((CUstream)hStream, &found));
	return error ? error : runtime_ordinal(found, device);
}

_Static_assert(
	sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue), "attribute layout");

static bool attribute_known(cudaLaunchAttributeID attr)
{
	return attr == cudaLaunchAttributeAccessPolicyWindow ||
	       attr == cudaLaunchAttributeSynchronizationPolicy ||
	       attr == cudaLaunchAttributePriority ||
	       attr == cudaLaunchAttributeMemSyncDomainMap ||
	       attr == cudaLaunchAttributeMemSyncDomain;
}

/* One that is refused makes no context current, as natively; what streams have not is refused
 * while they capture too, and where no context can be had. */
cudaError_t hand_cudaStreamSetAttribute(
	cudaStream_t stream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *param)
{
	bool borrowed;
	cudaError_t error = runtime_borrow(&borrowed);

	if (!attribute_known(attr))
		error = cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuStreamSetAttribute((CUstream)stream,
			(CUstreamAttrID)attr, (const CUstreamAttrValue *)param));
	if (error)
		runtime_return(borrowed);
	return error;
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
