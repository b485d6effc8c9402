/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse systems solved in one call, and the eigenvalue nearest to a number.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/solver/sparse.h"

void zgetrf_(const int *, const int *, void *, const int *, int *, int *);
void zgetrs_(const char *, const int *, const int *, const void *, const int *, const int *,
	void *, const int *, int *, size_t);

struct question {
	struct solver_sparse_handle *handle;
	struct solver_sparse_matrix a;
	const void *b;
	double tolerance;
	void *x;
	int *singularity;
};

static int by_qr(const struct question *q, number *a, number *b, int *singular)
{
	struct solver_sparse_qr qr;
	int status = solver_sparse_qr(&qr, a, q->a.m, q->a.m);

	if (!status) {
		*singular = solver_sparse_qr_singular(&qr, q->tolerance);
		status = solver_sparse_qr_solve(&qr, b);
	}
	solver_sparse_qr_drop(&qr);
	return status;
}

static int by_cholesky(const struct question *q, number *a, number *b, int *singular)
{
	int status = SOLVER_SUCCESS;

	*singular = solver_sparse_cholesky(a, q->a.m);
	if (*singular < 0) {
		*singular = solver_sparse_cholesky_singular(a, q->a.m, q->tolerance);
		status = solver_sparse_cholesky_solve(a, q->a.m, b);
	}
	free(a);
	return status;
}

static int solve(const struct question *q,
	int (*by)(const struct question *q, number *a, number *b, int *singular))
{
	int status, singular = -1;
	number *a, *b;

	if (!q->handle)
		return SOLVER_NOT_INITIALIZED;
	if (!q->singularity)
		return SOLVER_INVALID_VALUE;
	status = solver_sparse_begin(q->handle->stream);
	if (status)
		return status;
	a = solver_sparse_dense(&q->a, &status);
	b = a ? solver_sparse_vector(q->a.type, q->b, q->a.m, &status) : NULL;
	if (b)
		status = by(q, a, b, &singular);
	else
		free(a);
	if (!status)
		status = solver_sparse_store(q->a.type, q->x, b, q->a.m);
	free(b);
	solver_sparse_end();
	if (!status)
		*q->singularity = singular;
	return status;
}

/* ---- inverse iteration ---- */

struct iteration {
	int n, most;
	number near, found;
	double enough;
	number *a, *factors, *x, *y;
	int *pivots;
};

static double norm(const number *x, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += creal(x[i]) * creal(x[i]) + cimag(x[i]) * cimag(x[i]);
	return sqrt(sum);
}

static void scale(number *x, int n)
{
	double length = norm(x, n);

	for (int i = 0; length > 0 && i < n; i++)
		x[i] /= length;
}

/* How far A x is from `value` x. */
static double residual(const struct iteration *it, number value)
{
	double sum = 0;

	for (int64_t i = 0; i < it->n; i++) {
		number r = -value * it->x[i];

		for (int64_t j = 0; j < it->n; j++)
			r += it->a[i + j * it->n] * it->x[j];
		sum += creal(r) * creal(r) + cimag(r) * cimag(r);
	}
	return sqrt(sum);
}

static int iterate(struct iteration *it)
{
	int n = it->n, one = 1, info = 0;

	memcpy(it->factors, it->a, (size_t)n * (size_t)n * sizeof(*it->a));
	for (int64_t i = 0; i < n; i++)
		it->factors[i + i * n] -= it->near;
	zgetrf_(&n, &n, it->factors, &n, it->pivots, &info);
	if (info)
		return SOLVER_INTERNAL_ERROR; /* the number is an eigenvalue */
	scale(it->x, n);
	for (int turn = 0; turn < it->most; turn++) {
		number rise = 0;

		memcpy(it->y, it->x, (size_t)n * sizeof(*it->x));
		zgetrs_("N", &n, &one, it->factors, &n, it->pivots, it->y, &n, &info, 1);
		for (int i = 0; i < n; i++)
			rise += conj(it->x[i]) * it->y[i];
		memcpy(it->x, it->y, (size_t)n * sizeof(*it->x));
		scale(it->x, n);
		it->found = it->near + 1 / rise;
		if (residual(it, it->found) < it->enough)
			break;
	}
	return SOLVER_SUCCESS;
}

static int eigenvalue(struct solver_sparse_handle *handle, const struct solver_sparse_matrix *a,
	number near, const void *x0, int most, double enough, void *mu, void *x)
{
	struct iteration it = {.n = a->m, .most = most, .near = near, .enough = enough};
	size_t n = a->m > 0 ? (size_t)a->m : 1;
	int status = handle ? solver_sparse_begin(handle->stream) : SOLVER_NOT_INITIALIZED;

	if (status)
		return status;
	it.a = solver_sparse_dense(a, &status);
	it.x = it.a ? solver_sparse_vector(a->type, x0, a->m, &status) : NULL;
	it.factors = malloc(n * n * sizeof(*it.factors));
	it.y = malloc(n * sizeof(*it.y));
	it.pivots = malloc(n * sizeof(*it.pivots));
	if (it.x)
		status = it.factors && it.y && it.pivots ? iterate(&it) : SOLVER_ALLOC_FAILED;
	if (!status)
		status = solver_sparse_store(a->type, mu, &it.found, 1);
	if (!status)
		status = solver_sparse_store(a->type, x, it.x, a->m);
	free(it.a);
	free(it.x);
	free(it.factors);
	free(it.y);
	free(it.pivots);
	solver_sparse_end();
	return status;
}

/* ---- the calls ---- */

#define MATRIX                                                                                 \
	int m, int entries, const struct solver_sparse_descriptor *descriptor,                 \
		const void *values, const int *rows, const int *columns
#define AS_MATRIX(P) {SOLVER_##P, m, m, entries, descriptor, values, rows, columns}
#define SYSTEMS(P, REAL, NUMBER)                                                               \
	CALL(cusolverSp##P##csrlsvqr, struct solver_sparse_handle *h, MATRIX, const void *b,   \
		REAL tolerance, int reorder, void *x, int *singularity)                        \
	{                                                                                      \
		struct question q = {h, AS_MATRIX(P), b, tolerance, x, singularity};           \
                                                                                               \
		(void)reorder; /* what is spread out needs no order */                         \
		return solve(&q, by_qr);                                                       \
	}                                                                                      \
	CALL(cusolverSp##P##csrlsvchol, struct solver_sparse_handle *h, MATRIX, const void *b, \
		REAL tolerance, int reorder, void *x, int *singularity)                        \
	{                                                                                      \
		struct question q = {h, AS_MATRIX(P), b, tolerance, x, singularity};           \
                                                                                               \
		(void)reorder;                                                                 \
		return solve(&q, by_cholesky);                                                 \
	}                                                                                      \
	CALL(cusolverSp##P##csreigvsi, struct solver_sparse_handle *h, MATRIX, NUMBER near,    \
		const void *x0, int most, REAL enough, void *mu, void *x)                      \
	{                                                                                      \
		struct solver_sparse_matrix a = AS_MATRIX(P);                                  \
                                                                                               \
		return eigenvalue(h, &a, near, x0, most, enough, mu, x);                       \
	}
SYSTEMS(S, float, float)
SYSTEMS(D, double, double)
SYSTEMS(C, float, float complex)
SYSTEMS(Z, double, double complex)
