/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written by hand of the cuBLAS front beside copies and products in groups: versions,
 * and settings that mean nothing here. Handles are generated (shim/generated/cublas_stubs.c
 * over shim/libraries/common/plain.h).
 */
#include <stdio.h>

#include "shim/generated/cublas_hand.h"
#include "shim/libraries/common/plain.h"

/* VCUDA_ABI: 12 or 13, whichever this front stands for. */
#define CUBLAS_MINOR (VCUDA_ABI == 12 ? 9 : 1)
#define CUBLAS_PATCH (VCUDA_ABI == 12 ? 1 : 0)

/* Asked without a handle too, before anything else (JAX): then it is the version of the agent's
 * library where that is known, else what this front stands for. */
cublasStatus_t hand_cublasGetVersion_v2(cublasHandle_t handle, int *to)
{
	const struct library_handle *h = vcuda_library_find(&cublas_front, handle);
	int known = (int)(h ? h->version : *cublas_front.version);

	if (!to)
		return CUBLAS_STATUS_INVALID_VALUE;
	*to = known ? known : VCUDA_ABI * 10000 + CUBLAS_MINOR * 100 + CUBLAS_PATCH;
	return CUBLAS_STATUS_SUCCESS;
}

/* Asked without a handle, so maybe before there is an agent: what this front stands for. */
cublasStatus_t hand_cublasGetProperty(libraryPropertyType type, int *value)
{
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	switch (type) {
	case MAJOR_VERSION: *value = VCUDA_ABI; break;
	case MINOR_VERSION: *value = CUBLAS_MINOR; break;
	case PATCH_LEVEL: *value = CUBLAS_PATCH; break;
	default: return CUBLAS_STATUS_INVALID_VALUE;
	}
	return CUBLAS_STATUS_SUCCESS;
}

size_t hand_cublasGetCudartVersion(void)
{
	return VCUDA_ABI == 12 ? 12090 : 13000;
}

/* The workspace is the agent's: the app's memory is not needed, and not looked at. */
cublasStatus_t hand_cublasSetWorkspace_v2(
	cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
	(void)workspace;
	(void)workspaceSizeInBytes;
	return vcuda_library_find(&cublas_front, handle) ? CUBLAS_STATUS_SUCCESS
							 : CUBLAS_STATUS_NOT_INITIALIZED;
}

/* Logging of the library is the agent's own affair: its file names mean nothing there. */
cublasStatus_t hand_cublasLoggerConfigure(
	int logIsOn, int logToStdOut, int logToStdErr, const char *logFileName)
{
	(void)logToStdOut;
	(void)logToStdErr;
	(void)logFileName;
	return logIsOn ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

static cublasLogCallback log_callback;

cublasStatus_t hand_cublasSetLoggerCallback(cublasLogCallback userCallback)
{
	__atomic_store_n(&log_callback, userCallback, __ATOMIC_RELAXED);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasGetLoggerCallback(cublasLogCallback *userCallback)
{
	if (!userCallback)
		return CUBLAS_STATUS_INVALID_VALUE;
	*userCallback = __atomic_load_n(&log_callback, __ATOMIC_RELAXED);
	return CUBLAS_STATUS_SUCCESS;
}

/* An error handler that the app may call; it only tells. */
void hand_cublasXerbla(const char *srName, int info)
{
	char text[96];

	snprintf(text, sizeof(text), "cublasXerbla: %.32s: parameter %d has an illegal value",
		srName ? srName : "?", info);
	vcuda_front_debug(text);
}
