/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the cuBLAS front: see cublas.h.
 */
#include "shim/libraries/cublas/cublas.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/wire/handle.h"

cublasStatus_t cublas_refused(unsigned call, const char *name, const char *reason)
{
	return cublas_status(vcuda_front_refused(call, name, reason));
}

void cublas_count(unsigned call)
{
	vcuda_count(call);
}

struct cublas_handle *cublas_find(cublasHandle_t handle)
{
	return vcuda_front_object((uint64_t)(uintptr_t)handle, KIND_cublasHandle);
}

static bool on_device(const struct cublas_call *call)
{
	return call->handle->state.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
}

static void fault(struct cublas_call *call, cublasStatus_t status)
{
	if (!call->status)
		call->status = status;
}

void cublas_begin(struct cublas_call *call, unsigned number, cublasHandle_t handle,
	struct cublas_state *state)
{
	*call = (struct cublas_call){.handle = cublas_find(handle), .call = number};
	if (!call->handle) {
		call->status = CUBLAS_STATUS_NOT_INITIALIZED;
		return;
	}
	*state = call->handle->state;
}

void cublas_scalar(struct cublas_call *call, uint64_t *words, const void *value, uint32_t bytes)
{
	if (call->status)
		return;
	if (!value)
		fault(call, CUBLAS_STATUS_INVALID_VALUE);
	else if (on_device(call))
		words[0] = (uint64_t)(uintptr_t)value;
	else if (bytes && bytes <= CUBLAS_VALUE_WORDS * sizeof(*words))
		memcpy(words, value, bytes);
	else
		fault(call, CUBLAS_STATUS_NOT_SUPPORTED);
}

void cublas_inout(struct cublas_call *call, uint64_t *words, void *value, uint32_t bytes)
{
	cublas_scalar(call, words, value, bytes);
	cublas_result(call, words, value);
}

void cublas_result(struct cublas_call *call, uint64_t *words, void *result)
{
	if (call->status)
		return;
	if (!result)
		fault(call, CUBLAS_STATUS_INVALID_VALUE);
	else if (on_device(call))
		words[0] = (uint64_t)(uintptr_t)result;
	else
		call->awaited = true;
}

cublasStatus_t cublas_send(struct cublas_call *call, uint16_t op, const void *body,
	size_t body_bytes, uint32_t key_to, void *reply, size_t reply_bytes)
{
	struct front_frame frame = {
		.call = call->call,
		.op = op,
		.learned = !call->awaited,
		.key_from = CUBLAS_KEY_FROM,
		.key_to = key_to,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = offsetof(struct cublas_state, stream),
		.reply = reply,
		.reply_bytes = reply_bytes,
	};

	if (reply)
		memset(reply, 0, reply_bytes);
	if (call->status)
		return call->status;
	frame.stream = call->handle->stream;
	call->status = cublas_status(vcuda_front_send(&frame));
	return call->status;
}

void cublas_give(
	const struct cublas_call *call, void *to, const uint64_t *words, uint32_t bytes)
{
	if (!call->status && !on_device(call))
		memcpy(to, words, bytes);
}

bool cublas_on_device(cublasHandle_t handle)
{
	const struct cublas_handle *h = cublas_find(handle);

	return h && h->state.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
}
