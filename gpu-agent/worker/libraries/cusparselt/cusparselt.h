/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSELt on the worker: the library's descriptors, algorithms and plans, made of what a
 * frame says and kept by that content with the handle that they were made with.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUSPARSELT_CUSPARSELT_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUSPARSELT_CUSPARSELT_H

#include "gpu-agent/generated/cusparselt_library.h"
#include "gpu-agent/worker/libraries/common/items.h"
#include "protocol/libraries/cusparselt.h"

/* Of the library's objects, of any version: before 0.8 they had 11 024. */
#define SPARSELT_BYTES 11264

struct sparselt_object {
	_Alignas(16) unsigned char data[SPARSELT_BYTES];
};

/* What the library made of a content. */
struct sparselt_kept {
	struct sparselt_kept *next; /* in the order of their last use */
	uint32_t kind;		    /* enum cusparselt_item */
	uint32_t matrices;	    /* so many are made */
	bool has_algorithm, has_plan;
	struct cusparselt_plan content; /* with addresses; a matrix is its product's first */
	struct sparselt_object matrix[CUSPARSELT_MATRICES], product, algorithm, plan;
};

/* First is the library's own: this is what a frame's handle is. */
struct sparselt_handle {
	struct sparselt_object own;
	struct sparselt_handle *next;
	const struct cusparselt_library *library;
	uint16_t context;
	struct sparselt_kept *kept;
};

/* The library's own of that content, newly made or kept; NULL: *status says why there is none.
 */
struct sparselt_kept *sparselt_keep(struct sparselt_handle *handle, uint32_t kind,
	const struct cusparselt_plan *content, int *status);
/* The object of that kind in it. */
void *sparselt_object_in(struct sparselt_kept *kept);
/* What was changed is not what its content says any more. */
void sparselt_drop(struct sparselt_handle *handle, const void *plan);
/* All that is kept goes. The handle's context is current. */
void sparselt_drop_all(struct sparselt_handle *handle);

/* The library's own of that kind (enum cusparselt_item); NULL where the frame is refused. It is
 * good until the call's end. */
void *cusparselt_get_descriptor(struct library_frame *f, uint32_t kind);
int cusparselt_destroy(const void *functions, void *handle);

#endif
