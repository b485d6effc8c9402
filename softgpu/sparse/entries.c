/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix of any format as a list of its entries.  What its arrays say is the program's: an
 * entry beyond the matrix or its arrays is left out, as padding is.
 */
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

struct reader {
	const struct sparse_matrix *m;
	const void *offsets, *indices;
	int64_t first_value; /* of this batch */
	struct sparse_entries *out;
};

static void put(struct reader *r, int64_t row, int64_t col, int64_t at)
{
	if (row >= 0 && row < r->m->rows && col >= 0 && col < r->m->cols)
		r->out->list[r->out->count++] =
			(struct sparse_entry){row, col, r->first_value + at};
}

static int64_t offset(const struct reader *r, int64_t i)
{
	return sparse_index(r->m->offset_type, r->offsets, i) - r->m->base;
}

static int64_t index_at(const struct reader *r, int64_t i)
{
	return sparse_index(r->m->index_type, r->indices, i) - r->m->base;
}

/* The part [*from, *to) of all values that a row's offsets name, cut to what there is. */
static void range(const struct reader *r, int64_t row, int64_t all, int64_t *from, int64_t *to)
{
	*from = offset(r, row);
	*to = offset(r, row + 1);
	if (*from < 0)
		*from = 0;
	if (*to > all)
		*to = all;
}

/* Overlapping rows would name more entries than the list has room for. */
static bool full(const struct reader *r, int64_t most)
{
	return r->out->count >= most;
}

static void read_compressed(struct reader *r, int64_t lines)
{
	int64_t from, to;

	for (int64_t line = 0; line < lines; line++) {
		range(r, line, r->m->nnz, &from, &to);
		for (int64_t i = from; i < to && !full(r, r->m->nnz); i++)
			if (r->m->format == SPARSE_CSR)
				put(r, line, index_at(r, i), i);
			else
				put(r, index_at(r, i), line, i);
	}
}

static void read_block(struct reader *r, int64_t row, int64_t col, int64_t block)
{
	int64_t rows = r->m->row_block, cols = r->m->col_block;

	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			put(r, row * rows + i, col * cols + j,
				block * rows * cols + (r->m->order == SPARSE_ORDER_ROW
								      ? i * cols + j
								      : j * rows + i));
}

static void read_bsr(struct reader *r)
{
	const struct sparse_matrix *m = r->m;
	int64_t from, to, blocks = 0;

	for (int64_t row = 0; row < m->rows / m->row_block; row++) {
		range(r, row, m->nnz, &from, &to);
		for (int64_t i = from; i < to && blocks < m->nnz; i++, blocks++) {
			int64_t col = index_at(r, i);

			if (col >= 0 && col < m->cols / m->col_block)
				read_block(r, row, col, i);
		}
	}
}

/* Block columns of -1 are padding; a row of blocks lies as one row-major array. */
static void read_blocked_ell(struct reader *r)
{
	const struct sparse_matrix *m = r->m;
	int64_t width = m->ell_cols / m->col_block;

	for (int64_t row = 0; row < m->rows; row++)
		for (int64_t j = 0; j < m->ell_cols; j++) {
			int64_t block =
				index_at(r, row / m->row_block * width + j / m->col_block);

			if (block >= 0 && block < m->cols / m->col_block)
				put(r, row, block * m->col_block + j % m->col_block,
					row * m->ell_cols + j);
		}
}

/* A slice's values lie column by column; columns of -1 are padding. */
static void read_sliced_ell(struct reader *r)
{
	const struct sparse_matrix *m = r->m;
	int64_t from, to;

	for (int64_t slice = 0; slice * m->row_block < m->rows; slice++) {
		range(r, slice, m->ell_values, &from, &to);
		for (int64_t i = from; i < to && !full(r, m->ell_values); i++)
			put(r, slice * m->row_block + (i - from) % m->row_block, index_at(r, i),
				i);
	}
}

struct counts {
	int64_t offsets, indices, values;
};

/* False: they have no number. */
static bool count(const struct sparse_matrix *m, struct counts *c)
{
	int64_t block, rows;

	switch (m->format) {
	case SPARSE_CSR:
	case SPARSE_CSC:
		c->indices = c->values = m->nnz;
		return !__builtin_add_overflow(
			m->format == SPARSE_CSR ? m->rows : m->cols, 1, &c->offsets);
	case SPARSE_COO: c->offsets = c->indices = c->values = m->nnz; return true;
	case SPARSE_BSR:
		c->offsets = m->rows / m->row_block + 1;
		c->indices = m->nnz;
		return !__builtin_mul_overflow(m->row_block, m->col_block, &block) &&
		       !__builtin_mul_overflow(m->nnz, block, &c->values);
	case SPARSE_BLOCKED_ELL:
		rows = m->rows / m->row_block;
		c->offsets = 0;
		return !__builtin_mul_overflow(rows, m->ell_cols / m->col_block, &c->indices) &&
		       !__builtin_mul_overflow(m->rows, m->ell_cols, &c->values);
	default:
		c->offsets = m->rows / m->row_block + (m->rows % m->row_block != 0) + 1;
		c->indices = c->values = m->ell_values;
		return true;
	}
}

bool sparse_entries(struct sparse_task *task, const struct sparse_matrix *m, int batch,
	bool transposed, struct sparse_entries *out)
{
	struct reader r = {.m = m, .out = out};
	struct counts c = {0};

	*out = (struct sparse_entries){0};
	if (!count(m, &c) ||
		__builtin_mul_overflow(m->values_stride, (int64_t)batch, &r.first_value)) {
		sparse_fail(task);
		return false;
	}
	/* No array is needed where nothing is named, and empty rows have offsets all the same.
	 */
	r.offsets = sparse_area(task, m->offsets, m->offsets_stride * batch,
		m->rows && m->cols ? c.offsets : 0, sparse_index_size(m->offset_type));
	r.indices = sparse_area(task, m->indices, m->indices_stride * batch, c.indices,
		sparse_index_size(m->index_type));
	if (!r.offsets || !r.indices ||
		!sparse_area(task, m->values, r.first_value, c.values, sparse_size(m->type)))
		return false;
	out->list = sparse_scratch(task, c.values, sizeof(*out->list));
	if (!out->list)
		return false;
	if (m->rows && m->cols)
		switch (m->format) {
		case SPARSE_CSR: read_compressed(&r, m->rows); break;
		case SPARSE_CSC: read_compressed(&r, m->cols); break;
		case SPARSE_COO:
			for (int64_t i = 0; i < m->nnz; i++)
				put(&r, offset(&r, i), index_at(&r, i), i);
			break;
		case SPARSE_BSR: read_bsr(&r); break;
		case SPARSE_BLOCKED_ELL: read_blocked_ell(&r); break;
		default: read_sliced_ell(&r);
		}
	for (int64_t i = 0; transposed && i < out->count; i++) {
		struct sparse_entry *e = &out->list[i];

		*e = (struct sparse_entry){e->col, e->row, e->at};
	}
	return true;
}

static int order(const void *a, const void *b)
{
	const struct sparse_entry *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->col != y->col)
		return x->col < y->col ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

void sparse_sort(struct sparse_entries *entries)
{
	qsort(entries->list, (size_t)entries->count, sizeof(*entries->list), order);
}

sparse_number sparse_entry_value(
	const struct sparse_matrix *m, const struct sparse_entry *entry, int op)
{
	sparse_number value = sparse_load(m->type, m->values, entry->at);

	return op == SPARSE_OP_C ? conj(value) : value;
}
