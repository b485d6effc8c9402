/* SPDX-License-Identifier: Apache-2.0
 *
 * See plain.h.  A handle that works on the host (curandCreateGeneratorHost) works on the
 * agent's: the library there fills memory of the worker, which is copied by way of device
 * memory of the program's, as any bytes are.
 */
#include "shim/libraries/common/plain.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int vcuda_library_status(const struct library_front *front, CUresult status)
{
	switch ((int)status) {
	case CUDA_SUCCESS: return 0;
	case CUDA_ERROR_OUT_OF_MEMORY: return front->memory;
	case CUDA_ERROR_INVALID_HANDLE: return front->handle;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_NOT_SUPPORTED: /* an agent that is too old for the library */
	case CUDA_ERROR_SYSTEM_NOT_READY: return front->missing;
	default: return front->lost;
	}
}

EXPORT void vcuda_library_begin(struct library_call *call, const struct library_front *front,
	unsigned number, void *handle, struct library_state *state)
{
	*call = (struct library_call){.front = front, .number = number};
	if (!handle) {
		call->status = front->handle; /* but for what makes one */
		return;
	}
	call->handle = vcuda_front_object((uint64_t)(uintptr_t)handle, front->kind);
	if (call->handle)
		*state = call->handle->state;
	else
		call->status = front->handle;
}

EXPORT void vcuda_library_keeps(struct library_call *call, unsigned word, uint32_t value)
{
	call->keeps = true;
	call->word = word;
	call->kept = value;
}

EXPORT void vcuda_library_fills(
	struct library_call *call, uint64_t *address, void *to, uint64_t count, size_t each)
{
	CUresult status;

	*address = (uint64_t)(uintptr_t)to;
	if (call->status || !call->handle->state.word[LIBRARY_STATE_ON_HOST])
		return;
	*address = 0;
	if (__builtin_mul_overflow(count, each, &call->bytes)) {
		call->status = call->front->memory;
		return;
	}
	call->to = to;
	status = vcuda_front_context();
	if (!status && call->bytes)
		status = cuMemAlloc(&call->between, call->bytes);
	call->status = vcuda_library_status(call->front, status);
	*address = call->between;
}

/* What the agent filled becomes the program's; the memory between goes. */
static void library_fetch(struct library_call *call)
{
	CUresult status = CUDA_SUCCESS;

	if (!call->between)
		return;
	if (!call->status)
		status = cuMemcpyDtoH(call->to, call->between, call->bytes);
	if (!call->status)
		call->status = vcuda_library_status(call->front, status);
	cuMemFree(call->between);
}

EXPORT int vcuda_library_send(
	struct library_call *call, uint16_t op, void *body, size_t body_bytes, uint32_t key_to)
{
	struct library_handle *handle = call->handle;
	struct library_reply reply = {0};
	struct front_frame frame = {
		.call = call->number,
		.op = op,
		.learned = !call->between,
		.status_first = true,
		.key_from = LIBRARY_KEY_FROM,
		.key_to = key_to,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = offsetof(struct library_state, stream),
		.reply = &reply,
		.reply_bytes = sizeof(reply),
	};

	if (!call->status) {
		frame.stream = handle->stream;
		call->status = vcuda_library_status(call->front, vcuda_front_send(&frame));
		if (!call->status)
			call->status = (int)reply.status;
	} else {
		vcuda_count(call->number);
	}
	if (!call->status && call->keeps)
		handle->state.word[call->word] = call->kept;
	library_fetch(call);
	return call->status;
}

EXPORT int vcuda_library_ask(const struct library_front *front, uint16_t op, const void *body,
	size_t body_bytes, void *reply, size_t reply_bytes, const char *name)
{
	CUresult status = vcuda_front_context();
	struct library_reply first;

	if (!status)
		status = front_ask(op, body, body_bytes, reply, reply_bytes);
	if (status)
		return vcuda_library_status(front, status);
	memcpy(&first, reply, sizeof(first));
	if (first.absent)
		vcuda_front_missing(name, front->name, front->logged_once);
	return (int)first.status;
}

EXPORT int vcuda_library_create(struct library_call *call, uint16_t op, void *body,
	size_t body_bytes, const char *name, bool on_host, void **handle)
{
	const struct library_front *front = call->front;
	struct library_reply reply = {0};
	struct library_handle *h;
	int status;

	vcuda_count(call->number);
	if (!handle)
		return front->handle;
	status = vcuda_library_status(front, vcuda_front_context());
	if (status)
		return status;
	h = calloc(1, sizeof(*h));
	if (!h)
		return front->memory;
	if (call->keeps)
		h->state.word[call->word] = call->kept;
	h->state.word[LIBRARY_STATE_ON_HOST] = on_host;
	h->state.handle = vcuda_front_mint(front->kind, h);
	memcpy(body, &h->state, sizeof(h->state));
	status = h->state.handle ? vcuda_library_ask(front, op, body, body_bytes, &reply,
					   sizeof(reply), name)
				 : front->memory;
	if (status) {
		vcuda_front_release(h->state.handle);
		free(h);
		return status;
	}
	*handle = (void *)(uintptr_t)h->state.handle;
	return 0;
}

EXPORT int vcuda_library_destroy(
	struct library_call *call, uint16_t op, void *body, size_t body_bytes)
{
	vcuda_count(call->number);
	if (call->status || !vcuda_front_release(call->handle->state.handle))
		return call->front->handle;
	free(call->handle);
	return vcuda_library_status(call->front, front_post(op, body, body_bytes));
}

EXPORT int vcuda_library_stream(
	const struct library_front *front, unsigned number, void *handle, CUstream stream)
{
	struct library_handle *h = vcuda_front_object((uint64_t)(uintptr_t)handle, front->kind);

	vcuda_count(number);
	if (!h)
		return front->handle;
	h->stream = stream;
	return 0;
}
