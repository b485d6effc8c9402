/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked: versions, texts, numbers of contexts, streams and graphs, devices.
 */
#include <string.h>

#include "shim/libraries/cupti/cupti.h"

__thread unsigned cupti_own __attribute__((tls_model("initial-exec")));
static __thread CUptiResult last;

CUptiResult cupti_result(CUptiResult result)
{
	last = result;
	return result;
}

EXPORT CUptiResult cuptiGetLastError(void)
{
	CUptiResult result = last;

	COUNT(cuptiGetLastError);
	last = CUPTI_SUCCESS;
	return result;
}

EXPORT CUptiResult cuptiGetVersion(uint32_t *version)
{
	COUNT(cuptiGetVersion);
	if (!version)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*version = VCUDA_ABI == 12 ? 28 : 130001;
	return CUPTI_SUCCESS;
}

/* --- texts -------------------------------------------------------------------------------- */

static const char *const results[] = {
	[0] = "CUPTI_SUCCESS",
	[1] = "CUPTI_ERROR_INVALID_PARAMETER",
	[2] = "CUPTI_ERROR_INVALID_DEVICE",
	[3] = "CUPTI_ERROR_INVALID_CONTEXT",
	[4] = "CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID",
	[5] = "CUPTI_ERROR_INVALID_EVENT_ID",
	[6] = "CUPTI_ERROR_INVALID_EVENT_NAME",
	[7] = "CUPTI_ERROR_INVALID_OPERATION",
	[8] = "CUPTI_ERROR_OUT_OF_MEMORY",
	[9] = "CUPTI_ERROR_HARDWARE",
	[10] = "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
	[11] = "CUPTI_ERROR_API_NOT_IMPLEMENTED",
	[12] = "CUPTI_ERROR_MAX_LIMIT_REACHED",
	[13] = "CUPTI_ERROR_NOT_READY",
	[14] = "CUPTI_ERROR_NOT_COMPATIBLE",
	[15] = "CUPTI_ERROR_NOT_INITIALIZED",
	[16] = "CUPTI_ERROR_INVALID_METRIC_ID",
	[17] = "CUPTI_ERROR_INVALID_METRIC_NAME",
	[18] = "CUPTI_ERROR_QUEUE_EMPTY",
	[19] = "CUPTI_ERROR_INVALID_HANDLE",
	[20] = "CUPTI_ERROR_INVALID_STREAM",
	[21] = "CUPTI_ERROR_INVALID_KIND",
	[22] = "CUPTI_ERROR_INVALID_EVENT_VALUE",
	[23] = "CUPTI_ERROR_DISABLED",
	[24] = "CUPTI_ERROR_INVALID_MODULE",
	[25] = "CUPTI_ERROR_INVALID_METRIC_VALUE",
	[26] = "CUPTI_ERROR_HARDWARE_BUSY",
	[27] = "CUPTI_ERROR_NOT_SUPPORTED",
	[28] = "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
	[29] = "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
	[30] = "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
	[31] = "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
	[32] = "CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED",
	[33] = "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
	[34] = "CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE",
	[35] = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
	[36] = "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
	[37] = "CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE",
	[38] = "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
	[39] = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
	[40] = "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
	[41] = "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
	[42] = "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
	[43] = "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
	[44] = "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
	[45] = "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
	[46] = "CUPTI_ERROR_INVALID_CHIP_NAME",
};

static CUptiResult text_of(CUptiResult result, const char **text)
{
	if (result == CUPTI_ERROR_UNKNOWN) {
		*text = "CUPTI_ERROR_UNKNOWN";
		return CUPTI_SUCCESS;
	}
	if (result >= 0 && (size_t)result < sizeof(results) / sizeof(results[0])) {
		*text = results[result];
		return CUPTI_SUCCESS;
	}
	*text = "<unknown>";
	return CUPTI_ERROR_INVALID_PARAMETER;
}

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
	COUNT(cuptiGetResultString);
	return cupti_result(str ? text_of(result, str) : CUPTI_ERROR_INVALID_PARAMETER);
}

EXPORT CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **str)
{
	COUNT(cuptiGetErrorMessage);
	if (!str)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	(void)text_of(result, str);
	return CUPTI_SUCCESS;
}

/* --- numbers ------------------------------------------------------------------------------ */

EXPORT CUptiResult cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
	COUNT(cuptiGetContextId);
	if (!contextId)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*contextId = number_context(context);
	return cupti_result(*contextId ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT);
}

static CUptiResult stream_number_of(
	CUcontext context, CUstream stream, uint8_t own, uint32_t *number)
{
	if (!number)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!stream && own)
		stream = CU_STREAM_PER_THREAD;
	*number = number_stream(context, stream);
	return *number ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

EXPORT CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
	COUNT(cuptiGetStreamId);
	return cupti_result(stream_number_of(context, stream, 0, streamId));
}

EXPORT CUptiResult cuptiGetStreamIdEx(
	CUcontext context, CUstream stream, uint8_t perThreadStream, uint32_t *streamId)
{
	COUNT(cuptiGetStreamIdEx);
	return cupti_result(stream_number_of(context, stream, perThreadStream, streamId));
}

static CUptiResult graph_number(enum profile_id what, const void *handle, uint32_t *number)
{
	uint64_t id = 0;

	if (!number || !handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (vcuda_profile_id(what, NULL, handle, &id))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*number = (uint32_t)id;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *pId)
{
	COUNT(cuptiGetGraphId);
	return cupti_result(graph_number(PROFILE_ID_GRAPH, graph, pId));
}

EXPORT CUptiResult cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t *pId)
{
	COUNT(cuptiGetGraphExecId);
	return cupti_result(graph_number(PROFILE_ID_GRAPH_EXEC, graphExec, pId));
}

/* The agent's nodes have other handles than the program's. */
EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *nodeId)
{
	COUNT(cuptiGetGraphNodeId);
	return cupti_result(
		node && nodeId ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_ERROR_INVALID_PARAMETER);
}

#if VCUDA_ABI == 13
EXPORT CUptiResult cuptiGetCudaEventId(CUevent event, uint32_t *pEventId)
{
	uint64_t recording;

	COUNT(cuptiGetCudaEventId);
	if (!event || !pEventId)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*pEventId = number_event(event, false, &recording);
	return cupti_result(*pEventId ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY);
}

EXPORT CUptiResult cuptiIsTracingSessionRunning(uint8_t *isRunning)
{
	COUNT(cuptiIsTracingSessionRunning);
	if (!isRunning)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*isRunning = activity_any() || callback_any();
	return CUPTI_SUCCESS;
}
#endif

#if VCUDA_ABI == 12
EXPORT CUptiResult cuptiDeviceGetTimestamp(CUcontext context, uint64_t *timestamp)
{
	COUNT(cuptiDeviceGetTimestamp);
	(void)context, (void)timestamp;
	return cupti_result(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);
}
#endif
