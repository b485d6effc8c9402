/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of two sparse matrices in each type: in the three phases, with the number of entries
 * found on the way, and by the calls that use the same places again with other values.
 */
#include "tests/cusparse/check.h"

#define N CUSPARSE_OPERATION_NON_TRANSPOSE

struct problem {
	cudaDataType t;
	int64_t m, n, k;
	number *a, *b;
	struct matrix in_a, in_b;
	cusparseSpMatDescr_t c;
	void *offsets, *indices, *values;
	int64_t nnz;
	cusparseSpGEMMDescr_t descr;
	void *work[6];
	int works;
};

static void *work(struct problem *p, size_t bytes)
{
	return p->work[p->works++] = device(bytes);
}

static struct problem problem(cudaDataType t, int64_t m, int64_t n, int64_t k)
{
	struct problem p = {.t = t, .m = m, .n = n, .k = k};

	p.a = some_sparse(t, m, k);
	p.b = some_sparse(t, k, n);
	p.in_a = sparse_of(CUSPARSE_FORMAT_CSR, t, p.a, m, k, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	p.in_b = sparse_of(CUSPARSE_FORMAT_CSR, t, p.b, k, n, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_BASE_ZERO);
	p.offsets = device((size_t)(m + 1) * 4);
	/* Some programs have no array of the product yet. */
	SPARSE(cusparseCreateCsr(&p.c, m, n, 0, m % 2 ? p.offsets : NULL, NULL, NULL,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, t));
	SPARSE(cusparseSpGEMM_createDescr(&p.descr));
	return p;
}

/* The arrays of as many entries as the descriptor says. */
static void make_room(struct problem *p)
{
	int64_t rows, cols;

	SPARSE(cusparseSpMatGetSize(p->c, &rows, &cols, &p->nnz));
	CHECK(rows == p->m && cols == p->n, "the product is %ld by %ld", (long)rows,
		(long)cols);
	p->indices = device((size_t)p->nnz * 4);
	p->values = device((size_t)p->nnz * size_of(p->t));
	SPARSE(cusparseCsrSetPointers(p->c, p->offsets, p->indices, p->values));
}

/* A place is an entry where any pair of factors has two entries, whatever they sum to. */
static void compare(const struct problem *p, number alpha)
{
	int32_t *offsets = get_bytes(p->offsets, (size_t)(p->m + 1) * 4);
	int32_t *indices = get_bytes(p->indices, (size_t)p->nnz * 4);
	number *got = get(p->t, p->values, p->nnz);

	CHECK(offsets[0] == 0 && offsets[p->m] == p->nnz, "%d entries, not %ld", offsets[p->m],
		(long)p->nnz);
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			number want = 0, have = 0;
			int pairs = 0, found = 0;

			for (int64_t l = 0; l < p->k; l++) {
				pairs += p->a[i * p->k + l] != 0 && p->b[l * p->n + j] != 0;
				want += alpha * p->a[i * p->k + l] * p->b[l * p->n + j];
			}
			for (int32_t at = offsets[i]; at < offsets[i + 1]; at++)
				if (indices[at] == j) {
					found++;
					have += got[at];
				}
			CHECK(found == (pairs > 0), "(%ld, %ld): %d entries", (long)i, (long)j,
				found);
			near(p->t, &have, &want, 1, "SpGEMM");
		}
	free(offsets);
	free(indices);
	free(got);
}

static void problem_free(struct problem *p)
{
	CUDA(cuCtxSynchronize());
	SPARSE(cusparseSpGEMM_destroyDescr(p->descr));
	SPARSE(cusparseDestroySpMat(p->c));
	matrix_free(&p->in_a);
	matrix_free(&p->in_b);
	while (p->works)
		release(p->work[--p->works]);
	release(p->offsets);
	release(p->indices);
	release(p->values);
	free(p->a);
	free(p->b);
}

/* The buffer of the product in pieces: first the size of what the estimate itself needs. */
static void *estimated(struct problem *p, cusparseSpGEMMAlg_t alg, const void *one,
	const void *none, size_t *bytes)
{
	size_t third = 0;
	void *buffer;

	SPARSE(cusparseSpGEMM_estimateMemory(handle, N, N, one, p->in_a.descr, p->in_b.descr,
		none, p->c, p->t, alg, p->descr, 0.5f, &third, NULL, NULL));
	buffer = work(p, third);
	SPARSE(cusparseSpGEMM_estimateMemory(handle, N, N, one, p->in_a.descr, p->in_b.descr,
		none, p->c, p->t, alg, p->descr, 0.5f, &third, buffer, bytes));
	return work(p, *bytes);
}

static void phases(cudaDataType t, cusparseSpGEMMAlg_t alg, int64_t m, int64_t n, int64_t k)
{
	struct problem p = problem(t, m, n, k);
	number alpha = is_complex(t) ? CMPLX(0.5, -0.5) : 1.5;
	char one[16], none[16];
	size_t bytes = 0;
	void *buffer;

	number_out(t, one, 0, alpha);
	number_out(t, none, 0, 0);
	SPARSE(cusparseSpGEMM_workEstimation(handle, N, N, one, p.in_a.descr, p.in_b.descr,
		none, p.c, t, alg, p.descr, &bytes, NULL));
	buffer = work(&p, bytes);
	SPARSE(cusparseSpGEMM_workEstimation(handle, N, N, one, p.in_a.descr, p.in_b.descr,
		none, p.c, t, alg, p.descr, &bytes, buffer));
	if (alg == CUSPARSE_SPGEMM_ALG3) {
		buffer = estimated(&p, alg, one, none, &bytes);
	} else {
		SPARSE(cusparseSpGEMM_compute(handle, N, N, one, p.in_a.descr, p.in_b.descr,
			none, p.c, t, alg, p.descr, &bytes, NULL));
		buffer = work(&p, bytes);
	}
	SPARSE(cusparseSpGEMM_compute(handle, N, N, one, p.in_a.descr, p.in_b.descr, none, p.c,
		t, alg, p.descr, &bytes, buffer));
	make_room(&p);
	SPARSE(cusparseSpGEMM_copy(
		handle, N, N, one, p.in_a.descr, p.in_b.descr, none, p.c, t, alg, p.descr));
	compare(&p, alpha);
	problem_free(&p);
}

static void find_places(struct problem *p, cusparseSpGEMMAlg_t alg)
{
	size_t bytes[4] = {0};
	void *buffers[3];

	SPARSE(cusparseSpGEMMreuse_workEstimation(
		handle, N, N, p->in_a.descr, p->in_b.descr, p->c, alg, p->descr, bytes, NULL));
	SPARSE(cusparseSpGEMMreuse_workEstimation(handle, N, N, p->in_a.descr, p->in_b.descr,
		p->c, alg, p->descr, bytes, work(p, bytes[0])));
	SPARSE(cusparseSpGEMMreuse_nnz(handle, N, N, p->in_a.descr, p->in_b.descr, p->c, alg,
		p->descr, &bytes[0], NULL, &bytes[1], NULL, &bytes[2], NULL));
	for (int i = 0; i < 3; i++)
		buffers[i] = work(p, bytes[i]);
	SPARSE(cusparseSpGEMMreuse_nnz(handle, N, N, p->in_a.descr, p->in_b.descr, p->c, alg,
		p->descr, &bytes[0], buffers[0], &bytes[1], buffers[1], &bytes[2], buffers[2]));
	make_room(p);
	SPARSE(cusparseSpGEMMreuse_copy(handle, N, N, p->in_a.descr, p->in_b.descr, p->c, alg,
		p->descr, &bytes[3], NULL));
	SPARSE(cusparseSpGEMMreuse_copy(handle, N, N, p->in_a.descr, p->in_b.descr, p->c, alg,
		p->descr, &bytes[3], work(p, bytes[3])));
}

static void again(cudaDataType t, int64_t m, int64_t n, int64_t k)
{
	struct problem p = problem(t, m, n, k);
	cusparseSpGEMMAlg_t alg = CUSPARSE_SPGEMM_DEFAULT;
	char one[16], none[16];
	void *other;
	number *values = host((size_t)p.in_a.nnz * sizeof(*values));
	int64_t at = 0;

	number_out(t, one, 0, 1);
	number_out(t, none, 0, 0);
	find_places(&p, alg);
	SPARSE(cusparseSpGEMMreuse_compute(
		handle, N, N, one, p.in_a.descr, p.in_b.descr, none, p.c, t, alg, p.descr));
	compare(&p, 1);
	/* Other values at the same places. */
	for (int64_t i = 0; i < m * k; i++)
		if (p.a[i] != 0)
			values[at++] = p.a[i] = p.a[i] * 2 + 8;
	other = put(t, values, p.in_a.nnz);
	SPARSE(cusparseSpMatSetValues(p.in_a.descr, other));
	SPARSE(cusparseSpGEMMreuse_compute(
		handle, N, N, one, p.in_a.descr, p.in_b.descr, none, p.c, t, alg, p.descr));
	compare(&p, 1);
	problem_free(&p);
	release(other);
	free(values);
}

/* A column times a row, whose product no memory holds: that call fails, and no later one. */
static void too_large(void)
{
	enum { MANY = 1 << 22 };
	int32_t *count = host((size_t)(MANY + 1) * sizeof(*count));
	int32_t *nothing = calloc(MANY, sizeof(*nothing)), ends[] = {0, MANY};
	float *values = calloc(MANY, sizeof(*values)), alpha = 1, beta = 0;
	cusparseSpGEMMDescr_t descr;
	cusparseSpMatDescr_t a, b, c;
	void *each, *zeros, *two, *ones, *buffer;
	cusparseStatus_t status;
	size_t bytes = 0;

	for (int i = 0; i <= MANY; i++)
		count[i] = i;
	each = put_bytes(count, (size_t)(MANY + 1) * sizeof(*count));
	zeros = put_bytes(nothing, (size_t)MANY * sizeof(*nothing));
	two = put_bytes(ends, sizeof(ends));
	ones = put_bytes(values, (size_t)MANY * sizeof(*values));
	SPARSE(cusparseCreateCsr(&a, MANY, 1, MANY, each, zeros, ones, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	SPARSE(cusparseCreateCsr(&b, 1, MANY, MANY, two, each, ones, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	SPARSE(cusparseCreateCsr(&c, MANY, MANY, 0, NULL, NULL, NULL, CUSPARSE_INDEX_32I,
		CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	SPARSE(cusparseSpGEMM_createDescr(&descr));
	status = cusparseSpGEMM_workEstimation(handle, N, N, &alpha, a, b, &beta, c, CUDA_R_32F,
		CUSPARSE_SPGEMM_DEFAULT, descr, &bytes, NULL);
	buffer = device(bytes + 1);
	if (!status)
		status = cusparseSpGEMM_workEstimation(handle, N, N, &alpha, a, b, &beta, c,
			CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, descr, &bytes, buffer);
	if (!status)
		status = cusparseSpGEMM_compute(handle, N, N, &alpha, a, b, &beta, c,
			CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, descr, &bytes, NULL);
	release(buffer);
	buffer = device(bytes + 1);
	if (!status)
		status = cusparseSpGEMM_compute(handle, N, N, &alpha, a, b, &beta, c,
			CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, descr, &bytes, buffer);
	CHECK(status != CUSPARSE_STATUS_SUCCESS, "there was room for 2^44 entries");
	SPARSE(cusparseSpGEMM_destroyDescr(descr));
	SPARSE(cusparseDestroySpMat(a));
	SPARSE(cusparseDestroySpMat(b));
	SPARSE(cusparseDestroySpMat(c));
	for (int i = 0; i < 5; i++)
		release(((void *[]){each, zeros, two, ones, buffer})[i]);
	free(count);
	free(nothing);
	free(values);
	phases(CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, 4, 5, 6);
}

int main(void)
{
	static const int sizes[] = {2, 7, 16, 31};

	begin();
	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++) {
			phases(letters[t], CUSPARSE_SPGEMM_DEFAULT, sizes[s], sizes[3 - s], 11);
			phases(letters[t], CUSPARSE_SPGEMM_ALG3, sizes[s], 11, sizes[3 - s]);
			again(letters[t], sizes[s], 9, sizes[3 - s]);
		}
	too_large();
	SPARSE(cusparseDestroy(handle));
	return 0;
}
