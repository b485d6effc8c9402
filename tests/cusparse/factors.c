/* SPDX-License-Identifier: Apache-2.0
 *
 * Incomplete LU and Cholesky factorizations of elements and of blocks, in each type. Of a
 * matrix without zeros they are complete ones, so the factors' product is the matrix; where a
 * zero is is told.
 */
#include "tests/cusparse/check.h"

#define POLICY CUSPARSE_SOLVE_POLICY_USE_LEVEL
#define ROW CUSPARSE_DIRECTION_ROW

/* Row-major, no number of it 0, its diagonal large; Hermitian where asked. */
static number *full(cudaDataType t, int n, bool hermitian)
{
	number *a = some(t, n * n);

	for (int i = 0; i < n * n; i++)
		a[i] = a[i] / 8 + 0.375 + (i % (n + 1) ? 0 : n);
	for (int i = 0; i < n; i++)
		for (int j = 0; hermitian && j <= i; j++)
			a[i * n + j] = i == j ? creal(a[i * n + j]) : conj(a[j * n + i]);
	return a;
}

/* The values of a full matrix of blocks, row-major again. */
static number *by_rows(cudaDataType t, const struct arrays *m, int n, int block)
{
	number *blocks = get(t, m->values, n * n);
	number *a = host((size_t)(n * n) * sizeof(*a));
	int across = n / block;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			a[i * n + j] =
				blocks[((i / block * across + j / block) * block + i % block) *
						block +
					j % block];
	free(blocks);
	return a;
}

static void lu_elements(enum type type, int n, struct arrays *m)
{
	csrilu02Info_t info;
	int bytes = 0, zero = 7;
	void *work;

	SPARSE(cusparseCreateCsrilu02Info(&info));
	SPARSE(TYPED(type, csrilu02_bufferSize, handle, n, m->nnz, m->descr, m->values,
		m->offsets, m->indices, info, &bytes));
	work = device((size_t)bytes);
	SPARSE(TYPED(type, csrilu02_analysis, handle, n, m->nnz, m->descr, m->values,
		m->offsets, m->indices, info, POLICY, work));
	SPARSE(cusparseXcsrilu02_zeroPivot(handle, info, &zero));
	SPARSE(TYPED(type, csrilu02, handle, n, m->nnz, m->descr, m->values, m->offsets,
		m->indices, info, POLICY, work));
	SPARSE(cusparseXcsrilu02_zeroPivot(handle, info, &zero));
	CHECK(zero == -1, "a zero at %d", zero);
	SPARSE(cusparseDestroyCsrilu02Info(info));
	release(work);
}

static void lu_blocks(enum type type, int n, int block, struct arrays *m)
{
	bsrilu02Info_t info;
	int bytes = 0, zero = 7, mb = n / block;
	void *work;

	SPARSE(cusparseCreateBsrilu02Info(&info));
	SPARSE(TYPED(type, bsrilu02_bufferSize, handle, ROW, mb, m->nnz, m->descr, m->values,
		m->offsets, m->indices, block, info, &bytes));
	work = device((size_t)bytes);
	SPARSE(TYPED(type, bsrilu02_analysis, handle, ROW, mb, m->nnz, m->descr, m->values,
		m->offsets, m->indices, block, info, POLICY, work));
	SPARSE(TYPED(type, bsrilu02, handle, ROW, mb, m->nnz, m->descr, m->values, m->offsets,
		m->indices, block, info, POLICY, work));
	SPARSE(cusparseXbsrilu02_zeroPivot(handle, info, &zero));
	CHECK(zero == -1, "a zero at %d", zero);
	SPARSE(cusparseDestroyBsrilu02Info(info));
	release(work);
}

static void cholesky_elements(enum type type, int n, struct arrays *m)
{
	csric02Info_t info;
	int bytes = 0, zero = 7;
	void *work;

	SPARSE(cusparseCreateCsric02Info(&info));
	SPARSE(TYPED(type, csric02_bufferSize, handle, n, m->nnz, m->descr, m->values,
		m->offsets, m->indices, info, &bytes));
	work = device((size_t)bytes);
	SPARSE(TYPED(type, csric02_analysis, handle, n, m->nnz, m->descr, m->values, m->offsets,
		m->indices, info, POLICY, work));
	SPARSE(TYPED(type, csric02, handle, n, m->nnz, m->descr, m->values, m->offsets,
		m->indices, info, POLICY, work));
	SPARSE(cusparseXcsric02_zeroPivot(handle, info, &zero));
	CHECK(zero == -1, "a zero at %d", zero);
	SPARSE(cusparseDestroyCsric02Info(info));
	release(work);
}

static void cholesky_blocks(enum type type, int n, int block, struct arrays *m)
{
	bsric02Info_t info;
	int bytes = 0, zero = 7, mb = n / block;
	void *work;

	SPARSE(cusparseCreateBsric02Info(&info));
	SPARSE(TYPED(type, bsric02_bufferSize, handle, ROW, mb, m->nnz, m->descr, m->values,
		m->offsets, m->indices, block, info, &bytes));
	work = device((size_t)bytes);
	SPARSE(TYPED(type, bsric02_analysis, handle, ROW, mb, m->nnz, m->descr, m->values,
		m->offsets, m->indices, block, info, POLICY, work));
	SPARSE(TYPED(type, bsric02, handle, ROW, mb, m->nnz, m->descr, m->values, m->offsets,
		m->indices, block, info, POLICY, work));
	SPARSE(cusparseXbsric02_zeroPivot(handle, info, &zero));
	CHECK(zero == -1, "a zero at %d", zero);
	SPARSE(cusparseDestroyBsric02Info(info));
	release(work);
}

/* A = L U with ones on L's diagonal, or A = L L^H of L's lower triangle. */
static void product(cudaDataType t, const number *a, const number *f, int n, bool hermitian,
	const char *what)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < (hermitian ? i + 1 : n); j++) {
			int inner = i < j ? i : j;
			number sum = 0;

			for (int k = 0; k <= inner; k++)
				sum += hermitian ? f[i * n + k] * conj(f[j * n + k])
				       : k == i	 ? f[k * n + j]
						 : f[i * n + k] * f[k * n + j];
			near(t, &sum, &a[i * n + j], 1, what);
		}
}

static void shape(enum type type, int n, int block)
{
	cudaDataType t = letters[type];

	for (int hermitian = 0; hermitian < 2; hermitian++) {
		number *a = full(t, n, hermitian), *f;
		struct arrays m = arrays_of(t, a, n, n, block, ROW, CUSPARSE_INDEX_BASE_ZERO);

		if (hermitian && block == 1)
			cholesky_elements(type, n, &m);
		else if (hermitian)
			cholesky_blocks(type, n, block, &m);
		else if (block == 1)
			lu_elements(type, n, &m);
		else
			lu_blocks(type, n, block, &m);
		f = by_rows(t, &m, n, block);
		product(t, a, f, n, hermitian, hermitian ? "ic02" : "ilu02");
		arrays_free(&m);
		free(a);
		free(f);
	}
}

/* Only the matrix's own places are filled: (1, 2) stays 0 where A has no entry there. */
static void incomplete(void)
{
	number a[] = {2, 1, 4, 4, 3, 0, 8, 0, 17}, *got;
	number want[] = {2, 1, 4, 2, 1, 4, 1};
	struct arrays m = arrays_of(CUDA_R_32F, a, 3, 3, 1, ROW, CUSPARSE_INDEX_BASE_ZERO);

	lu_elements(S, 3, &m);
	got = get(CUDA_R_32F, m.values, m.nnz);
	near(CUDA_R_32F, got, want, 7, "incomplete ilu02");
	arrays_free(&m);
	free(got);
}

/* A missing place of the diagonal is found by the analysis. */
static void missing(void)
{
	number a[] = {1, 2, 0, 3, 4, 5, 1, 1, 0};
	struct arrays m = arrays_of(CUDA_R_64F, a, 3, 3, 1, ROW, CUSPARSE_INDEX_BASE_ONE);
	csrilu02Info_t info;
	int bytes = 0, zero = 7;
	void *work;

	SPARSE(cusparseCreateCsrilu02Info(&info));
	SPARSE(cusparseDcsrilu02_bufferSize(
		handle, 3, m.nnz, m.descr, m.values, m.offsets, m.indices, info, &bytes));
	work = device((size_t)bytes);
	SPARSE(cusparseDcsrilu02_analysis(
		handle, 3, m.nnz, m.descr, m.values, m.offsets, m.indices, info, POLICY, work));
	SPARSE_IS(cusparseXcsrilu02_zeroPivot(handle, info, &zero), CUSPARSE_STATUS_ZERO_PIVOT);
	CHECK(zero == 3, "the zero is at %d, not 3", zero);
	SPARSE(cusparseDestroyCsrilu02Info(info));
	arrays_free(&m);
	release(work);
}

int main(void)
{
	begin();
	for (int t = 0; t < 4; t++) {
		shape((enum type)t, 1, 1);
		shape((enum type)t, 7, 1);
		shape((enum type)t, 16, 1);
		shape((enum type)t, 8, 2);
		shape((enum type)t, 15, 3);
	}
	incomplete();
	missing();
	SPARSE(cusparseDestroy(handle));
	return 0;
}
