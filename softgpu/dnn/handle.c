/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, jobs in streams, and what the library says of itself.
 */
#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdatomic.h>
#include <stdio.h>

#include "softgpu/dnn/dnn.h"
#include "softgpu/driver/task.h"

#define DNN_MAJOR 9
#define DNN_MINOR 28

void dnn_fail(struct dnn_job *job)
{
	job->handle->failed = true;
}

void *dnn_reach(struct dnn_job *job, const void *at, uint64_t bytes)
{
	if (at && cuSoftgpuTaskReaches((uint64_t)(uintptr_t)at, bytes))
		return (void *)(uintptr_t)at;
	dnn_fail(job);
	return NULL;
}

void *dnn_job_new(
	struct dnn_handle *handle, void (*run)(struct dnn_job *), size_t size, int *status)
{
	struct dnn_job *job;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!handle)
		return NULL;
	*status = CUDNN_STATUS_EXECUTION_FAILED;
	if (handle->failed)
		return NULL;
	*status = CUDNN_STATUS_ALLOC_FAILED;
	job = calloc(1, size);
	if (!job)
		return NULL;
	job->run = run;
	job->handle = handle;
	atomic_fetch_add(&handle->refs, 1);
	*status = CUDNN_STATUS_SUCCESS;
	return job;
}

static void job_run(void *argument)
{
	struct dnn_job *job = argument;

	cuCtxSetCurrent(job->context);
	cuSoftgpuTaskBegin();
	job->run(job);
	cuSoftgpuTaskEnd();
}

void dnn_handle_drop(struct dnn_handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) == 1)
		free(handle);
}

void dnn_job_drop(struct dnn_job *job)
{
	if (job->drop)
		job->drop(job);
	dnn_handle_drop(job->handle);
	free(job);
}

static void job_free(void *argument)
{
	dnn_job_drop(argument);
}

static void job_run_and_free(void *argument)
{
	job_run(argument);
	job_free(argument);
}

/* In a graph the job runs as often as the graph does, and goes with it. */
static bool job_captured(struct dnn_job *job, bool *failed)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	CUstream stream = job->handle->stream;
	CUuserObject object;
	CUgraph graph;

	*failed = false;
	if (cuStreamGetCaptureInfo(stream, &capturing, NULL, &graph, NULL, NULL, NULL) ||
		capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return false;
	if (cuUserObjectCreate(&object, job, job_free, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		job_free(job);
		*failed = true;
	} else {
		*failed = cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
		if (*failed)
			cuUserObjectRelease(object, 1);
		else
			*failed = cuLaunchHostFunc(stream, job_run, job);
	}
	return true;
}

int dnn_submit(struct dnn_job *job)
{
	bool failed;

	if (cuCtxGetCurrent(&job->context))
		failed = true;
	else if (job_captured(job, &failed))
		return failed ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
	else
		failed = cuLaunchHostFunc(job->handle->stream, job_run_and_free, job);
	if (!failed)
		return CUDNN_STATUS_SUCCESS;
	job_free(job);
	return CUDNN_STATUS_EXECUTION_FAILED;
}

struct dnn_handle *dnn_handle_of(CUstream stream)
{
	struct dnn_handle *handle = calloc(1, sizeof(*handle));

	if (handle) {
		handle->refs = 1;
		handle->stream = stream;
	}
	return handle;
}

DNN_CALL(cudnnCreate, struct dnn_handle **handle)
{
	CUcontext context;

	if (!handle)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (cuCtxGetCurrent(&context) || !context)
		return CUDNN_STATUS_NOT_INITIALIZED;
	*handle = calloc(1, sizeof(**handle));
	if (!*handle)
		return CUDNN_STATUS_ALLOC_FAILED;
	(*handle)->refs = 1;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnDestroy, struct dnn_handle *handle)
{
	if (!handle)
		return CUDNN_STATUS_SUCCESS;
	/* As NVIDIA's does; where it cannot be done, jobs still name the handle, which stays.
	 */
	cuCtxSynchronize();
	dnn_handle_drop(handle);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetStream, struct dnn_handle *handle, CUstream stream)
{
	if (!handle)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetStream, struct dnn_handle *handle, CUstream *stream)
{
	if (!handle || !stream)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*stream = handle->stream;
	return CUDNN_STATUS_SUCCESS;
}

__attribute__((visibility("default"))) size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
	return DNN_MAJOR * 10000 + DNN_MINOR * 100;
}

__attribute__((visibility("default"))) size_t cudnnGetCudartVersion(void);
size_t cudnnGetCudartVersion(void)
{
	return CUDART_VERSION;
}

__attribute__((visibility("default"))) size_t cudnnGetMaxDeviceVersion(void);
size_t cudnnGetMaxDeviceVersion(void)
{
	return 800; /* the software GPU's compute capability, 8.0 */
}

DNN_CALL(cudnnGetProperty, libraryPropertyType type, int *value)
{
	if (!value)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	switch (type) {
	case MAJOR_VERSION: *value = DNN_MAJOR; break;
	case MINOR_VERSION: *value = DNN_MINOR; break;
	case PATCH_LEVEL: *value = 0; break;
	default: return CUDNN_STATUS_BAD_PARAM;
	}
	return CUDNN_STATUS_SUCCESS;
}

__attribute__((visibility("default"))) const char *cudnnGetErrorString(int status);
const char *cudnnGetErrorString(int status)
{
	switch (status) {
#define NAME(N)                                                                                \
	case CUDNN_STATUS_##N: return "CUDNN_STATUS_" #N;
		NAME(SUCCESS)
		NAME(NOT_INITIALIZED)
		NAME(BAD_PARAM)
		NAME(BAD_PARAM_NULL_POINTER)
		NAME(BAD_PARAM_NOT_FINALIZED)
		NAME(BAD_PARAM_OUT_OF_BOUND)
		NAME(BAD_PARAM_SIZE_INSUFFICIENT)
		NAME(BAD_PARAM_SHAPE_MISMATCH)
		NAME(BAD_PARAM_ATTRIBUTE_TYPE)
		NAME(BAD_PARAM_DESCRIPTOR_TYPE)
		NAME(NOT_SUPPORTED)
		NAME(NOT_SUPPORTED_GRAPH_PATTERN)
		NAME(NOT_SUPPORTED_SHAPE)
		NAME(NOT_SUPPORTED_DATA_TYPE)
		NAME(EXECUTION_FAILED)
#undef NAME
	/* Its name has changed between releases. */
	case CUDNN_STATUS_ALLOC_FAILED:
		return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
	default: return "CUDNN_UNKNOWN_STATUS";
	}
}

__attribute__((visibility("default"))) void cudnnGetLastErrorString(char *text, size_t size);
void cudnnGetLastErrorString(char *text, size_t size)
{
	/* Statuses say all that this library has to say. */
	if (text && size)
		text[0] = 0;
}
