/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles and their state, all of it local but for making one: the agent's library is opened
 * then, and says its version or that it is not there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "shim/libraries/cublas/forms.h"
#include "shim/generated/cublas_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/handle.h"
#include "shim/libraries/cublas/cublas.h"

/* VCUDA_ABI: 12 or 13, whichever this front stands for. */
#define CUBLAS_SONAME (VCUDA_ABI == 12 ? "libcublas.so.12" : "libcublas.so.13")
#define CUBLAS_MINOR (VCUDA_ABI == 12 ? 9 : 1)
#define CUBLAS_PATCH (VCUDA_ABI == 12 ? 1 : 0)

static int logged_once;	    /* that the agent lacks the library */
static _Atomic int version; /* the agent's library's, once a handle was made */

cublasStatus_t hand_cublasCreate_v2(cublasHandle_t *handle)
{
	struct wire_vcudaCublasOpen body = {.major = VCUDA_ABI};
	struct wire_vcudaCublasOpen_reply reply = {0};
	struct cublas_handle *h;
	CUresult status;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = vcuda_front_context();
	if (status)
		return cublas_status(status);
	h = calloc(1, sizeof(*h));
	if (!h)
		return CUBLAS_STATUS_ALLOC_FAILED;
	h->number = vcuda_front_mint(KIND_cublasHandle, h);
	h->state.handle = h->number;
	body.handle = h->number;
	status = h->number ? front_ask(OP_vcudaCublasOpen, &body, sizeof(body), &reply,
				     sizeof(reply))
			   : CUDA_ERROR_OUT_OF_MEMORY;
	if (status || reply.status) {
		if (!status && reply.status == CUBLAS_STATUS_NOT_INITIALIZED)
			vcuda_front_missing("cublasCreate", CUBLAS_SONAME, &logged_once);
		vcuda_front_release(h->number);
		free(h);
		return status ? cublas_status(status) : (cublasStatus_t)reply.status;
	}
	h->version = version = (int)reply.version;
	h->emulation[CUBLAS_EMULATION_SPECIAL_VALUES] = 0xffff; /* all of them */
	*handle = (cublasHandle_t)(uintptr_t)h->number;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasDestroy_v2(cublasHandle_t handle)
{
	struct cublas_handle *h = cublas_find(handle);
	struct wire_vcudaCublasClose body = {.handle = (uint64_t)(uintptr_t)handle};

	if (!h || !vcuda_front_release(h->number))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	free(h);
	return cublas_status(front_post(OP_vcudaCublasClose, &body, sizeof(body)));
}

/* Asked without a handle too, before anything else (JAX): then it is the version of the agent's
 * library where that is known, else what this front stands for. */
cublasStatus_t hand_cublasGetVersion_v2(cublasHandle_t handle, int *to)
{
	struct cublas_handle *h = cublas_find(handle);
	int known = h ? h->version : version;

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

/* The workspace is the agent's: the app's memory is not needed. */
cublasStatus_t hand_cublasSetWorkspace_v2(
	cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
	(void)workspace;
	(void)workspaceSizeInBytes;
	return cublas_find(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t hand_cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)
{
	struct cublas_handle *h = cublas_find(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	h->stream = streamId;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *streamId)
{
	struct cublas_handle *h = cublas_find(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!streamId)
		return CUBLAS_STATUS_INVALID_VALUE;
	*streamId = h->stream;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_state_get(cublasHandle_t handle, int *value, size_t field)
{
	struct cublas_handle *h = cublas_find(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = *(const int *)((const char *)&h->state + field);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_state_set(cublasHandle_t handle, int value, size_t field, int largest)
{
	struct cublas_handle *h = cublas_find(handle);

	if (!h)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (value < 0 || value > largest)
		return CUBLAS_STATUS_INVALID_VALUE;
	*(int *)((char *)&h->state + field) = value;
	return CUBLAS_STATUS_SUCCESS;
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
