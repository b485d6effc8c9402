/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's library and handles: see cudnn.h.  The library is opened when the first handle of
 * that major is made (for 8, that of 9 where only it is there: library_search.h).
 */
#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/libraries/cudnn/backend.h"
#include "protocol/generated/cudnn_wire.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

int cudnn_kind_of(int status)
{
	switch (status / 1000) {
	case 1: return CUDNN_STATUS_NOT_INITIALIZED;
	case 4:
		return status == CUDNN_STATUS_ALLOC_FAILED ||
				       status ==
					       CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
			       ? CUDNN_STATUS_ALLOC_FAILED
			       : CUDNN_STATUS_INTERNAL_ERROR;
	default: return status / 1000 * 1000;
	}
}

CUresult cudnn_answer(struct request *r, cudnnStatus_t status)
{
	return plain_status(r, &cudnn_plain, status);
}

int cudnn_nine(const void *library, int status)
{
	const struct cudnn_library *l = library;

	return status && l->cudnnGetVersion() < 10000 ? cudnn_status_from_8(status) : status;
}

void cudnn_warm(const struct worker *w, uint32_t major)
{
	cudnn_warm_context(cudnn_library_of(w->config, major), w->contexts[CONTEXT_PRIMARY(0)]);
}

CUresult serve_vcudaCudnnVersion(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnVersion *req = (const void *)r->body;
	struct wire_vcudaCudnnVersion_reply *answer = (void *)r->answer;
	const struct cudnn_library *library;

	if (!library_serves(LIBRARY_CUDNN, req->major))
		return CUDA_ERROR_INVALID_VALUE;
	library = cudnn_library_of(w->config, req->major);
	if (!library) {
		answer->status = CUDNN_STATUS_NOT_INITIALIZED;
		return CUDA_SUCCESS;
	}
	answer->version = (uint32_t)library->cudnnGetVersion();
	if (library->cudnnGetCudartVersion)
		answer->cudart = (uint32_t)library->cudnnGetCudartVersion();
	return CUDA_SUCCESS;
}

CUresult serve_cudnnCreate(struct worker *w, struct request *r)
{
	const struct wire_cudnnCreate *req = (const void *)r->body;
	const struct cudnn_library *l;
	cudnnHandle_t handle = NULL;
	int status;

	if (beside_serve(w, r, serve_cudnnCreate))
		return CUDA_SUCCESS;
	l = plain_open(w, r, &cudnn_plain, req->major);
	if (!l)
		return r->refused;
	status = cudnn_nine(l, cudnn_handle_new(r, l, w->contexts[r->header.context], &handle));
	return plain_bind(w, r, &cudnn_plain, l, status, handle, req->state.handle, false);
}

void cudnn_element_numbered(const void *library, void *perf)
{
	struct cudnn_perf *found = perf;

	found->status = cudnn_nine(library, found->status);
}

void cudnn_forget(uint16_t context)
{
	cudnn_warm_forget(); /* of which context does not matter: there are two at most */
	cudnn_graph_forget(context);
	cudnn_descriptors_forget(context);
}
