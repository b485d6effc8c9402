/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices times dense vectors and matrices: CSR, CSC and COO in each type, operation
 * and index, scalars on the host and on the device, batches; dense products at a sparse
 * matrix's places.
 */
#include "tests/cusparse/check.h"

struct types {
	cudaDataType a, c, compute;
};
static const struct types all_types[] = {
	{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
	{CUDA_C_32F, CUDA_C_32F, CUDA_C_32F},
	{CUDA_C_64F, CUDA_C_64F, CUDA_C_64F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},
	{CUDA_R_16F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F},
	{CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_8I, CUDA_R_32I, CUDA_R_32I},
	{CUDA_R_8I, CUDA_R_32F, CUDA_R_32F},
};
#define TYPES (int)(sizeof(all_types) / sizeof(*all_types))

/* alpha and beta of the type that is computed, where the pointer mode wants them. */
struct scalars {
	number alpha, beta;
	void *a, *b;
	bool on_device;
};

static struct scalars scalars(cudaDataType compute, bool on_device)
{
	struct scalars s = {.on_device = on_device};

	s.alpha = compute == CUDA_R_32I ? 2 : is_complex(compute) ? CMPLX(0.5, -1) : 0.5;
	s.beta = compute == CUDA_R_32I ? 3 : is_complex(compute) ? CMPLX(-1, 0.25) : -1.25;
	if (on_device) {
		s.a = put(compute, &s.alpha, 1);
		s.b = put(compute, &s.beta, 1);
	} else {
		s.a = host(16);
		s.b = host(16);
		number_out(compute, s.a, 0, s.alpha);
		number_out(compute, s.b, 0, s.beta);
	}
	SPARSE(cusparseSetPointerMode(
		handle, on_device ? CUSPARSE_POINTER_MODE_DEVICE : CUSPARSE_POINTER_MODE_HOST));
	return s;
}

static void scalars_free(struct scalars *s)
{
	CUDA(cuCtxSynchronize());
	if (s->on_device) {
		release(s->a);
		release(s->b);
	} else {
		free(s->a);
		free(s->b);
	}
	SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
}

static void vector(const struct types *t, cusparseFormat_t format, int op, int64_t rows,
	int64_t cols, cusparseIndexType_t index, cusparseIndexBase_t base, bool on_device)
{
	number *a = some_sparse(t->a, rows, cols);
	struct matrix m = sparse_of(format, t->a, a, rows, cols, index, base);
	int64_t in = op ? rows : cols, out = op ? cols : rows;
	number *x = some(t->a, in), *y = some(t->c, out);
	void *dx = put(t->a, x, in), *dy = put(t->c, y, out), *work;
	struct scalars s = scalars(t->compute, on_device);
	cusparseDnVecDescr_t vx, vy;
	size_t bytes = 0;

	SPARSE(cusparseCreateDnVec(&vx, in, dx, t->a));
	SPARSE(cusparseCreateDnVec(&vy, out, dy, t->c));
	SPARSE(cusparseSpMV_bufferSize(handle, (cusparseOperation_t)op, s.a, m.descr, vx, s.b,
		vy, t->compute, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpMV(handle, (cusparseOperation_t)op, s.a, m.descr, vx, s.b, vy,
		t->compute, CUSPARSE_SPMV_ALG_DEFAULT, work));
	for (int64_t i = 0; i < out; i++) {
		number sum = 0;

		for (int64_t j = 0; j < in; j++)
			sum += op_at(op, a, cols, i, j) * x[j];
		y[i] = s.alpha * sum + s.beta * y[i];
	}
	same(t->c, dy, y, out, "SpMV");
	scalars_free(&s);
	matrix_free(&m);
	SPARSE(cusparseDestroyDnVec(vx));
	SPARSE(cusparseDestroyDnVec(vy));
	release(dx);
	release(dy);
	release(work);
	free(a);
	free(x);
	free(y);
}

/* ---- dense matrices ---- */

static int64_t dense_at(int order, int64_t ld, int64_t i, int64_t j)
{
	return order == CUSPARSE_ORDER_ROW ? i * ld + j : j * ld + i;
}

struct dense {
	cusparseDnMatDescr_t descr;
	number *host;
	void *at;
	int64_t rows, cols, ld, elements;
	int order;
};

static struct dense dense(cudaDataType t, int64_t rows, int64_t cols, int order, int batches)
{
	struct dense d = {.rows = rows, .cols = cols, .order = order};

	d.ld = (order == CUSPARSE_ORDER_ROW ? cols : rows) + 3;
	d.elements = d.ld * (order == CUSPARSE_ORDER_ROW ? rows : cols);
	d.host = some(t, d.elements * batches);
	d.at = put(t, d.host, d.elements * batches);
	SPARSE(cusparseCreateDnMat(
		&d.descr, rows, cols, d.ld, d.at, t, (cusparseOrder_t)order));
	if (batches > 1)
		SPARSE(cusparseDnMatSetStridedBatch(d.descr, batches, d.elements));
	return d;
}

static number dense_get(const struct dense *d, int op, int64_t i, int64_t j, int batch)
{
	const number *of = d->host + batch * d->elements;

	return op ? op_number(op, of[dense_at(d->order, d->ld, j, i)])
		  : of[dense_at(d->order, d->ld, i, j)];
}

static void dense_free(struct dense *d)
{
	SPARSE(cusparseDestroyDnMat(d->descr));
	release(d->at);
	free(d->host);
}

/* C is m by n, the inner length k. */
static void matrix(const struct types *t, cusparseFormat_t format, int op_a, int op_b,
	int64_t m, int64_t n, int64_t k, int order, int batches)
{
	int64_t rows = op_a ? k : m, cols = op_a ? m : k;
	number *a = some_sparse(t->a, rows, cols);
	struct matrix sparse = sparse_of(
		format, t->a, a, rows, cols, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO);
	struct dense b = dense(t->a, op_b ? n : k, op_b ? k : n, order, batches);
	struct dense c = dense(t->c, m, n, order, batches);
	struct scalars s = scalars(t->compute, false);
	size_t bytes = 0;
	void *work;

	if (batches > 1) /* one matrix for all */
		SPARSE(cusparseCsrSetStridedBatch(sparse.descr, batches, 0, 0));
	SPARSE(cusparseSpMM_bufferSize(handle, (cusparseOperation_t)op_a,
		(cusparseOperation_t)op_b, s.a, sparse.descr, b.descr, s.b, c.descr, t->compute,
		CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpMM(handle, (cusparseOperation_t)op_a, (cusparseOperation_t)op_b, s.a,
		sparse.descr, b.descr, s.b, c.descr, t->compute, CUSPARSE_SPMM_ALG_DEFAULT,
		work));
	for (int batch = 0; batch < batches; batch++)
		for (int64_t i = 0; i < m; i++)
			for (int64_t j = 0; j < n; j++) {
				number *to = c.host + batch * c.elements +
					     dense_at(order, c.ld, i, j);
				number sum = 0;

				for (int64_t l = 0; l < k; l++)
					sum += op_at(op_a, a, cols, i, l) *
					       dense_get(&b, op_b, l, j, batch);
				*to = s.alpha * sum + s.beta * *to;
			}
	same(t->c, c.at, c.host, c.elements * batches, "SpMM");
	scalars_free(&s);
	matrix_free(&sparse);
	dense_free(&b);
	dense_free(&c);
	release(work);
	free(a);
}

/* ---- dense products at a sparse matrix's places ---- */

static void sampled(cudaDataType t, int op_a, int op_b, int64_t m, int64_t n, int64_t k)
{
	number *pattern = some_sparse(t, m, n), *want;
	struct matrix c = sparse_of(CUSPARSE_FORMAT_CSR, t, pattern, m, n, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	struct dense a = dense(t, op_a ? k : m, op_a ? m : k, CUSPARSE_ORDER_ROW, 1);
	struct dense b = dense(t, op_b ? n : k, op_b ? k : n, CUSPARSE_ORDER_ROW, 1);
	struct scalars s = scalars(t, false);
	size_t bytes = 0;
	int64_t at = 0;
	void *work;

	SPARSE(cusparseSDDMM_bufferSize(handle, (cusparseOperation_t)op_a,
		(cusparseOperation_t)op_b, s.a, a.descr, b.descr, s.b, c.descr, t,
		CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
	work = device(bytes);
	SPARSE(cusparseSDDMM_preprocess(handle, (cusparseOperation_t)op_a,
		(cusparseOperation_t)op_b, s.a, a.descr, b.descr, s.b, c.descr, t,
		CUSPARSE_SDDMM_ALG_DEFAULT, work));
	SPARSE(cusparseSDDMM(handle, (cusparseOperation_t)op_a, (cusparseOperation_t)op_b, s.a,
		a.descr, b.descr, s.b, c.descr, t, CUSPARSE_SDDMM_ALG_DEFAULT, work));
	want = host((size_t)c.nnz * sizeof(*want));
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			number sum = 0;

			if (pattern[i * n + j] == 0)
				continue;
			for (int64_t l = 0; l < k; l++)
				sum += dense_get(&a, op_a, i, l, 0) *
				       dense_get(&b, op_b, l, j, 0);
			want[at++] = s.alpha * sum + s.beta * pattern[i * n + j];
		}
	same(t, c.values, want, c.nnz, "SDDMM");
	scalars_free(&s);
	matrix_free(&c);
	dense_free(&a);
	dense_free(&b);
	release(work);
	free(pattern);
	free(want);
}

int main(void)
{
	static const cusparseFormat_t formats[] = {
		CUSPARSE_FORMAT_CSR, CUSPARSE_FORMAT_CSC, CUSPARSE_FORMAT_COO};
	static const int sizes[] = {1, 7, 16, 31};

	begin();
	for (int t = 0; t < TYPES; t++) {
		const struct types *types = &all_types[t];
		int ops = is_complex(types->a) ? 3 : 2;

		for (int f = 0; f < 3; f++)
			for (int op = 0; op < ops; op++)
				for (int s = 0; s < 4; s++) {
					vector(types, formats[f], op, sizes[s], sizes[3 - s],
						CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
						s % 2);
					matrix(types, formats[f], op, s % 2, sizes[s], 5,
						sizes[3 - s], CUSPARSE_ORDER_COL, 1);
				}
		vector(types, CUSPARSE_FORMAT_CSR, 0, 9, 12, CUSPARSE_INDEX_64I,
			CUSPARSE_INDEX_BASE_ONE, false);
		matrix(types, CUSPARSE_FORMAT_CSR, 0, 0, 8, 6, 11, CUSPARSE_ORDER_ROW, 1);
		matrix(types, CUSPARSE_FORMAT_CSR, 0, 0, 8, 6, 11, CUSPARSE_ORDER_COL, 3);
	}
	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++)
			sampled(letters[t], s & 1, s >> 1, sizes[s], 9, 12);
	SPARSE(cusparseDestroy(handle));
	return 0;
}
