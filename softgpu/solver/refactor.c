/* SPDX-License-Identifier: Apache-2.0
 *
 * Refactorization (cusolverRf): P A Q^T = L U for values that change on a pattern that does
 * not. Here A is spread out and eliminated without pivots, as P and Q were chosen for; the
 * pattern of L and U says what is handed out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/solver/sparse.h"

enum { FORMAT_ROWS, FORMAT_COLUMNS };
enum { STORED_L, STORED_U, ASSUMED_L, ASSUMED_U };
#define ZERO_PIVOT 10 /* cusolverStatus_t */

struct refactor {
	int format, unit, factor_algorithm, solve_algorithm, fast;
	double zero, boost;
	bool boosted;
	int n, entries;
	int *rows_of; /* P: row i of what is factored is this of A */
	int *columns_of;
	double *a;  /* P A Q^T */
	double *lu; /* both factors, L's diagonal is 1 */
	bool *kept; /* the pattern of both */
	bool analysed, factored;
};

static const struct solver_sparse_descriptor zero_based;

CALL(cusolverRfCreate, struct refactor **handle)
{
	if (!handle)
		return SOLVER_INVALID_VALUE;
	*handle = calloc(1, sizeof(**handle));
	if (!*handle)
		return SOLVER_ALLOC_FAILED;
	(*handle)->solve_algorithm = 1;
	return SOLVER_SUCCESS;
}

static void clear(struct refactor *r)
{
	free(r->rows_of);
	free(r->columns_of);
	free(r->a);
	free(r->lu);
	free(r->kept);
	r->rows_of = r->columns_of = NULL;
	r->a = r->lu = NULL;
	r->kept = NULL;
	r->analysed = r->factored = false;
}

CALL(cusolverRfDestroy, struct refactor *handle)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	clear(handle);
	free(handle);
	return SOLVER_SUCCESS;
}

/* ---- what it is set to ---- */

#define SETTING(NAME, TYPE, FIRST, SECOND, VALID)                                              \
	CALL(cusolverRfSet##NAME, struct refactor *handle, TYPE first, TYPE second)            \
	{                                                                                      \
		if (!handle)                                                                   \
			return SOLVER_NOT_INITIALIZED;                                         \
		if (!(VALID))                                                                  \
			return SOLVER_INVALID_VALUE;                                           \
		handle->FIRST = first;                                                         \
		handle->SECOND = second;                                                       \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusolverRfGet##NAME, struct refactor *handle, TYPE *first, TYPE *second)          \
	{                                                                                      \
		if (!handle)                                                                   \
			return SOLVER_NOT_INITIALIZED;                                         \
		if (!first || !second)                                                         \
			return SOLVER_INVALID_VALUE;                                           \
		*first = handle->FIRST;                                                        \
		*second = handle->SECOND;                                                      \
		return SOLVER_SUCCESS;                                                         \
	}
SETTING(MatrixFormat, int, format, unit,
	first >= 0 && first <= FORMAT_COLUMNS && second >= 0 && second <= ASSUMED_U)
SETTING(NumericProperties, double, zero, boost, true)
SETTING(Algs, int, factor_algorithm, solve_algorithm,
	first >= 0 && first <= 2 && second >= 1 && second <= 3)

CALL(cusolverRfSetResetValuesFastMode, struct refactor *handle, int mode)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	handle->fast = mode;
	return mode == 0 || mode == 1 ? SOLVER_SUCCESS : SOLVER_INVALID_VALUE;
}

CALL(cusolverRfGetResetValuesFastMode, struct refactor *handle, int *mode)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!mode)
		return SOLVER_INVALID_VALUE;
	*mode = handle->fast;
	return SOLVER_SUCCESS;
}

CALL(cusolverRfGetNumericBoostReport, struct refactor *handle, int *report)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!report)
		return SOLVER_INVALID_VALUE;
	*report = handle->boosted;
	return SOLVER_SUCCESS;
}

/* ---- setting up ---- */

struct pattern {
	int entries;
	const int *rows, *columns;
	const double *values;
};

/* It spread out, row i and column j at [i + j * n], whichever way it is compressed. */
static number *spread(const struct refactor *r, int n, const struct pattern *p, int *status)
{
	struct solver_sparse_matrix a = {
		SOLVER_D, n, n, p->entries, &zero_based, p->values, p->rows, p->columns};
	number *to = solver_sparse_dense(&a, status);

	if (!to || r->format == FORMAT_ROWS)
		return to;
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < j; i++) {
			number other = to[i + j * n];

			to[i + j * n] = to[j + i * n];
			to[j + i * n] = other;
		}
	return to;
}

/* An order of 0 … n - 1, the caller's to free; NULL with *status. */
static int *order(const int *from, int n, int *status)
{
	bool *seen = calloc((size_t)n + 1, sizeof(*seen));
	int *to = malloc(((size_t)n + 1) * sizeof(*to));

	*status = seen && to ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;
	if (!*status && !solver_sparse_reaches(from, (uint64_t)n, sizeof(*from)))
		*status = SOLVER_INVALID_VALUE;
	for (int i = 0; !*status && i < n; i++) {
		if (from[i] < 0 || from[i] >= n || seen[from[i]]) {
			*status = SOLVER_INVALID_VALUE;
			break;
		}
		seen[from[i]] = true;
		to[i] = from[i];
	}
	free(seen);
	if (!*status)
		return to;
	free(to);
	return NULL;
}

/* Where the factors have an entry. */
static int pattern_keep(struct refactor *r, const struct pattern *p)
{
	int status;

	free(spread(r, r->n, p, &status)); /* which looks at the indices */
	if (status)
		return status;
	for (int i = 0; i < r->n; i++)
		for (int k = p->rows[i]; k < p->rows[i + 1]; k++) {
			int64_t j = p->columns[k];

			r->kept[r->format == FORMAT_ROWS ? i + j * r->n
							 : j + (int64_t)i * r->n] = true;
		}
	return SOLVER_SUCCESS;
}

/* A's values, in the order of P and Q. */
static int values_take(struct refactor *r, const struct pattern *a)
{
	int status;
	number *dense = spread(r, r->n, a, &status);

	if (!dense)
		return status;
	for (int64_t j = 0; j < r->n; j++)
		for (int64_t i = 0; i < r->n; i++)
			r->a[i + j * r->n] =
				creal(dense[r->rows_of[i] + (int64_t)r->columns_of[j] * r->n]);
	free(dense);
	r->entries = a->entries;
	r->factored = false;
	return SOLVER_SUCCESS;
}

static int setup(struct refactor *r, int n, const struct pattern *a, const struct pattern *l,
	const struct pattern *u, const int *p, const int *q)
{
	size_t all = (size_t)n * (size_t)n + 1;
	int status;

	clear(r);
	r->n = n;
	r->rows_of = order(p, n, &status);
	if (!status)
		r->columns_of = order(q, n, &status);
	r->a = calloc(all, sizeof(*r->a));
	r->lu = calloc(all, sizeof(*r->lu));
	r->kept = calloc(all, sizeof(*r->kept));
	if (!status && (!r->a || !r->lu || !r->kept))
		status = SOLVER_ALLOC_FAILED;
	if (!status)
		status = pattern_keep(r, l);
	if (!status)
		status = pattern_keep(r, u);
	if (!status)
		status = values_take(r, a);
	for (int64_t i = 0; !status && i < n; i++)
		r->kept[i + i * n] = true;
	if (status)
		clear(r);
	return status;
}

CALL(cusolverRfSetupDevice, int n, int entries, int *rows, int *columns, double *values,
	int entries_l, int *rows_l, int *columns_l, double *values_l, int entries_u,
	int *rows_u, int *columns_u, double *values_u, int *p, int *q, struct refactor *handle)
{
	struct pattern a = {entries, rows, columns, values};
	struct pattern l = {entries_l, rows_l, columns_l, values_l};
	struct pattern u = {entries_u, rows_u, columns_u, values_u};
	int status = !handle		  ? SOLVER_NOT_INITIALIZED
		     : n < 1 || n > 20000 ? SOLVER_INVALID_VALUE
					  : solver_sparse_begin(NULL);

	if (status)
		return status;
	status = setup(handle, n, &a, &l, &u, p, q);
	solver_sparse_end();
	return status;
}

CALL(cusolverRfResetValues, int n, int entries, int *rows, int *columns, double *values, int *p,
	int *q, struct refactor *handle)
{
	struct pattern a = {entries, rows, columns, values};
	int status = !handle ? SOLVER_NOT_INITIALIZED
		     : !handle->a || n != handle->n || entries != handle->entries
			     ? SOLVER_INVALID_VALUE
			     : solver_sparse_begin(NULL);

	(void)p; /* those of the setup */
	(void)q;
	if (status)
		return status;
	status = values_take(handle, &a);
	solver_sparse_end();
	return status;
}

/* ---- factoring and solving ---- */

CALL(cusolverRfAnalyze, struct refactor *handle)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!handle->a)
		return SOLVER_INVALID_VALUE;
	handle->analysed = true;
	return SOLVER_SUCCESS;
}

CALL(cusolverRfRefactor, struct refactor *r)
{
	int64_t n;

	if (!r)
		return SOLVER_NOT_INITIALIZED;
	if (!r->analysed)
		return SOLVER_INVALID_VALUE;
	n = r->n;
	r->boosted = r->factored = false;
	memcpy(r->lu, r->a, (size_t)(n * n) * sizeof(*r->lu));
	for (int64_t k = 0; k < n; k++) {
		double *pivot = &r->lu[k + k * n];

		if (r->boost > 0 && fabs(*pivot) < r->zero) {
			*pivot = r->boost;
			r->boosted = true;
		}
		if (*pivot == 0)
			return ZERO_PIVOT;
		for (int64_t i = k + 1; i < n; i++)
			r->lu[i + k * n] /= *pivot;
		for (int64_t j = k + 1; j < n; j++)
			for (int64_t i = k + 1; i < n; i++)
				r->lu[i + j * n] -= r->lu[i + k * n] * r->lu[k + j * n];
	}
	r->factored = true;
	return SOLVER_SUCCESS;
}

/* X, a column on the device, is replaced by what solves the system. */
static void solve_one(const struct refactor *r, double *y, double *x)
{
	int64_t n = r->n;

	for (int64_t i = 0; i < n; i++)
		y[i] = x[r->rows_of[i]];
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = j + 1; i < n; i++)
			y[i] -= r->lu[i + j * n] * y[j];
	for (int64_t j = n; j-- > 0;) {
		y[j] /= r->lu[j + j * n];
		for (int64_t i = 0; i < j; i++)
			y[i] -= r->lu[i + j * n] * y[j];
	}
	for (int64_t i = 0; i < n; i++)
		x[r->columns_of[i]] = y[i];
}

CALL(cusolverRfSolve, struct refactor *r, int *p, int *q, int count, double *temporary, int ldt,
	double *x, int ldx)
{
	double *y;
	int status = !r ? SOLVER_NOT_INITIALIZED
		     : !r->factored || count != 1 || ldt < r->n || ldx < r->n
			     ? SOLVER_INVALID_VALUE
			     : solver_sparse_begin(NULL);

	(void)p;
	(void)q;
	if (status)
		return status;
	y = malloc((size_t)r->n * sizeof(*y));
	if (!solver_sparse_reaches(x, (uint64_t)r->n, sizeof(*x)) ||
		!solver_sparse_reaches(temporary, (uint64_t)r->n, sizeof(*temporary)))
		status = SOLVER_INVALID_VALUE;
	else if (!y)
		status = SOLVER_ALLOC_FAILED;
	else
		solve_one(r, y, x);
	free(y);
	solver_sparse_end();
	return status;
}

/* ---- handing out ---- */

/* Those of the lower and upper triangle that are asked for, compressed by rows, in memory that
 * the program frees. */
static int hand_out(const struct refactor *r, bool lower, bool diagonal, bool upper, bool ones,
	int *entries, int **rows, int **columns, double **values)
{
	int64_t n = r->n;
	int count = 0;

	*rows = malloc(((size_t)n + 1) * sizeof(**rows));
	*columns = malloc((size_t)(n * n) * sizeof(**columns));
	*values = malloc((size_t)(n * n) * sizeof(**values));
	if (!*rows || !*columns || !*values) {
		free(*rows);
		free(*columns);
		free(*values);
		return SOLVER_ALLOC_FAILED;
	}
	for (int64_t i = 0; i < n; i++) {
		(*rows)[i] = count;
		for (int64_t j = 0; j < n; j++) {
			if (!r->kept[i + j * n] || !(j < i	   ? lower
							   : j > i ? upper
								   : diagonal || ones))
				continue;
			(*columns)[count] = (int)j;
			(*values)[count++] = i == j && ones ? 1 : r->lu[i + j * n];
		}
	}
	(*rows)[n] = *entries = count;
	return SOLVER_SUCCESS;
}

static int hand_out_valid(const struct refactor *r)
{
	if (!r)
		return SOLVER_NOT_INITIALIZED;
	if (!r->factored)
		return SOLVER_INVALID_VALUE;
	/* The other forms of the diagonal are not needed by any test. */
	return r->format == FORMAT_ROWS && r->unit == STORED_L ? SOLVER_SUCCESS
							       : SOLVER_NOT_SUPPORTED;
}

CALL(cusolverRfExtractBundledFactorsHost, struct refactor *r, int *entries, int **rows,
	int **columns, double **values)
{
	int status = hand_out_valid(r);

	return status ? status
		      : hand_out(r, true, true, true, false, entries, rows, columns, values);
}

CALL(cusolverRfExtractSplitFactorsHost, struct refactor *r, int *entries_l, int **rows_l,
	int **columns_l, double **values_l, int *entries_u, int **rows_u, int **columns_u,
	double **values_u)
{
	int status = hand_out_valid(r);

	if (!status)
		status = hand_out(
			r, true, false, false, true, entries_l, rows_l, columns_l, values_l);
	if (status)
		return status;
	status = hand_out(r, false, true, true, false, entries_u, rows_u, columns_u, values_u);
	if (status) {
		free(*rows_l);
		free(*columns_l);
		free(*values_l);
	}
	return status;
}
