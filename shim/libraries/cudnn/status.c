/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses, their texts, and what the library says of itself. Its version is the agent's once
 * the program has started CUDA; before that, the newest that this front stands for.
 */
#include <stdio.h>
#include <string.h>

#include "shim/generated/cudnn_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/libraries/cudnn/cudnn.h"

#define NEWEST (VCUDA_ABI == 8 ? 8907u : 92800u)

static __thread char last_error[160];
static uint32_t known_version, known_cudart;

cudnnStatus_t cudnn_fault(cudnnStatus_t status, const char *text)
{
	size_t n = strlen(text);

	n = n < sizeof(last_error) ? n : sizeof(last_error) - 1;
	memcpy(last_error, text, n);
	last_error[n] = 0;
	return status;
}

/* What there is to say of a status that the front made of a CUresult. */
static const char *text_of(cudnnStatus_t status)
{
	switch (status) {
	case CUDNN_STATUS_BAD_PARAM: return "the agent refused an argument";
	case CUDNN_STATUS_ALLOC_FAILED: return "out of memory";
	case CUDNN_STATUS_NOT_SUPPORTED: return "not supported by the agent's cuDNN";
	case CUDNN_STATUS_INTERNAL_ERROR: return "the agent's cuDNN failed inside";
	case CUDNN_STATUS_NOT_INITIALIZED: return "no GPU, or no context";
	default: return "an earlier call failed on the GPU";
	}
}

cudnnStatus_t cudnn_status(CUresult status)
{
	int own = front_status(&cudnn_front, status);

	return own ? cudnn_fault(own, text_of(own)) : CUDNN_STATUS_SUCCESS;
}

void cudnn_explain(int status, const char *text)
{
	cudnn_fault(status, text ? text : text_of(status));
}

void cudnn_answered(int status)
{
	if (status / 1000 == CUDNN_STATUS_INTERNAL_ERROR / 1000)
		cudnn_fault(status, text_of(status == CUDNN_STATUS_ALLOC_FAILED
						    ? CUDNN_STATUS_ALLOC_FAILED
						    : CUDNN_STATUS_INTERNAL_ERROR));
}

int cudnn_says(int status)
{
	char text[96];

	switch (status) {
	case CUDNN_STATUS_SUCCESS: break;
	case CUDNN_STATUS_NOT_INITIALIZED:
		snprintf(text, sizeof(text),
			"no GPU, or the agent has no usable libcudnn.so.%d (its log says more)",
			VCUDA_ABI);
		cudnn_fault(status, text);
		break;
	case CUDNN_STATUS_BAD_PARAM: cudnn_fault(status, "no handle of cuDNN"); break;
	case CUDNN_STATUS_BAD_PARAM_NULL_POINTER: cudnn_fault(status, "handle is NULL"); break;
	default:
		snprintf(text, sizeof(text), "status %d of the agent's cuDNN", status);
		cudnn_fault(status, text);
	}
	return cudnn_app_status(status);
}

cudnnStatus_t cudnn_refused(unsigned call, const char *name, const char *reason)
{
	vcuda_front_refused(call, name, reason);
	return cudnn_app_status(cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, reason));
}

void cudnn_count(unsigned call)
{
	vcuda_count(call);
}

/* Asked of the agent once, and only of a session that is there already: a program may ask for
 * the version before it forks. */
static void learn_version(void)
{
	struct wire_vcudaCudnnVersion body = {.major = VCUDA_ABI};
	struct wire_vcudaCudnnVersion_reply reply = {0};
	uint32_t version = NEWEST;
	int count;

	if (__atomic_load_n(&known_version, __ATOMIC_ACQUIRE) || cuDeviceGetCount(&count) ||
		front_ask(OP_vcudaCudnnVersion, &body, sizeof(body), &reply, sizeof(reply)))
		return;
	/* An agent that has only 9 for a program of 8: it speaks 8 to the program. */
	if (!reply.status &&
		reply.version / (reply.version < 10000 ? 1000 : 10000) == VCUDA_ABI)
		version = reply.version;
	__atomic_store_n(&known_cudart, reply.cudart, __ATOMIC_RELAXED);
	__atomic_store_n(&known_version, version, __ATOMIC_RELEASE);
}

size_t hand_cudnnGetVersion(void)
{
	uint32_t version;

	learn_version();
	version = __atomic_load_n(&known_version, __ATOMIC_ACQUIRE);
	return version ? version : NEWEST;
}

/* The newest architecture that the library knows is the agent's affair: its GPU's is served. */
size_t hand_cudnnGetMaxDeviceVersion(void)
{
	return VCUDA_ABI == 8 ? 900 : 1210;
}

size_t hand_cudnnGetCudartVersion(void)
{
	uint32_t version;

	learn_version();
	version = __atomic_load_n(&known_cudart, __ATOMIC_ACQUIRE);
	return version ? version : VCUDA_ABI == 8 ? 12000 : 13000;
}

cudnnStatus_t hand_cudnnGetProperty(libraryPropertyType type, int *value)
{
	int version = (int)hand_cudnnGetVersion();
	int major = VCUDA_ABI == 8 ? 1000 : 10000;

	if (!value)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "value is NULL");
	switch (type) {
	case MAJOR_VERSION: *value = version / major; break;
	case MINOR_VERSION: *value = version % major / 100; break;
	case PATCH_LEVEL: *value = version % 100; break;
	default: return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no such property");
	}
	return CUDNN_STATUS_SUCCESS;
}

const char *hand_cudnnGetErrorString(cudnnStatus_t status)
{
	switch (VCUDA_ABI == 8 ? cudnn_status_from_8(status) : status) {
	case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
	case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
	case CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH:
		return "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH";
	case CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH:
		return "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH";
	case CUDNN_STATUS_DEPRECATED: return "CUDNN_STATUS_DEPRECATED";
	case CUDNN_STATUS_LICENSE_ERROR: return "CUDNN_STATUS_LICENSE_ERROR";
	case CUDNN_STATUS_RUNTIME_IN_PROGRESS: return "CUDNN_STATUS_RUNTIME_IN_PROGRESS";
	case CUDNN_STATUS_RUNTIME_FP_OVERFLOW: return "CUDNN_STATUS_RUNTIME_FP_OVERFLOW";
	case CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED:
		return "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED";
	case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
	case CUDNN_STATUS_BAD_PARAM_NULL_POINTER: return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
	case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
		return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
	case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
		return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
	case CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND: return "CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND";
	case CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT:
		return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
	case CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH:
		return "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH";
	case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
		return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
	case CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES:
		return "CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES";
	case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
		return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
	case CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH:
		return "CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH";
	case CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE:
		return "CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE";
	case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
	case CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN:
		return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
	case CUDNN_STATUS_NOT_SUPPORTED_SHAPE: return "CUDNN_STATUS_NOT_SUPPORTED_SHAPE";
	case CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE:
		return "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE";
	case CUDNN_STATUS_NOT_SUPPORTED_LAYOUT: return "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT";
	case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER:
		return "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER";
	case CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART:
		return "CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART";
	case CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH:
		return "CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH";
	case CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING:
		return "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING";
	case CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE:
		return "CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE";
	case CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT:
		return "CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT";
	case CUDNN_STATUS_NOT_SUPPORTED_PADDING: return "CUDNN_STATUS_NOT_SUPPORTED_PADDING";
	case CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM:
		return "CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM";
	case CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API:
		return "CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API";
	case CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE:
		return "CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE";
	case CUDNN_STATUS_INTERNAL_ERROR: return "CUDNN_STATUS_INTERNAL_ERROR";
	case CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED:
		return "CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED";
	case CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE:
		return "CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE";
	case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
		return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
	case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
		return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
	case CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM:
		return "CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM";
	case CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED:
		return "CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED";
	case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
	case CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER:
		return "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER";
	case CUDNN_STATUS_EXECUTION_FAILED_CUBLAS:
		return "CUDNN_STATUS_EXECUTION_FAILED_CUBLAS";
	case CUDNN_STATUS_EXECUTION_FAILED_CUDART:
		return "CUDNN_STATUS_EXECUTION_FAILED_CUDART";
	case CUDNN_STATUS_EXECUTION_FAILED_CURAND:
		return "CUDNN_STATUS_EXECUTION_FAILED_CURAND";
	case CUDNN_STATUS_INVALID_VALUE: return "CUDNN_STATUS_INVALID_VALUE";
	default: return "CUDNN_STATUS_UNKNOWN";
	}
}

void hand_cudnnGetLastErrorString(char *message, size_t max_size)
{
	size_t n = strlen(last_error);

	if (!message || !max_size)
		return;
	n = n < max_size ? n : max_size - 1;
	memcpy(message, last_error, n);
	message[n] = 0;
	last_error[0] = 0;
}

/* The library's messages are the agent's own log's; a callback is kept, and not called. */
static struct {
	unsigned mask;
	void *udata;
	cudnnCallback_t call;
} callback;

cudnnStatus_t hand_cudnnSetCallback(unsigned mask, void *udata, cudnnCallback_t fptr)
{
	callback.mask = mask;
	callback.udata = udata;
	callback.call = fptr;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetCallback(unsigned *mask, void **udata, cudnnCallback_t *fptr)
{
	if (mask)
		*mask = callback.mask;
	if (udata)
		*udata = callback.udata;
	if (fptr)
		*fptr = callback.call;
	return CUDNN_STATUS_SUCCESS;
}
