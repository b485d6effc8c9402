/* SPDX-License-Identifier: Apache-2.0
 *
 * Refactorization: a system whose pattern stays and whose values change, factored and solved
 * again and again; its settings, and the factors handed out.
 */
#include <cusolverRf.h>

#include "tests/cusolver/check.h"

/* A matrix of diagonals: one on it, and one each at a distance. With no exchange of rows its
 * factors fill in nothing where the distance is 1. */
struct system {
	int n, entries, entries_l, entries_u;
	int *rows, *columns, *rows_l, *columns_l, *rows_u, *columns_u, *order;
	double *values, *values_l, *values_u, *x, *b;
};

static void row_put(int *count, int *columns, double *values, int column, double value)
{
	columns[*count] = column;
	values[(*count)++] = value;
}

static struct system tridiagonal(int n)
{
	struct system s = {.n = n};
	size_t most = 3 * (size_t)n + 1;

	s.rows = host((size_t)(n + 1) * sizeof(int));
	s.rows_l = host((size_t)(n + 1) * sizeof(int));
	s.rows_u = host((size_t)(n + 1) * sizeof(int));
	s.order = host((size_t)n * sizeof(int));
	s.columns = host(most * sizeof(int));
	s.columns_l = host(most * sizeof(int));
	s.columns_u = host(most * sizeof(int));
	s.values = host(most * sizeof(double));
	s.values_l = host(most * sizeof(double));
	s.values_u = host(most * sizeof(double));
	s.x = host((size_t)n * sizeof(double));
	s.b = host((size_t)n * sizeof(double));
	for (int i = 0; i < n; i++) {
		s.order[i] = i;
		if (i) {
			row_put(&s.entries, s.columns, s.values, i - 1, 0);
			row_put(&s.entries_l, s.columns_l, s.values_l, i - 1, 0);
		}
		row_put(&s.entries, s.columns, s.values, i, 0);
		row_put(&s.entries_l, s.columns_l, s.values_l, i, 1);
		row_put(&s.entries_u, s.columns_u, s.values_u, i, 0);
		if (i + 1 < n) {
			row_put(&s.entries, s.columns, s.values, i + 1, 0);
			row_put(&s.entries_u, s.columns_u, s.values_u, i + 1, 0);
		}
		s.rows[i + 1] = s.entries;
		s.rows_l[i + 1] = s.entries_l;
		s.rows_u[i + 1] = s.entries_u;
	}
	return s;
}

/* New values, what they make of a new x, and by Thomas's method their factors. */
static void fill(struct system *s, int seed)
{
	double above = 0, pivot = 0;

	for (int i = 0; i < s->n; i++)
		s->x[i] = sin(i + seed);
	for (int i = 0, k = 0, l = 0, u = 0; i < s->n; i++) {
		double below = 0;

		s->b[i] = 0;
		if (i) {
			below = -1 - 0.1 * cos(i * seed);
			s->values[k++] = below;
			s->values_l[l++] = below / pivot;
			s->b[i] += below * s->x[i - 1];
		}
		l++; /* the diagonal, which is 1 */
		s->values[k++] = 4 + sin(3 * i + seed);
		s->b[i] += s->values[k - 1] * s->x[i];
		pivot = s->values[k - 1] - (i ? below / pivot * above : 0);
		s->values_u[u++] = pivot;
		if (i + 1 < s->n) {
			above = -1 + 0.2 * sin(i + 2 * seed);
			s->values[k++] = above;
			s->values_u[u++] = above;
			s->b[i] += above * s->x[i + 1];
		}
	}
}

static void *upload(const void *from, size_t bytes)
{
	void *at = device(bytes);

	if (bytes)
		CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at, from, bytes));
	return at;
}
#define UP(FIELD, COUNT) upload(s->FIELD, (size_t)(COUNT) * sizeof(*s->FIELD))

static void system_drop(struct system *s)
{
	FREE(s->rows, s->columns, s->rows_l, s->columns_l, s->rows_u, s->columns_u, s->order,
		s->values, s->values_l, s->values_u, s->x, s->b);
}

static void solve(cusolverRfHandle_t handle, struct system *s, int *order, const char *what)
{
	size_t bytes = (size_t)s->n * sizeof(double);
	double *temporary = device(bytes), *at = upload(s->b, bytes);
	double *got = host(bytes);

	SOLVER(cusolverRfSolve(handle, order, order, 1, temporary, s->n, at, s->n));
	CUDA(cuCtxSynchronize());
	CUDA(cuMemcpyDtoH(got, (CUdeviceptr)(uintptr_t)at, bytes));
	for (int i = 0; i < s->n; i++)
		CHECK(fabs(got[i] - s->x[i]) < 1e-10, "%s of %d: x[%d] is %g, not %g", what,
			s->n, i, got[i], s->x[i]);
	RELEASE(temporary, at);
	free(got);
}

/* The bundle has the entries of both factors, once each on the diagonal. */
static void handed_out(cusolverRfHandle_t handle, const struct system *s)
{
	int entries = 0, entries_l = 0, entries_u = 0;
	int *rows, *columns, *rows_l, *columns_l, *rows_u, *columns_u;
	double *values, *values_l, *values_u;

	SOLVER(cusolverRfExtractBundledFactorsHost(handle, &entries, &rows, &columns, &values));
	CHECK(entries == s->entries && rows[s->n] == entries, "%d entries in the bundle",
		entries);
	SOLVER(cusolverRfExtractSplitFactorsHost(handle, &entries_l, &rows_l, &columns_l,
		&values_l, &entries_u, &rows_u, &columns_u, &values_u));
	CHECK(entries_l == s->entries_l && entries_u == s->entries_u, "%d and %d entries",
		entries_l, entries_u);
	for (int k = 0; k < entries_u; k++)
		CHECK(columns_u[k] == s->columns_u[k] &&
				fabs(values_u[k] - s->values_u[k]) < 1e-10,
			"U's entry %d is %g, not %g", k, values_u[k], s->values_u[k]);
	for (int k = 0; k < entries_l; k++)
		CHECK(columns_l[k] == s->columns_l[k] &&
				fabs(values_l[k] - s->values_l[k]) < 1e-10,
			"L's entry %d is %g, not %g", k, values_l[k], s->values_l[k]);
	FREE(rows, columns, values, rows_l, columns_l, values_l, rows_u, columns_u, values_u);
}

static void again(int n)
{
	struct system all = tridiagonal(n), *s = &all;
	cusolverRfHandle_t handle;
	int *rows, *columns, *order;
	double *values;

	fill(s, 1);
	SOLVER(cusolverRfCreate(&handle));
	SOLVER(cusolverRfSetupHost(n, s->entries, s->rows, s->columns, s->values, s->entries_l,
		s->rows_l, s->columns_l, s->values_l, s->entries_u, s->rows_u, s->columns_u,
		s->values_u, s->order, s->order, handle));
	order = UP(order, n);
	SOLVER(cusolverRfAnalyze(handle));
	SOLVER(cusolverRfRefactor(handle));
	solve(handle, s, order, "set up on the host");
	rows = UP(rows, n + 1);
	columns = UP(columns, s->entries);
	for (int seed = 2; seed < 5; seed++) {
		fill(s, seed);
		values = UP(values, s->entries);
		SOLVER(cusolverRfResetValues(
			n, s->entries, rows, columns, values, order, order, handle));
		SOLVER(cusolverRfRefactor(handle));
		solve(handle, s, order, "reset");
		release(values);
	}
	handed_out(handle, s);
	SOLVER(cusolverRfDestroy(handle));
	RELEASE(rows, columns, order);
	system_drop(s);
}

static void on_device(int n)
{
	struct system all = tridiagonal(n), *s = &all;
	cusolverRfHandle_t handle;
	int *rows = UP(rows, n + 1), *columns = UP(columns, s->entries), *order = UP(order, n);
	int *rows_l = UP(rows_l, n + 1), *columns_l = UP(columns_l, s->entries_l);
	int *rows_u = UP(rows_u, n + 1), *columns_u = UP(columns_u, s->entries_u);
	double *values, *values_l, *values_u;

	fill(s, 7);
	values = UP(values, s->entries);
	values_l = UP(values_l, s->entries_l);
	values_u = UP(values_u, s->entries_u);
	SOLVER(cusolverRfCreate(&handle));
	SOLVER(cusolverRfSetupDevice(n, s->entries, rows, columns, values, s->entries_l, rows_l,
		columns_l, values_l, s->entries_u, rows_u, columns_u, values_u, order, order,
		handle));
	SOLVER(cusolverRfAnalyze(handle));
	SOLVER(cusolverRfRefactor(handle));
	solve(handle, s, order, "set up on the device");
	SOLVER(cusolverRfDestroy(handle));
	RELEASE(rows, columns, order, rows_l, columns_l, rows_u, columns_u, values, values_l,
		values_u);
	system_drop(s);
}

static void settings(void)
{
	cusolverRfHandle_t handle;
	cusolverRfMatrixFormat_t format;
	cusolverRfUnitDiagonal_t diagonal;
	cusolverRfFactorization_t factoring;
	cusolverRfTriangularSolve_t solving;
	cusolverRfResetValuesFastMode_t fast;
	double zero = 9, boost = 9;

	SOLVER(cusolverRfCreate(&handle));
	SOLVER(cusolverRfGetMatrixFormat(handle, &format, &diagonal));
	CHECK(format == CUSOLVERRF_MATRIX_FORMAT_CSR &&
			diagonal == CUSOLVERRF_UNIT_DIAGONAL_STORED_L,
		"format %d, diagonal %d", format, diagonal);
	SOLVER(cusolverRfSetMatrixFormat(
		handle, CUSOLVERRF_MATRIX_FORMAT_CSC, CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_L));
	SOLVER(cusolverRfGetMatrixFormat(handle, &format, &diagonal));
	CHECK(format == CUSOLVERRF_MATRIX_FORMAT_CSC &&
			diagonal == CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_L,
		"format %d, diagonal %d", format, diagonal);
	SOLVER(cusolverRfSetNumericProperties(handle, 1e-9, 1e-6));
	SOLVER(cusolverRfGetNumericProperties(handle, &zero, &boost));
	CHECK(zero == 1e-9 && boost == 1e-6, "zero %g, boost %g", zero, boost);
	SOLVER(cusolverRfSetAlgs(
		handle, CUSOLVERRF_FACTORIZATION_ALG1, CUSOLVERRF_TRIANGULAR_SOLVE_ALG2));
	SOLVER(cusolverRfGetAlgs(handle, &factoring, &solving));
	CHECK(factoring == CUSOLVERRF_FACTORIZATION_ALG1 &&
			solving == CUSOLVERRF_TRIANGULAR_SOLVE_ALG2,
		"algorithms %d and %d", factoring, solving);
	SOLVER(cusolverRfSetResetValuesFastMode(handle, CUSOLVERRF_RESET_VALUES_FAST_MODE_ON));
	SOLVER(cusolverRfGetResetValuesFastMode(handle, &fast));
	CHECK(fast == CUSOLVERRF_RESET_VALUES_FAST_MODE_ON, "fast mode %d", fast);
	SOLVER(cusolverRfDestroy(handle));
	SOLVER_IS(cusolverRfAnalyze(NULL), CUSOLVER_STATUS_NOT_INITIALIZED);
}

int main(void)
{
	device_begin();
	settings();
	EACH_SIZE(n)
	{
		if (!n)
			continue;
		again(n);
		on_device(n);
	}
	printf("ok\n");
	return 0;
}
