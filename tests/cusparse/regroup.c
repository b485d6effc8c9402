/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of CSR and back, blocks of other sizes, blocks by column; numbers counted by row and
 * by column, and left out by a threshold and by percentage.
 */
#include "tests/cusparse/check.h"

#define ZERO CUSPARSE_INDEX_BASE_ZERO

struct blocks {
	int rows, cols, nnz; /* of a block; how many */
	int *offsets, *indices;
	void *values;
};

/* The elements of blocks that lie by row or by column, row-major, 0 where no block is. */
static number *elements(
	const struct blocks *b, cudaDataType t, cusparseDirection_t dir, int m, int n)
{
	int lines = (m + b->rows - 1) / b->rows, size = b->rows * b->cols;
	int *offsets = get_bytes(b->offsets, (size_t)(lines + 1) * 4);
	int *indices = get_bytes(b->indices, (size_t)b->nnz * 4);
	number *values = get(t, b->values, (int64_t)b->nnz * size);
	number *a = host((size_t)(m * n) * sizeof(*a));

	CHECK(offsets[lines] == b->nnz, "%d blocks, not %d", offsets[lines], b->nnz);
	for (int line = 0; line < lines; line++)
		for (int k = offsets[line]; k < offsets[line + 1]; k++)
			for (int e = 0; e < size; e++) {
				int i = dir == CUSPARSE_DIRECTION_ROW ? e / b->cols
								      : e % b->rows;
				int j = dir == CUSPARSE_DIRECTION_ROW ? e % b->cols
								      : e / b->rows;
				int row = line * b->rows + i, col = indices[k] * b->cols + j;

				if (row < m && col < n)
					a[row * n + col] = values[k * size + e];
				else
					CHECK(values[k * size + e] == 0,
						"a number beyond the matrix");
			}
	free(offsets);
	free(indices);
	free(values);
	return a;
}

static void blocks_free(struct blocks *b)
{
	release(b->offsets);
	release(b->indices);
	release(b->values);
}

/* CSR to blocks of any shape, to blocks of another one, and to CSR. */
static void chain(enum type type, int m, int n, cusparseDirection_t dir, int rows, int cols,
	int other_rows, int other_cols)
{
	cudaDataType t = letters[type];
	number *a = some_sparse(t, m, n), *got;
	struct arrays csr = arrays_of(t, a, m, n, 1, CUSPARSE_DIRECTION_ROW, ZERO);
	struct blocks b = {.rows = rows, .cols = cols};
	struct blocks c = {.rows = other_rows, .cols = other_cols};
	int bytes = 0, mb = (m + rows - 1) / rows, nb = (n + cols - 1) / cols;
	void *work;

	SPARSE(TYPED(type, csr2gebsr_bufferSize, handle, dir, m, n, csr.descr, csr.values,
		csr.offsets, csr.indices, rows, cols, &bytes));
	work = device((size_t)bytes);
	b.offsets = device((size_t)(mb + 1) * 4);
	SPARSE(cusparseXcsr2gebsrNnz(handle, dir, m, n, csr.descr, csr.offsets, csr.indices,
		csr.descr, b.offsets, rows, cols, &b.nnz, work));
	b.indices = device((size_t)b.nnz * 4);
	b.values = device((size_t)(b.nnz * rows * cols) * size_of(t));
	SPARSE(TYPED(type, csr2gebsr, handle, dir, m, n, csr.descr, csr.values, csr.offsets,
		csr.indices, csr.descr, b.values, b.offsets, b.indices, rows, cols, work));
	got = elements(&b, t, dir, m, n);
	near(t, got, a, m * n, "csr2gebsr");
	free(got);
	release(work);

	SPARSE(TYPED(type, gebsr2gebsr_bufferSize, handle, dir, mb, nb, b.nnz, csr.descr,
		b.values, b.offsets, b.indices, rows, cols, other_rows, other_cols, &bytes));
	work = device((size_t)bytes);
	c.offsets = device((size_t)((mb * rows + other_rows - 1) / other_rows + 1) * 4);
	SPARSE(cusparseXgebsr2gebsrNnz(handle, dir, mb, nb, b.nnz, csr.descr, b.offsets,
		b.indices, rows, cols, csr.descr, c.offsets, other_rows, other_cols, &c.nnz,
		work));
	c.indices = device((size_t)c.nnz * 4);
	c.values = device((size_t)(c.nnz * other_rows * other_cols) * size_of(t));
	SPARSE(TYPED(type, gebsr2gebsr, handle, dir, mb, nb, b.nnz, csr.descr, b.values,
		b.offsets, b.indices, rows, cols, csr.descr, c.values, c.offsets, c.indices,
		other_rows, other_cols, work));
	got = elements(&c, t, dir, mb * rows, nb * cols);
	for (int i = 0; i < m; i++)
		near(t, got + i * nb * cols, a + i * n, n, "gebsr2gebsr");
	free(got);
	release(work);
	blocks_free(&b);
	blocks_free(&c);
	arrays_free(&csr);
	free(a);
}

/* Square blocks, and their numbers as CSR: each of a block's, whatever it is. */
static void square(enum type type, int mb, int nb, int block, cusparseDirection_t dir)
{
	cudaDataType t = letters[type];
	int m = mb * block, n = nb * block, nnz = 0;
	number *a = some_sparse(t, m, n), *got;
	struct arrays csr = arrays_of(t, a, m, n, 1, CUSPARSE_DIRECTION_ROW, ZERO);
	struct blocks b = {.rows = block, .cols = block}, c = {.rows = 1, .cols = 1};

	b.offsets = device((size_t)(mb + 1) * 4);
	SPARSE(cusparseXcsr2bsrNnz(handle, dir, m, n, csr.descr, csr.offsets, csr.indices,
		block, csr.descr, b.offsets, &nnz));
	b.nnz = nnz;
	b.indices = device((size_t)nnz * 4);
	b.values = device((size_t)(nnz * block * block) * size_of(t));
	SPARSE(TYPED(type, csr2bsr, handle, dir, m, n, csr.descr, csr.values, csr.offsets,
		csr.indices, block, csr.descr, b.values, b.offsets, b.indices));
	got = elements(&b, t, dir, m, n);
	near(t, got, a, m * n, "csr2bsr");
	free(got);
	c.nnz = nnz * block * block;
	c.offsets = device((size_t)(m + 1) * 4);
	c.indices = device((size_t)c.nnz * 4);
	c.values = device((size_t)c.nnz * size_of(t));
	SPARSE(TYPED(type, bsr2csr, handle, dir, mb, nb, csr.descr, b.values, b.offsets,
		b.indices, block, csr.descr, c.values, c.offsets, c.indices));
	got = elements(&c, t, dir, m, n);
	near(t, got, a, m * n, "bsr2csr");
	free(got);
	blocks_free(&b);
	blocks_free(&c);
	arrays_free(&csr);
	free(a);
}

/* ---- counting and leaving out ---- */

static void counted(enum type type, int m, int n, cusparseDirection_t dir)
{
	cudaDataType t = letters[type];
	bool by_row = dir == CUSPARSE_DIRECTION_ROW;
	number *a = some_sparse(t, n, m); /* column-major m by n */
	void *at = put(t, a, m * n);
	int lines = by_row ? m : n, total = 0, want_total = 0;
	int *counts = device((size_t)lines * 4), *got;
	cusparseMatDescr_t descr;

	SPARSE(cusparseCreateMatDescr(&descr));
	SPARSE(TYPED(type, nnz, handle, dir, m, n, descr, at, m, counts, &total));
	got = get_bytes(counts, (size_t)lines * 4);
	for (int i = 0; i < lines; i++) {
		int want = 0;

		for (int j = 0; j < (by_row ? n : m); j++)
			want += (by_row ? a[i + j * m] : a[j + i * m]) != 0;
		CHECK(got[i] == want, "line %d has %d numbers, not %d", i, got[i], want);
		want_total += want;
	}
	CHECK(total == want_total, "%d numbers, not %d", total, want_total);
	SPARSE(cusparseDestroyMatDescr(descr));
	release(at);
	release(counts);
	free(a);
	free(got);
}

static void compare_kept(cudaDataType t, const number *a, int m, int n, double threshold,
	int nnz, const int *offsets, const int *indices, const void *values)
{
	int *got_offsets = get_bytes(offsets, (size_t)(m + 1) * 4), at = 0;
	int *got_indices = get_bytes(indices, (size_t)nnz * 4);
	number *got = get(t, values, nnz);

	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			if (cabs(a[i * n + j]) <= threshold)
				continue;
			CHECK(at < nnz && got_indices[at] == j && at >= got_offsets[i] &&
					at < got_offsets[i + 1] && got[at] == a[i * n + j],
				"(%d, %d) is not entry %d", i, j, at);
			at++;
		}
	CHECK(at == nnz && got_offsets[m] == nnz, "%d entries, not %d", nnz, at);
	free(got_offsets);
	free(got_indices);
	free(got);
}

static void pruned(bool is_double, int m, int n, float limit)
{
	cudaDataType t = is_double ? CUDA_R_64F : CUDA_R_32F;
	number *a = some_sparse(t, m, n);
	struct arrays csr = arrays_of(t, a, m, n, 1, CUSPARSE_DIRECTION_ROW, ZERO);
	int *offsets = device((size_t)(m + 1) * 4), *indices, nnz = 0;
	double wide = (double)limit;
	size_t bytes = 0;
	void *work, *values;

	if (is_double)
		SPARSE(cusparseDpruneCsr2csr_bufferSizeExt(handle, m, n, csr.nnz, csr.descr,
			csr.values, csr.offsets, csr.indices, &wide, csr.descr, NULL, offsets,
			NULL, &bytes));
	else
		SPARSE(cusparseSpruneCsr2csr_bufferSizeExt(handle, m, n, csr.nnz, csr.descr,
			csr.values, csr.offsets, csr.indices, &limit, csr.descr, NULL, offsets,
			NULL, &bytes));
	work = device(bytes);
	if (is_double)
		SPARSE(cusparseDpruneCsr2csrNnz(handle, m, n, csr.nnz, csr.descr, csr.values,
			csr.offsets, csr.indices, &wide, csr.descr, offsets, &nnz, work));
	else
		SPARSE(cusparseSpruneCsr2csrNnz(handle, m, n, csr.nnz, csr.descr, csr.values,
			csr.offsets, csr.indices, &limit, csr.descr, offsets, &nnz, work));
	indices = device((size_t)nnz * 4);
	values = device((size_t)nnz * size_of(t));
	if (is_double)
		SPARSE(cusparseDpruneCsr2csr(handle, m, n, csr.nnz, csr.descr, csr.values,
			csr.offsets, csr.indices, &wide, csr.descr, values, offsets, indices,
			work));
	else
		SPARSE(cusparseSpruneCsr2csr(handle, m, n, csr.nnz, csr.descr, csr.values,
			csr.offsets, csr.indices, &limit, csr.descr, values, offsets, indices,
			work));
	compare_kept(t, a, m, n, wide, nnz, offsets, indices, values);
	arrays_free(&csr);
	release(offsets);
	release(indices);
	release(values);
	release(work);
	free(a);
}

/* A quarter of 1, -2, …, 16 are those up to 4. */
static void percentage(void)
{
	float values[16];
	number a[16]; /* by rows; the matrix of the call lies by columns */
	int *offsets = device(5 * 4), *indices, nnz = 0;
	void *at, *work, *out;
	cusparseMatDescr_t descr;
	pruneInfo_t info;
	size_t bytes = 0;

	for (int i = 0; i < 16; i++) {
		values[i] = (float)((i * 7 % 16 + 1) * (i % 2 ? -1 : 1));
		a[i % 4 * 4 + i / 4] = (double)values[i];
	}
	at = put_bytes(values, sizeof(values));
	SPARSE(cusparseCreateMatDescr(&descr));
	SPARSE(cusparseCreatePruneInfo(&info));
	SPARSE(cusparseSpruneDense2csrByPercentage_bufferSizeExt(
		handle, 4, 4, at, 4, 25, descr, NULL, offsets, NULL, info, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpruneDense2csrNnzByPercentage(
		handle, 4, 4, at, 4, 25, descr, offsets, &nnz, info, work));
	CHECK(nnz == 12, "%d are left, not 12", nnz);
	indices = device(12 * 4);
	out = device(12 * 4);
	SPARSE(cusparseSpruneDense2csrByPercentage(
		handle, 4, 4, at, 4, 25, descr, out, offsets, indices, info, work));
	compare_kept(CUDA_R_32F, a, 4, 4, 4, nnz, offsets, indices, out);
	SPARSE(cusparseDestroyPruneInfo(info));
	SPARSE(cusparseDestroyMatDescr(descr));
	release(offsets);
	release(indices);
	release(at);
	release(out);
	release(work);
}

int main(void)
{
	begin();
	for (int t = 0; t < 4; t++) {
		chain((enum type)t, 12, 18, CUSPARSE_DIRECTION_ROW, 2, 3, 4, 2);
		chain((enum type)t, 13, 17, CUSPARSE_DIRECTION_COLUMN, 3, 2, 2, 5);
		square((enum type)t, 4, 6, 2, CUSPARSE_DIRECTION_ROW);
		square((enum type)t, 7, 3, 3, CUSPARSE_DIRECTION_COLUMN);
		counted((enum type)t, 7, 16, CUSPARSE_DIRECTION_ROW);
		counted((enum type)t, 16, 7, CUSPARSE_DIRECTION_COLUMN);
	}
	pruned(false, 9, 14, 0.75f);
	pruned(true, 16, 16, 1);
	percentage();
	SPARSE(cusparseDestroy(handle));
	return 0;
}
