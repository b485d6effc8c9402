/* SPDX-License-Identifier: Apache-2.0
 *
 * One thing, over and over, for who counts round trips: steady THING COUNT.  Each makes its
 * descriptors and asks for the size of its buffer every time, as PyTorch does.
 */
#include "tests/cusparse/check.h"

enum { N = 24, COLS = 8, BUFFER = 4 << 20 };

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

/* Made anew each time, with what an analysis leaves in it. */
static void spsv(void)
{
	cusparseFillMode_t lower = CUSPARSE_FILL_MODE_LOWER;
	cusparseDiagType_t unit = CUSPARSE_DIAG_TYPE_UNIT;
	cusparseSpMatDescr_t m = matrix();
	cusparseDnVecDescr_t in, out;
	cusparseSpSVDescr_t solver;
	size_t bytes;

	SPARSE(cusparseSpMatSetAttribute(m, CUSPARSE_SPMAT_FILL_MODE, &lower, sizeof(lower)));
	SPARSE(cusparseSpMatSetAttribute(m, CUSPARSE_SPMAT_DIAG_TYPE, &unit, sizeof(unit)));
	SPARSE(cusparseCreateDnVec(&in, N, x, CUDA_R_64F));
	SPARSE(cusparseCreateDnVec(&out, N, y, CUDA_R_64F));
	SPARSE(cusparseSpSV_createDescr(&solver));
	SPARSE(cusparseSpSV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in,
		out, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver, &bytes));
	SPARSE(cusparseSpSV_analysis(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, out,
		CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver, work));
	SPARSE(cusparseSpSV_solve(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, out,
		CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver));
	SPARSE(cusparseSpSV_destroyDescr(solver));
	SPARSE(cusparseDestroyDnVec(in));
	SPARSE(cusparseDestroyDnVec(out));
	SPARSE(cusparseDestroySpMat(m));
}

/* A product whose matrix has another number of elements each time. */
static void elements(void)
{
	static int64_t fewer;
	cusparseSpMatDescr_t m;
	cusparseDnVecDescr_t in, out;
	int64_t nnz = a.nnz - fewer++ % a.nnz;

	SPARSE(cusparseCreateCoo(&m, N, N, nnz, a.indices, a.indices, a.values,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	SPARSE(cusparseCreateDnVec(&in, N, x, CUDA_R_64F));
	SPARSE(cusparseCreateDnVec(&out, N, y, CUDA_R_64F));
	SPARSE(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, in, &zero, out,
		CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, work));
	SPARSE(cusparseDestroyDnVec(in));
	SPARSE(cusparseDestroyDnVec(out));
	SPARSE(cusparseDestroySpMat(m));
}

/* What hands sizes to the host has to wait for them, once in each of two steps. */
static void spgemm(void)
{
	cusparseSpMatDescr_t m = matrix(), c;
	cusparseSpGEMMDescr_t product;
	int64_t rows, cols, nnz;
	size_t first = 0, second = 0;
	void *c_indices, *c_values;

#define GEMM(STEP, ...)                                                                        \
	SPARSE(cusparseSpGEMM_##STEP(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,                 \
		CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m, m, &zero, c, CUDA_R_64F,            \
		CUSPARSE_SPGEMM_DEFAULT, product __VA_OPT__(, ) __VA_ARGS__))
	SPARSE(cusparseCreateCsr(&c, N, N, 0, y, NULL, NULL, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	SPARSE(cusparseSpGEMM_createDescr(&product));
	GEMM(workEstimation, &first, NULL);
	CHECK(first <= BUFFER, "%zu bytes", first);
	GEMM(workEstimation, &first, work);
	GEMM(compute, &second, NULL);
	CHECK(second <= BUFFER, "%zu bytes", second);
	GEMM(compute, &second, (char *)work + BUFFER);
	SPARSE(cusparseSpMatGetSize(c, &rows, &cols, &nnz));
	CHECK(nnz > 0 && nnz <= N * N, "%ld elements", (long)nnz);
	c_indices = (char *)x + N * COLS * 8;
	c_values = (char *)y + N * COLS * 8;
	SPARSE(cusparseCsrSetPointers(c, y, c_indices, c_values));
	GEMM(copy);
	SPARSE(cusparseSpGEMM_destroyDescr(product));
	SPARSE(cusparseDestroySpMat(c));
	SPARSE(cusparseDestroySpMat(m));
}

static const struct {
	const char *name;
	void (*run)(void);
} things[] = {
	{"spmv", spmv},
	{"spmm", spmm},
	{"spsv", spsv},
	{"elements", elements},
	{"spgemm", spgemm},
};

int main(int argc, char **argv)
{
	CHECK(argc == 3, "steady THING COUNT");
	begin();
	dense = some_sparse(CUDA_R_64F, N, N);
	a = sparse_of(CUSPARSE_FORMAT_CSR, CUDA_R_64F, dense, N, N, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	x = device(N * (N + COLS) * 8);
	y = device(N * (N + COLS) * 8);
	work = device(2 * BUFFER);
	for (size_t i = 0; i < sizeof(things) / sizeof(*things); i++)
		for (int n = strcmp(argv[1], things[i].name) ? 0 : atoi(argv[2]); n > 0; n--)
			things[i].run();
	CUDA(cuCtxSynchronize());
	return 0;
}
