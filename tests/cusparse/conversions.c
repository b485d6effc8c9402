/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense matrices made of sparse ones in each format and type, and sparse of dense, whose number
 * of entries the analysis tells.
 */
#include "tests/cusparse/check.h"

#define ALG_DENSE CUSPARSE_SPARSETODENSE_ALG_DEFAULT
#define ALG_SPARSE CUSPARSE_DENSETOSPARSE_ALG_DEFAULT

struct problem {
	cudaDataType t;
	int64_t rows, cols;
	cusparseFormat_t format;
	cusparseOrder_t order;
};

/* Row-major numbers, as the order has them. */
static number *ordered(const struct problem *p, const number *a)
{
	number *to = host((size_t)(p->rows * p->cols) * sizeof(*to));

	for (int64_t i = 0; i < p->rows; i++)
		for (int64_t j = 0; j < p->cols; j++)
			to[p->order == CUSPARSE_ORDER_ROW ? i * p->cols + j : j * p->rows + i] =
				a[i * p->cols + j];
	return to;
}

static cusparseDnMatDescr_t dense(const struct problem *p, void *at)
{
	cusparseDnMatDescr_t descr;

	SPARSE(cusparseCreateDnMat(&descr, p->rows, p->cols,
		p->order == CUSPARSE_ORDER_ROW ? p->cols : p->rows, at, p->t, p->order));
	return descr;
}

static void to_dense(const struct problem *p, const number *a)
{
	struct matrix m = sparse_of(p->format, p->t, a, p->rows, p->cols, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	number *want = ordered(p, a);
	void *to = device((size_t)(p->rows * p->cols) * size_of(p->t)), *work;
	cusparseDnMatDescr_t descr = dense(p, to);
	size_t bytes = 0;

	SPARSE(cusparseSparseToDense_bufferSize(handle, m.descr, descr, ALG_DENSE, &bytes));
	work = device(bytes);
	SPARSE(cusparseSparseToDense(handle, m.descr, descr, ALG_DENSE, work));
	same(p->t, to, want, p->rows * p->cols, "SparseToDense");
	SPARSE(cusparseDestroyDnMat(descr));
	matrix_free(&m);
	release(to);
	release(work);
	free(want);
}

/* A matrix without entries, whose arrays come once their number is known. */
static cusparseSpMatDescr_t empty(const struct problem *p, void *offsets)
{
	cusparseSpMatDescr_t m;

	if (p->format == CUSPARSE_FORMAT_CSR)
		SPARSE(cusparseCreateCsr(&m, p->rows, p->cols, 0, offsets, NULL, NULL,
			CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			p->t));
	else if (p->format == CUSPARSE_FORMAT_CSC)
		SPARSE(cusparseCreateCsc(&m, p->rows, p->cols, 0, offsets, NULL, NULL,
			CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			p->t));
	else
		SPARSE(cusparseCreateCoo(&m, p->rows, p->cols, 0, NULL, NULL, NULL,
			CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, p->t));
	return m;
}

static void compare(const struct problem *p, const number *a, const struct matrix *got)
{
	bool by_col = p->format == CUSPARSE_FORMAT_CSC, list = p->format == CUSPARSE_FORMAT_COO;
	int64_t lines = by_col ? p->cols : p->rows, length = by_col ? p->rows : p->cols, at = 0;
	int32_t *offsets = get_bytes(got->offsets, (size_t)(list ? got->nnz : lines + 1) * 4);
	int32_t *indices = get_bytes(got->indices, (size_t)got->nnz * 4);
	number *values = get(p->t, got->values, got->nnz);

	for (int64_t i = 0; i < lines; i++) {
		CHECK(list || offsets[i] == at, "line %ld begins at %d", (long)i, offsets[i]);
		for (int64_t j = 0; j < length; j++) {
			number want = by_col ? a[j * p->cols + i] : a[i * p->cols + j];

			if (want == 0)
				continue;
			CHECK(at < got->nnz && indices[at] == j && values[at] == want &&
					(!list || offsets[at] == i),
				"(%ld, %ld) is not entry %ld", (long)i, (long)j, (long)at);
			at++;
		}
	}
	CHECK(at == got->nnz && (list || offsets[lines] == at), "%ld entries, not %ld",
		(long)got->nnz, (long)at);
	free(offsets);
	free(indices);
	free(values);
}

static void to_sparse(const struct problem *p, const number *a)
{
	number *from = ordered(p, a);
	void *at = put(p->t, from, p->rows * p->cols), *work;
	cusparseDnMatDescr_t descr = dense(p, at);
	struct matrix m = {0};
	int64_t rows, cols;
	size_t bytes = 0;

	m.offsets = device((size_t)(p->rows + p->cols + 1) * 4);
	m.descr = empty(p, m.offsets);
	SPARSE(cusparseDenseToSparse_bufferSize(handle, descr, m.descr, ALG_SPARSE, &bytes));
	work = device(bytes);
	SPARSE(cusparseDenseToSparse_analysis(handle, descr, m.descr, ALG_SPARSE, work));
	SPARSE(cusparseSpMatGetSize(m.descr, &rows, &cols, &m.nnz));
	m.indices = device((size_t)m.nnz * 4);
	m.values = device((size_t)m.nnz * size_of(p->t));
	if (p->format == CUSPARSE_FORMAT_CSR) {
		SPARSE(cusparseCsrSetPointers(m.descr, m.offsets, m.indices, m.values));
	} else if (p->format == CUSPARSE_FORMAT_CSC) {
		SPARSE(cusparseCscSetPointers(m.descr, m.offsets, m.indices, m.values));
	} else {
		release(m.offsets);
		m.offsets = device((size_t)m.nnz * 4);
		SPARSE(cusparseCooSetPointers(m.descr, m.offsets, m.indices, m.values));
	}
	SPARSE(cusparseDenseToSparse_convert(handle, descr, m.descr, ALG_SPARSE, work));
	compare(p, a, &m);
	SPARSE(cusparseDestroyDnMat(descr));
	matrix_free(&m);
	release(at);
	release(work);
	free(from);
}

int main(void)
{
	static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F,
		CUDA_R_16F, CUDA_R_16BF, CUDA_R_8I};
	static const cusparseFormat_t formats[] = {
		CUSPARSE_FORMAT_CSR, CUSPARSE_FORMAT_CSC, CUSPARSE_FORMAT_COO};
	static const int sizes[] = {2, 7, 16, 31};

	begin();
	for (int t = 0; t < 7; t++)
		for (int f = 0; f < 3; f++)
			for (int s = 0; s < 4; s++) {
				struct problem p = {types[t], sizes[s], sizes[3 - s],
					formats[f],
					s % 2 ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL};
				number *a = some_sparse(p.t, p.rows, p.cols);

				to_dense(&p, a);
				to_sparse(&p, a);
				free(a);
			}
	SPARSE(cusparseDestroy(handle));
	return 0;
}
