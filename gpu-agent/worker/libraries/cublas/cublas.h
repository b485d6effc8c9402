/* SPDX-License-Identifier: Apache-2.0
 *
 * What generated serve functions of cublas.api (gpu-agent/generated/cublas_serve.c) stand on.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUBLAS_CUBLAS_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUBLAS_CUBLAS_H

#include <string.h>

#include "gpu-agent/worker/worker.h"
#include "protocol/libraries/cublas.h"
#include "gpu-agent/generated/cublas_library.h"

/* The library's handle, with the state that came along set, and the library; refuses what is
 * not one of the session's in this context. */
cublasHandle_t cublas_use(struct worker *w, struct request *r, const struct cublas_state *state,
	const struct cublas_library **library);

/* Refuses a scalar's or result's address that is not the session's own memory: the library may
 * read it with the CPU. */
void cublas_check(struct worker *w, struct request *r, const struct cublas_state *state,
	const uint64_t *words);

/* What the library is given for a scalar or result: the device address, or `local`, which gets
 * the words that came. */
static inline void *cublas_at(
	const struct cublas_state *state, uint64_t *local, const uint64_t *words, size_t bytes)
{
	if (state->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
		memset(local, 0, bytes);
		return (void *)(uintptr_t)words[0];
	}
	memcpy(local, words, bytes);
	return local;
}

/* As a CUresult; shim/libraries/cublas/status.c turns it back. A status that has no CUresult of
 * its own comes back as EXECUTION_FAILED. */
CUresult cublas_result(cublasStatus_t status);

#endif
