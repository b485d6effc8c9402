/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of blocks in each type, blocks by rows and by columns: times vectors and matrices,
 * and triangular systems with one right side and many; where a diagonal's zero is.
 */
#include "tests/cusparse/check.h"

#define N CUSPARSE_OPERATION_NON_TRANSPOSE
#define POLICY CUSPARSE_SOLVE_POLICY_USE_LEVEL

struct problem {
	enum type t;
	int rows, cols, block;
	cusparseDirection_t dir;
	number *a;
	struct arrays m;
};

/* A number as the type has it, for a scalar of the host. */
static const void *scalar(enum type t, number v)
{
	static char numbers[4][16];
	static unsigned at;
	char *to = numbers[at++ % 4];

	number_out(letters[t], to, 0, v);
	return to;
}

static void vector(const struct problem *p)
{
	cudaDataType t = letters[p->t];
	number alpha = is_complex(t) ? CMPLX(1, -0.5) : 1.5, beta = -0.5;
	number *x = some(t, p->cols), *y = some(t, p->rows);
	void *dx = put(t, x, p->cols), *dy = put(t, y, p->rows);

	SPARSE(TYPED(p->t, bsrmv, handle, p->dir, N, p->rows / p->block, p->cols / p->block,
		p->m.nnz, scalar(p->t, alpha), p->m.descr, p->m.values, p->m.offsets,
		p->m.indices, p->block, dx, scalar(p->t, beta), dy));
	for (int i = 0; i < p->rows; i++) {
		number sum = 0;

		for (int j = 0; j < p->cols; j++)
			sum += p->a[i * p->cols + j] * x[j];
		y[i] = alpha * sum + beta * y[i];
	}
	same(t, dy, y, p->rows, "bsrmv");
	release(dx);
	release(dy);
	free(x);
	free(y);
}

static void matrix(const struct problem *p, int n, bool transposed)
{
	cudaDataType t = letters[p->t];
	number alpha = is_complex(t) ? CMPLX(1, -0.5) : 1.5, beta = -0.5;
	number *b = some(t, p->cols * n), *c = some(t, p->rows * n);
	void *db = put(t, b, p->cols * n), *dc = put(t, c, p->rows * n);

	SPARSE(TYPED(p->t, bsrmm, handle, p->dir, N,
		transposed ? CUSPARSE_OPERATION_TRANSPOSE : N, p->rows / p->block, n,
		p->cols / p->block, p->m.nnz, scalar(p->t, alpha), p->m.descr, p->m.values,
		p->m.offsets, p->m.indices, p->block, db, transposed ? n : p->cols,
		scalar(p->t, beta), dc, p->rows));
	for (int i = 0; i < p->rows; i++)
		for (int j = 0; j < n; j++) {
			number sum = 0, *to = &c[i + j * p->rows];

			for (int k = 0; k < p->cols; k++)
				sum += p->a[i * p->cols + k] *
				       b[transposed ? j + k * n : k + j * p->cols];
			*to = alpha * sum + beta * *to;
		}
	same(t, dc, c, p->rows * n, "bsrmm");
	release(db);
	release(dc);
	free(b);
	free(c);
}

/* ---- triangular systems: op(A) X = alpha B, X and B of n columns ---- */

static void residual(const struct problem *p, bool lower, int op, int n, const void *dx,
	const number *b, number alpha, const char *what)
{
	number *x = get(letters[p->t], dx, p->rows * n);

	for (int j = 0; j < n; j++)
		for (int i = 0; i < p->rows; i++) {
			number got = 0, want = alpha * b[i + j * p->rows];

			for (int k = 0; k < p->rows; k++) {
				int row = op ? k : i, col = op ? i : k;

				if (row == col || (row > col) == lower)
					got += op_number(op, p->a[row * p->cols + col]) *
					       x[k + j * p->rows];
			}
			near(letters[p->t], &got, &want, 1, what);
		}
	free(x);
}

static void one_side(const struct problem *p, bool lower, int op)
{
	cudaDataType t = letters[p->t];
	int mb = p->rows / p->block, bytes = 0, zero = 7;
	number *b = some(t, p->rows);
	void *db = put(t, b, p->rows), *dx = device((size_t)p->rows * size_of(t)), *work;
	bsrsv2Info_t info;

	SPARSE(cusparseCreateBsrsv2Info(&info));
	SPARSE(TYPED(p->t, bsrsv2_bufferSize, handle, p->dir, (cusparseOperation_t)op, mb,
		p->m.nnz, p->m.descr, p->m.values, p->m.offsets, p->m.indices, p->block, info,
		&bytes));
	work = device((size_t)bytes);
	SPARSE(TYPED(p->t, bsrsv2_analysis, handle, p->dir, (cusparseOperation_t)op, mb,
		p->m.nnz, p->m.descr, p->m.values, p->m.offsets, p->m.indices, p->block, info,
		POLICY, work));
	SPARSE(cusparseXbsrsv2_zeroPivot(handle, info, &zero));
	SPARSE(TYPED(p->t, bsrsv2_solve, handle, p->dir, (cusparseOperation_t)op, mb, p->m.nnz,
		scalar(p->t, 2), p->m.descr, p->m.values, p->m.offsets, p->m.indices, p->block,
		info, db, dx, POLICY, work));
	SPARSE(cusparseXbsrsv2_zeroPivot(handle, info, &zero));
	CHECK(zero == -1, "a zero at %d", zero);
	residual(p, lower, op, 1, dx, b, 2, "bsrsv2");
	SPARSE(cusparseDestroyBsrsv2Info(info));
	release(db);
	release(dx);
	release(work);
	free(b);
}

static void many_sides(const struct problem *p, bool lower, int op, int n)
{
	cudaDataType t = letters[p->t];
	int mb = p->rows / p->block, bytes = 0, zero = 7;
	number *b = some(t, p->rows * n);
	void *db = put(t, b, p->rows * n), *dx = device((size_t)(p->rows * n) * size_of(t));
	void *work;
	bsrsm2Info_t info;

	SPARSE(cusparseCreateBsrsm2Info(&info));
	SPARSE(TYPED(p->t, bsrsm2_bufferSize, handle, p->dir, (cusparseOperation_t)op, N, mb, n,
		p->m.nnz, p->m.descr, p->m.values, p->m.offsets, p->m.indices, p->block, info,
		&bytes));
	work = device((size_t)bytes);
	SPARSE(TYPED(p->t, bsrsm2_analysis, handle, p->dir, (cusparseOperation_t)op, N, mb, n,
		p->m.nnz, p->m.descr, p->m.values, p->m.offsets, p->m.indices, p->block, info,
		POLICY, work));
	SPARSE(cusparseXbsrsm2_zeroPivot(handle, info, &zero));
	SPARSE(TYPED(p->t, bsrsm2_solve, handle, p->dir, (cusparseOperation_t)op, N, mb, n,
		p->m.nnz, scalar(p->t, -1), p->m.descr, p->m.values, p->m.offsets, p->m.indices,
		p->block, info, db, p->rows, dx, p->rows, POLICY, work));
	SPARSE(cusparseXbsrsm2_zeroPivot(handle, info, &zero));
	CHECK(zero == -1, "a zero at %d", zero);
	residual(p, lower, op, n, dx, b, -1, "bsrsm2");
	SPARSE(cusparseDestroyBsrsm2Info(info));
	release(db);
	release(dx);
	release(work);
	free(b);
}

/* The block on row 1's diagonal is missing. */
static void missing(void)
{
	number a[] = {1, 0, 1, 0}; /* 2 by 2, by rows */
	struct arrays m = arrays_of(
		CUDA_R_32F, a, 2, 2, 1, CUSPARSE_DIRECTION_ROW, CUSPARSE_INDEX_BASE_ONE);
	int bytes = 0, zero = 7;
	bsrsv2Info_t info;
	void *work;

	SPARSE(cusparseCreateBsrsv2Info(&info));
	SPARSE(cusparseSbsrsv2_bufferSize(handle, CUSPARSE_DIRECTION_ROW, N, 2, m.nnz, m.descr,
		m.values, m.offsets, m.indices, 1, info, &bytes));
	work = device((size_t)bytes);
	SPARSE(cusparseSbsrsv2_analysis(handle, CUSPARSE_DIRECTION_ROW, N, 2, m.nnz, m.descr,
		m.values, m.offsets, m.indices, 1, info, POLICY, work));
	SPARSE_IS(cusparseXbsrsv2_zeroPivot(handle, info, &zero), CUSPARSE_STATUS_ZERO_PIVOT);
	CHECK(zero == 2, "the zero is at %d, not 2", zero);
	SPARSE(cusparseDestroyBsrsv2Info(info));
	arrays_free(&m);
	release(work);
}

static void shape(enum type t, int rows, int cols, int block, int form)
{
	cusparseIndexBase_t base =
		form & 1 ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO;
	bool lower = form & 2;
	struct problem p = {.t = t,
		.rows = rows,
		.cols = cols,
		.block = block,
		.dir = form & 1 ? CUSPARSE_DIRECTION_COLUMN : CUSPARSE_DIRECTION_ROW,
		.a = some_sparse(letters[t], rows, cols)};

	p.m = arrays_of(letters[t], p.a, rows, cols, block, p.dir, base);
	vector(&p);
	matrix(&p, 5, form & 2);
	arrays_free(&p.m);
	if (rows == cols) {
		for (int i = 0; i < rows * rows; i++)
			p.a[i] = i % (rows + 1) ? p.a[i] / 16 : 4;
		p.m = arrays_of(letters[t], p.a, rows, cols, block, p.dir, base);
		SPARSE(cusparseSetMatFillMode(p.m.descr,
			lower ? CUSPARSE_FILL_MODE_LOWER : CUSPARSE_FILL_MODE_UPPER));
		SPARSE(cusparseSetMatDiagType(p.m.descr, CUSPARSE_DIAG_TYPE_NON_UNIT));
		for (int op = 0; op < (t >= C ? 3 : 2); op++) {
			one_side(&p, lower, op);
			many_sides(&p, lower, op, 3);
		}
		arrays_free(&p.m);
	}
	free(p.a);
}

int main(void)
{
	begin();
	for (int t = 0; t < 4; t++)
		for (int form = 0; form < 4; form++) {
			shape((enum type)t, 12, 12, 2, form);
			shape((enum type)t, 21, 21, 3, form);
			shape((enum type)t, 8, 20, 4, form);
		}
	missing();
	SPARSE(cusparseDestroy(handle));
	return 0;
}
