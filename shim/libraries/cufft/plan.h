/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as the program's side has it: what it was said to be, its work area, its stream.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUFFT_PLAN_H
#define VCUDA_SHIM_LIBRARIES_CUFFT_PLAN_H

#include "protocol/generated/cufft_ops.h"
#include "shim/generated/cufft_hand.h"
#include "shim/libraries/common/plain.h"

struct fft_multi;

/* As in NVIDIA's library, one plan is not for several threads at once. */
struct plan {
	CUcontext context; /* that it was made in */
	CUstream stream;
	CUdeviceptr area;
	size_t area_bytes; /* that it needs */
	uint64_t digest;   /* of the content */
	struct cufft_whole content;
	struct fft_multi *multi; /* its GPUs; NULL: the one that it was made on */
	bool made;
	bool own_area;	    /* to be freed with it */
	bool no_allocation; /* the program brings the work area */
};

/* The plan of that number; NULL: none. */
struct plan *fft_plan(cufftHandle number);
/* Makes the plan of that content in the current context; NAME: of the call. */
cufftResult fft_plan_make(
	cufftHandle number, const struct cufft_whole *content, const char *name, size_t *bytes);
/* How large its work area would be. */
cufftResult fft_plan_size(const struct cufft_whole *content, const char *name, size_t *bytes);
/* A transform of a plan on one GPU. TYPE: of the plans that the call takes; 0: any. */
cufftResult fft_exec(cufftHandle number, int type, void *in, void *out, int direction);
/* Another work area instead of the one that it has. */
void fft_area(struct plan *plan, CUdeviceptr area, bool own);

#endif
