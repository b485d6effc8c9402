/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the cuDNN front: see cudnn.h.
 */
#include <string.h>

#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

struct library_handle *cudnn_find(cudnnHandle_t handle)
{
	return vcuda_library_find(&cudnn_front, handle);
}

static void fault(struct cudnn_call *call, cudnnStatus_t status, const char *text)
{
	if (!call->status)
		call->status = cudnn_fault(status, text);
}

void cudnn_begin(struct cudnn_call *call, unsigned number, uint16_t op, cudnnHandle_t handle,
	enum cudnn_verb verb)
{
	memset(call, 0, offsetof(struct cudnn_call, key));
	call->handle = cudnn_find(handle);
	call->call = number;
	call->op = op;
	call->verb = verb;
	call->key[0] = 0;
	call->key[1] = 0;
	call->key_words = CUDNN_KEY_HEAD;
	if (!call->handle)
		fault(call, CUDNN_STATUS_NOT_INITIALIZED, "no handle of cuDNN");
}

/* Room for `n` words of key; NULL, and a fault, where it is full. */
static uint32_t *key_room(struct cudnn_call *call, uint32_t n)
{
	uint32_t *at = call->key + call->key_words;

	if (call->status)
		return NULL;
	if (n > CUDNN_KEY_WORDS - call->key_words) {
		fault(call, CUDNN_STATUS_NOT_SUPPORTED, "the call has too many descriptors");
		return NULL;
	}
	call->key_words += n;
	return at;
}

static unsigned char *plain_room(struct cudnn_call *call, uint32_t bytes)
{
	unsigned char *at = call->body + sizeof(struct cudnn_body) + call->plain_bytes;

	if (call->status)
		return NULL;
	if (bytes > CUDNN_PLAIN_MAX - call->plain_bytes) {
		fault(call, CUDNN_STATUS_NOT_SUPPORTED, "the call has too many host values");
		return NULL;
	}
	call->plain_bytes += bytes;
	return at;
}

/* Notes whether the next pointer is there. */
static bool present(struct cudnn_call *call, const void *pointer)
{
	uint32_t bit = call->pointers++;

	if (bit >= CUDNN_POINTERS)
		fault(call, CUDNN_STATUS_NOT_SUPPORTED, "the call has too many pointers");
	else if (pointer)
		call->key[0] |= 1u << bit;
	return pointer && !call->status;
}

void cudnn_put_int(struct cudnn_call *call, uint32_t value)
{
	uint32_t *at = key_room(call, 1);

	if (at)
		*at = value;
}

void cudnn_put_long(struct cudnn_call *call, uint64_t value)
{
	uint32_t *at = key_room(call, 2);

	if (at)
		memcpy(at, &value, sizeof(value));
}

void cudnn_put_float(struct cudnn_call *call, float value)
{
	uint32_t *at = key_room(call, 1);

	if (at)
		memcpy(at, &value, sizeof(value));
}

void cudnn_put_double(struct cudnn_call *call, double value)
{
	uint32_t *at = key_room(call, 2);

	if (at)
		memcpy(at, &value, sizeof(value));
}

void cudnn_put_address(struct cudnn_call *call, uint64_t address)
{
	unsigned char *at = plain_room(call, sizeof(address));

	if (!at)
		return;
	memcpy(at, &address, sizeof(address));
	call->key[1] |= address & 15;
}

void cudnn_put_device(struct cudnn_call *call, const void *address)
{
	if (present(call, address))
		cudnn_put_address(call, (uint64_t)(uintptr_t)address);
}

void cudnn_put_scalar(struct cudnn_call *call, const void *value, uint32_t bytes)
{
	unsigned char *at;

	if (!present(call, value))
		return;
	if (!bytes || bytes > 8) {
		fault(call, CUDNN_STATUS_NOT_SUPPORTED, "a scalar of this type");
		return;
	}
	at = plain_room(call, 8);
	if (at) {
		memset(at, 0, 8);
		memcpy(at, value, bytes);
	}
}

void cudnn_put_plain(struct cudnn_call *call, const void *from, uint32_t bytes)
{
	uint32_t rounded = (bytes + 7) & ~7u;
	unsigned char *at = plain_room(call, rounded);

	if (!at)
		return;
	memset(at + rounded - 8, 0, 8);
	memcpy(at, from, bytes);
}

static void put_plain_ints(struct cudnn_call *call, const int *values, uint32_t count)
{
	uint64_t n = count;
	uint32_t bytes =
		count <= CUDNN_PLAIN_MAX / 4 ? 8 + ((count * 4 + 7) & ~7u) : UINT32_MAX;
	unsigned char *at = plain_room(call, bytes);

	if (!at)
		return;
	memset(at + bytes - 8, 0, 8);
	memcpy(at, &n, sizeof(n));
	if (count)
		memcpy(at + sizeof(n), values, count * sizeof(*values));
}

/* A cached call is asked by them, so there they are part of the key. */
void cudnn_put_ints(struct cudnn_call *call, const int *values, uint32_t count)
{
	uint32_t *at;

	if (!present(call, values))
		return;
	if (call->verb != CUDNN_CACHED) {
		put_plain_ints(call, values, count);
		return;
	}
	at = key_room(call, count < CUDNN_KEY_WORDS ? count + 1 : CUDNN_KEY_WORDS);
	if (!at)
		return;
	at[0] = count;
	memcpy(at + 1, values, count * sizeof(*values));
}

void cudnn_put_descriptor(struct cudnn_call *call, const void *descriptor, uint32_t kind)
{
	const struct cudnn_descriptor *d;
	uint32_t *at;

	if (!descriptor) {
		cudnn_put_int(call, 0);
		return;
	}
	d = cudnn_set_of(descriptor, kind);
	if (!d) {
		fault(call, CUDNN_STATUS_BAD_PARAM,
			"a descriptor that was never set, or is of another kind");
		return;
	}
	at = key_room(call, 1u + d->words);
	if (!at)
		return;
	at[0] = kind << 16 | d->words;
	memcpy(at + 1, d->word, d->words * sizeof(d->word[0]));
	if (kind == CUDNN_KIND_RNN_DATA)
		put_plain_ints(call, d->ints, d->int_count);
}

static bool equal(const struct cudnn_descriptor *a, const struct cudnn_descriptor *b)
{
	return a == b || (a->words == b->words &&
				 !memcmp(a->word, b->word, a->words * sizeof(a->word[0])));
}

void cudnn_put_each(
	struct cudnn_call *call, const void *descriptors, int64_t count, uint32_t kind)
{
	const void *const *each = descriptors;
	uint32_t *runs;

	if (!present(call, descriptors))
		return;
	if (count <= 0 || count > CUDNN_EACH_MAX) {
		fault(call, CUDNN_STATUS_BAD_PARAM, "a number of descriptors out of range");
		return;
	}
	runs = key_room(call, 1);
	if (runs)
		*runs = 0;
	for (int64_t i = 0; runs && i < count && !call->status;) {
		const struct cudnn_descriptor *d = cudnn_set_of(each[i], kind);
		int64_t to = i + 1;

		while (d && to < count) {
			const struct cudnn_descriptor *next = cudnn_set_of(each[to], kind);

			if (!next || !equal(d, next))
				break;
			to++;
		}
		if (!d)
			fault(call, CUDNN_STATUS_BAD_PARAM,
				"an array with no descriptor in it");
		cudnn_put_int(call, (uint32_t)(to - i));
		cudnn_put_descriptor(call, each[i], kind);
		*runs += 1;
		i = to;
	}
}

void cudnn_out(struct cudnn_call *call, void *to, size_t bytes)
{
	if (call->status)
		return;
	if (!to || call->outs >= CUDNN_OUTS) {
		fault(call, CUDNN_STATUS_BAD_PARAM, "nowhere to put a result");
		return;
	}
	call->out[call->outs].to = to;
	call->out[call->outs++].bytes = bytes;
}

void cudnn_out_maybe(struct cudnn_call *call, void *to, size_t bytes)
{
	static char nowhere;

	cudnn_out(call, to ? to : &nowhere, to ? bytes : 0);
}

void cudnn_out_perf(struct cudnn_call *call, struct cudnn_perf *to, int64_t count)
{
	if (call->status)
		return;
	if (!to || count <= 0) {
		fault(call, CUDNN_STATUS_BAD_PARAM, "nowhere to put what is found");
		return;
	}
	call->perf = to;
	call->perfs = count < CUDNN_PERFS ? (uint32_t)count : CUDNN_PERFS;
}

cudnnStatus_t cudnn_exchange(struct cudnn_call *call, void *reply, size_t reply_bytes)
{
	struct cudnn_body *head = (struct cudnn_body *)call->body;
	struct front_frame frame = {
		.call = call->call,
		.op = call->op,
		.learned = call->verb == CUDNN_LEARNED,
		.cached = call->verb == CUDNN_CACHED,
		.status_first = true,
		.body = call->body,
		.stream_at = offsetof(struct cudnn_body, stream),
		.reply = reply,
		.reply_bytes = reply_bytes,
	};
	struct library_reply first;
	cudnnStatus_t status;

	memset(reply, 0, reply_bytes);
	if (call->status)
		return call->status;
	*head = (struct cudnn_body){
		.handle = call->handle->state.handle,
		.plain_bytes = call->plain_bytes,
		.key_words = call->key_words,
	};
	frame.stream = call->handle->stream;
	frame.key_from = (uint32_t)sizeof(*head) + call->plain_bytes;
	frame.key_to = frame.key_from + 4 * call->key_words;
	memcpy(call->body + frame.key_from, call->key, 4 * (size_t)call->key_words);
	frame.body_bytes = frame.key_to;
	if (frame.body_bytes % 8) {
		memset(call->body + frame.key_to, 0, 4);
		frame.body_bytes += 4;
	}
	status = cudnn_status(vcuda_front_send(&frame));
	memcpy(&first, reply, sizeof(first));
	call->status = status ? status : cudnn_answered((int)first.status);
	return call->status;
}

cudnnStatus_t cudnn_send(struct cudnn_call *call)
{
	struct cudnn_perf_reply reply;
	size_t bytes = call->perf ? sizeof(reply) : sizeof(struct cudnn_reply);

	if (cudnn_exchange(call, &reply, bytes))
		return cudnn_told(call->status);
	for (uint32_t i = 0; i < call->outs; i++)
		memcpy(call->out[i].to, &reply.out[i], call->out[i].bytes);
	for (uint32_t i = 0; i < call->perfs; i++) {
		call->perf[i] = reply.perf[i];
		call->perf[i].status = cudnn_told(reply.perf[i].status);
	}
	return CUDNN_STATUS_SUCCESS;
}
