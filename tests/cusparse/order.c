/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries sorted by row and by column, with the permutation that did it; rows as offsets and
 * back; CSR as CSC; sums of two matrices of one index base, whose entries are counted first.
 * (Of two bases NVIDIA's library puts B's entries elsewhere: H200, 2026-11-23.)
 */
#include "tests/cusparse/check.h"

/* ---- lists ---- */

struct list {
	int rows, cols, nnz;
	int row[400], col[400]; /* each place once, in no order */
};

static struct list list_of(int rows, int cols)
{
	struct list l = {.rows = rows, .cols = cols};

	for (int i = 0; i < rows * cols; i++)
		if (i == 0 || chance() % 3 == 0) {
			l.row[l.nnz] = i / cols;
			l.col[l.nnz++] = i % cols;
		}
	for (int i = l.nnz - 1; i > 0; i--) {
		int j = (int)(chance() % (uint32_t)(i + 1)), row = l.row[i], col = l.col[i];

		l.row[i] = l.row[j];
		l.col[i] = l.col[j];
		l.row[j] = row;
		l.col[j] = col;
	}
	return l;
}

static void sorted_list(int rows, int cols, bool by_row)
{
	struct list l = list_of(rows, cols);
	size_t size = (size_t)l.nnz * 4, bytes = 0;
	int *row = put_bytes(l.row, size), *col = put_bytes(l.col, size), *p = device(size);
	int *got_row, *got_col, *got_p;
	void *work;

	SPARSE(cusparseXcoosort_bufferSizeExt(handle, rows, cols, l.nnz, row, col, &bytes));
	work = device(bytes);
	SPARSE(cusparseCreateIdentityPermutation(handle, l.nnz, p));
	if (by_row)
		SPARSE(cusparseXcoosortByRow(handle, rows, cols, l.nnz, row, col, p, work));
	else
		SPARSE(cusparseXcoosortByColumn(handle, rows, cols, l.nnz, row, col, p, work));
	got_row = get_bytes(row, size);
	got_col = get_bytes(col, size);
	got_p = get_bytes(p, size);
	for (int i = 0; i < l.nnz; i++) {
		int key = by_row ? got_row[i] * cols + got_col[i]
				 : got_col[i] * rows + got_row[i];
		int last = i == 0   ? -1
			   : by_row ? got_row[i - 1] * cols + got_col[i - 1]
				    : got_col[i - 1] * rows + got_row[i - 1];

		CHECK(key > last, "entry %d is not in order", i);
		CHECK(got_p[i] >= 0 && got_p[i] < l.nnz && l.row[got_p[i]] == got_row[i] &&
				l.col[got_p[i]] == got_col[i],
			"entry %d was not %d", i, got_p[i]);
	}
	release(row);
	release(col);
	release(p);
	release(work);
	free(got_row);
	free(got_col);
	free(got_p);
}

/* Offsets of sorted rows, rows of offsets, and columns sorted within rows. */
static void rows_and_offsets(int rows, int cols, cusparseIndexBase_t base)
{
	struct list l = list_of(rows, cols);
	size_t size = (size_t)l.nnz * 4, bytes = 0;
	int *sorted = host(size), *minor = host(size), *offsets = host((size_t)(rows + 1) * 4);
	int at = 0, *row, *to, *back, *col, *p, *got;
	cusparseMatDescr_t descr;
	void *work;

	for (int i = 0; i < rows; i++) {
		offsets[i] = at + (int)base;
		for (int j = 0; j < l.nnz; j++)
			if (l.row[j] == i) {
				minor[at] = l.col[j] + (int)base;
				sorted[at++] = i + (int)base;
			}
	}
	offsets[rows] = at + (int)base;
	row = put_bytes(sorted, size);
	to = device((size_t)(rows + 1) * 4);
	SPARSE(cusparseXcoo2csr(handle, row, l.nnz, rows, to, base));
	got = get_bytes(to, (size_t)(rows + 1) * 4);
	CHECK(!memcmp(got, offsets, (size_t)(rows + 1) * 4), "offsets of rows differ");
	free(got);
	back = device(size);
	SPARSE(cusparseXcsr2coo(handle, to, l.nnz, rows, back, base));
	got = get_bytes(back, size);
	CHECK(!memcmp(got, sorted, size), "rows of offsets differ");
	free(got);
	col = put_bytes(minor, size);
	p = device(size);
	SPARSE(cusparseCreateMatDescr(&descr));
	SPARSE(cusparseSetMatIndexBase(descr, base));
	SPARSE(cusparseXcsrsort_bufferSizeExt(handle, rows, cols, l.nnz, to, col, &bytes));
	work = device(bytes);
	SPARSE(cusparseCreateIdentityPermutation(handle, l.nnz, p));
	SPARSE(cusparseXcsrsort(handle, rows, cols, l.nnz, descr, to, col, p, work));
	got = get_bytes(col, size);
	for (int i = 1; i < l.nnz; i++)
		CHECK(sorted[i] != sorted[i - 1] || got[i] > got[i - 1],
			"column %d is not in order", i);
	free(got);
	SPARSE(cusparseDestroyMatDescr(descr));
	release(row);
	release(to);
	release(back);
	release(col);
	release(p);
	release(work);
	free(sorted);
	free(minor);
	free(offsets);
}

/* ---- columns ---- */

static void transposed(enum type type, int rows, int cols)
{
	cudaDataType t = letters[type];
	number *a = some_sparse(t, rows, cols);
	struct arrays m = arrays_of(
		t, a, rows, cols, 1, CUSPARSE_DIRECTION_ROW, CUSPARSE_INDEX_BASE_ZERO);
	int *offsets = device((size_t)(cols + 1) * 4), *indices = device((size_t)m.nnz * 4);
	void *values = device((size_t)m.nnz * size_of(t)), *work;
	int *got_offsets, *got_indices, at = 0;
	number *got;
	size_t bytes = 0;

	SPARSE(cusparseCsr2cscEx2_bufferSize(handle, rows, cols, m.nnz, m.values, m.offsets,
		m.indices, values, offsets, indices, t, CUSPARSE_ACTION_NUMERIC,
		CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, &bytes));
	work = device(bytes);
	SPARSE(cusparseCsr2cscEx2(handle, rows, cols, m.nnz, m.values, m.offsets, m.indices,
		values, offsets, indices, t, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
		CUSPARSE_CSR2CSC_ALG1, work));
	got_offsets = get_bytes(offsets, (size_t)(cols + 1) * 4);
	got_indices = get_bytes(indices, (size_t)m.nnz * 4);
	got = get(t, values, m.nnz);
	for (int j = 0; j < cols; j++) {
		CHECK(got_offsets[j] == at, "column %d begins at %d", j, got_offsets[j]);
		for (int i = 0; i < rows; i++)
			if (a[i * cols + j] != 0) {
				CHECK(got_indices[at] == i && got[at] == a[i * cols + j],
					"(%d, %d) is not entry %d", i, j, at);
				at++;
			}
	}
	CHECK(got_offsets[cols] == m.nnz, "%d entries", got_offsets[cols]);
	arrays_free(&m);
	release(offsets);
	release(indices);
	release(values);
	release(work);
	free(a);
	free(got_offsets);
	free(got_indices);
	free(got);
}

/* ---- sums ---- */

static void sum(enum type type, int rows, int cols, cusparseIndexBase_t base, bool on_device)
{
	cudaDataType t = letters[type];
	number *a = some_sparse(t, rows, cols), *b = some_sparse(t, rows, cols);
	struct arrays x = arrays_of(t, a, rows, cols, 1, CUSPARSE_DIRECTION_ROW, base);
	struct arrays y = arrays_of(t, b, rows, cols, 1, CUSPARSE_DIRECTION_ROW, base);
	int *offsets = device((size_t)(rows + 1) * 4), *indices, *got_indices, *count, nnz = 0;
	char alpha[16], beta[16];
	void *work, *values;
	size_t bytes = 0;
	number *got;
	int at = 0;

	number_out(t, alpha, 0, 2);
	number_out(t, beta, 0, -0.5);
	SPARSE(TYPED(type, csrgeam2_bufferSizeExt, handle, rows, cols, (void *)alpha, x.descr,
		x.nnz, x.values, x.offsets, x.indices, (void *)beta, y.descr, y.nnz, y.values,
		y.offsets, y.indices, x.descr, NULL, offsets, NULL, &bytes));
	work = device(bytes);
	count = on_device ? device(4) : &nnz;
	SPARSE(cusparseSetPointerMode(
		handle, on_device ? CUSPARSE_POINTER_MODE_DEVICE : CUSPARSE_POINTER_MODE_HOST));
	SPARSE(cusparseXcsrgeam2Nnz(handle, rows, cols, x.descr, x.nnz, x.offsets, x.indices,
		y.descr, y.nnz, y.offsets, y.indices, x.descr, offsets, count, work));
	SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	if (on_device) {
		int *told = get_bytes(count, 4);

		nnz = *told;
		free(told);
		release(count);
	}
	indices = device((size_t)nnz * 4);
	values = device((size_t)nnz * size_of(t));
	SPARSE(TYPED(type, csrgeam2, handle, rows, cols, (void *)alpha, x.descr, x.nnz,
		x.values, x.offsets, x.indices, (void *)beta, y.descr, y.nnz, y.values,
		y.offsets, y.indices, x.descr, values, offsets, indices, work));
	got_indices = get_bytes(indices, (size_t)nnz * 4);
	got = get(t, values, nnz);
	for (int i = 0; i < rows * cols; i++) {
		number want = 2 * a[i] - 0.5 * b[i];

		if (a[i] == 0 && b[i] == 0)
			continue;
		CHECK(at < nnz && got_indices[at] == i % cols + (int)base,
			"%d is not entry %d of %d, which is in column %d", i, at, nnz,
			at < nnz ? got_indices[at] - (int)base : -1);
		near(t, &got[at++], &want, 1, "csrgeam2");
	}
	CHECK(at == nnz, "%d entries, not %d", nnz, at);
	arrays_free(&x);
	arrays_free(&y);
	release(offsets);
	release(indices);
	release(values);
	release(work);
	free(a);
	free(b);
	free(got_indices);
	free(got);
}

int main(void)
{
	static const int sizes[] = {1, 7, 16, 20};

	begin();
	for (int s = 0; s < 4; s++) {
		sorted_list(sizes[s], sizes[3 - s], true);
		sorted_list(sizes[s], sizes[3 - s], false);
		rows_and_offsets(sizes[s], sizes[3 - s],
			s % 2 ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO);
	}
	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++) {
			transposed((enum type)t, sizes[s], sizes[3 - s]);
			sum((enum type)t, sizes[s], sizes[3 - s], CUSPARSE_INDEX_BASE_ZERO,
				s % 2);
			sum((enum type)t, sizes[s], sizes[3 - s], CUSPARSE_INDEX_BASE_ONE,
				!(s % 2));
		}
	SPARSE(cusparseDestroy(handle));
	return 0;
}
