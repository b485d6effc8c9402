/* SPDX-License-Identifier: Apache-2.0
 *
 * See plain.h.
 */
#include "gpu-agent/worker/libraries/common/plain.h"

#include <stdlib.h>

#include "gpu-agent/probe/library.h"
#include "gpu-agent/worker/closing.h"
#include "gpu-agent/worker/worker_state.h"

void plain_warm(const struct worker *w, const struct plain_library *of, uint32_t major)
{
	library_once(w->config, of->library, major, of->open, of->bytes);
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
		answer->status = (uint32_t)of->missing;
		answer->absent = 1;
	}
	return library;
}

CUresult plain_bind(struct worker *w, struct request *r, const struct plain_library *of,
	const void *library, int status, void *made, uint64_t handle, bool on_host)
{
	struct library_reply *answer = (void *)r->answer;
	struct plain_served *s;

	answer->status = (uint32_t)status;
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
	return CUDA_SUCCESS;
}

struct plain_served *plain_use(struct worker *w, struct request *r,
	const struct plain_library *of, const struct library_state *state)
{
	struct plain_served *s = worker_handle(w, r, state->handle, of->kind);
	CUstream stream = worker_stream(w, r, state->stream);

	if (s && s->context != r->header.context)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return NULL;
	if (stream != s->stream || !s->stream_set) {
		int status = s->of->set_stream(s->library, s->handle, stream);

		s->stream_set = !status;
		s->stream = stream;
		if (status) {
			worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
			return NULL;
		}
	}
	return s;
}

void *plain_fills(struct worker *w, struct request *r, struct plain_served *s, uint64_t address,
	uint64_t count, size_t each)
{
	uint64_t bytes;

	if (!s || !s->on_host)
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

CUresult plain_answer(struct worker *w, struct request *r, struct plain_served *s, int status)
{
	struct library_reply *answer = (void *)r->answer;
	CUresult copied = CUDA_SUCCESS;

	if (s->filled) {
		if (!status && s->bytes)
			copied = w->cuda.cuMemcpyHtoD_v2(s->to, s->filled, s->bytes);
		free(s->filled);
		s->filled = NULL;
	}
	if (copied)
		return copied;
	if (r->header.kind == FRAME_CALL) {
		answer->status = (uint32_t)status;
		return CUDA_SUCCESS;
	}
	/* Of a post: whether the context is lost is for the driver to say. */
	return !status			 ? CUDA_SUCCESS
	       : status == s->of->memory ? CUDA_ERROR_OUT_OF_MEMORY
					 : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

static CUresult plain_destroy(struct worker *w, void *object)
{
	struct plain_served *s = object;
	/* It belongs to the context that it was made in. */
	CUresult status = worker_use(w, s->context);

	if (!status && s->of->destroy(s->library, s->handle))
		status = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
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
