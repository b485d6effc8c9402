/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as the program's side has it: what it was said to be, its work area, its stream.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUFFT_PLAN_H
#define VCUDA_SHIM_LIBRARIES_CUFFT_PLAN_H

#include "protocol/generated/cufft_ops.h"
#include "shim/generated/cufft_hand.h"
#include "shim/libraries/common/plain.h"

/* As in NVIDIA's library, one plan is not for several threads at once. */
struct plan {
	CUcontext context; /* that it was made in */
	CUstream stream;
	CUdeviceptr area;
	size_t area_bytes; /* that it needs */
	uint64_t digest;   /* of the content */
	struct cufft_whole content;
	bool made;
	bool own_area;	    /* to be freed with it */
	bool no_allocation; /* the program brings the work area */
};

/* The plan of that number; NULL: none. */
struct plan *fft_plan(cufftHandle number);
/* Another work area instead of the one that it has. */
void fft_area(struct plan *plan, CUdeviceptr area, bool own);

#endif
