/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors tell what they were made with and what was set since, and take no wrong values;
 * calls without a handle or a descriptor say so.
 */
#include <unistd.h>

#include "tests/cusparse/check.h"

#define REFUSED(CALL) EXPECTED(CALL, CUSPARSE_STATUS_INVALID_VALUE)

static char memory[64]; /* addresses that nothing looks at */
#define AT(I) ((void *)&memory[16 * (I)])

static void vectors(void)
{
	cusparseDnVecDescr_t dense;
	cusparseSpVecDescr_t sparse;
	cusparseConstDnVecDescr_t constant;
	const void *only_read;
	cusparseIndexType_t index;
	cusparseIndexBase_t base;
	cudaDataType type;
	int64_t size, nnz;
	void *indices, *values;

	SPARSE(cusparseCreateDnVec(&dense, 7, AT(0), CUDA_R_16F));
	SPARSE(cusparseDnVecGet(dense, &size, &values, &type));
	CHECK(size == 7 && values == AT(0) && type == CUDA_R_16F, "a dense vector is another");
	SPARSE(cusparseDnVecSetValues(dense, AT(1)));
	SPARSE(cusparseDnVecGetValues(dense, &values));
	CHECK(values == AT(1), "values were set elsewhere");
	SPARSE(cusparseDestroyDnVec(dense));

	SPARSE(cusparseCreateConstDnVec(&constant, 3, AT(2), CUDA_C_64F));
	SPARSE(cusparseConstDnVecGet(constant, &size, &only_read, &type));
	CHECK(size == 3 && only_read == AT(2) && type == CUDA_C_64F,
		"a constant one is another");
	SPARSE(cusparseDestroyDnVec(constant));

	SPARSE(cusparseCreateSpVec(&sparse, 9, 4, AT(0), AT(1), CUSPARSE_INDEX_64I,
		CUSPARSE_INDEX_BASE_ONE, CUDA_R_64F));
	SPARSE(cusparseSpVecGet(sparse, &size, &nnz, &indices, &values, &index, &base, &type));
	CHECK(size == 9 && nnz == 4 && indices == AT(0) && values == AT(1) &&
			index == CUSPARSE_INDEX_64I && base == CUSPARSE_INDEX_BASE_ONE &&
			type == CUDA_R_64F,
		"a sparse vector is another");
	SPARSE(cusparseDestroySpVec(sparse));
	REFUSED(cusparseCreateDnVec(&dense, -1, AT(0), CUDA_R_32F));
	REFUSED(cusparseCreateSpVec(&sparse, 3, -1, AT(0), AT(1), CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
}

static void dense_matrices(void)
{
	cusparseDnMatDescr_t m;
	cusparseOrder_t order;
	cudaDataType type;
	int64_t rows, cols, ld, stride;
	void *values;
	int batch;

	SPARSE(cusparseCreateDnMat(&m, 4, 6, 8, AT(0), CUDA_R_32F, CUSPARSE_ORDER_ROW));
	SPARSE(cusparseDnMatGet(m, &rows, &cols, &ld, &values, &type, &order));
	CHECK(rows == 4 && cols == 6 && ld == 8 && values == AT(0) && type == CUDA_R_32F &&
			order == CUSPARSE_ORDER_ROW,
		"a dense matrix is another");
	SPARSE(cusparseDnMatSetStridedBatch(m, 5, 32));
	SPARSE(cusparseDnMatGetStridedBatch(m, &batch, &stride));
	CHECK(batch == 5 && stride == 32, "the batch is %d of %ld", batch, (long)stride);
	SPARSE(cusparseDestroyDnMat(m));
	REFUSED(cusparseCreateDnMat(&m, 4, 6, 5, AT(0), CUDA_R_32F, CUSPARSE_ORDER_ROW));
	REFUSED(cusparseCreateDnMat(&m, 4, 6, 3, AT(0), CUDA_R_32F, CUSPARSE_ORDER_COL));
}

static void sparse_matrices(void)
{
	cusparseFillMode_t fill = CUSPARSE_FILL_MODE_UPPER, told = CUSPARSE_FILL_MODE_LOWER;
	cusparseIndexType_t offset_type, index_type;
	cusparseIndexBase_t base;
	cusparseSpMatDescr_t m;
	cusparseFormat_t format;
	cudaDataType type;
	int64_t rows, cols, nnz;
	void *offsets, *indices, *values;
	int batch;

	/* Both indices have one type (H200, 2026-11-23). */
	SPARSE_IS(cusparseCreateCsr(&m, 5, 6, 7, AT(0), AT(1), AT(2), CUSPARSE_INDEX_64I,
			  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ONE, CUDA_C_32F),
		CUSPARSE_STATUS_NOT_SUPPORTED);
	SPARSE(cusparseCreateCsr(&m, 5, 6, 7, AT(0), AT(1), AT(2), CUSPARSE_INDEX_64I,
		CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ONE, CUDA_C_32F));
	SPARSE(cusparseCsrSetPointers(m, AT(1), AT(2), AT(3)));
	SPARSE(cusparseCsrGet(m, &rows, &cols, &nnz, &offsets, &indices, &values, &offset_type,
		&index_type, &base, &type));
	CHECK(rows == 5 && cols == 6 && nnz == 7 && offsets == AT(1) && indices == AT(2) &&
			values == AT(3) && offset_type == CUSPARSE_INDEX_64I &&
			index_type == CUSPARSE_INDEX_64I && base == CUSPARSE_INDEX_BASE_ONE &&
			type == CUDA_C_32F,
		"a matrix of compressed rows is another");
	SPARSE(cusparseSpMatGetFormat(m, &format));
	CHECK(format == CUSPARSE_FORMAT_CSR, "the format is %d", (int)format);
	/* NVIDIA's takes NULL (12.6, which needs no GPU for it): arrays of no elements are
	 * there. */
	SPARSE(cusparseCsrSetPointers(m, AT(1), NULL, NULL));
	SPARSE(cusparseSpMatGetValues(m, &values));
	CHECK(!values, "values are not nowhere");
	SPARSE(cusparseSpMatSetValues(m, NULL));
	SPARSE(cusparseSpMatSetValues(m, AT(0)));
	SPARSE(cusparseSpMatGetValues(m, &values));
	CHECK(values == AT(0), "values were set elsewhere");
	SPARSE(cusparseSpMatSetAttribute(m, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	SPARSE(cusparseSpMatGetAttribute(m, CUSPARSE_SPMAT_FILL_MODE, &told, sizeof(told)));
	CHECK(told == fill, "the fill mode is %d", (int)told);
	SPARSE(cusparseCsrSetStridedBatch(m, 3, 6, 7));
	SPARSE(cusparseSpMatGetStridedBatch(m, &batch));
	CHECK(batch == 3, "the batch is %d", batch);
	SPARSE(cusparseDestroySpMat(m));
	REFUSED(cusparseCreateCsr(&m, -1, 6, 7, AT(0), AT(1), AT(2), CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	REFUSED(cusparseCreateCoo(&m, 5, 6, -7, AT(0), AT(1), AT(2), CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
}

static void handles(void)
{
	cusparsePointerMode_t mode;
	cusparseMatDescr_t m;
	int version;

	REFUSED(cusparseSetStream(NULL, NULL));
	REFUSED(cusparseGetVersion(NULL, &version));
	SPARSE(cusparseGetVersion(handle, &version));
	CHECK(version >= 12000 && version < 13000, "version %d", version);
	SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
	SPARSE(cusparseGetPointerMode(handle, &mode));
	CHECK(mode == CUSPARSE_POINTER_MODE_DEVICE, "pointer mode %d", (int)mode);
	SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	SPARSE(cusparseCreateMatDescr(&m));
	CHECK(cusparseGetMatType(m) == CUSPARSE_MATRIX_TYPE_GENERAL &&
			cusparseGetMatIndexBase(m) == CUSPARSE_INDEX_BASE_ZERO,
		"a new description is not general");
	SPARSE(cusparseSetMatIndexBase(m, CUSPARSE_INDEX_BASE_ONE));
	SPARSE(cusparseSetMatFillMode(m, CUSPARSE_FILL_MODE_UPPER));
	SPARSE(cusparseSetMatDiagType(m, CUSPARSE_DIAG_TYPE_UNIT));
	CHECK(cusparseGetMatIndexBase(m) == CUSPARSE_INDEX_BASE_ONE &&
			cusparseGetMatFillMode(m) == CUSPARSE_FILL_MODE_UPPER &&
			cusparseGetMatDiagType(m) == CUSPARSE_DIAG_TYPE_UNIT,
		"a description is not as it was set");
	SPARSE(cusparseDestroyMatDescr(m));
}

/* A preprocessed matrix is the same one after its values moved. */
static void moved(void)
{
	number *a = some_sparse(CUDA_R_64F, 20, 30), *x = some(CUDA_R_64F, 30);
	number *want = host(20 * sizeof(*want));
	struct matrix m = sparse_of(CUSPARSE_FORMAT_CSR, CUDA_R_64F, a, 20, 30,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO);
	void *in = put(CUDA_R_64F, x, 30), *out = device(20 * 8), *work, *elsewhere;
	cusparseDnVecDescr_t vx, vy;
	const double one = 1, zero = 0;
	size_t bytes;

	SPARSE(cusparseCreateDnVec(&vx, 30, in, CUDA_R_64F));
	SPARSE(cusparseCreateDnVec(&vy, 20, out, CUDA_R_64F));
	SPARSE(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descr,
		vx, &zero, vy, CUDA_R_64F, CUSPARSE_SPMV_CSR_ALG1, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descr,
		vx, &zero, vy, CUDA_R_64F, CUSPARSE_SPMV_CSR_ALG1, work));
	elsewhere = device((size_t)m.nnz * 8);
	CUDA(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)elsewhere, (CUdeviceptr)(uintptr_t)m.values,
		(size_t)m.nnz * 8));
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)m.values, 0, (size_t)m.nnz * 8));
	SPARSE(cusparseSpMatSetValues(m.descr, elsewhere));
	SPARSE(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, m.descr, vx, &zero,
		vy, CUDA_R_64F, CUSPARSE_SPMV_CSR_ALG1, work));
	for (int i = 0; i < 20; i++)
		for (int j = 0; j < 30; j++)
			want[i] += a[i * 30 + j] * x[j];
	same(CUDA_R_64F, out, want, 20, "after its values moved");
	SPARSE(cusparseDestroyDnVec(vx));
	SPARSE(cusparseDestroyDnVec(vy));
	matrix_free(&m);
	release(in);
	release(out);
	release(work);
	release(elsewhere);
	free(a);
	free(x);
	free(want);
}

/* The log of the agent's library is the agent's; the program has the file that it named. */
static void log_file(void)
{
	char path[] = "/tmp/vcuda-cusparse-log-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !close(fd) && !unlink(path), "no name for a log in /tmp");
	SPARSE(cusparseLoggerOpenFile(path));
	CHECK(!unlink(path), "the log's file was not made");
	REFUSED(cusparseLoggerOpenFile("/nowhere/at/all"));
}

int main(void)
{
	begin();
	log_file();
	vectors();
	dense_matrices();
	sparse_matrices();
	handles();
	moved();
	SPARSE(cusparseDestroy(handle));
	return 0;
}
