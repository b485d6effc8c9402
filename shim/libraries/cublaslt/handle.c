/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions, logging: what needs no descriptor.
 */
#include "shim/generated/cublaslt_hand.h"
#include "protocol/generated/cublaslt_ops.h"
#include "shim/libraries/cublaslt/cublaslt.h"

/* What this front stands for, where there is no agent to ask. */
#if VCUDA_ABI == 12
enum { MINOR = 9, PATCH = 1, CUDART = 12090 };
#else
enum { MINOR = 1, PATCH = 0, CUDART = 13000 };
#endif

/* Asked without a handle, so maybe before anything else: only a program that has a context
 * already asks the agent. */
size_t hand_cublasLtGetVersion(void)
{
	struct library_opened opened;
	CUcontext context = NULL;

	if (!cuCtxGetCurrent(&context) && context &&
		!vcuda_library_opened(
			&cublaslt_front, OP_cublasLtGetVersion, VCUDA_ABI, &opened))
		return opened.version;
	return VCUDA_ABI * 10000 + MINOR * 100 + PATCH;
}

size_t hand_cublasLtGetCudartVersion(void)
{
	return CUDART;
}

cublasStatus_t hand_cublasLtGetProperty(libraryPropertyType type, int *value)
{
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	switch (type) {
	case MAJOR_VERSION: *value = VCUDA_ABI; break;
	case MINOR_VERSION: *value = MINOR; break;
	case PATCH_LEVEL: *value = PATCH; break;
	default: return CUBLAS_STATUS_INVALID_VALUE;
	}
	return CUBLAS_STATUS_SUCCESS;
}

/* The library's own cache of heuristics, on the agent; the front's is beside it. */
cublasStatus_t hand_cublasLtHeuristicsCacheGetCapacity(size_t *capacity)
{
	struct wire_cublasLtHeuristicsCacheGetCapacity body = {.major = VCUDA_ABI};
	struct wire_cublasLtHeuristicsCacheGetCapacity_reply reply = {0};
	cublasStatus_t status;

	if (!capacity)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = vcuda_library_ask(&cublaslt_front, OP_cublasLtHeuristicsCacheGetCapacity,
		&body, sizeof(body), &reply, sizeof(reply),
		"cublasLtHeuristicsCacheGetCapacity");
	if (!status)
		*capacity = reply.capacity;
	return status;
}

cublasStatus_t hand_cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
	struct wire_cublasLtHeuristicsCacheSetCapacity body = {
		.major = VCUDA_ABI, .capacity = capacity};
	struct wire_cublasLtHeuristicsCacheSetCapacity_reply reply = {0};

	return vcuda_library_ask(&cublaslt_front, OP_cublasLtHeuristicsCacheSetCapacity, &body,
		sizeof(body), &reply, sizeof(reply), "cublasLtHeuristicsCacheSetCapacity");
}

/* No code of the library runs here that it could restrict. */
unsigned hand_cublasLtDisableCpuInstructionsSetMask(unsigned mask)
{
	static unsigned now;

	return __atomic_exchange_n(&now, mask, __ATOMIC_RELAXED);
}

/* Logging: the settings are taken, and there is nothing here to log. */
cublasStatus_t hand_cublasLtLoggerSetCallback(cublasLtLoggerCallback_t callback)
{
	(void)callback;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtLoggerSetFile(FILE *file)
{
	(void)file;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtLoggerOpenFile(const char *logFile)
{
	return vcuda_front_log_file(logFile) ? CUBLAS_STATUS_SUCCESS
					     : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t hand_cublasLtLoggerSetLevel(int level)
{
	return level < 0 || level > 5 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtLoggerSetMask(int mask)
{
	return mask < 0 || mask > 31 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtLoggerForceDisable(void)
{
	return CUBLAS_STATUS_SUCCESS;
}
