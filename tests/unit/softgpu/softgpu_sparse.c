/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSE on the software GPU, where a program of tests/cusparse would need a newer library
 * than a machine with a GPU has, or memory that is wrong: formats of blocks and of slices,
 * batches with matrices of their own, sums and conversions of CUDA 13, places outside a matrix.
 */
#include <limits.h>

#include "tests/unit/softgpu/softgpu_test.h"

/* The library's own names, as far as they are used here. */
int cusparseCreate(void **handle);
int cusparseDestroy(void *handle);
int cusparseCreateCsr(void **m, int64_t rows, int64_t cols, int64_t nnz, void *offsets,
	void *indices, void *values, int offset_type, int index_type, int base, int type);
int cusparseCreateCoo(void **m, int64_t rows, int64_t cols, int64_t nnz, void *row, void *col,
	void *values, int index_type, int base, int type);
int cusparseCreateBsr(void **m, int64_t brows, int64_t bcols, int64_t bnnz, int64_t row_block,
	int64_t col_block, void *offsets, void *indices, void *values, int offset_type,
	int index_type, int base, int type, int order);
int cusparseCreateBlockedEll(void **m, int64_t rows, int64_t cols, int64_t block,
	int64_t ell_cols, void *indices, void *values, int index_type, int base, int type);
int cusparseCreateSlicedEll(void **m, int64_t rows, int64_t cols, int64_t nnz, int64_t all,
	int64_t slice, void *offsets, void *indices, void *values, int offset_type,
	int index_type, int base, int type);
int cusparseDestroySpMat(void *m);
int cusparseCsrSetPointers(void *m, void *offsets, void *indices, void *values);
int cusparseCooSetPointers(void *m, void *row, void *col, void *values);
int cusparseCsrSetStridedBatch(void *m, int batches, int64_t offsets, int64_t entries);
int cusparseSpMatGetSize(void *m, int64_t *rows, int64_t *cols, int64_t *nnz);
int cusparseCreateDnVec(void **v, int64_t size, void *values, int type);
int cusparseDestroyDnVec(void *v);
int cusparseCreateDnMat(
	void **d, int64_t rows, int64_t cols, int64_t ld, void *values, int type, int order);
int cusparseDnMatSetStridedBatch(void *d, int batches, int64_t stride);
int cusparseDestroyDnMat(void *d);
int cusparseSpMV(void *handle, int op, const void *alpha, void *a, void *x, const void *beta,
	void *y, int compute, int alg, void *buffer);
int cusparseSpMM(void *handle, int op_a, int op_b, const void *alpha, void *a, void *b,
	const void *beta, void *c, int compute, int alg, void *buffer);
int cusparseSparseToDense(void *handle, void *a, void *b, int alg, void *buffer);
int cusparseSpGEAM_createDescr(void **descr);
int cusparseSpGEAM_destroyDescr(void *descr);
int cusparseSpGEAM_bufferSize(void *handle, int op_a, int op_b, const void *alpha, void *a,
	const void *beta, void *b, void *c, int compute, int alg, void *descr, size_t *size);
int cusparseSpGEAM_nnz(void *handle, int op_a, int op_b, const void *alpha, void *a,
	const void *beta, void *b, void *c, int compute, int alg, void *descr, void *buffer);
int cusparseSpGEAM(void *handle, int op_a, int op_b, const void *alpha, void *a,
	const void *beta, void *b, void *c, int compute, int alg, void *descr, void *buffer);
int cusparseSpMatConvertDescrCreate(void **descr);
int cusparseSpMatConvertDescrDestroy(void *descr);
int cusparseSpMatConvert_analysis(void *handle, int op, void *from, void *to, int action,
	int alg, void *descr, void *buffer);
int cusparseSpMatConvert(void *handle, int op, void *from, void *to, int action, int alg,
	void *descr, void *buffer);

int cusparseCreateMatDescr(void **descr);
int cusparseDestroyMatDescr(void *descr);
int cusparseSbsrmv(void *handle, int dir, int op, int mb, int nb, int nnzb, const void *alpha,
	void *descr, void *values, void *offsets, void *indices, int block, void *x,
	const void *beta, void *y);

enum { R_32F = 0, INDEX_32I = 2, ORDER_COL = 1, ORDER_ROW = 2 };
enum { INVALID_VALUE = 3, EXECUTION_FAILED = 6 };

static const float one = 1, none = 0;

static int sparse_setup(void **state)
{
	return context_setup(NULL) || cusparseCreate(state);
}

static int sparse_teardown(void **state)
{
	return cusparseDestroy(*state) || context_teardown(NULL);
}

static void *device_of(const void *from, size_t bytes)
{
	CUdeviceptr at;

	ok(cuMemAlloc(&at, bytes));
	ok(from ? cuMemcpyHtoD(at, from, bytes) : cuMemsetD8(at, 0, bytes));
	return (void *)(uintptr_t)at;
}
#define DEVICE(ARRAY) device_of(ARRAY, sizeof(ARRAY))

static void has(const void *at, const void *want, size_t bytes)
{
	char got[512];

	assert_true(bytes <= sizeof(got));
	ok(cuCtxSynchronize());
	ok(cuMemcpyDtoH(got, (CUdeviceptr)(uintptr_t)at, bytes));
	assert_memory_equal(got, want, bytes);
}

static void drop(void *at)
{
	ok(cuMemFree((CUdeviceptr)(uintptr_t)at));
}

/* What the matrix gives of (1, 10, 100, 1000). */
static void times_vector(void *handle, void *m, const float want[4])
{
	const float x[] = {1, 10, 100, 1000};
	void *in = DEVICE(x), *out = device_of(NULL, sizeof(x)), *vx, *vy;

	is(cusparseCreateDnVec(&vx, 4, in, R_32F), 0);
	is(cusparseCreateDnVec(&vy, 4, out, R_32F), 0);
	is(cusparseSpMV(handle, 0, &one, m, vx, &none, vy, R_32F, 0, NULL), 0);
	has(out, want, sizeof(x));
	is(cusparseDestroyDnVec(vx), 0);
	is(cusparseDestroyDnVec(vy), 0);
	drop(in);
	drop(out);
}

/* The same as a matrix of one column. */
static void times_column(void *handle, void *m, const float want[4])
{
	const float x[] = {1, 10, 100, 1000};
	void *in = DEVICE(x), *out = device_of(NULL, sizeof(x)), *b, *c;

	is(cusparseCreateDnMat(&b, 4, 1, 4, in, R_32F, ORDER_COL), 0);
	is(cusparseCreateDnMat(&c, 4, 1, 4, out, R_32F, ORDER_COL), 0);
	is(cusparseSpMM(handle, 0, 0, &one, m, b, &none, c, R_32F, 0, NULL), 0);
	has(out, want, sizeof(x));
	is(cusparseDestroyDnMat(b), 0);
	is(cusparseDestroyDnMat(c), 0);
	drop(in);
	drop(out);
}

/*  1 2 . .
 *  3 4 . .
 *  . . 5 6
 *  . . 7 8  */
static void blocks_lie_by_row_and_by_column(void **state)
{
	const int offsets[] = {0, 1, 2}, cols[] = {0, 1};
	const float rows[] = {1, 2, 3, 4, 5, 6, 7, 8}, by_col[] = {1, 3, 2, 4, 5, 7, 6, 8};
	const float want[] = {21, 43, 6500, 8700};
	void *at = DEVICE(offsets), *places = DEVICE(cols), *m;

	for (int order = ORDER_COL; order <= ORDER_ROW; order++) {
		void *values = order == ORDER_ROW ? DEVICE(rows) : DEVICE(by_col);

		is(cusparseCreateBsr(&m, 2, 2, 2, 2, 2, at, places, values, INDEX_32I,
			   INDEX_32I, 0, R_32F, order),
			0);
		times_vector(*state, m, want);
		times_column(*state, m, want);
		is(cusparseDestroySpMat(m), 0);
		drop(values);
	}
	drop(at);
	drop(places);
}

/* The same matrix, a row of blocks having room for two, one of them padding. */
static void blocked_ell_has_padding(void **state)
{
	const int cols[] = {0, -1, -1, 1};
	const float values[] = {1, 2, 9, 9, 3, 4, 9, 9, 9, 9, 5, 6, 9, 9, 7, 8};
	const float dense[] = {1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 0, 7, 8};
	const float want[] = {21, 43, 6500, 8700};
	void *places = DEVICE(cols), *at = DEVICE(values), *to = device_of(NULL, 64), *m, *d;

	is(cusparseCreateBlockedEll(&m, 4, 4, 2, 4, places, at, INDEX_32I, 0, R_32F), 0);
	times_column(*state, m, want);
	is(cusparseCreateDnMat(&d, 4, 4, 4, to, R_32F, ORDER_ROW), 0);
	is(cusparseSparseToDense(*state, m, d, 0, NULL), 0);
	has(to, dense, sizeof(dense));
	is(cusparseDestroyDnMat(d), 0);
	is(cusparseDestroySpMat(m), 0);
	drop(places);
	drop(at);
	drop(to);
}

/* Slices of two rows: the first two columns wide, the second one. */
static void sliced_ell_lies_by_column(void **state)
{
	const int offsets[] = {0, 4, 6}, cols[] = {0, 1, 3, -1, 2, 0};
	const float values[] = {1, 2, 3, 9, 4, 5};
	const float want[] = {3001, 20, 400, 5};
	void *at = DEVICE(offsets), *places = DEVICE(cols), *numbers = DEVICE(values), *m;

	is(cusparseCreateSlicedEll(
		   &m, 4, 4, 5, 6, 2, at, places, numbers, INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	times_vector(*state, m, want);
	is(cusparseDestroySpMat(m), 0);
	drop(at);
	drop(places);
	drop(numbers);
}

static void each_of_a_batch_has_its_matrix(void **state)
{
	const int offsets[] = {0, 1, 2, 0, 2, 2}, cols[] = {0, 1, 0, 1};
	const float values[] = {1, 2, 3, 4}, b[] = {1, 10, 100, 1000};
	const float want[] = {1, 20, 4300, 0};
	void *at = DEVICE(offsets), *places = DEVICE(cols), *numbers = DEVICE(values);
	void *in = DEVICE(b), *out = device_of(NULL, sizeof(b)), *m, *mb, *mc;

	is(cusparseCreateCsr(&m, 2, 2, 2, at, places, numbers, INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	is(cusparseCsrSetStridedBatch(m, 2, 3, 2), 0);
	is(cusparseCreateDnMat(&mb, 2, 1, 2, in, R_32F, ORDER_COL), 0);
	is(cusparseDnMatSetStridedBatch(mb, 2, 2), 0);
	is(cusparseCreateDnMat(&mc, 2, 1, 2, out, R_32F, ORDER_COL), 0);
	is(cusparseDnMatSetStridedBatch(mc, 2, 2), 0);
	is(cusparseSpMM(*state, 0, 0, &one, m, mb, &none, mc, R_32F, 0, NULL), 0);
	has(out, want, sizeof(want));
	is(cusparseDestroySpMat(m), 0);
	is(cusparseDestroyDnMat(mb), 0);
	is(cusparseDestroyDnMat(mc), 0);
	drop(at);
	drop(places);
	drop(numbers);
	drop(in);
	drop(out);
}

/* 2 A + B^T of 2 by 3: what only one has is there, too. */
static void a_sum_has_the_places_of_both(void **state)
{
	const int offsets_a[] = {0, 1, 3}, cols_a[] = {2, 0, 1};
	const int offsets_b[] = {0, 1, 2, 2}, cols_b[] = {0, 1};
	const float values_a[] = {1, 2, 3}, values_b[] = {10, 20};
	const int offsets_c[] = {0, 2, 4}, cols_c[] = {0, 2, 0, 1};
	const float values_c[] = {10, 2, 4, 26}, two = 2;
	void *a[] = {DEVICE(offsets_a), DEVICE(cols_a), DEVICE(values_a)};
	void *b[] = {DEVICE(offsets_b), DEVICE(cols_b), DEVICE(values_b)};
	void *c[] = {device_of(NULL, 12), device_of(NULL, 16), device_of(NULL, 16)};
	void *ma, *mb, *mc, *descr;
	int64_t rows, cols, nnz;
	size_t size;

	is(cusparseCreateCsr(&ma, 2, 3, 3, a[0], a[1], a[2], INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	is(cusparseCreateCsr(&mb, 3, 2, 2, b[0], b[1], b[2], INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	is(cusparseCreateCsr(&mc, 2, 3, 0, c[0], NULL, NULL, INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	is(cusparseSpGEAM_createDescr(&descr), 0);
	is(cusparseSpGEAM_bufferSize(
		   *state, 0, 1, &two, ma, &one, mb, mc, R_32F, 0, descr, &size),
		0);
	is(cusparseSpGEAM_nnz(*state, 0, 1, &two, ma, &one, mb, mc, R_32F, 0, descr, NULL), 0);
	is(cusparseSpMatGetSize(mc, &rows, &cols, &nnz), 0);
	is(nnz, 4);
	is(cusparseCsrSetPointers(mc, c[0], c[1], c[2]), 0);
	is(cusparseSpGEAM(*state, 0, 1, &two, ma, &one, mb, mc, R_32F, 0, descr, NULL), 0);
	has(c[0], offsets_c, sizeof(offsets_c));
	has(c[1], cols_c, sizeof(cols_c));
	has(c[2], values_c, sizeof(values_c));
	is(cusparseSpGEAM(*state, 0, 0, &two, ma, &one, mb, mc, R_32F, 0, descr, NULL),
		INVALID_VALUE);
	is(cusparseSpGEAM_destroyDescr(descr), 0);
	is(cusparseDestroySpMat(ma), 0);
	is(cusparseDestroySpMat(mb), 0);
	is(cusparseDestroySpMat(mc), 0);
	for (int i = 0; i < 3; i++) {
		drop(a[i]);
		drop(b[i]);
		drop(c[i]);
	}
}

/* A list of three entries as blocks of two by two, and those as a list again. */
static void formats_are_made_of_each_other(void **state)
{
	const int row[] = {0, 1, 3}, col[] = {1, 0, 3};
	const float values[] = {5, 6, 7};
	const int offsets[] = {0, 1, 2}, places[] = {0, 1};
	const float blocks[] = {0, 5, 6, 0, 0, 0, 0, 7};
	void *from[] = {DEVICE(row), DEVICE(col), DEVICE(values)};
	void *to[] = {device_of(NULL, 12), device_of(NULL, 8), device_of(NULL, 32)};
	void *back[] = {device_of(NULL, 32), device_of(NULL, 32), device_of(NULL, 32)};
	const int all_rows[] = {0, 0, 1, 1, 2, 2, 3, 3};
	void *list, *bsr, *again, *descr;
	int64_t rows, cols, nnz;

	is(cusparseCreateCoo(&list, 4, 4, 3, from[0], from[1], from[2], INDEX_32I, 0, R_32F),
		0);
	is(cusparseCreateBsr(&bsr, 2, 2, 0, 2, 2, to[0], to[1], to[2], INDEX_32I, INDEX_32I, 0,
		   R_32F, ORDER_ROW),
		0);
	is(cusparseSpMatConvertDescrCreate(&descr), 0);
	is(cusparseSpMatConvert_analysis(*state, 0, list, bsr, 1, 0, descr, NULL), 0);
	is(cusparseSpMatGetSize(bsr, &rows, &cols, &nnz), 0);
	is(nnz, 2);
	is(cusparseSpMatConvert(*state, 0, list, bsr, 1, 0, descr, NULL), 0);
	has(to[0], offsets, sizeof(offsets));
	has(to[1], places, sizeof(places));
	has(to[2], blocks, sizeof(blocks));
	is(cusparseCreateCoo(&again, 4, 4, 0, NULL, NULL, NULL, INDEX_32I, 0, R_32F), 0);
	is(cusparseSpMatConvert_analysis(*state, 0, bsr, again, 1, 0, descr, NULL), 0);
	is(cusparseSpMatGetSize(again, &rows, &cols, &nnz), 0);
	is(nnz, 8);
	is(cusparseCooSetPointers(again, back[0], back[1], back[2]), 0);
	is(cusparseSpMatConvert(*state, 0, bsr, again, 1, 0, descr, NULL), 0);
	has(back[0], all_rows, sizeof(all_rows));
	is(cusparseSpMatConvertDescrDestroy(descr), 0);
	is(cusparseDestroySpMat(list), 0);
	is(cusparseDestroySpMat(bsr), 0);
	is(cusparseDestroySpMat(again), 0);
	for (int i = 0; i < 3; i++) {
		drop(from[i]);
		drop(to[i]);
		drop(back[i]);
	}
}

/* Offsets and columns are the program's: nothing is read or written where they are wrong. */
static void places_outside_are_left_out(void **state)
{
	const int offsets[] = {-5, 2, 1, 90, 4}, cols[] = {0, 9, -1, 3};
	const float values[] = {1, 2, 3, 4};
	const float want[] = {1, 0, 4000, 0}; /* (0, 0) and, of row 2, what is in reach */
	void *at = DEVICE(offsets), *places = DEVICE(cols), *numbers = DEVICE(values), *m;

	is(cusparseCreateCsr(&m, 4, 4, 4, at, places, numbers, INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	times_vector(*state, m, want);
	is(cusparseDestroySpMat(m), 0);
	drop(at);
	drop(places);
	drop(numbers);
}

/* 2^31 blocks of 2^62 numbers have no number of bytes. */
static void blocks_have_a_size(void **state)
{
	const int offsets[] = {0, INT_MAX};
	void *at = DEVICE(offsets), *descr;

	is(cusparseCreateMatDescr(&descr), 0);
	is(cusparseSbsrmv(*state, 0, 0, 1, 1, INT_MAX, &one, descr, at, at, at, INT_MAX, at,
		   &none, at),
		INVALID_VALUE);
	is(cusparseDestroyMatDescr(descr), 0);
	drop(at);
}

static void memory_of_the_host_fails_the_handle(void **state)
{
	const int offsets[] = {0, 1}, cols[] = {0};
	float values[] = {1}, x[] = {1};
	void *at = DEVICE(offsets), *places = DEVICE(cols), *m, *vx, *handle;
	int status = 0;

	(void)state;
	is(cusparseCreate(&handle), 0);
	is(cusparseCreateCsr(&m, 1, 1, 1, at, places, values, INDEX_32I, INDEX_32I, 0, R_32F),
		0);
	is(cusparseCreateDnVec(&vx, 1, x, R_32F), 0);
	is(cusparseSpMV(handle, 0, &one, m, vx, &none, vx, R_32F, 0, NULL), 0);
	ok(cuCtxSynchronize());
	status = cusparseSpMV(handle, 0, &one, m, vx, &none, vx, R_32F, 0, NULL);
	is(status, EXECUTION_FAILED);
	is(cusparseDestroyDnVec(vx), 0);
	is(cusparseDestroySpMat(m), 0);
	is(cusparseDestroy(handle), 0);
	drop(at);
	drop(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_lie_by_row_and_by_column),
		cmocka_unit_test(blocked_ell_has_padding),
		cmocka_unit_test(sliced_ell_lies_by_column),
		cmocka_unit_test(each_of_a_batch_has_its_matrix),
		cmocka_unit_test(a_sum_has_the_places_of_both),
		cmocka_unit_test(formats_are_made_of_each_other),
		cmocka_unit_test(places_outside_are_left_out),
		cmocka_unit_test(blocks_have_a_size),
		cmocka_unit_test(memory_of_the_host_fails_the_handle),
	};

	return cmocka_run_group_tests(tests, sparse_setup, sparse_teardown);
}
