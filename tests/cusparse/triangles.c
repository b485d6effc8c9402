/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangular systems with one right side and with many, in each type, by each operation: lower
 * and upper, with a diagonal of ones and of numbers, before and after new values.
 */
#include "tests/cusparse/check.h"

struct system {
	cudaDataType t;
	int64_t n;
	int op;
	bool lower, unit;
	number *a; /* row-major, all of it, with numbers in both triangles */
	struct matrix in;
};

static struct system system_of(
	cudaDataType t, int64_t n, cusparseFormat_t format, int op, bool lower, bool unit)
{
	struct system s = {.t = t,
		.n = n,
		.op = op,
		.lower = lower,
		.unit = unit,
		.a = some_sparse(t, n, n)};
	cusparseFillMode_t fill = lower ? CUSPARSE_FILL_MODE_LOWER : CUSPARSE_FILL_MODE_UPPER;
	cusparseDiagType_t diag = unit ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT;

	/* What a row's other numbers sum to stays below its diagonal's: errors do not grow. */
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			s.a[i * n + j] = i == j ? 4 : s.a[i * n + j] / 16;
	s.in = sparse_of(format, t, s.a, n, n, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO);
	SPARSE(cusparseSpMatSetAttribute(
		s.in.descr, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	SPARSE(cusparseSpMatSetAttribute(
		s.in.descr, CUSPARSE_SPMAT_DIAG_TYPE, &diag, sizeof(diag)));
	return s;
}

/* Row i of op(A) times column j of y, which has `cols` columns, by the triangle alone. */
static number row_times(
	const struct system *s, int64_t i, const number *y, int64_t ld, int64_t j)
{
	number sum = 0;

	for (int64_t k = 0; k < s->n; k++) {
		int64_t row = s->op ? k : i, col = s->op ? i : k;
		number v = op_number(s->op, s->a[row * s->n + col]);

		if (row == col)
			sum += (s->unit ? 1 : v) * y[k + j * ld];
		else if ((row > col) == s->lower)
			sum += v * y[k + j * ld];
	}
	return sum;
}

/* op(A) Y = alpha X */
static void residual(const struct system *s, const void *y, int64_t cols, const number *x,
	number alpha, const char *what)
{
	number *solution = get(s->t, y, s->n * cols);

	for (int64_t j = 0; j < cols; j++)
		for (int64_t i = 0; i < s->n; i++) {
			number got = row_times(s, i, solution, s->n, j);
			number want = alpha * x[i + j * s->n];

			near(s->t, &got, &want, 1, what);
		}
	free(solution);
}

/* The diagonal and then all values, other ones. */
static void change(struct system *s, void **diagonal, void **all)
{
	number *values = host((size_t)(s->n + s->in.nnz) * sizeof(*values));
	int64_t at = 0;

	for (int64_t i = 0; i < s->n; i++)
		values[i] = 2;
	*diagonal = put(s->t, values, s->n);
	for (int64_t i = 0; i < s->n * s->n; i++)
		if (s->a[i] != 0)
			values[at++] = i % (s->n + 1) ? -s->a[i] : 8;
	*all = put(s->t, values, at);
	free(values);
}

static void set_diagonal(struct system *s, number to)
{
	for (int64_t i = 0; i < s->n; i++)
		s->a[i * s->n + i] = to;
}

static void negate(struct system *s)
{
	for (int64_t i = 0; i < s->n * s->n; i++)
		s->a[i] = -s->a[i];
}

static void one_side(struct system *s, number alpha)
{
	number *x = some(s->t, s->n);
	void *dx = put(s->t, x, s->n), *dy = device((size_t)s->n * size_of(s->t)), *work;
	cusparseDnVecDescr_t vx, vy;
	cusparseSpSVDescr_t descr;
	cusparseOperation_t op = (cusparseOperation_t)s->op;
	cusparseSpSVAlg_t alg = CUSPARSE_SPSV_ALG_DEFAULT;
	void *diagonal, *all;
	size_t bytes = 0;
	char factor[16];

	number_out(s->t, factor, 0, alpha);
	SPARSE(cusparseCreateDnVec(&vx, s->n, dx, s->t));
	SPARSE(cusparseCreateDnVec(&vy, s->n, dy, s->t));
	SPARSE(cusparseSpSV_createDescr(&descr));
	SPARSE(cusparseSpSV_bufferSize(
		handle, op, factor, s->in.descr, vx, vy, s->t, alg, descr, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpSV_analysis(
		handle, op, factor, s->in.descr, vx, vy, s->t, alg, descr, work));
	SPARSE(cusparseSpSV_solve(handle, op, factor, s->in.descr, vx, vy, s->t, alg, descr));
	residual(s, dy, 1, x, alpha, "SpSV");
	if (!s->unit) {
		change(s, &diagonal, &all);
		SPARSE(cusparseSpSV_updateMatrix(
			handle, descr, diagonal, CUSPARSE_SPSV_UPDATE_DIAGONAL));
		SPARSE(cusparseSpSV_solve(
			handle, op, factor, s->in.descr, vx, vy, s->t, alg, descr));
		set_diagonal(s, 2);
		residual(s, dy, 1, x, alpha, "SpSV with another diagonal");
		SPARSE(cusparseSpSV_updateMatrix(
			handle, descr, all, CUSPARSE_SPSV_UPDATE_GENERAL));
		SPARSE(cusparseSpSV_solve(
			handle, op, factor, s->in.descr, vx, vy, s->t, alg, descr));
		negate(s);
		set_diagonal(s, 8);
		residual(s, dy, 1, x, alpha, "SpSV with other values");
		release(diagonal);
		release(all);
	}
	SPARSE(cusparseSpSV_destroyDescr(descr));
	SPARSE(cusparseDestroyDnVec(vx));
	SPARSE(cusparseDestroyDnVec(vy));
	release(dx);
	release(dy);
	release(work);
	free(x);
}

static void many_sides(struct system *s, number alpha, int64_t cols)
{
	number *x = some(s->t, s->n * cols);
	void *dx = put(s->t, x, s->n * cols), *work;
	void *dy = device((size_t)(s->n * cols) * size_of(s->t));
	cusparseOperation_t op = (cusparseOperation_t)s->op;
	cusparseOperation_t op_b = CUSPARSE_OPERATION_NON_TRANSPOSE;
	cusparseSpSMAlg_t alg = CUSPARSE_SPSM_ALG_DEFAULT;
	cusparseDnMatDescr_t mx, my;
	cusparseSpSMDescr_t descr;
	size_t bytes = 0;
	char factor[16];

	number_out(s->t, factor, 0, alpha);
	SPARSE(cusparseCreateDnMat(&mx, s->n, cols, s->n, dx, s->t, CUSPARSE_ORDER_COL));
	SPARSE(cusparseCreateDnMat(&my, s->n, cols, s->n, dy, s->t, CUSPARSE_ORDER_COL));
	SPARSE(cusparseSpSM_createDescr(&descr));
	SPARSE(cusparseSpSM_bufferSize(
		handle, op, op_b, factor, s->in.descr, mx, my, s->t, alg, descr, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpSM_analysis(
		handle, op, op_b, factor, s->in.descr, mx, my, s->t, alg, descr, work));
	SPARSE(cusparseSpSM_solve(
		handle, op, op_b, factor, s->in.descr, mx, my, s->t, alg, descr));
	residual(s, dy, cols, x, alpha, "SpSM");
	SPARSE(cusparseSpSM_destroyDescr(descr));
	SPARSE(cusparseDestroyDnMat(mx));
	SPARSE(cusparseDestroyDnMat(my));
	release(dx);
	release(dy);
	release(work);
	free(x);
}

int main(void)
{
	static const int sizes[] = {1, 7, 32, 61};

	begin();
	for (int t = 0; t < 4; t++)
		for (int form = 0; form < 8; form++)
			for (int op = 0; op < (t >= C ? 3 : 2); op++) {
				struct system s = system_of(letters[t], sizes[form & 3],
					form & 4 ? CUSPARSE_FORMAT_COO : CUSPARSE_FORMAT_CSR,
					op, form & 1, (form & 3) == 2);
				number alpha = t >= C ? CMPLX(0.5, 1) : -0.5;

				many_sides(&s, alpha, 3);
				one_side(&s, alpha);
				matrix_free(&s.in);
				free(s.a);
			}
	SPARSE(cusparseDestroy(handle));
	return 0;
}
