/* SPDX-License-Identifier: Apache-2.0
 *
 * Solutions with refinement, as the calls for them say what they want.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_REFINE_H
#define VCUDA_SOFTGPU_SOLVER_REFINE_H

#include "softgpu/solver/solver.h"

struct refine {
	enum solver_type type;
	bool lower; /* factored in fewer bits than the type has */
	bool least; /* least squares: M rows, N columns; else both are N */
	int m, n, nrhs;
	void *a;
	int lda;
	int *pivots; /* NULL: untold */
	void *b;
	int ldb;
	void *x;
	int ldx;
	void *work;
	size_t bytes;
	int *turns; /* on the host: how often it was refined, or below 0 */
	int *info;
};

int refine_tell(struct solver_handle *h, const struct refine *c, size_t *bytes);
/* Waits for the end, since the turns are told. */
int refine_run(struct solver_handle *h, const struct refine *c);

#endif
