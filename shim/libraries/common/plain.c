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

static struct library_handle *library_find(
	const struct library_front *front, const void *handle)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;
	struct library_handle *h = vcuda_front_object(number, front->kind);

	return h || !front->also ? h : vcuda_front_object(number, front->also);
}

EXPORT struct library_handle *vcuda_library_find(
	const struct library_front *front, const void *handle)
{
	return library_find(front, handle);
}

static bool library_says(const struct library_handle *handle, uint32_t word)
{
	return handle && word != LIBRARY_NO_WORD && handle->state.word[word] != 0;
}

static bool library_on_device(const struct library_call *call)
{
	return library_says(call->handle, call->front->pointer_mode);
}

static int library_invalid(const struct library_front *front)
{
	return front_status(front, CUDA_ERROR_INVALID_HANDLE);
}

EXPORT void vcuda_library_begin(struct library_call *call, const struct library_front *front,
	unsigned number, const void *handle, struct library_state *state)
{
	*call = (struct library_call){.front = front, .number = number};
	call->handle = handle ? library_find(front, handle) : NULL;
	if (call->handle)
		*state = call->handle->state;
	else
		call->status = front->statuses.handle; /* but for what makes one */
}

EXPORT void vcuda_library_keeps(struct library_call *call, uint32_t word, uint64_t value)
{
	call->keeps = true;
	call->word = word;
	call->kept = value;
}

static void library_keep(struct library_handle *handle, uint32_t word, uint64_t value)
{
	if (word < LIBRARY_STATE_WORDS)
		handle->state.word[word] = (uint32_t)value;
	else
		handle->kept[word - LIBRARY_STATE_WORDS] = value;
}

EXPORT void vcuda_library_scalar(
	struct library_call *call, uint64_t *words, const void *value, uint32_t bytes)
{
	if (call->status)
		return;
	if (!value)
		call->status = library_invalid(call->front);
	else if (library_on_device(call))
		words[0] = (uint64_t)(uintptr_t)value;
	else if (bytes && bytes <= LIBRARY_VALUE_WORDS * sizeof(*words))
		memcpy(words, value, bytes);
	else
		call->status = front_status(call->front, CUDA_ERROR_NOT_SUPPORTED);
}

EXPORT void vcuda_library_result(struct library_call *call, uint64_t *words, void *result)
{
	if (call->status)
		return;
	if (!result)
		call->status = library_invalid(call->front);
	else if (library_on_device(call))
		words[0] = (uint64_t)(uintptr_t)result;
	else
		call->awaited = true;
}

EXPORT void vcuda_library_inout(
	struct library_call *call, uint64_t *words, void *value, uint32_t bytes)
{
	vcuda_library_scalar(call, words, value, bytes);
	vcuda_library_result(call, words, value);
}

/* Memory of a device that the host does not reach. */
static bool device_only(const void *memory)
{
	CUmemorytype type = CU_MEMORYTYPE_HOST;
	unsigned managed = 0;
	CUpointer_attribute asked[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *told[] = {&type, &managed};

	return !cuPointerGetAttributes(2, asked, told, (CUdeviceptr)memory) &&
	       type == CU_MEMORYTYPE_DEVICE && !managed;
}

/* A result for the host may be asked for at a device's address: cuBLAS copies it there
 * (PennyLane's lightning.gpu lets it). When the call returns all streams see it. */
EXPORT void vcuda_library_copy_result(
	const struct library_call *call, void *to, const uint64_t *words, uint32_t bytes)
{
	if (call->status || library_on_device(call))
		return;
	if (!device_only(to))
		memcpy(to, words, bytes);
	else if (!cuMemcpyHtoD((CUdeviceptr)to, words, bytes))
		cuStreamSynchronize(CU_STREAM_LEGACY);
}

EXPORT void vcuda_library_fills(
	struct library_call *call, uint64_t *address, void *to, uint64_t count, size_t each)
{
	CUresult status;

	*address = (uint64_t)(uintptr_t)to;
	if (call->status || !library_says(call->handle, call->front->on_host))
		return;
	*address = 0;
	call->awaited = true;
	if (__builtin_mul_overflow(count, each, &call->bytes)) {
		call->status = call->front->statuses.memory;
		return;
	}
	call->to = to;
	status = vcuda_front_context();
	if (!status && call->bytes)
		status = cuMemAlloc(&call->between, call->bytes);
	call->status = front_status(call->front, status);
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
		call->status = front_status(call->front, status);
	cuMemFree(call->between);
}

EXPORT int vcuda_library_frame(const struct library_front *front, struct front_frame *frame)
{
	struct library_reply first = {0};
	CUresult status;

	if (!frame->reply) {
		frame->reply = &first;
		frame->reply_bytes = sizeof(first);
	}
	memset(frame->reply, 0, sizeof(first));
	frame->status_first = true;
	status = vcuda_front_send(frame);
	if (status)
		return front_status(front, status);
	memcpy(&first, frame->reply, sizeof(first));
	return (int)first.status;
}

EXPORT int vcuda_library_send(struct library_call *call, uint16_t op, void *body,
	size_t body_bytes, uint32_t key_to, void *reply, size_t reply_bytes)
{
	struct library_handle *handle = call->handle;
	struct front_frame frame = {
		.call = call->number,
		.op = op,
		.learned = key_to && !call->awaited,
		.key_from = LIBRARY_KEY_FROM,
		.key_to = key_to,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = offsetof(struct library_state, stream),
		.reply = reply,
		.reply_bytes = reply_bytes,
	};

	if (reply)
		memset(reply, 0, reply_bytes);
	if (!call->status) {
		frame.stream = handle->stream;
		call->status = vcuda_library_frame(call->front, &frame);
	} else {
		vcuda_count(call->number);
	}
	if (!call->status && call->keeps)
		library_keep(handle, call->word, call->kept);
	library_fetch(call);
	return call->status;
}

/* The agent has none, or is too old to know of the library. */
static int library_missing(const struct library_front *front, const char *name)
{
	vcuda_front_missing(name, front->name, front->logged_once);
	return front->statuses.missing;
}

EXPORT int vcuda_library_ask(const struct library_front *front, uint16_t op, const void *body,
	size_t body_bytes, void *reply, size_t reply_bytes, const char *name)
{
	CUresult status = vcuda_front_context();
	struct library_reply first;

	if (!status)
		status = front_ask(op, body, body_bytes, reply, reply_bytes);
	if (status)
		return front_status(front, status);
	memcpy(&first, reply, sizeof(first));
	if (first.flags & LIBRARY_ABSENT)
		return library_missing(front, name);
	return (int)first.status;
}

/* A new handle, with a name; NULL: there is no memory. */
static struct library_handle *library_new(struct library_call *call, bool on_host)
{
	const struct library_front *front = call->front;
	struct library_handle *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	memcpy(h->kept, front->kept, sizeof(h->kept));
	if (call->keeps)
		library_keep(h, call->word, call->kept);
	if (front->on_host != LIBRARY_NO_WORD)
		h->state.word[front->on_host] = on_host;
	h->state.handle = vcuda_front_mint(front->kind, h);
	if (h->state.handle)
		return h;
	free(h);
	return NULL;
}

static int library_says_of(const struct library_front *front, int status)
{
	return front->says ? front->says(status) : status;
}

static int library_make(struct library_call *call, uint16_t op, void *body, size_t body_bytes,
	const char *name, bool on_host, void **handle)
{
	const struct library_front *front = call->front;
	struct library_opened opened = {0};
	struct library_handle *h;
	CUresult asked;
	int status;

	if (!handle)
		return front->statuses.null ? front->statuses.null : library_invalid(front);
	status = front_status(front, vcuda_front_context());
	if (status)
		return status;
	h = library_new(call, on_host);
	if (!h)
		return front->statuses.memory;
	memcpy(body, &h->state, sizeof(h->state));
	asked = front_ask(op, body, body_bytes, &opened, sizeof(opened));
	if (opened.reply.flags & LIBRARY_ABSENT || asked == CUDA_ERROR_NOT_SUPPORTED)
		status = library_missing(front, name);
	else
		status = asked ? front_status(front, asked) : (int)opened.reply.status;
	if (status) {
		vcuda_front_release(h->state.handle);
		free(h);
		return status;
	}
	h->version = opened.version;
	if (front->version)
		*front->version = opened.version;
	*handle = (void *)(uintptr_t)h->state.handle;
	return 0;
}

EXPORT int vcuda_library_create(struct library_call *call, uint16_t op, void *body,
	size_t body_bytes, const char *name, bool on_host, void **handle)
{
	vcuda_count(call->number);
	return library_says_of(
		call->front, library_make(call, op, body, body_bytes, name, on_host, handle));
}

EXPORT int vcuda_library_destroy(
	struct library_call *call, uint16_t op, void *body, size_t body_bytes)
{
	const struct library_front *front = call->front;

	vcuda_count(call->number);
	if (call->status || !vcuda_front_release(call->handle->state.handle))
		return library_says_of(front, front->statuses.handle);
	free(call->handle);
	return library_says_of(front, front_status(front, front_post(op, body, body_bytes)));
}

EXPORT int vcuda_library_opened(const struct library_front *front, uint16_t op, uint32_t major,
	struct library_opened *opened)
{
	uint64_t body = major;
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = op,
		.cached = true,
		.body = &body,
		.body_bytes = sizeof(body),
		.stream_at = FRONT_NO_STREAM,
		.reply = opened,
		.reply_bytes = sizeof(*opened),
	};
	CUresult status = vcuda_front_context();

	memset(opened, 0, sizeof(*opened));
	return status ? front_status(front, status) : vcuda_library_frame(front, &frame);
}

EXPORT int vcuda_library_name(
	struct library_call *call, uint16_t op, uint32_t major, const char *name, void **handle)
{
	const struct library_front *front = call->front;
	struct library_opened opened;
	struct library_handle *h;
	int status;

	vcuda_count(call->number);
	if (!handle)
		return library_invalid(front);
	status = vcuda_library_opened(front, op, major, &opened);
	if (opened.reply.flags & LIBRARY_ABSENT)
		return library_missing(front, name);
	if (status)
		return status;
	h = library_new(call, false);
	if (!h)
		return front->statuses.memory;
	*handle = (void *)(uintptr_t)h->state.handle;
	return 0;
}

EXPORT int vcuda_library_unname(struct library_call *call)
{
	vcuda_count(call->number);
	/* Not one of another library's. */
	if (call->status ||
		!vcuda_front_object(call->handle->state.handle, call->front->kind) ||
		!vcuda_front_release(call->handle->state.handle))
		return call->front->statuses.handle;
	free(call->handle);
	return 0;
}

EXPORT int vcuda_library_stream_set(
	const struct library_front *front, unsigned number, void *handle, CUstream stream)
{
	struct library_handle *h = library_find(front, handle);

	vcuda_count(number);
	if (!h)
		return library_says_of(front, front->statuses.handle);
	h->stream = stream;
	return library_says_of(front, 0);
}

EXPORT int vcuda_library_stream_get(
	const struct library_front *front, unsigned number, void *handle, CUstream *stream)
{
	const struct library_handle *h = library_find(front, handle);

	vcuda_count(number);
	if (!h)
		return library_says_of(front, front->statuses.handle);
	if (!stream)
		return library_says_of(front, library_invalid(front));
	*stream = h->stream;
	return library_says_of(front, 0);
}

EXPORT int vcuda_library_word_set(const struct library_front *front, unsigned number,
	void *handle, uint32_t word, int64_t value, int64_t largest)
{
	struct library_handle *h = library_find(front, handle);

	vcuda_count(number);
	if (!h)
		return front->statuses.handle;
	if (value < 0 || value > largest)
		return library_invalid(front);
	library_keep(h, word, (uint64_t)value);
	return 0;
}

EXPORT int vcuda_library_word_get(const struct library_front *front, unsigned number,
	void *handle, uint32_t word, const void *to, uint64_t *value)
{
	const struct library_handle *h = library_find(front, handle);

	vcuda_count(number);
	if (!h)
		return front->statuses.handle;
	if (!to)
		return library_invalid(front);
	*value = word < LIBRARY_STATE_WORDS ? h->state.word[word]
					    : h->kept[word - LIBRARY_STATE_WORDS];
	return 0;
}

EXPORT bool vcuda_library_on_device(const struct library_front *front, const void *handle)
{
	return library_says(library_find(front, handle), front->pointer_mode);
}
