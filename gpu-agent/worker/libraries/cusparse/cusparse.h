/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE's descriptors on the worker.  Most are made of what a frame says and end with its
 * call, as a program's may.  One in which a call leaves something has a number of the
 * client's: made at its first use, it is kept until the client ends it.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUSPARSE_CUSPARSE_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUSPARSE_CUSPARSE_H

#include "gpu-agent/generated/cusparse_library.h"
#include "gpu-agent/worker/libraries/common/items.h"
#include "protocol/libraries/cusparse.h"

/* What a frame says of a descriptor. */
struct cusparse_said {
	uint32_t kind; /* enum cusparse_item */
	union cusparse_content content;
	struct cusparse_places places;
};

/* The library's descriptor of that kind (enum cusparse_item and what its mark says); NULL where
 * the frame is refused. It is good until the call's end. */
void *cusparse_get_descriptor(struct library_frame *f, uint32_t kind);
/* The call ended: what was made for it goes, sizes are told. */
void cusparse_ended(struct library_frame *f, int status);

/* The library's own of what was said; its status. */
int cusparse_make(
	const struct cusparse_library *l, const struct cusparse_said *said, void **made);
/* Makes what was said before what is said now, of a sparse matrix. */
int cusparse_change(const struct cusparse_library *l, void *descriptor,
	const struct cusparse_said *before, const struct cusparse_said *now);
void cusparse_unmake(const struct cusparse_library *l, uint32_t kind, void *made);

#endif
