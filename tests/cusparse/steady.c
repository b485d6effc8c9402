/* SPDX-License-Identifier: Apache-2.0
 *
 * One thing, over and over, for who counts round trips: steady THING COUNT.  Each makes its
 * descriptors and asks for the size of its buffer every time, as PyTorch does.
 */
#include "tests/cusparse/check.h"

enum { N = 24, COLS = 8 };

static number *dense;
static struct matrix a;
static void *x, *y, *work;
static const double one = 1, zero;

static cusparseSpMatDescr_t matrix(void)
{
	cusparseSpMatDescr_t m;

	SPARSE(cusparseCreateCsr(&m, N, N, a.nnz, a.offsets, a.indices, a.values,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	return m;
}

static void spmv(void)
{
	cusparseSpMatDescr_t m = matrix();
	cusparseDnVecDescr_t in, out;
	size_t bytes;

	SPARSE(cusparseCreateDnVec(&in, N, x, CUDA_R_64F));
	SPARSE(cusparseCreateDnVec(&out, N, y, CUDA_R_64F));
	SPARSE(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in,
		&zero, out, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
	SPARSE(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, &zero, out,
		CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, work));
	SPARSE(cusparseDestroyDnVec(in));
	SPARSE(cusparseDestroyDnVec(out));
	SPARSE(cusparseDestroySpMat(m));
}

static void spmm(void)
{
	cusparseSpMatDescr_t m = matrix();
	cusparseDnMatDescr_t in, out;
	size_t bytes;

	SPARSE(cusparseCreateDnMat(&in, N, COLS, N, x, CUDA_R_64F, CUSPARSE_ORDER_COL));
	SPARSE(cusparseCreateDnMat(&out, N, COLS, N, y, CUDA_R_64F, CUSPARSE_ORDER_COL));
	SPARSE(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
		CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, &zero, out, CUDA_R_64F,
		CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
	SPARSE(cusparseSpMM_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
		CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, &zero, out, CUDA_R_64F,
		CUSPARSE_SPMM_ALG_DEFAULT, work));
	SPARSE(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
		CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, &zero, out, CUDA_R_64F,
		CUSPARSE_SPMM_ALG_DEFAULT, work));
	SPARSE(cusparseDestroyDnMat(in));
	SPARSE(cusparseDestroyDnMat(out));
	SPARSE(cusparseDestroySpMat(m));
}

static const struct {
	const char *name;
	void (*run)(void);
} things[] = {
	{"spmv", spmv},
	{"spmm", spmm},
};

int main(int argc, char **argv)
{
	CHECK(argc == 3, "steady THING COUNT");
	begin();
	dense = some_sparse(CUDA_R_64F, N, N);
	a = sparse_of(CUSPARSE_FORMAT_CSR, CUDA_R_64F, dense, N, N, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	x = device(N * COLS * 8);
	y = device(N * COLS * 8);
	work = device(1 << 20);
	for (size_t i = 0; i < sizeof(things) / sizeof(*things); i++)
		for (int n = strcmp(argv[1], things[i].name) ? 0 : atoi(argv[2]); n > 0; n--)
			things[i].run();
	CUDA(cuCtxSynchronize());
	return 0;
}
