/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the calls that natively turn by Jacobi's method, and what they leave there.
 */
#ifndef VCUDA_SOFTGPU_SOLVER_JACOBI_H
#define VCUDA_SOFTGPU_SOLVER_JACOBI_H

#include "softgpu/solver/solver.h"

struct solver_jacobi {
	double tolerance;
	int max_sweeps, sort;
	_Atomic bool batched; /* the last call was: it leaves no residual */
	_Atomic double residual;
	_Atomic unsigned refs; /* the program's, and each task's */
};

/* The task keeps them, and leaves its residual there. */
void solver_jacobi_keep(struct solver_task *task, struct solver_jacobi *jacobi);
void solver_jacobi_drop(struct solver_jacobi *jacobi);
/* For a running task: A V is V (or U) times the values, but for what is left: its norm. AV is a
 * scratch of M rows and K columns, side by side. */
void solver_jacobi_left(struct solver_task *task, int m, int k, const void *av, const void *u,
	int ldu, const void *values);

#endif
