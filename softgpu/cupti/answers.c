/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions: the time, the version, the numbers by which records name things, the names of
 * results.
 */
#include <time.h>

#include "softgpu/cupti/activity.h"
#include "softgpu/driver/work/work.h"

#define VERSION 130001 /* of CUDA 13.0.1's CUPTI */

static CUptiResult result_of(CUresult ret)
{
	switch (ret) {
	case CUDA_SUCCESS: return CUPTI_SUCCESS;
	case CUDA_ERROR_NOT_INITIALIZED: return CUPTI_ERROR_NOT_INITIALIZED;
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED: return CUPTI_ERROR_INVALID_CONTEXT;
	case CUDA_ERROR_INVALID_HANDLE: return CUPTI_ERROR_INVALID_STREAM;
	case CUDA_ERROR_OUT_OF_MEMORY: return CUPTI_ERROR_OUT_OF_MEMORY;
	case CUDA_ERROR_INVALID_VALUE: return CUPTI_ERROR_INVALID_PARAMETER;
	default: return CUPTI_ERROR_UNKNOWN;
	}
}

CUPTI_CALL(cuptiGetTimestamp, uint64_t *timestamp)
{
	struct timespec time;

	if (!timestamp)
		return CUPTI_ERROR_INVALID_PARAMETER;
	clock_gettime(CLOCK_REALTIME, &time);
	*timestamp = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return CUPTI_SUCCESS;
}

CUPTI_CALL(cuptiGetVersion, uint32_t *version)
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = VERSION;
	return CUPTI_SUCCESS;
}

CUPTI_CALL(cuptiGetContextId, CUcontext context, uint32_t *contextId)
{
	uint32_t device;

	if (!contextId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return result_of(cuSoftgpuProfileContext(context, contextId, &device));
}

CUPTI_CALL(cuptiGetDeviceId, CUcontext context, uint32_t *deviceId)
{
	uint32_t number;

	if (!deviceId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return result_of(cuSoftgpuProfileContext(context, &number, deviceId));
}

CUPTI_CALL(cuptiGetStreamIdEx, CUcontext context, CUstream stream, uint8_t perThreadStream,
	uint32_t *streamId)
{
	if (!streamId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return result_of(cuSoftgpuProfileStream(context, stream, perThreadStream, streamId));
}

CUPTI_CALL(cuptiGetStreamId, CUcontext context, CUstream stream, uint32_t *streamId)
{
	if (!streamId)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return result_of(cuSoftgpuProfileStream(context, stream, false, streamId));
}

CUPTI_CALL(cuptiGetGraphId, CUgraph graph, uint32_t *pId)
{
	return pId ? result_of(cuSoftgpuProfileGraph(graph, pId))
		   : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_CALL(cuptiGetGraphExecId, CUgraphExec graphExec, uint32_t *pId)
{
	return pId ? result_of(cuSoftgpuProfileGraphExec(graphExec, pId))
		   : CUPTI_ERROR_INVALID_PARAMETER;
}

static const char *const results[] = {
	"CUPTI_SUCCESS",
	"CUPTI_ERROR_INVALID_PARAMETER",
	"CUPTI_ERROR_INVALID_DEVICE",
	"CUPTI_ERROR_INVALID_CONTEXT",
	"CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID",
	"CUPTI_ERROR_INVALID_EVENT_ID",
	"CUPTI_ERROR_INVALID_EVENT_NAME",
	"CUPTI_ERROR_INVALID_OPERATION",
	"CUPTI_ERROR_OUT_OF_MEMORY",
	"CUPTI_ERROR_HARDWARE",
	"CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
	"CUPTI_ERROR_API_NOT_IMPLEMENTED",
	"CUPTI_ERROR_MAX_LIMIT_REACHED",
	"CUPTI_ERROR_NOT_READY",
	"CUPTI_ERROR_NOT_COMPATIBLE",
	"CUPTI_ERROR_NOT_INITIALIZED",
	"CUPTI_ERROR_INVALID_METRIC_ID",
	"CUPTI_ERROR_INVALID_METRIC_NAME",
	"CUPTI_ERROR_QUEUE_EMPTY",
	"CUPTI_ERROR_INVALID_HANDLE",
	"CUPTI_ERROR_INVALID_STREAM",
	"CUPTI_ERROR_INVALID_KIND",
	"CUPTI_ERROR_INVALID_EVENT_VALUE",
	"CUPTI_ERROR_DISABLED",
	"CUPTI_ERROR_INVALID_MODULE",
	"CUPTI_ERROR_INVALID_METRIC_VALUE",
	"CUPTI_ERROR_HARDWARE_BUSY",
	"CUPTI_ERROR_NOT_SUPPORTED",
	"CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
	"CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
	"CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
	"CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
	"CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED",
	"CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
	"CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE",
	"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
	NULL, /* as NVIDIA's: 36 and 37 have no name */
	NULL,
	"CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
	"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
	"CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
	"CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
	"CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
	"CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
	"CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
	"CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
	"CUPTI_ERROR_INVALID_CHIP_NAME",
};

CUPTI_CALL(cuptiGetResultString, CUptiResult result, const char **str)
{
	const char *name = NULL;

	if (!str)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (result >= 0 && (size_t)result < sizeof(results) / sizeof(*results))
		name = results[result];
	else if (result == CUPTI_ERROR_UNKNOWN)
		name = "CUPTI_ERROR_UNKNOWN";
	*str = name ? name : "<unknown>";
	return name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
