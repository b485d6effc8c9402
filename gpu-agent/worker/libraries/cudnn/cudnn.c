/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's library and handles: see cudnn.h.  The library is opened when the first handle of
 * that major is made (for 8, that of 9 where only it is there: library.h).
 */
#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

#include <stdlib.h>
#include <string.h>

#include "gpu-agent/probe/library.h"
#include "gpu-agent/worker/closing.h"
#include "gpu-agent/worker/libraries/cudnn/graph.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

CUresult cudnn_result(cudnnStatus_t status)
{
	switch (status / 1000) {
	case 0: return CUDA_SUCCESS;
	case 1: return CUDA_ERROR_NOT_INITIALIZED;
	case 2: return CUDA_ERROR_INVALID_VALUE;
	case 3: return CUDA_ERROR_NOT_SUPPORTED;
	case 4:
		return status == CUDNN_STATUS_ALLOC_FAILED ||
				       status ==
					       CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
			       ? CUDA_ERROR_OUT_OF_MEMORY
			       : CUDA_ERROR_OPERATING_SYSTEM;
	/* Not LAUNCH_FAILED: whether the context is lost is for the driver to say. */
	default: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	}
}

cudnnStatus_t cudnn_nine(const struct cudnn_served *served, cudnnStatus_t status)
{
	return served->major == 8 ? cudnn_status_from_8(status) : status;
}

/* *found: which major it is, not what its file is called. */
static const struct cudnn_library *cudnn_find(
	const struct worker *w, uint32_t major, uint32_t *found)
{
	const struct cudnn_library *library = cudnn_library_of(w->config, major);

	if (library)
		*found = library->cudnnGetVersion() < 10000 ? 8 : 9;
	return library;
}

void cudnn_warm(const struct worker *w, uint32_t major)
{
	uint32_t found;

	cudnn_warm_context(cudnn_find(w, major, &found), w->contexts[CONTEXT_PRIMARY(0)]);
}

CUresult serve_vcudaCudnnVersion(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnVersion *req = (const void *)r->body;
	struct wire_vcudaCudnnVersion_reply *answer = (void *)r->answer;
	const struct cudnn_library *library;
	uint32_t found = 0;

	if (!library_serves(LIBRARY_CUDNN, req->major))
		return CUDA_ERROR_INVALID_VALUE;
	library = cudnn_find(w, req->major, &found);
	if (!library) {
		answer->status = CUDNN_STATUS_NOT_INITIALIZED;
		return CUDA_SUCCESS;
	}
	answer->version = (uint32_t)library->cudnnGetVersion();
	if (library->cudnnGetCudartVersion)
		answer->cudart = (uint32_t)library->cudnnGetCudartVersion();
	return CUDA_SUCCESS;
}

CUresult serve_vcudaCudnnOpen(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnOpen *req = (const void *)r->body;
	struct wire_vcudaCudnnOpen_reply *answer = (void *)r->answer;
	struct cudnn_served *served;
	cudnnStatus_t status;

	if (!library_serves(LIBRARY_CUDNN, req->major))
		return CUDA_ERROR_INVALID_VALUE;
	served = calloc(1, sizeof(*served));
	if (!served)
		return CUDA_ERROR_OUT_OF_MEMORY;
	served->library = cudnn_find(w, req->major, &served->major);
	if (!served->library) {
		free(served);
		answer->status = CUDNN_STATUS_NOT_INITIALIZED;
		return CUDA_SUCCESS;
	}
	served->context = r->header.context;
	status = cudnn_nine(served, cudnn_handle_new(served->library,
					    w->contexts[r->header.context], &served->handle));
	if (!status) {
		worker_bind(w, r, req->handle, KIND_cudnnHandle, served);
		if (r->refused)
			served->library->cudnnDestroy(served->handle);
	}
	answer->version = (uint32_t)served->library->cudnnGetVersion();
	if (status || r->refused) {
		free(served);
		answer->status = (uint32_t)status;
		return r->refused;
	}
	if (served->library->cudnnGetCudartVersion)
		answer->cudart = (uint32_t)served->library->cudnnGetCudartVersion();
	return CUDA_SUCCESS;
}

static CUresult cudnn_close(struct worker *w, void *object)
{
	struct cudnn_served *served = object;
	/* It belongs to the context that it was made in. */
	CUresult status = worker_use(w, served->context);

	if (!status)
		status = cudnn_result(
			cudnn_nine(served, served->library->cudnnDestroy(served->handle)));
	free(served);
	return status;
}

CUresult serve_vcudaCudnnClose(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnClose *req = (const void *)r->body;
	struct cudnn_served *served = worker_handle(w, r, req->handle, KIND_cudnnHandle);

	if (!served)
		return r->refused;
	worker_unbind(w, r, req->handle, KIND_cudnnHandle);
	return closing_do(w, cudnn_close, served);
}

struct cudnn_served *cudnn_use(
	struct worker *w, struct request *r, uint64_t handle, uint64_t stream)
{
	struct cudnn_served *s = worker_handle(w, r, handle, KIND_cudnnHandle);
	CUstream real = worker_stream(w, r, stream);

	if (s && s->context != r->header.context)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return NULL;
	if (real != s->stream || !s->stream_set) {
		cudnnStatus_t status =
			cudnn_nine(s, s->library->cudnnSetStream(s->handle, real));

		s->stream_set = !status;
		s->stream = real;
		if (status) {
			worker_refuse(r, cudnn_result(status));
			return NULL;
		}
	}
	return s;
}

void cudnn_forget(uint16_t context)
{
	cudnn_warm_forget(); /* of which context does not matter: there are two at most */
	cudnn_graph_forget(context);
	cudnn_descriptors_forget(context);
}
