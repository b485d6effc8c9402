/* SPDX-License-Identifier: Apache-2.0
 *
 * Symmetric eigenvalue problems, as all the calls for them say what they want.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_EIGEN_H
#define VCUDA_SOFTGPU_SOLVER_EIGEN_H

#include "softgpu/solver/solver.h"

#define EIGEN_RANGE_ALL 1001 /* CUSOLVER_EIG_RANGE_ALL; I and V follow */

struct eigen {
	enum solver_type type;
	int itype; /* 0: there is no B */
	int jobz, range, uplo;
	int64_t n;
	void *a;
	int64_t lda, stride_a;
	void *b;
	int64_t ldb, stride_b;
	double low, high;
	int64_t first, last;
	void *w;
	int64_t stride_w;
	void *work;
	uint64_t bytes;
	int *info; /* one for each matrix */
	int64_t batch;
};

bool eigen_valid(const struct eigen *e);
/* Elements of the workspace. */
int64_t eigen_need(const struct eigen *e);
/* The task, or NULL with *status. */
struct solver_task *eigen_task(struct solver_handle *h, const struct eigen *e, int *status);
void eigen_run(struct solver_task *t);
int eigen_all(struct solver_handle *h, const struct eigen *e);
/* How many were found is told to the host, and waited for. */
int eigen_some(struct solver_handle *h, const struct eigen *e, int64_t *found);

#endif
