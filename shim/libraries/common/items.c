/* SPDX-License-Identifier: Apache-2.0
 *
 * See items.h.
 */
#include "shim/libraries/common/items.h"

void library_fault(struct library_items *items, int status, const char *text)
{
	if (items->status)
		return;
	items->status = status;
	if (items->front->explain)
		items->front->explain(status, text);
}

static void library_unsupported(struct library_items *items, const char *text)
{
	library_fault(items, front_status(items->front, CUDA_ERROR_NOT_SUPPORTED), text);
}

static void library_invalid(struct library_items *items, const char *text)
{
	library_fault(items, front_status(items->front, CUDA_ERROR_INVALID_VALUE), text);
}

void library_begin(struct library_items *items, const struct library_front *front,
	unsigned number, uint16_t op, enum library_verb verb, const void *handle)
{
	memset(items, 0, offsetof(struct library_items, out));
	items->front = front;
	items->number = number;
	items->op = op;
	items->verb = verb;
	items->handle = vcuda_library_find(front, handle);
	items->body = (struct library_body){0};
	if (!items->handle) {
		library_fault(items,
			front->statuses.unknown ? front->statuses.unknown
						: front->statuses.handle,
			"no handle of the library");
		return;
	}
	if (front->major) { /* the agent does not know the handle */
		items->body.state.word[0] = front->major;
		return;
	}
	items->stream = items->handle->stream;
	items->body.state = items->handle->state;
	if (front->pointer_mode != LIBRARY_NO_WORD)
		items->mode = (int32_t)items->body.state.word[front->pointer_mode];
}

void *library_full(struct library_items *items, const char *text)
{
	library_unsupported(items, text);
	return NULL;
}

void library_put_scalar(struct library_items *items, const void *value, uint32_t bytes)
{
	unsigned char *at;

	if (!library_present(items, value))
		return;
	if (!bytes || bytes > 8) {
		library_unsupported(items, "a scalar of this type");
		return;
	}
	at = library_varying(items, 8);
	if (at) {
		memset(at, 0, 8);
		memcpy(at, value, bytes);
	}
}

void library_put_placed(struct library_items *items, const void *value, uint32_t bytes,
	enum library_place place, bool maybe)
{
	uint64_t *at;

	if (!library_present(items, place == LIBRARY_NOWHERE ? NULL : value)) {
		if (place != LIBRARY_NOWHERE && !maybe)
			library_invalid(items, "no scalar");
		return;
	}
	if (place == LIBRARY_HOST && (!bytes || bytes > 2 * sizeof(*at))) {
		library_unsupported(items, "a scalar of this type");
		return;
	}
	at = library_varying(items, 2 * sizeof(*at));
	if (!at)
		return;
	at[0] = place == LIBRARY_HOST ? 0 : (uint64_t)(uintptr_t)value;
	at[1] = 0;
	if (place == LIBRARY_HOST)
		memcpy(at, value, bytes);
}

void library_mismatch(struct library_items *items)
{
	library_invalid(items, "arguments that do not go together");
}

void library_put_bytes(struct library_items *items, const void *from, uint32_t bytes)
{
	uint32_t rounded = (bytes + 7) & ~7u;
	unsigned char *at = library_varying(items, rounded);

	if (!at)
		return;
	memset(at + rounded - 8, 0, 8);
	memcpy(at, from, bytes);
}

void library_put_varying_ints(struct library_items *items, const int *values, uint32_t count)
{
	uint64_t n = count;
	uint32_t bytes =
		count <= LIBRARY_VARYING_MAX / 4 ? 8 + ((count * 4 + 7) & ~7u) : UINT32_MAX;
	unsigned char *at = library_varying(items, bytes);

	if (!at)
		return;
	memset(at + bytes - 8, 0, 8);
	memcpy(at, &n, sizeof(n));
	if (count)
		memcpy(at + sizeof(n), values, count * sizeof(*values));
}

void library_put_ints(struct library_items *items, const int *values, uint32_t count)
{
	uint32_t *at;

	if (!library_present(items, values))
		return;
	if (items->verb != LIBRARY_CACHED) {
		library_put_varying_ints(items, values, count);
		return;
	}
	at = library_key(items, count < LIBRARY_KEY_WORDS ? count + 1 : LIBRARY_KEY_WORDS);
	if (!at)
		return;
	at[0] = count;
	memcpy(at + 1, values, count * sizeof(*values));
}

void library_put_each(
	struct library_items *items, const void *descriptors, int64_t count, uint32_t kind)
{
	const void *const *each = descriptors;
	uint32_t *runs, *run = NULL;

	if (!library_present(items, descriptors))
		return;
	if (count <= 0 || count > LIBRARY_EACH_MAX) {
		library_invalid(items, "a number of descriptors out of range");
		return;
	}
	runs = library_key(items, 1);
	if (runs)
		*runs = 0;
	for (int64_t i = 0; i < count && !items->status; i++) {
		uint32_t from = items->key_words, words;
		uint32_t *at = each[i] ? library_key(items, 1) : NULL;

		if (!at) {
			library_invalid(items, "an array with no descriptor in it");
			return;
		}
		library_put_descriptor(items, each[i], kind);
		words = items->key_words - from;
		/* One more of the last run's: at run, in as many words. */
		if (run && (size_t)(at - run) == words &&
			!memcmp(run + 1, at + 1, 4 * (size_t)(words - 1))) {
			*run += 1;
			items->key_words = from;
			continue;
		}
		*at = 1;
		*runs += 1;
		run = at;
	}
}

void library_out(struct library_items *items, void *to, size_t bytes)
{
	if (items->status)
		return;
	if (!to || items->outs >= LIBRARY_OUTS) {
		library_invalid(items, "nowhere to put a result");
		return;
	}
	items->out[items->outs].to = to;
	items->out[items->outs++].bytes = bytes;
}

void library_out_extra(struct library_items *items, void *to, size_t bytes)
{
	library_out(items, to, bytes);
	items->extras += !items->status;
}

void library_out_maybe(struct library_items *items, void *to, size_t bytes)
{
	static char nowhere;

	library_out(items, to ? to : &nowhere, to ? bytes : 0);
}

void library_put_result(struct library_items *items, void *to, uint32_t bytes)
{
	bool host = items->mode == LIBRARY_POINTERS_HOST;

	if (!to || !bytes || bytes > 16) {
		library_invalid(items, "nowhere to put the result");
		return;
	}
	library_put_address(items, host ? 0 : (uint64_t)(uintptr_t)to);
	if (!host)
		return;
	items->verb = LIBRARY_CALL;
	library_out(items, to, bytes < 8 ? bytes : 8);
	library_out(items, (char *)to + 8, bytes < 8 ? 0 : bytes - 8);
}

void library_put_inout(struct library_items *items, void *value, uint32_t bytes)
{
	if (!value)
		library_invalid(items, "no number to read and write");
	library_put_inout_maybe(items, value, bytes);
}

void library_put_inout_maybe(struct library_items *items, void *value, uint32_t bytes)
{
	uint64_t *at = library_varying(items, sizeof(*at));

	if (!at)
		return;
	*at = 0;
	if (value)
		memcpy(at, value, bytes);
	library_out_maybe(items, value, bytes);
}

void library_list(struct library_items *items, void *to, int64_t count, uint32_t each)
{
	if (items->status)
		return;
	if (!to || count <= 0) {
		library_invalid(items, "nowhere to put what is found");
		return;
	}
	items->list = to;
	items->listed = count < LIBRARY_LIST ? (uint32_t)count : LIBRARY_LIST;
	items->list_each = each;
}

/* The frame's fixed part is put together: how many bytes it has. */
static uint32_t library_close(struct library_items *items)
{
	uint32_t at = (uint32_t)LIBRARY_VARYING_FROM(items->key_words);

	if (items->key_words % 2)
		items->key[items->key_words] = 0;
	memmove((unsigned char *)&items->body + at, items->varying, items->varying_bytes);
	items->body.key_words = (uint16_t)items->key_words;
	return at + items->varying_bytes;
}

/* What the call leaves in a descriptor it has to leave there each time, also where its answer
 * was known. */
static void library_again(struct library_items *items, struct front_frame *frame)
{
	CUresult status;

	frame->call = FRONT_COUNTED;
	frame->cached = false;
	frame->post = true;
	frame->reply = NULL;
	status = vcuda_front_send(frame);
	if (status)
		library_fault(items, front_status(items->front, status), NULL);
}

int library_exchange(struct library_items *items, void *answer, size_t bytes)
{
	const struct library_front *front = items->front;
	struct front_frame frame = {
		.call = items->number,
		.op = items->op,
		.learned = items->verb == LIBRARY_LEARNED,
		.cached = items->verb == LIBRARY_CACHED,
		.status_first = true,
		.key_from = LIBRARY_KEY_FROM,
		.key_to = (uint32_t)sizeof(items->body) + 4 * items->key_words,
		.body = &items->body,
		.stream_at = offsetof(struct library_body, state.stream),
		.stream = items->stream,
		.reply = answer,
		.reply_bytes = bytes - 8 * items->extras,
		.reply_most = bytes,
	};
	struct library_reply first;
	CUresult status;

	memset(answer, 0, bytes);
	if (items->status)
		return items->status;
	frame.body_bytes = library_close(items);
	status = vcuda_front_send(&frame);
	if (status) {
		library_fault(items, front_status(front, status), NULL);
		return items->status;
	}
	memcpy(&first, answer, sizeof(first));
	items->status = (int)first.status;
	if (!items->status && items->left && frame.cached)
		library_again(items, &frame);
	if (items->status && front->answered)
		front->answered(items->status);
	return items->status;
}

static void library_list_out(struct library_items *items, const unsigned char *from)
{
	unsigned char *to = items->list;

	for (uint32_t i = 0; i < items->listed; i++, to += items->list_each) {
		memcpy(to, from + (size_t)i * items->list_each, items->list_each);
		if (items->front->element)
			items->front->element(to);
	}
}

int library_send(struct library_items *items)
{
	struct {
		struct library_answer fixed;
		unsigned char list[LIBRARY_LIST * LIBRARY_LIST_BYTES];
	} answer;
	unsigned char *bytes = (unsigned char *)&answer;

	library_exchange(items, &answer,
		items->list ? LIBRARY_LIST_FROM + LIBRARY_LIST * items->list_each
			    : LIBRARY_ANSWER(items->outs));
	for (uint32_t i = 0; !items->status && i < items->outs; i++)
		memcpy(items->out[i].to, &answer.fixed.out[i], items->out[i].bytes);
	if (!items->status)
		library_list_out(items, bytes + LIBRARY_LIST_FROM);
	return items->front->program ? items->front->program(items->status) : items->status;
}
