/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, versions, logging: what needs no descriptor.  A handle is a name and nothing else;
 * making one asks whether the agent has the library.
 */
#include "shim/generated/cublaslt_hand.h"
#include "protocol/generated/cublaslt_ops.h"
#include "protocol/wire/handle.h"
#include "shim/libraries/cublaslt/cublaslt.h"

/* What this front stands for, where there is no agent to ask. */
#if VCUDA_ABI == 12
enum { MINOR = 9, PATCH = 1, CUDART = 12090 };
#else
enum { MINOR = 1, PATCH = 0, CUDART = 13000 };
#endif

static char handle_object; /* what every handle stands for */
static int logged_once;	   /* that the agent lacks the library */

bool cublaslt_handle(cublasLtHandle_t handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;

	return vcuda_front_object(number, KIND_cublasLtHandle) ||
	       vcuda_front_object(number, KIND_cublasHandle);
}

cublasStatus_t cublaslt_refused(unsigned call, const char *name, const char *reason)
{
	return cublas_status(vcuda_front_refused(call, name, reason));
}

void cublaslt_count(unsigned call)
{
	vcuda_count(call);
}

static cublasStatus_t ask_version(struct wire_cublasLtGetVersion_reply *reply)
{
	struct wire_cublasLtGetVersion body = {.major = VCUDA_ABI};
	cublasStatus_t status = cublaslt_ask(
		OP_cublasLtGetVersion, &body, sizeof(body), reply, sizeof(*reply), 0, NULL);

	return status ? status : (cublasStatus_t)reply->status;
}

cublasStatus_t hand_cublasLtCreate(cublasLtHandle_t *lightHandle)
{
	struct wire_cublasLtGetVersion_reply reply = {0};
	cublasStatus_t status;
	uint64_t handle;

	if (!lightHandle)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = ask_version(&reply);
	if (status) {
		if (reply.status == CUBLAS_STATUS_NOT_INITIALIZED)
			vcuda_front_missing("cublasLtCreate",
				VCUDA_ABI == 12 ? "libcublasLt.so.12" : "libcublasLt.so.13",
				&logged_once);
		return status;
	}
	handle = vcuda_front_mint(KIND_cublasLtHandle, &handle_object);
	if (!handle)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*lightHandle = (cublasLtHandle_t)(uintptr_t)handle;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtDestroy(cublasLtHandle_t lightHandle)
{
	uint64_t number = (uint64_t)(uintptr_t)lightHandle;

	if (!vcuda_front_object(number, KIND_cublasLtHandle) || !vcuda_front_release(number))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return CUBLAS_STATUS_SUCCESS;
}

/* Asked without a handle, so maybe before anything else: only a program that has a context
 * already asks the agent. */
size_t hand_cublasLtGetVersion(void)
{
	struct wire_cublasLtGetVersion_reply reply;
	CUcontext context = NULL;

	if (!cuCtxGetCurrent(&context) && context && !ask_version(&reply))
		return reply.version;
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
	struct wire_cublasLtHeuristicsCacheGetCapacity_reply reply;
	CUresult status;

	if (!capacity)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = vcuda_front_context();
	if (!status)
		status = front_ask(OP_cublasLtHeuristicsCacheGetCapacity, &body, sizeof(body),
			&reply, sizeof(reply));
	if (status || reply.status)
		return status ? cublas_status(status) : (cublasStatus_t)reply.status;
	*capacity = reply.capacity;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
	struct wire_cublasLtHeuristicsCacheSetCapacity body = {
		.major = VCUDA_ABI, .capacity = capacity};
	struct wire_cublasLtHeuristicsCacheSetCapacity_reply reply;
	CUresult status = vcuda_front_context();

	if (!status)
		status = front_ask(OP_cublasLtHeuristicsCacheSetCapacity, &body, sizeof(body),
			&reply, sizeof(reply));
	return status ? cublas_status(status) : (cublasStatus_t)reply.status;
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
