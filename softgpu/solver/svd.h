/* SPDX-License-Identifier: Apache-2.0
 *
 * Singular values and vectors, as the calls that give V (not its conjugate transpose) say what
 * they want.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_SVD_H
#define VCUDA_SOFTGPU_SOLVER_SVD_H

#include "softgpu/solver/solver.h"

struct svd {
	enum solver_type type;
	bool left, right; /* the vectors that are wanted */
	bool econ;	  /* only as many as there are values */
	int64_t rank;	  /* with econ: only so many values */
	int64_t m, n;
	const void *a;
	int64_t lda, stride_a;
	void *s;
	int64_t stride_s;
	void *u;
	int64_t ldu, stride_u;
	void *v;
	int64_t ldv, stride_v;
	void *work;
	uint64_t bytes;
	int *info;	 /* one for each matrix */
	double *numbers; /* on the host: what the values that were left out make; NULL: untold
			  */
	int64_t batch;
};

bool svd_valid(const struct svd *c);
/* Elements of the workspace. */
int64_t svd_need(const struct svd *c);
/* The task, or NULL with *status. */
struct solver_task *svd_task(struct solver_handle *h, const struct svd *c, int *status);
int svd_run(struct solver_handle *h, const struct svd *c);

#endif
