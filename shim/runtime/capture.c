/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that capture: what is not said in cudart.api.
 */
#include "shim/runtime/forms.h"
#include "shim/runtime/runtime.h"

_Static_assert((int)cudaStreamCaptureModeRelaxed == (int)CU_STREAM_CAPTURE_MODE_RELAXED &&
		       (int)cudaStreamCaptureModeThreadLocal ==
			       (int)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
	"capture modes");
_Static_assert(
	(int)cudaStreamCaptureStatusInvalidated == (int)CU_STREAM_CAPTURE_STATUS_INVALIDATED,
	"capture states");

cudaError_t runtime_capture_info(cudaStream_t stream,
	enum cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out,
	cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out,
	const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t id = 0;
	cudaError_t error = runtime_enter();

	if (!captureStatus_out)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_status(cuStreamGetCaptureInfo_v3((CUstream)stream, &status, &id,
			(CUgraph *)graph_out, (const CUgraphNode **)dependencies_out,
			(const CUgraphEdgeData **)edgeData_out, numDependencies_out));
	if (error)
		return error;
	*captureStatus_out = (enum cudaStreamCaptureStatus)status;
	if (id_out)
		*id_out = id;
	return cudaSuccess;
}

/* The driver keeps the thread's mode. */
cudaError_t hand_cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	CUstreamCaptureMode exchanged;
	cudaError_t error;

	if (!mode)
		return cudaErrorInvalidValue;
	error = runtime_enter();
	if (error)
		return error;
	exchanged = (CUstreamCaptureMode)*mode;
	error = runtime_status(cuThreadExchangeStreamCaptureMode(&exchanged));
	if (!error)
		*mode = (enum cudaStreamCaptureMode)exchanged;
	return error;
}
