// SPDX-License-Identifier: Apache-2.0
/*
 * A stream brings its context: a thread without a current one works with it by the driver API.
 * And a stream's attributes: what is told, how much of it is written, what can be set.
 */
#include "driver.h"

#include <string.h>

#include <thread>

static CUstream stream;
static CUdeviceptr memory;
static CUevent event;

static void CUDA_CB called(CUstream, CUresult, void *)
{
}

static void without_context()
{
	unsigned flags, value = 0;
	CUcontext found;

	ENTRY(cuCtxGetCurrent);
	ENTRY(cuCtxSetCurrent);
	ENTRY(cuStreamGetFlags);
	ENTRY(cuMemsetD32Async);
	ENTRY(cuMemcpyDtoHAsync);
	ENTRY(cuEventRecord);
	ENTRY(cuStreamWaitEvent);
	ENTRY(cuStreamQuery);
	ENTRY(cuStreamSynchronize);
	ENTRY(cuStreamBeginCapture);
	ENTRY(cuStreamEndCapture);
	ENTRY(cuGraphDestroy);
	ENTRY(cuStreamCopyAttributes);
	ENTRY(cuStreamAddCallback);
	CUgraph graph;

	DRIVER(p_cuCtxSetCurrent(NULL));
	DRIVER(p_cuStreamGetFlags(stream, &flags));
	CHECK(flags == CU_STREAM_NON_BLOCKING);
	DRIVER(p_cuMemsetD32Async(memory, 77, 1, stream));
	DRIVER(p_cuEventRecord(event, stream));
	DRIVER(p_cuStreamWaitEvent(stream, event, 0));
	DRIVER(p_cuMemcpyDtoHAsync(&value, memory, sizeof(value), stream));
	DRIVER(p_cuStreamSynchronize(stream));
	CHECK(value == 77);
	DRIVER(p_cuStreamQuery(stream));
	DRIVER(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	DRIVER(p_cuMemsetD32Async(memory, 78, 1, stream));
	DRIVER(p_cuStreamEndCapture(stream, &graph));
	DRIVER(p_cuGraphDestroy(graph));
	/* The legacy stream is of no context by itself. */
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuMemsetD32Async(memory, 77, 1, NULL));
	DRIVER(p_cuStreamCopyAttributes(stream, stream));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuStreamCopyAttributes(stream, NULL));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuStreamCopyAttributes(stream, CU_STREAM_PER_THREAD));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, p_cuStreamAddCallback(NULL, called, NULL, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuStreamAddCallback(NULL, called, NULL, 1));
	DRIVER(p_cuCtxGetCurrent(&found));
	CHECK(!found);
}

static void attributes()
{
	CUstreamAttrValue value;
	int priority = 1, least, greatest;

	ENTRY(cuStreamGetAttribute);
	ENTRY(cuStreamSetAttribute);
	ENTRY(cuStreamGetPriority);
	ENTRY(cuCtxGetStreamPriorityRange);
	DRIVER(p_cuCtxGetStreamPriorityRange(&least, &greatest));
	memset(&value, 0xa5, sizeof(value));
	DRIVER(p_cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	CHECK(value.priority == 0 && (unsigned char)value.pad[sizeof(int)] == 0xa5);
	value.priority = greatest;
	DRIVER(p_cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	DRIVER(p_cuStreamGetPriority(stream, &priority));
	CHECK(priority == greatest);
	value.syncPolicy = (CUsynchronizationPolicy)0;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuStreamSetAttribute(
			stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
}

int main()
{
	float time;

	CUDA(cudaFree(0));
	ENTRY(cuStreamCreate);
	ENTRY(cuMemAlloc);
	ENTRY(cuEventCreate);
	ENTRY(cuEventElapsedTime);
	DRIVER(p_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DRIVER(p_cuMemAlloc(&memory, 4));
	DRIVER(p_cuEventCreate(&event, CU_EVENT_DEFAULT));
	/* An event that was never recorded has no time, whatever else is wrong. */
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE, p_cuEventElapsedTime(NULL, event, event));
	CUDA_IS(cudaErrorInvalidValue, cudaEventElapsedTime(NULL, event, event));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&time, event, event));
	std::thread(without_context).join();
	attributes();
	return 0;
}
