/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the items of a call of cudnn.api: see cudnn.h.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

/* What a search may write; the first CUDNN_PERFS of them go home. */
#define PERF_ROOM 64
static struct cudnn_perf perf_room[PERF_ROOM];

/* Arrays of descriptors, of one call. */
#define EACH_ARRAYS 4
static void **each_room[EACH_ARRAYS];
static unsigned each_used;

void cudnn_refuse(struct cudnn_frame *f, cudnnStatus_t status)
{
	if (f->stopped)
		return;
	f->stopped = true;
	f->status = status;
}

const uint32_t *cudnn_take_words(struct cudnn_frame *f, uint32_t count)
{
	const uint32_t *at = f->key;

	if (f->stopped || count > (size_t)(f->key_end - f->key)) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	f->key += count;
	return at;
}

const void *cudnn_take_plain(struct cudnn_frame *f, uint32_t bytes)
{
	const unsigned char *at = f->plain;
	size_t rounded = ((size_t)bytes + 7) & ~(size_t)7;

	if (f->stopped || rounded > (size_t)(f->plain_end - f->plain)) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	f->plain += rounded;
	return at;
}

uint32_t cudnn_take_int(struct cudnn_frame *f)
{
	const uint32_t *at = cudnn_take_words(f, 1);

	return at ? *at : 0;
}

uint64_t cudnn_take_long(struct cudnn_frame *f)
{
	const uint32_t *at = cudnn_take_words(f, 2);

	return at ? (uint64_t)at[1] << 32 | at[0] : 0;
}

float cudnn_take_float(struct cudnn_frame *f)
{
	uint32_t bits = cudnn_take_int(f);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

double cudnn_take_double(struct cudnn_frame *f)
{
	uint64_t bits = cudnn_take_long(f);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static bool cudnn_present(struct cudnn_frame *f)
{
	uint32_t bit = f->pointers++;

	if (bit >= CUDNN_POINTERS)
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
	return !f->stopped && f->present >> bit & 1;
}

void *cudnn_take_device(struct cudnn_frame *f)
{
	const uint64_t *at = cudnn_present(f) ? cudnn_take_plain(f, 8) : NULL;

	return at ? (void *)(uintptr_t)*at : NULL;
}

void *cudnn_take_scalar(struct cudnn_frame *f)
{
	/* The library's alpha and beta are const; `void *` suits all its functions. */
	return cudnn_present(f) ? (void *)(uintptr_t)cudnn_take_plain(f, 8) : NULL;
}

static const int *cudnn_plain_ints(struct cudnn_frame *f, uint32_t *count)
{
	const uint64_t *n = cudnn_take_plain(f, 8);

	if (!n || *n > CUDNN_PLAIN_MAX / 4) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	*count = (uint32_t)*n;
	return cudnn_take_plain(f, *count * 4);
}

const int *cudnn_take_ints(struct cudnn_frame *f, bool key, uint32_t *count)
{
	*count = 0;
	if (!cudnn_present(f))
		return NULL;
	if (!key)
		return cudnn_plain_ints(f, count);
	*count = cudnn_take_int(f);
	return (const int *)cudnn_take_words(f, *count);
}

void *cudnn_take_descriptor(struct cudnn_frame *f, enum cudnn_kind kind)
{
	uint32_t head = cudnn_take_int(f);
	struct cudnn_content content = {.kind = kind, .words = head & 0xffff};

	if (f->stopped || !head)
		return NULL;
	if (head >> 16 != kind || !content.words || content.words > CUDNN_DESCRIPTOR_WORDS) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	content.word = cudnn_take_words(f, content.words);
	if (kind == CUDNN_KIND_RNN_DATA)
		content.sequence = cudnn_plain_ints(f, &content.ints);
	return f->stopped ? NULL : cudnn_descriptor(f, &content);
}

void *const *cudnn_take_each(struct cudnn_frame *f, int64_t count, enum cudnn_kind kind)
{
	void **each;
	int64_t at = 0;
	uint32_t runs;

	if (!cudnn_present(f))
		return NULL;
	runs = cudnn_take_int(f);
	if (f->stopped || count <= 0 || count > CUDNN_EACH_MAX || each_used == EACH_ARRAYS) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	each = calloc((size_t)count, sizeof(*each));
	if (!each) {
		cudnn_refuse(f, CUDNN_STATUS_ALLOC_FAILED);
		return NULL;
	}
	each_room[each_used++] = each;
	while (runs-- && !f->stopped) {
		uint32_t length = cudnn_take_int(f);
		void *descriptor = cudnn_take_descriptor(f, kind);

		if (!descriptor || !length || length > count - at) {
			cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
			return NULL;
		}
		while (length--)
			each[at++] = descriptor;
	}
	if (at != count)
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
	return f->stopped ? NULL : each;
}

void *cudnn_take_out(struct cudnn_frame *f)
{
	if (f->outs >= CUDNN_OUTS) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	return &f->reply->out[f->outs++];
}

struct cudnn_perf *cudnn_take_perf(struct cudnn_frame *f, int64_t count)
{
	if (count <= 0 || count > PERF_ROOM) {
		cudnn_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return NULL;
	}
	memset(perf_room, 0, sizeof(perf_room));
	f->perfs = count < CUDNN_PERFS ? (uint32_t)count : CUDNN_PERFS;
	return perf_room;
}

bool cudnn_stop(struct cudnn_frame *f, bool lacks, const char *name)
{
	if (!f->stopped && lacks) {
		worker_lacks(f->w, name);
		cudnn_refuse(f, CUDNN_STATUS_NOT_SUPPORTED);
	}
	return f->stopped;
}

/* What a search found, at most as many as it says. */
static void cudnn_give_perf(struct cudnn_frame *f)
{
	struct cudnn_perf_reply *reply = (struct cudnn_perf_reply *)f->reply;
	uint32_t found = (uint32_t)reply->out[0];

	if (found > f->perfs)
		reply->out[0] = found = f->perfs;
	memcpy(reply->perf, perf_room, found * sizeof(perf_room[0]));
	for (uint32_t i = 0; i < found; i++)
		reply->perf[i].status = cudnn_nine(f->library, reply->perf[i].status);
}

CUresult cudnn_serve(struct worker *w, struct request *r)
{
	const struct cudnn_body *body = (const void *)r->body;
	struct cudnn_frame f = {.w = w, .r = r, .reply = (void *)r->answer};
	const struct plain_served *served;
	uint64_t need =
		sizeof(*body) + (uint64_t)body->plain_bytes + 4 * (uint64_t)body->key_words;
	cudnnStatus_t status;

	if (need > r->header.body || body->plain_bytes % 8 ||
		body->key_words < CUDNN_KEY_HEAD || body->key_words > CUDNN_KEY_WORDS ||
		body->plain_bytes > CUDNN_PLAIN_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	served = cudnn_use(w, r, body->handle, body->stream);
	if (!served)
		return r->refused;
	f.library = served->library;
	f.handle = served->handle;
	f.plain = r->body + sizeof(*body);
	f.plain_end = f.plain + body->plain_bytes;
	f.key = (const uint32_t *)(const void *)f.plain_end;
	f.key_end = f.key + body->key_words;
	f.present = f.key[0];
	f.key += CUDNN_KEY_HEAD;

	status = cudnn_run_of(r->header.op)(&f);
	status = f.stopped ? f.status : cudnn_nine(f.library, status);
	while (each_used)
		free(each_room[--each_used]);
	if (r->refused)
		return r->refused;
	if (f.perfs && !status && r->header.kind == FRAME_CALL)
		cudnn_give_perf(&f);
	return cudnn_answer(r, status);
}
