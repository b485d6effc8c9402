/* SPDX-License-Identifier: Apache-2.0
 *
 * See plain.h.
 */
#include "gpu-agent/worker/libraries/common/plain.h"

#include <stdlib.h>
#include <string.h>

#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/worker_state.h"

void plain_warm(const struct worker *w, const struct plain_library *of, uint32_t major)
{
	library_once(w->config, of->library, major, of->open, of->bytes);
}

CUresult plain_status(struct request *r, const struct plain_library *of, int status)
{
	struct library_reply *answer = (void *)r->answer;
	int kind = of->kind_of ? of->kind_of(status) : status;

	if (r->header.kind != FRAME_CALL)
		return library_result(&of->statuses, kind);
	answer->status = (uint32_t)status;
	if (!library_lasting(&of->statuses, kind))
		answer->flags |= LIBRARY_PASSING;
	return CUDA_SUCCESS;
}

CUresult plain_without(
	struct worker *w, struct request *r, const struct plain_library *of, const char *name)
{
	return plain_status(r, of, library_status(&of->statuses, worker_lacks(w, name)));
}

const void *plain_open(
	struct worker *w, struct request *r, const struct plain_library *of, uint32_t major)
{
	struct library_reply *answer = (void *)r->answer;
	const void *library;

	if (!library_serves(of->library, major)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	library = library_once(w->config, of->library, major, of->open, of->bytes);
	if (!library) {
		worker_refuse(r, plain_status(r, of, of->statuses.missing));
		answer->flags = LIBRARY_ABSENT;
	}
	return library;
}

const void *plain_shared(struct worker *w, struct request *r, const struct plain_library *of,
	uint32_t major, void **handle)
{
	const void *library = plain_open(w, r, of, major);
	uint16_t number = r->header.context;
	struct plain_shared *one;
	int status;

	if (!library)
		return NULL;
	if (number >= CONTEXT_MAX) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	one = &of->shared[(major - library_family(of->library)->oldest) * CONTEXT_MAX + number];
	if (one->context != w->contexts[number]) {
		one->context = NULL;
		status = of->create(library, &one->handle);
		if (status) {
			worker_refuse(r, plain_status(r, of, status));
			return NULL;
		}
		one->context = w->contexts[number];
	}
	*handle = one->handle;
	return library;
}

CUresult plain_bind(struct worker *w, struct request *r, const struct plain_library *of,
	const void *library, int status, void *made, uint64_t handle, bool on_host)
{
	struct library_opened *answer = (void *)r->answer;
	struct plain_served *s;

	answer->reply.status = (uint32_t)status;
	if (status)
		return CUDA_SUCCESS;
	s = calloc(1, sizeof(*s));
	if (s)
		worker_bind(w, r, handle, of->kind, s);
	if (!s || worker_refused(r)) {
		of->destroy(library, made);
		free(s);
		return r->refused ? r->refused : CUDA_ERROR_OUT_OF_MEMORY;
	}
	s->of = of;
	s->library = library;
	s->handle = made;
	s->context = r->header.context;
	s->on_host = on_host;
	for (uint32_t i = 0; of->get_word && i < LIBRARY_STATE_WORDS; i++)
		s->word[i] = of->get_word(library, made, i);
	if (of->version)
		answer->version = of->version(library, made);
	return CUDA_SUCCESS;
}

/* Sets what differs from the last call. */
static int plain_set(struct plain_served *s, CUstream stream, const uint32_t *word)
{
	int status = 0;

	if (s->of->set_stream && (stream != s->stream || !s->stream_set)) {
		status = s->of->set_stream(s->library, s->handle, stream);
		s->stream_set = !status;
		s->stream = stream;
	}
	if (!s->of->set_word || !memcmp(s->word, word, sizeof(s->word)))
		return status;
	for (uint32_t i = 0; !status && i < LIBRARY_STATE_WORDS; i++) {
		if (word[i] == s->word[i])
			continue;
		status = s->of->set_word(s->library, s->handle, i, word[i]);
		if (!status)
			s->word[i] = word[i];
	}
	return status;
}

void plain_forget(const struct plain_library *of, uint16_t context)
{
	for (uint32_t i = 0; of->shared && i < LIBRARY_MAJORS; i++)
		of->shared[i * CONTEXT_MAX + context].context = NULL;
}

bool plain_reaches(const struct worker *w, const struct plain_served *s, uint16_t context)
{
	return s->context == context ||
	       (context < CONTEXT_MAX &&
		       (w->greens.contexts[s->context] || w->greens.contexts[context]));
}

/* A frame comes in the context of its stream. The program's call had the handle's, where that
 * is another one: a library makes what it needs (events, memory) in the current one. Without a
 * stream of its own the work is for the frame's context. */
static CUresult use_context(struct worker *w, const struct request *r,
	const struct plain_served *s, uint64_t stream)
{
	if (!plain_reaches(w, s, r->header.context))
		return CUDA_ERROR_INVALID_VALUE;
	return stream > 1 ? worker_use(w, s->context) : CUDA_SUCCESS;
}

struct plain_served *plain_use(struct worker *w, struct request *r,
	const struct plain_library *of, const struct library_state *state)
{
	struct plain_served *s = worker_handle(w, r, state->handle, of->kind);
	CUstream stream;
	int status;

	/* A program may share it between threads; the library's is one thread's at a time. It
	 * stays while calls are served beside the loop (closing.c). */
	while (s && s->busy)
		beside_others(w, r);
	stream = worker_stream(w, r, state->stream);
	if (s)
		worker_refuse(r, use_context(w, r, s, state->stream));
	if (of->pointer_mode != LIBRARY_NO_WORD &&
		state->word[of->pointer_mode] > LIBRARY_POINTERS_DEVICE)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return NULL;
	status = plain_set(s, stream, state->word);
	if (!status)
		return s;
	worker_refuse(r, plain_status(r, of, status));
	return NULL;
}

void *plain_fills(struct worker *w, struct request *r, struct plain_served *s, uint64_t address,
	uint64_t count, size_t each)
{
	uint64_t bytes;

	if (!s->on_host)
		return (void *)(uintptr_t)address;
	/* Its calls are never posted: somebody waits for the bytes. */
	if (__builtin_mul_overflow(count, each, &bytes) || r->header.kind != FRAME_CALL) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	s->to = bytes ? worker_range(w, r, address, bytes) : 0;
	s->bytes = bytes;
	if (worker_refused(r))
		return NULL;
	s->filled = malloc(bytes ? bytes : 1);
	if (!s->filled)
		worker_refuse(r, CUDA_ERROR_OUT_OF_MEMORY);
	return s->filled;
}

void plain_unfill(struct plain_served *s)
{
	free(s->filled);
	s->filled = NULL;
}

CUresult plain_answer(struct worker *w, struct request *r, struct plain_served *s, int status)
{
	CUresult copied = CUDA_SUCCESS;

	if (s->filled) {
		if (!status && s->bytes)
			copied = w->cuda.cuMemcpyHtoD_v2(s->to, s->filled, s->bytes);
		plain_unfill(s);
	}
	return copied ? copied : plain_status(r, s->of, status);
}

CUresult plain_lacks(
	struct worker *w, struct request *r, struct plain_served *s, const char *name)
{
	if (!s || worker_refused(r))
		return r->refused;
	return plain_answer(w, r, s, library_status(&s->of->statuses, worker_lacks(w, name)));
}

static CUresult plain_destroy(struct worker *w, void *object)
{
	struct plain_served *s = object;
	/* It belongs to the context that it was made in. */
	CUresult status = worker_use(w, s->context);

	if (!status)
		status =
			library_result(&s->of->statuses, s->of->destroy(s->library, s->handle));
	free(s);
	return status;
}

CUresult plain_close(
	struct worker *w, struct request *r, const struct plain_library *of, uint64_t handle)
{
	struct plain_served *s = worker_handle(w, r, handle, of->kind);

	if (!s)
		return r->refused;
	worker_unbind(w, r, handle, of->kind);
	return closing_do(w, plain_destroy, s);
}
