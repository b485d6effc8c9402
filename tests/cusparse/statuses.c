/* SPDX-License-Identifier: Apache-2.0
 *
 * What wrong arguments are answered with: no handle, sizes below 0, sizes that do not fit, an
 * index base that is none; what descriptors, handles and statuses tell.
 */
#include "tests/cusparse/check.h"

#define INVALID CUSPARSE_STATUS_INVALID_VALUE
#define N CUSPARSE_OPERATION_NON_TRANSPOSE

static void handles(void)
{
	CUstream stream, other;
	cusparsePointerMode_t mode;
	int version = 0, major = 0;

	/* Documented is NOT_INITIALIZED (H200, 2026-11-23). */
	SPARSE_IS(cusparseSetStream(NULL, NULL), INVALID);
	EXPECTED(cusparseSetPointerMode(NULL, CUSPARSE_POINTER_MODE_HOST), INVALID);
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	SPARSE(cusparseSetStream(handle, (cudaStream_t)stream));
	SPARSE(cusparseGetStream(handle, (cudaStream_t *)&other));
	CHECK(other == stream, "another stream");
	SPARSE(cusparseSetStream(handle, NULL));
	CUDA(cuStreamDestroy(stream));
	SPARSE(cusparseGetPointerMode(handle, &mode));
	CHECK(mode == CUSPARSE_POINTER_MODE_HOST, "mode %d", (int)mode);
	SPARSE(cusparseGetVersion(handle, &version));
	SPARSE(cusparseGetProperty(MAJOR_VERSION, &major));
	CHECK(major == 12 && version / 1000 == major, "version %d, major %d", version, major);
	CHECK(!strcmp(cusparseGetErrorName(CUSPARSE_STATUS_ZERO_PIVOT),
		      "CUSPARSE_STATUS_ZERO_PIVOT"),
		"a status has the name %s", cusparseGetErrorName(CUSPARSE_STATUS_ZERO_PIVOT));
	CHECK(cusparseGetErrorString(CUSPARSE_STATUS_SUCCESS), "no text");
}

static void descriptors(void)
{
	cusparseSpMatDescr_t m;
	cusparseDnVecDescr_t v;
	cusparseDnMatDescr_t d;
	cusparseMatDescr_t old;
	void *at = device(256), *a, *b, *c;
	int64_t rows, cols, nnz;
	cusparseIndexType_t offsets, indices;
	cusparseIndexBase_t base;
	cusparseFormat_t format;
	cusparseFillMode_t fill = CUSPARSE_FILL_MODE_UPPER, told = CUSPARSE_FILL_MODE_LOWER;
	cudaDataType type;

	EXPECTED(cusparseCreateCsr(&m, -1, 2, 0, at, at, at, CUSPARSE_INDEX_32I,
			 CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
		INVALID);
	EXPECTED(cusparseCreateDnVec(&v, -1, at, CUDA_R_32F), INVALID);
	EXPECTED(cusparseCreateDnMat(&d, 4, 4, 3, at, CUDA_R_32F, CUSPARSE_ORDER_COL), INVALID);
	SPARSE(cusparseCreateCsr(&m, 3, 4, 5, at, at, at, CUSPARSE_INDEX_64I,
		CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ONE, CUDA_C_32F));
	SPARSE(cusparseCsrGet(
		m, &rows, &cols, &nnz, &a, &b, &c, &offsets, &indices, &base, &type));
	CHECK(rows == 3 && cols == 4 && nnz == 5 && a == at && b == at && c == at &&
			offsets == CUSPARSE_INDEX_64I && indices == CUSPARSE_INDEX_64I &&
			base == CUSPARSE_INDEX_BASE_ONE && type == CUDA_C_32F,
		"CsrGet told something else");
	SPARSE(cusparseSpMatGetFormat(m, &format));
	CHECK(format == CUSPARSE_FORMAT_CSR, "format %d", (int)format);
	SPARSE(cusparseSpMatSetAttribute(m, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	SPARSE(cusparseSpMatGetAttribute(m, CUSPARSE_SPMAT_FILL_MODE, &told, sizeof(told)));
	CHECK(told == fill, "another triangle");
	SPARSE(cusparseDestroySpMat(m));
	SPARSE(cusparseCreateMatDescr(&old));
	CHECK(cusparseGetMatType(old) == CUSPARSE_MATRIX_TYPE_GENERAL &&
			cusparseGetMatIndexBase(old) == CUSPARSE_INDEX_BASE_ZERO,
		"a new descriptor is not plain");
	EXPECTED(cusparseSetMatIndexBase(old, (cusparseIndexBase_t)7), INVALID);
	SPARSE(cusparseSetMatFillMode(old, CUSPARSE_FILL_MODE_UPPER));
	SPARSE(cusparseSetMatDiagType(old, CUSPARSE_DIAG_TYPE_UNIT));
	CHECK(cusparseGetMatFillMode(old) == CUSPARSE_FILL_MODE_UPPER &&
			cusparseGetMatDiagType(old) == CUSPARSE_DIAG_TYPE_UNIT,
		"what was set is not told");
	SPARSE(cusparseDestroyMatDescr(old));
	release(at);
}

static void products(void)
{
	number ones[] = {1, 0, 0, 1, 0, 1};
	struct matrix m = sparse_of(CUSPARSE_FORMAT_CSR, CUDA_R_32F, ones, 2, 3,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO);
	cusparseDnVecDescr_t two, three;
	void *at = device(64);
	float one = 1;
	size_t bytes = 0;

	SPARSE(cusparseCreateDnVec(&two, 2, at, CUDA_R_32F));
	SPARSE(cusparseCreateDnVec(&three, 3, at, CUDA_R_32F));
	EXPECTED(cusparseSpMV_bufferSize(NULL, N, &one, m.descr, three, &one, two, CUDA_R_32F,
			 CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
		INVALID);
	EXPECTED(cusparseSpMV_bufferSize(handle, N, &one, m.descr, two, &one, three, CUDA_R_32F,
			 CUSPARSE_SPMV_ALG_DEFAULT, &bytes),
		INVALID);
	EXPECTED(cusparseSpMV(handle, N, &one, m.descr, two, &one, three, CUDA_R_32F,
			 CUSPARSE_SPMV_ALG_DEFAULT, at),
		INVALID);
	EXPECTED(cusparseXcoo2csr(NULL, at, 1, 1, at, CUSPARSE_INDEX_BASE_ZERO), INVALID);
	EXPECTED(cusparseXcoo2csr(handle, at, -1, 1, at, CUSPARSE_INDEX_BASE_ZERO), INVALID);
	SPARSE(cusparseDestroyDnVec(two));
	SPARSE(cusparseDestroyDnVec(three));
	matrix_free(&m);
	release(at);
}

int main(void)
{
	begin();
	handles();
	descriptors();
	products();
	SPARSE(cusparseDestroy(handle));
	return 0;
}
