/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of cuBLASLt on the worker: made of what a frame says, and kept by that content,
 * so that a product that comes again finds them.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUBLASLT_CUBLASLT_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUBLASLT_CUBLASLT_H

#include "gpu-agent/worker/libraries/common/items.h"
#include "protocol/libraries/cublaslt.h"
#include "gpu-agent/generated/cublaslt_library.h"

/* The library's descriptors for a product; they are the cache's, and good until the next call
 * of one of these functions. */
struct cublaslt_kept {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t layout[CUBLASLT_MATRICES];
};

/* The library's descriptor of that kind (enum cublaslt_item) of what comes; NULL where a layout
 * is NULL, or the frame is refused. It is good until the next frame. */
void *cublaslt_get_descriptor(struct library_frame *f, uint32_t kind);

/* With those addresses set, in MORE's groups too; `bit_count` is the emulation's.  What the
 * library makes of it. */
cublasStatus_t cublaslt_make(const struct cublaslt_library *l,
	const struct cublaslt_problem *problem, const struct cublaslt_more *more,
	const uint64_t pointers[CUBLASLT_POINTERS], uint64_t bit_count,
	struct cublaslt_kept *made);

/* A product's; what the library makes of it. */
cublasStatus_t cublaslt_make_product(const struct cublaslt_library *l,
	const struct cublaslt_matmul *content, const struct cublaslt_emulation *emulation,
	const struct cublaslt_matmul_more *more, const uint64_t pointers[CUBLASLT_POINTERS],
	uint64_t bit_count, cublasLtMatmulDesc_t *desc);

/* A layout of matrix `which`; `group` is NULL where it is none of a grouped product, which only
 * a library with cublasLtGroupedMatrixLayoutCreate has. */
cublasStatus_t cublaslt_make_layout(const struct cublaslt_library *l,
	enum cublaslt_matrix which, const struct cublaslt_layout *content,
	const struct cublaslt_group *group, cublasLtMatrixLayout_t *layout);

cublasStatus_t cublaslt_make_transform(const struct cublaslt_library *l,
	const struct cublaslt_transform *content, cublasLtMatrixTransformDesc_t *transform);

/* The caller's, to be destroyed. */
cublasStatus_t cublaslt_make_preference(const struct cublaslt_library *l,
	const struct cublaslt_preference *content, const struct cublaslt_preference_more *more,
	cublasLtMatmulPreference_t *preference);

#endif
