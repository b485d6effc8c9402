/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a copy, checked.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_COPY_COPY_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_COPY_COPY_H

#include "gpu-agent/worker/worker_state.h"

struct worker_array;

/* As the driver gets it: what is checked is what is copied. */
struct copy_side {
	uint64_t at, pitch, rows;	  /* a slice is ROWS rows of PITCH bytes */
	const struct worker_array *array; /* not NULL: byte, row and slice in it */
};

/* The side at AT, or of ARRAY where that is not 0 (byte, row and slice in it), that a call
 * describes; refuses nonsense (a pitch below the width, slices that overlap, an overflow) and
 * memory that the session does not own. */
struct copy_side copy_side_any(struct worker *w, struct request *r, uint64_t array, uint64_t at,
	uint64_t pitch, uint64_t slice, uint64_t width, uint64_t height, uint64_t depth);
/* To the device from bytes of ours, or, with TO, from the device to these.  Ours lie row by
 * row. The stream's context is current. */
CUresult copy_host(struct worker *w, const struct worker_stream *stream,
	const struct copy_side *side, uint64_t width, uint64_t height, uint64_t depth,
	const void *from, void *to);

#endif
