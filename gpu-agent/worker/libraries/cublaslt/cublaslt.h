/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of cuBLASLt on the worker: made of what a frame says, and kept by that content,
 * so that a product that comes again finds them.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUBLASLT_CUBLASLT_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUBLASLT_CUBLASLT_H

#include "protocol/libraries/cublaslt.h"
#include "gpu-agent/generated/cublaslt_library.h"

/* The library's descriptors for a product; they are the cache's, and good until the next call
 * of one of these functions. */
struct cublaslt_kept {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t layout[CUBLASLT_MATRICES];
};

/* With those addresses set; `bit_count` is the emulation's.  What the library makes of it. */
cublasStatus_t cublaslt_make(const struct cublaslt_library *l,
	const struct cublaslt_problem *problem, const uint64_t pointers[CUBLASLT_POINTERS],
	uint64_t bit_count, struct cublaslt_kept *made);

/* A layout of matrix `which`. */
cublasStatus_t cublaslt_make_layout(const struct cublaslt_library *l,
	enum cublaslt_matrix which, const struct cublaslt_layout *content,
	cublasLtMatrixLayout_t *layout);

/* These are the caller's, to be destroyed. */
cublasStatus_t cublaslt_make_preference(const struct cublaslt_library *l,
	const struct cublaslt_preference *content, cublasLtMatmulPreference_t *preference);
cublasStatus_t cublaslt_make_transform(const struct cublaslt_library *l,
	const struct cublaslt_transform *content, cublasLtMatrixTransformDesc_t *transform);

#endif
