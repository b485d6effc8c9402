/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSOLVER's objects of parameters on the worker: made of what a frame says, and kept by that
 * content, so that a call that comes again finds them.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUSOLVER_CUSOLVER_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUSOLVER_CUSOLVER_H

#include "gpu-agent/generated/cusolver_library.h"
#include "gpu-agent/worker/libraries/common/items.h"
#include "protocol/libraries/cusolver.h"

/* The library's object of that kind (enum cusolver_item); NULL where the frame is refused. It
 * is good until the next frame. */
void *cusolver_get_descriptor(struct library_frame *f, uint32_t kind);

/* cuSPARSE's descriptor of a matrix, as the library takes it; cuSOLVER's status. What *to has
 * is the caller's, in any case. */
int cusolver_matrix_make(
	const struct cusolver_library *l, const struct cusolver_matrix *m, void **to);
void cusolver_matrix_drop(const struct cusolver_library *l, void *descriptor);

#endif
