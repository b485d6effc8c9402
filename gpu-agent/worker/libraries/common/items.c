/* SPDX-License-Identifier: Apache-2.0
 *
 * See items.h.
 */
#include "gpu-agent/worker/libraries/common/items.h"

#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/worker_state.h"

/* What a search may write; the first LIBRARY_LIST of them go home. */
#define LIST_ROOM 64

/* A call's workspace on the host. Libraries ask for some kilobytes; the bound is against
 * clients.
 */
#define WORKSPACE_MAX (1u << 30)

void library_refuse(struct library_frame *f, int status)
{
	if (f->stopped)
		return;
	f->stopped = true;
	f->status = status;
}

void library_violated(struct library_frame *f)
{
	library_refuse(f, library_status(&f->of->statuses, CUDA_ERROR_INVALID_VALUE));
}

const uint32_t *library_get_words(struct library_frame *f, uint32_t count)
{
	const uint32_t *at = f->key;

	if (f->stopped || count > (size_t)(f->key_end - f->key)) {
		library_violated(f);
		return NULL;
	}
	f->key += count;
	return at;
}

const void *library_get_bytes(struct library_frame *f, uint32_t bytes)
{
	const unsigned char *at = f->varying;
	size_t rounded = ((size_t)bytes + 7) & ~(size_t)7;

	if (f->stopped || rounded > (size_t)(f->varying_end - f->varying)) {
		library_violated(f);
		return NULL;
	}
	f->varying += rounded;
	return at;
}

uint32_t library_get_int(struct library_frame *f)
{
	const uint32_t *at = library_get_words(f, 1);

	return at ? *at : 0;
}

uint64_t library_get_long(struct library_frame *f)
{
	const uint32_t *at = library_get_words(f, 2);

	return at ? (uint64_t)at[1] << 32 | at[0] : 0;
}

float library_get_float(struct library_frame *f)
{
	uint32_t bits = library_get_int(f);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

double library_get_double(struct library_frame *f)
{
	uint64_t bits = library_get_long(f);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static bool library_present(struct library_frame *f)
{
	uint32_t bit = f->pointers++;

	if (bit >= LIBRARY_POINTERS)
		library_violated(f);
	return !f->stopped && f->present >> bit & 1;
}

void *library_get_device(struct library_frame *f)
{
	const uint64_t *at = library_get_bytes(f, 8);

	f->pointers++;
	return at ? (void *)(uintptr_t)*at : NULL;
}

void *library_get_scalar(struct library_frame *f)
{
	/* The library's alpha and beta are const; `void *` suits all its functions. */
	return library_present(f) ? (void *)(uintptr_t)library_get_bytes(f, 8) : NULL;
}

/* So many words, aligned to 16; NULL where there are no more. */
static uint64_t *library_room(struct library_frame *f, uint32_t words)
{
	uint64_t *at = f->room + f->room_used;

	if (f->stopped || words > LIBRARY_ROOM - f->room_used) {
		library_violated(f);
		return NULL;
	}
	f->room_used += (words + 1) & ~1u;
	return at;
}

void *library_get_placed(struct library_frame *f, enum library_place place, bool maybe)
{
	static _Alignas(16) uint64_t zeros[2];
	const uint64_t *at;
	uint64_t *to;

	if (!library_present(f)) {
		if (place != LIBRARY_NOWHERE && !maybe)
			library_violated(f);
		return zeros;
	}
	at = library_get_bytes(f, 16);
	if (!at)
		return NULL;
	if (place == LIBRARY_DEVICE)
		return (void *)(uintptr_t)worker_range(f->w, f->r, at[0], 1);
	/* cusparseZcsrgeam2 reads a double2 with one instruction, which wants it aligned. */
	to = library_room(f, 2);
	if (to)
		memcpy(to, at, 2 * sizeof(*to));
	return to;
}

void *library_get_scalar_at(
	struct library_frame *f, const uint64_t *at, uint32_t i, uint32_t words)
{
	uint64_t *to;

	if (f->stopped)
		return NULL;
	if (f->mode == LIBRARY_POINTERS_DEVICE)
		return (void *)(uintptr_t)worker_range(f->w, f->r, at[i], 1);
	to = library_room(f, words);
	if (to)
		memcpy(to, at + i, words * sizeof(*to));
	return to;
}

void *library_get_result_at(
	struct library_frame *f, const uint64_t *at, uint32_t i, uint32_t words)
{
	uint32_t from = f->room_used, to = f->outs;
	void *result = library_get_scalar_at(f, at, i, words);

	if (words > LIBRARY_OUTS - f->outs || f->results == LIBRARY_RESULTS_MAX) {
		library_violated(f);
		return NULL;
	}
	f->outs += words;
	if (f->room_used != from) {
		f->result[f->results].from = (uint8_t)from;
		f->result[f->results].to = (uint8_t)to;
		f->result[f->results++].words = (uint8_t)words;
	}
	return result;
}

void *library_get_filled(
	struct library_frame *f, const uint64_t *at, uint32_t i, uint64_t count, size_t each)
{
	return f->stopped ? NULL : plain_fills(f->w, f->r, f->served, at[i], count, each);
}

void *library_get_aligned(struct library_frame *f)
{
	const uint64_t *at = library_get_bytes(f, 8);

	library_get_int(f);
	return at ? (void *)(uintptr_t)*at : NULL;
}

const void *library_get_value(struct library_frame *f, uint32_t bytes)
{
	uint32_t words = library_get_int(f);
	const uint32_t *at;
	uint64_t *to;

	if (f->stopped || !words)
		return NULL;
	if (words != bytes / 4) {
		library_violated(f);
		return NULL;
	}
	at = library_get_words(f, words);
	to = library_room(f, (bytes + 7) / 8);
	if (!at || !to)
		return NULL;
	memcpy(to, at, bytes);
	return to;
}

void library_require(struct library_frame *f, bool holds)
{
	if (!holds)
		library_violated(f);
}

const int *library_get_varying_ints(struct library_frame *f, uint32_t *count)
{
	const uint64_t *n = library_get_bytes(f, 8);

	*count = 0;
	if (!n || *n > LIBRARY_VARYING_MAX / 4) {
		library_violated(f);
		return NULL;
	}
	*count = (uint32_t)*n;
	return library_get_bytes(f, *count * 4);
}

const int *library_get_ints(struct library_frame *f, bool key, uint32_t *count)
{
	*count = 0;
	if (!library_present(f))
		return NULL;
	if (!key)
		return library_get_varying_ints(f, count);
	*count = library_get_int(f);
	return (const int *)library_get_words(f, *count);
}

uint32_t library_get_content(
	struct library_frame *f, uint32_t kind, uint32_t most, const uint32_t **words)
{
	uint32_t head = library_get_int(f), n = head & 0xffff;

	*words = NULL;
	if (f->stopped || !head)
		return 0;
	if (head >> 16 != kind || !n || n > most) {
		library_violated(f);
		return 0;
	}
	*words = library_get_words(f, n);
	return *words ? n : 0;
}

void *library_get_descriptor(struct library_frame *f, uint32_t kind)
{
	return f->of->descriptor(f, kind);
}

void *const *library_get_each(struct library_frame *f, int64_t count, uint32_t kind)
{
	void **each;
	int64_t at = 0;
	uint32_t runs;

	if (!library_present(f))
		return NULL;
	runs = library_get_int(f);
	if (f->stopped || count <= 0 || count > LIBRARY_EACH_MAX ||
		f->array_count == LIBRARY_ARRAYS) {
		library_violated(f);
		return NULL;
	}
	each = calloc((size_t)count, sizeof(*each));
	if (!each) {
		library_refuse(f, f->of->statuses.memory);
		return NULL;
	}
	f->arrays[f->array_count++] = each;
	while (runs-- && !f->stopped) {
		uint32_t length = library_get_int(f);
		void *descriptor = library_get_descriptor(f, kind);

		if (!descriptor || !length || length > count - at) {
			library_violated(f);
			return NULL;
		}
		while (length--)
			each[at++] = descriptor;
	}
	if (at != count)
		library_violated(f);
	return f->stopped ? NULL : each;
}

void *library_get_workspace(struct library_frame *f, uint64_t bytes)
{
	if (f->stopped || !bytes)
		return NULL;
	if (bytes <= WORKSPACE_MAX && !f->workspace)
		f->workspace = malloc(bytes);
	if (!f->workspace)
		library_refuse(f, f->of->statuses.memory);
	return f->workspace;
}

void *library_get_out(struct library_frame *f)
{
	if (f->outs >= LIBRARY_OUTS) {
		library_violated(f);
		return NULL;
	}
	return &f->answer->out[f->outs++];
}

void *library_get_result(struct library_frame *f)
{
	const uint64_t *at = library_get_bytes(f, 8);
	void *to;

	if (!at)
		return NULL;
	if (f->mode == LIBRARY_POINTERS_DEVICE)
		return (void *)(uintptr_t)worker_range(f->w, f->r, at[0], 1);
	to = library_get_out(f);
	library_get_out(f); /* it has 16 bytes at most */
	return to;
}

void *library_get_numbers(struct library_frame *f)
{
	const uint64_t *count;

	if (f->stopped || f->varying == f->varying_end)
		return NULL;
	count = library_get_bytes(f, sizeof(*count));
	if (!count || !*count || *count > LIBRARY_NUMBERS || f->outs) {
		library_violated(f);
		return NULL;
	}
	f->answer->out[f->outs] = *count;
	f->outs = LIBRARY_OUTS;
	return f->answer->out + 1;
}

void *library_get_inout(struct library_frame *f)
{
	const uint64_t *at = library_get_bytes(f, 8);
	uint64_t *to = library_get_out(f);

	if (at && to)
		*to = *at;
	return to;
}

void *library_get_list(struct library_frame *f, int64_t count, uint32_t each)
{
	if (count <= 0 || count > LIST_ROOM || each > LIBRARY_LIST_BYTES || f->list) {
		library_violated(f);
		return NULL;
	}
	f->list = calloc(LIST_ROOM, LIBRARY_LIST_BYTES);
	if (!f->list) {
		library_refuse(f, f->of->statuses.memory);
		return NULL;
	}
	f->listed = count < LIBRARY_LIST ? (uint32_t)count : LIBRARY_LIST;
	f->list_each = each;
	return f->list;
}

bool library_stop(struct library_frame *f, bool lacks, const char *name)
{
	if (!f->stopped && lacks)
		library_refuse(f, library_status(&f->of->statuses, worker_lacks(f->w, name)));
	if (f->stopped || worker_refused(f->r))
		return true;
	beside_leave(f->r);
	return false;
}

/* What was found, at most as many as the first number says. */
static void library_list_answer(struct library_frame *f)
{
	unsigned char *to = (unsigned char *)f->answer + LIBRARY_LIST_FROM;
	uint32_t found = (uint32_t)f->answer->out[0];

	if (found > f->listed)
		f->answer->out[0] = found = f->listed;
	memcpy(to, f->list, (size_t)found * f->list_each);
	for (uint32_t i = 0; f->of->element && i < found; i++)
		f->of->element(f->library, to + (size_t)i * f->list_each);
}

/* Finds library and handle, and sets the handle's stream. */
static bool library_open(struct library_frame *f, const struct library_body *body)
{
	if (f->of->shared) {
		f->stream = worker_stream(f->w, f->r, body->state.stream);
		if (!worker_refused(f->r))
			f->library = plain_shared(
				f->w, f->r, f->of, body->state.word[0], &f->handle);
		return f->library;
	}
	f->served = plain_use(f->w, f->r, f->of, &body->state);
	if (!f->served)
		return false;
	f->served->busy = f->r->beside;
	f->library = f->served->library;
	f->handle = f->served->handle;
	f->stream = f->served->stream;
	if (f->of->pointer_mode != LIBRARY_NO_WORD)
		f->mode = (int32_t)body->state.word[f->of->pointer_mode];
	return true;
}

/* What the call had for itself. */
static void library_close(struct library_frame *f)
{
	while (f->array_count)
		free(f->arrays[--f->array_count]);
	free(f->workspace);
	free(f->list);
	if (f->served && f->r->beside)
		f->served->busy = false;
}

CUresult library_serve(struct worker *w, struct request *r, const struct library_run *run)
{
	const struct plain_library *of = run->of;
	const struct library_body *body = (const void *)r->body;
	struct library_frame f = {
		.w = w, .r = r, .of = of, .name = run->entry.name, .answer = (void *)r->answer};
	int status;

	if (LIBRARY_VARYING_FROM(body->key_words) > r->header.body ||
		body->key_words > LIBRARY_KEY_WORDS)
		return CUDA_ERROR_INVALID_VALUE;
	if (of->beside && beside_serve(w, r, run->entry.serve))
		return CUDA_SUCCESS;
	if (!library_open(&f, body))
		return r->refused;
	f.key = (const uint32_t *)(const void *)(body + 1);
	f.key_end = f.key + body->key_words;
	f.varying = r->body + LIBRARY_VARYING_FROM(body->key_words);
	f.varying_end = r->body + r->header.body;
	f.present = body->present;

	memcpy(&f.function, (const char *)f.library + run->function, sizeof(f.function));
	status = run->run(&f);
	beside_enter(r);
	if (of->ended)
		of->ended(&f, status);
	status = f.stopped ? f.status : of->numbered ? of->numbered(f.library, status) : status;
	for (uint32_t i = 0; i < f.results; i++)
		memcpy(f.answer->out + f.result[i].to, f.room + f.result[i].from,
			f.result[i].words * sizeof(f.room[0]));
	if (r->refused) {
		if (f.served)
			plain_unfill(f.served);
		library_close(&f);
		return r->refused;
	}
	if (f.listed && !status && r->header.kind == FRAME_CALL)
		library_list_answer(&f);
	library_close(&f);
	return f.served ? plain_answer(w, r, f.served, status) : plain_status(r, of, status);
}
