/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS on the worker: its library is opened when the first handle of that major is made (the
 * next major where only that is there: library.h).  A handle is set to the state that a call
 * brings only where it differs from the last one.
 */
#include "gpu-agent/worker/libraries/cublas/cublas.h"

#include <stdio.h>
#include <stdlib.h>

#include "gpu-agent/probe/library.h"
#include "gpu-agent/worker/closing.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

struct cublas_served {
	cublasHandle_t handle;
	const struct cublas_library *library;
	struct cublas_state set; /* what the library's handle is set to */
	CUstream stream;
	uint16_t context;
	bool stream_set;
};

CUresult cublas_result(cublasStatus_t status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS: return CUDA_SUCCESS;
	case CUBLAS_STATUS_NOT_INITIALIZED: return CUDA_ERROR_NOT_INITIALIZED;
	case CUBLAS_STATUS_ALLOC_FAILED: return CUDA_ERROR_OUT_OF_MEMORY;
	case CUBLAS_STATUS_INVALID_VALUE: return CUDA_ERROR_INVALID_VALUE;
	case CUBLAS_STATUS_ARCH_MISMATCH: return CUDA_ERROR_NO_BINARY_FOR_GPU;
	case CUBLAS_STATUS_MAPPING_ERROR: return CUDA_ERROR_MAP_FAILED;
	case CUBLAS_STATUS_NOT_SUPPORTED: return CUDA_ERROR_NOT_SUPPORTED;
	case CUBLAS_STATUS_INTERNAL_ERROR: return CUDA_ERROR_OPERATING_SYSTEM;
	/* Not LAUNCH_FAILED: whether the context is lost is for the driver to say. */
	default: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	}
}

void cublas_warm(const struct worker *w, uint32_t major)
{
	cublas_library_of(w->config, major);
}

CUresult serve_vcudaCublasOpen(struct worker *w, struct request *r)
{
	const struct wire_vcudaCublasOpen *req = (const void *)r->body;
	struct wire_vcudaCublasOpen_reply *answer = (void *)r->answer;
	const struct cublas_library *library;
	struct cublas_served *served;
	cublasStatus_t status;
	int version = 0;

	if (!library_serves(LIBRARY_CUBLAS, req->major))
		return CUDA_ERROR_INVALID_VALUE;
	library = cublas_library_of(w->config, req->major);
	if (!library) {
		answer->status = CUBLAS_STATUS_NOT_INITIALIZED;
		return CUDA_SUCCESS;
	}
	served = calloc(1, sizeof(*served));
	if (!served)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = library->cublasCreate_v2(&served->handle);
	if (!status) {
		worker_bind(w, r, req->handle, KIND_cublasHandle, served);
		if (r->refused)
			library->cublasDestroy_v2(served->handle);
	}
	if (status || r->refused) {
		free(served);
		answer->status = (uint32_t)status;
		return r->refused;
	}
	served->library = library;
	served->context = r->header.context;
	served->set.handle = req->handle;
	if (library->cublasGetMathMode) {
		int mode = 0;

		library->cublasGetMathMode(served->handle, &mode);
		served->set.math = (uint32_t)mode;
	}
	if (library->cublasGetVersion_v2)
		library->cublasGetVersion_v2(served->handle, &version);
	answer->version = (uint32_t)version;
	return CUDA_SUCCESS;
}

static CUresult cublas_close(struct worker *w, void *object)
{
	struct cublas_served *served = object;
	/* It belongs to the context that it was made in. */
	CUresult status = worker_use(w, served->context);

	if (!status)
		status = cublas_result(served->library->cublasDestroy_v2(served->handle));
	free(served);
	return status;
}

CUresult serve_vcudaCublasClose(struct worker *w, struct request *r)
{
	const struct wire_vcudaCublasClose *req = (const void *)r->body;
	struct cublas_served *served = worker_handle(w, r, req->handle, KIND_cublasHandle);

	if (!served)
		return r->refused;
	worker_unbind(w, r, req->handle, KIND_cublasHandle);
	return closing_do(w, cublas_close, served);
}

/* A setter that the library has. */
#define EMULATE(NAME, VALUE) (l->NAME ? l->NAME(s->handle, VALUE) : CUBLAS_STATUS_NOT_SUPPORTED)

CUresult serve_vcudaCublasEmulation(struct worker *w, struct request *r)
{
	const struct wire_vcudaCublasEmulation *req = (const void *)r->body;
	struct wire_vcudaCublasEmulation_reply *answer = (void *)r->answer;
	struct cublas_served *s = worker_handle(w, r, req->handle, KIND_cublasHandle);
	const struct cublas_library *l;
	int value = (int)req->value;
	cublasStatus_t status;

	if (!s)
		return r->refused;
	l = s->library;
	switch (req->which) {
	case CUBLAS_EMULATION_STRATEGY:
		status = EMULATE(cublasSetEmulationStrategy, value);
		break;
	case CUBLAS_EMULATION_SPECIAL_VALUES:
		status = EMULATE(cublasSetEmulationSpecialValuesSupport,
			(cudaEmulationSpecialValuesSupport)value);
		break;
	case CUBLAS_EMULATION_MANTISSA_CONTROL:
		status = EMULATE(cublasSetFixedPointEmulationMantissaControl,
			(cudaEmulationMantissaControl)value);
		break;
	case CUBLAS_EMULATION_MAX_BITS:
		status = EMULATE(cublasSetFixedPointEmulationMaxMantissaBitCount, value);
		break;
	case CUBLAS_EMULATION_BIT_OFFSET:
		status = EMULATE(cublasSetFixedPointEmulationMantissaBitOffset, value);
		break;
	case CUBLAS_EMULATION_BIT_COUNT:
		status = EMULATE(cublasSetFixedPointEmulationMantissaBitCountPointer,
			(int *)(uintptr_t)req->value);
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	answer->status = (uint32_t)status;
	return CUDA_SUCCESS;
}

/* The state's numbers, set where they differ. A library that lacks a setter has the default. */
static cublasStatus_t cublas_set(struct cublas_served *s, const struct cublas_state *state)
{
	const struct cublas_library *l = s->library;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

	if (state->pointer_mode != s->set.pointer_mode)
		status = l->cublasSetPointerMode_v2(s->handle, (int)state->pointer_mode);
	if (!status && state->math != s->set.math && l->cublasSetMathMode)
		status = l->cublasSetMathMode(s->handle, (int)state->math);
	if (!status && state->atomics != s->set.atomics && l->cublasSetAtomicsMode)
		status = l->cublasSetAtomicsMode(s->handle, (int)state->atomics);
	if (!status && state->sm_count != s->set.sm_count && l->cublasSetSmCountTarget)
		status = l->cublasSetSmCountTarget(s->handle, state->sm_count);
	if (!status)
		s->set = *state;
	return status;
}

cublasHandle_t cublas_use(struct worker *w, struct request *r, const struct cublas_state *state,
	const struct cublas_library **library)
{
	struct cublas_served *s = worker_handle(w, r, state->handle, KIND_cublasHandle);
	CUstream stream = worker_stream(w, r, state->stream);
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

	if (state->pointer_mode > CUBLAS_POINTER_MODE_DEVICE ||
		(s && s->context != r->header.context))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return NULL;
	*library = s->library;
	if (stream != s->stream || !s->stream_set) {
		status = s->library->cublasSetStream_v2(s->handle, stream);
		s->stream_set = !status;
		s->stream = stream;
	}
	if (!status && memcmp(&s->set.pointer_mode, &state->pointer_mode,
			       sizeof(*state) - offsetof(struct cublas_state, pointer_mode)))
		status = cublas_set(s, state);
	if (status)
		worker_refuse(r, cublas_result(status));
	return s->handle;
}

void cublas_check(struct worker *w, struct request *r, const struct cublas_state *state,
	const uint64_t *words)
{
	if (state->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
		worker_range(w, r, words[0], 1);
}
