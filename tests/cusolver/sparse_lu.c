/* SPDX-License-Identifier: Apache-2.0
 *
 * LU in steps of sparse matrices of the host: P A Q^T is L U, systems are solved by it, pivots
 * of zero are told, and a refactorization takes the factors.
 */
#include "tests/cusolver/sparse.h"

#include <cusolverRf.h>

static cusolverSpHandle_t handle;

/* Rows in compressed form whose numbers are of one type. */
struct matrix {
	int n, entries, base;
	int *rows, *columns;
	number *values;
	void *typed;
	cusparseMatDescr_t descriptor;
};

static void *typed(enum type t, const number *from, int count)
{
	void *to = host((size_t)(count + 1) * sizeof(number));

	for (int i = 0; i < count; i++)
		switch (t) {
		case S: ((float *)to)[i] = (float)creal(from[i]); break;
		case D: ((double *)to)[i] = creal(from[i]); break;
		case C: ((float complex *)to)[i] = (float complex)from[i]; break;
		case Z: ((number *)to)[i] = from[i]; break;
		}
	return to;
}

static number at(enum type t, const void *from, int i)
{
	return t == S	? ((const float *)from)[i]
	       : t == D ? ((const double *)from)[i]
	       : t == C ? (number)((const float complex *)from)[i]
			: ((const number *)from)[i];
}

/* Not symmetric, with zeros on its diagonal, so that rows have to change places; `gone`: a
 * column without any number but 0, or -1. */
static struct matrix matrix_of(enum type t, int n, int base, int gone)
{
	struct matrix a = {.n = n, .base = base};

	a.rows = host((size_t)(n + 1) * sizeof(int));
	a.columns = host((size_t)n * 5 * sizeof(int) + 1);
	a.values = host((size_t)n * 5 * sizeof(number) + 1);
	for (int i = 0; i < n; i++) {
		a.rows[i] = a.entries + base;
		int large = i / 2 % 2 == 0 && (i ^ 1) < n ? i ^ 1 : i;

		for (int j = 0; j < n; j++) {
			int off = (j - i + n) % n;
			number v = (0.3 + 0.2 * cos(3 * i + j)) +
				   (is_complex(t) ? 0.2 * sin(i - 2 * j) : 0) * 1i;

			if (j != i && j != large && off != n - 1 && off != 7 % n)
				continue;
			if (j == large)
				v = 2 + 0.1 * (i % 7);
			else if (j == i)
				v = 0;
			if (j == gone)
				v = 0;
			a.columns[a.entries] = j + base;
			a.values[a.entries++] = v;
		}
	}
	a.rows[n] = a.entries + base;
	a.typed = typed(t, a.values, a.entries);
	SPARSE(cusparseCreateMatDescr(&a.descriptor));
	SPARSE(cusparseSetMatIndexBase(
		a.descriptor, base ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO));
	return a;
}

static void matrix_drop(struct matrix *a)
{
	SPARSE(cusparseDestroyMatDescr(a->descriptor));
	FREE(a->rows, a->columns, a->values, a->typed);
}

static number *dense(const struct matrix *a)
{
	number *to = host(((size_t)a->n * (size_t)a->n + 1) * sizeof(*to));

	for (int i = 0; i < a->n; i++)
		for (int k = a->rows[i] - a->base; k < a->rows[i + 1] - a->base; k++)
			to[i + (a->columns[k] - a->base) * a->n] = a->values[k];
	return to;
}

#define MATRIX a->n, a->entries, a->descriptor, a->typed, a->rows, a->columns

static void factor(enum type t, const struct matrix *a, csrluInfoHost_t info, double threshold)
{
	size_t inside = 0, bytes = 0;
	void *work;

	SOLVER(cusolverSpXcsrluAnalysisHost(
		handle, a->n, a->entries, a->descriptor, a->rows, a->columns, info));
	SOLVER(SP_TYPED(t, csrluBufferInfoHost, handle, MATRIX, info, &inside, &bytes));
	CHECK(inside && bytes, "%zu and %zu bytes", inside, bytes);
	work = host(bytes);
	switch (t) {
	case S:
		SOLVER(cusolverSpScsrluFactorHost(
			handle, MATRIX, info, (float)threshold, work));
		break;
	case D:
		SOLVER(cusolverSpDcsrluFactorHost(handle, MATRIX, info, threshold, work));
		break;
	case C:
		SOLVER(cusolverSpCcsrluFactorHost(
			handle, MATRIX, info, (float)threshold, work));
		break;
	default: SOLVER(cusolverSpZcsrluFactorHost(handle, MATRIX, info, threshold, work));
	}
	free(work);
}

static int zero_pivot(enum type t, csrluInfoHost_t info)
{
	int position = 99;

	SOLVER(SP_TYPED(t, csrluZeroPivotHost, handle, info, 0, &position));
	return position;
}

static void solves(enum type t, const struct matrix *a, csrluInfoHost_t info)
{
	for (int pass = 0; pass < 2; pass++) {
		number *x = some(t, a->n, 1), *b = host((size_t)(a->n + 1) * sizeof(*b));
		number *got = host((size_t)(a->n + 1) * sizeof(*got));
		void *right, *to = host((size_t)(a->n + 1) * sizeof(number));

		for (int i = 0; i < a->n; i++)
			for (int k = a->rows[i] - a->base; k < a->rows[i + 1] - a->base; k++)
				b[i] += a->values[k] * x[a->columns[k] - a->base];
		right = typed(t, b, a->n);
		SOLVER(SP_TYPED(t, csrluSolveHost, handle, a->n, right, to, info, NULL));
		for (int i = 0; i < a->n; i++)
			got[i] = at(t, to, i);
		CLOSE(t, got, x, a->n, 10 * a->n, "csrluSolveHost");
		FREE(x, b, got, right, to);
	}
}

/* A factor as it was handed out, dense; columns ascend, and stand on the right side. */
static number *spread(enum type t, int n, int base, const int *rows, const int *columns,
	const void *values, bool upper)
{
	number *to = host(((size_t)n * (size_t)n + 1) * sizeof(*to));

	CHECK(rows[0] == base, "rows begin at %d", rows[0]);
	for (int i = 0; i < n; i++) {
		for (int k = rows[i] - base; k < rows[i + 1] - base; k++) {
			int j = columns[k] - base;

			CHECK(upper ? j >= i && j < n : j >= 0 && j < i,
				"%c: column %d in row %d", upper ? 'U' : 'L', j, i);
			CHECK(k == rows[i] - base || columns[k - 1] < columns[k],
				"row %d does not ascend", i);
			to[i + j * n] = at(t, values, k);
		}
		if (!upper)
			to[i + i * n] = 1;
	}
	return to;
}

static void permutes(const int *p, int n)
{
	bool *seen = host((size_t)n + 1);

	for (int i = 0; i < n; i++) {
		CHECK(p[i] >= 0 && p[i] < n && !seen[p[i]], "%d at %d of %d", p[i], i, n);
		seen[p[i]] = true;
	}
	free(seen);
}

/* Rows L and U of the matrix, with bases of their own. */
static void handed_out(enum type t, const struct matrix *a, csrluInfoHost_t info)
{
	int n = a->n, entries_l = -1, entries_u = -1, *p, *q, *rows_l, *rows_u, *columns_l,
	    *columns_u;
	number *whole = dense(a), *want, *l, *u, *got;
	cusparseMatDescr_t one;
	void *values_l, *values_u;

	SPARSE(cusparseCreateMatDescr(&one));
	SPARSE(cusparseSetMatIndexBase(one, CUSPARSE_INDEX_BASE_ONE));
	SOLVER(cusolverSpXcsrluNnzHost(handle, &entries_l, &entries_u, info));
	p = host((size_t)(n + 1) * sizeof(int));
	q = host((size_t)(n + 1) * sizeof(int));
	rows_l = host((size_t)(n + 1) * sizeof(int));
	rows_u = host((size_t)(n + 1) * sizeof(int));
	columns_l = host((size_t)(entries_l + 1) * sizeof(int));
	columns_u = host((size_t)(entries_u + 1) * sizeof(int));
	values_l = host((size_t)(entries_l + 1) * sizeof(number));
	values_u = host((size_t)(entries_u + 1) * sizeof(number));
	SOLVER(SP_TYPED(t, csrluExtractHost, handle, p, q, a->descriptor, values_l, rows_l,
		columns_l, one, values_u, rows_u, columns_u, info, NULL));
	CHECK(rows_l[n] - a->base == entries_l && rows_u[n] - 1 == entries_u,
		"%d and %d entries", rows_l[n], rows_u[n]);
	permutes(p, n);
	permutes(q, n);
	l = spread(t, n, a->base, rows_l, columns_l, values_l, false);
	u = spread(t, n, 1, rows_u, columns_u, values_u, true);
	want = host(((size_t)n * (size_t)n + 1) * sizeof(*want));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			want[i + j * n] = whole[p[i] + q[j] * n];
	got = product('N', l, 'N', u, n, n, n);
	CLOSE(t, got, want, n * n, n, "L U");
	SPARSE(cusparseDestroyMatDescr(one));
	FREE(whole, want, l, u, got, p, q, rows_l, rows_u, columns_l, columns_u, values_l,
		values_u);
}

static void steps(enum type t, int n, int base)
{
	struct matrix a = matrix_of(t, n, base, -1);
	csrluInfoHost_t info;

	SOLVER(cusolverSpCreateCsrluInfoHost(&info));
	for (int i = 0; i < 3; i++) { /* anew, with other exchanges of rows */
		factor(t, &a, info, i == 0 ? 1 : i == 1 ? 0.1 : 0);
		CHECK(zero_pivot(t, info) == -1, "type %d, n %d: a pivot of zero at %d", t, n,
			zero_pivot(t, info));
		if (i < 2) {
			solves(t, &a, info);
			handed_out(t, &a, info);
		}
	}
	matrix_drop(&a);
	if (n) { /* the same object, for a matrix that is singular */
		a = matrix_of(t, n, base, n / 2);
		factor(t, &a, info, 1);
		CHECK(zero_pivot(t, info) >= 0, "type %d, n %d: no pivot of zero", t, n);
		handed_out(t, &a, info);
		matrix_drop(&a);
	}
	SOLVER(cusolverSpDestroyCsrluInfoHost(info));
}

/* What cusolverRf is for: factors of the host, then other numbers on the device. */
static void refactored(int n)
{
	struct matrix all = matrix_of(D, n, 0, -1), *a = &all;
	csrluInfoHost_t info;
	cusolverRfHandle_t rf;
	int entries_l, entries_u, *p, *q, *rows_l, *rows_u, *columns_l, *columns_u, *at_p,
		*at_q;
	double *l, *u, *temporary, *at_x, *x = host((size_t)n * sizeof(*x));

	SOLVER(cusolverSpCreateCsrluInfoHost(&info));
	factor(D, a, info, 1);
	SOLVER(cusolverSpXcsrluNnzHost(handle, &entries_l, &entries_u, info));
	p = host((size_t)n * sizeof(int));
	q = host((size_t)n * sizeof(int));
	rows_l = host((size_t)(n + 1) * sizeof(int));
	rows_u = host((size_t)(n + 1) * sizeof(int));
	columns_l = host((size_t)(entries_l + 1) * sizeof(int));
	columns_u = host((size_t)(entries_u + 1) * sizeof(int));
	l = host((size_t)(entries_l + 1) * sizeof(double));
	u = host((size_t)(entries_u + 1) * sizeof(double));
	SOLVER(cusolverSpDcsrluExtractHost(handle, p, q, a->descriptor, l, rows_l, columns_l,
		a->descriptor, u, rows_u, columns_u, info, NULL));
	SOLVER(cusolverSpDestroyCsrluInfoHost(info));
	SOLVER(cusolverRfCreate(&rf));
	SOLVER(cusolverRfSetMatrixFormat(
		rf, CUSOLVERRF_MATRIX_FORMAT_CSR, CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_L));
	SOLVER(cusolverRfSetupHost(n, a->entries, a->rows, a->columns, a->typed, entries_l,
		rows_l, columns_l, l, entries_u, rows_u, columns_u, u, p, q, rf));
	SOLVER(cusolverRfAnalyze(rf));
	SOLVER(cusolverRfRefactor(rf));
	for (int i = 0; i < n; i++)
		for (int k = a->rows[i]; k < a->rows[i + 1]; k++)
			x[i] += creal(a->values[k]) * sin(a->columns[k]);
	at_p = device((size_t)n * sizeof(int));
	at_q = device((size_t)n * sizeof(int));
	at_x = device((size_t)n * sizeof(double));
	temporary = device((size_t)n * sizeof(double));
	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at_p, p, (size_t)n * sizeof(int)));
	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at_q, q, (size_t)n * sizeof(int)));
	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at_x, x, (size_t)n * sizeof(double)));
	SOLVER(cusolverRfSolve(rf, at_p, at_q, 1, temporary, n, at_x, n));
	CUDA(cuMemcpyDtoH(x, (CUdeviceptr)(uintptr_t)at_x, (size_t)n * sizeof(double)));
	for (int i = 0; i < n; i++)
		CHECK(fabs(x[i] - sin(i)) < 1e-9, "refactored, n %d: x[%d] is %g, not %g", n, i,
			x[i], sin(i));
	SOLVER(cusolverRfDestroy(rf));
	RELEASE(at_p, at_q, at_x, temporary);
	FREE(p, q, rows_l, rows_u, columns_l, columns_u, l, u, x);
	matrix_drop(a);
}

static void statuses(void)
{
	struct matrix all = matrix_of(D, 8, 0, -1), *a = &all;
	csrluInfoHost_t info;
	double b[8] = {0};
	int count;

	SOLVER_IS(cusolverSpCreateCsrluInfoHost(NULL), CUSOLVER_STATUS_INVALID_VALUE);
	SOLVER_IS(cusolverSpDestroyCsrluInfoHost(NULL), CUSOLVER_STATUS_INVALID_VALUE);
	SOLVER(cusolverSpCreateCsrluInfoHost(&info));
	SOLVER_IS(cusolverSpDcsrluFactorHost(handle, MATRIX, info, 1, b),
		CUSOLVER_STATUS_INVALID_VALUE); /* without an analysis */
	SOLVER(cusolverSpXcsrluAnalysisHost(
		handle, 8, a->entries, a->descriptor, a->rows, a->columns, info));
	SOLVER_IS(cusolverSpDcsrluSolveHost(handle, 8, b, b, info, b),
		CUSOLVER_STATUS_INVALID_VALUE); /* without factors */
	SOLVER_IS(cusolverSpXcsrluNnzHost(handle, &count, &count, info),
		CUSOLVER_STATUS_INVALID_VALUE);
	SOLVER_IS(cusolverSpXcsrluAnalysisHost(
			  NULL, 8, a->entries, a->descriptor, a->rows, a->columns, info),
		CUSOLVER_STATUS_NOT_INITIALIZED);
	factor(D, a, info, 1);
	SOLVER_IS(cusolverSpScsrluSolveHost(handle, 8, (float *)b, (float *)b, info, b),
		CUSOLVER_STATUS_INVALID_VALUE); /* of another type */
	SOLVER_IS(cusolverSpDcsrluSolveHost(handle, 7, b, b, info, b),
		CUSOLVER_STATUS_INVALID_VALUE);
	a->columns[3] = 8;
	SOLVER_IS(cusolverSpXcsrluAnalysisHost(
			  handle, 8, a->entries, a->descriptor, a->rows, a->columns, info),
		CUSOLVER_STATUS_INVALID_VALUE);
	SOLVER(cusolverSpDestroyCsrluInfoHost(info));
	matrix_drop(a);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverSpCreate(&handle));
	statuses();
	for (enum type t = S; t <= Z; t++) {
		static const int orders[] = {0, 1, 2, 3, 13, 64, 97};

		for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
			steps(t, orders[i], (int)i % 2);
	}
	refactored(1);
	refactored(40);
	SOLVER(cusolverSpDestroy(handle));
	printf("ok\n");
	return 0;
}
