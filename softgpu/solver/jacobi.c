/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of the calls that natively turn by Jacobi's method.
 */
#include "softgpu/solver/jacobi.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

void solver_jacobi_keep(struct solver_task *task, struct solver_jacobi *jacobi)
{
	if (!jacobi)
		return;
	atomic_fetch_add(&jacobi->refs, 1);
	task->jacobi = jacobi;
	jacobi->batched = task->batch != 1;
}

void solver_jacobi_left(struct solver_task *task, int m, int k, const void *av, const void *u,
	int ldu, const void *values)
{
	int64_t parts = solver_complex(task->type) ? 2 : 1;
	double sum = 0;

	for (int64_t j = 0; j < k; j++) {
		double value = solver_number(task, values, j);

		for (int64_t i = 0; i < m * parts; i++) {
			double left = solver_number(task, av, j * m * parts + i) -
				      value * solver_number(task, u, j * ldu * parts + i);

			sum += left * left;
		}
	}
	task->jacobi->residual = sqrt(sum);
}

static int create(struct solver_jacobi **jacobi)
{
	if (!jacobi)
		return SOLVER_INVALID_VALUE;
	*jacobi = calloc(1, sizeof(**jacobi));
	if (!*jacobi)
		return SOLVER_ALLOC_FAILED;
	(*jacobi)->max_sweeps = 100;
	(*jacobi)->sort = 1;
	(*jacobi)->refs = 1;
	return SOLVER_SUCCESS;
}

/* What the calls before left is there once their stream has done them. */
static int told(
	struct solver_handle *handle, const struct solver_jacobi *jacobi, const void *to)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!jacobi || !to)
		return SOLVER_INVALID_VALUE;
	if (jacobi->batched)
		return SOLVER_NOT_SUPPORTED;
	return cuStreamSynchronize(handle->stream) ? SOLVER_EXECUTION_FAILED : SOLVER_SUCCESS;
}

/* The same for eigenvalues and singular values. No sweep is ever made. */
#define JACOBI(NAME, KIND)                                                                     \
	CALL(cusolverDnCreate##NAME##Info, struct solver_jacobi **jacobi)                      \
	{                                                                                      \
		return create(jacobi);                                                         \
	}                                                                                      \
	CALL(cusolverDnDestroy##NAME##Info, struct solver_jacobi *jacobi)                      \
	{                                                                                      \
		solver_jacobi_drop(jacobi);                                                    \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusolverDnX##KIND##SetTolerance, struct solver_jacobi *jacobi, double tolerance)  \
	{                                                                                      \
		if (!jacobi)                                                                   \
			return SOLVER_INVALID_VALUE;                                           \
		jacobi->tolerance = tolerance;                                                 \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusolverDnX##KIND##SetMaxSweeps, struct solver_jacobi *jacobi, int sweeps)        \
	{                                                                                      \
		if (!jacobi || sweeps < 0)                                                     \
			return SOLVER_INVALID_VALUE;                                           \
		jacobi->max_sweeps = sweeps;                                                   \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusolverDnX##KIND##SetSortEig, struct solver_jacobi *jacobi, int sort)            \
	{                                                                                      \
		if (!jacobi)                                                                   \
			return SOLVER_INVALID_VALUE;                                           \
		jacobi->sort = sort;                                                           \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusolverDnX##KIND##GetResidual, struct solver_handle *handle,                     \
		struct solver_jacobi *jacobi, double *residual)                                \
	{                                                                                      \
		int status = told(handle, jacobi, residual);                                   \
                                                                                               \
		if (!status)                                                                   \
			*residual = jacobi->residual;                                          \
		return status;                                                                 \
	}                                                                                      \
	CALL(cusolverDnX##KIND##GetSweeps, struct solver_handle *handle,                       \
		struct solver_jacobi *jacobi, int *sweeps)                                     \
	{                                                                                      \
		int status = told(handle, jacobi, sweeps);                                     \
                                                                                               \
		if (!status)                                                                   \
			*sweeps = 0;                                                           \
		return status;                                                                 \
	}
JACOBI(Syevj, syevj)
JACOBI(Gesvdj, gesvdj)
