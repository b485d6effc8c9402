/* SPDX-License-Identifier: Apache-2.0
 *
 * LAPACK's singular value decomposition of one matrix, for a running task.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_GESVD_H
#define VCUDA_SOFTGPU_SOLVER_GESVD_H

#include "softgpu/solver/solver.h"

/* A of the task's M and N is lost, S takes real numbers, and `rest`, where it is not NULL, what
 * did not converge. */
void gesvd_lapack(struct solver_task *t, char jobu, char jobvt, void *a, int lda, void *s,
	void *u, int ldu, void *vt, int ldvt, void *rest, int *info);

#endif
