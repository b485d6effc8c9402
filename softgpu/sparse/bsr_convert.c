/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of blocks made of CSR and of other blocks, and CSR made of them. An entry's block is
 * there where the entry is, whatever its value.
 */
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"

struct regroup {
	struct sparse_matrix from, to; /* nnz of `from` is read of its offsets where -1 */
	bool values;
	struct legacy_count count;
};

/* What a call does not say: how many entries the matrix has. */
static bool complete(struct sparse_task *task, struct sparse_matrix *m)
{
	int64_t lines = m->format == SPARSE_BSR ? m->rows / m->row_block : m->rows;

	if (m->nnz < 0)
		m->nnz = legacy_nnz(task, m->offsets, lines);
	return m->nnz >= 0;
}

/* The entries and, where asked for, their values, which `at` names. */
static bool read_all(struct sparse_task *task, struct regroup *r,
	struct sparse_entries *entries, sparse_number **values)
{
	*values = NULL;
	if (!complete(task, &r->from) || !sparse_entries(task, &r->from, 0, false, entries))
		return false;
	*values = sparse_scratch(task, entries->count, sizeof(**values));
	if (!*values) {
		free(entries->list);
		return false;
	}
	for (int64_t i = 0; i < entries->count; i++) {
		if (r->values)
			(*values)[i] =
				sparse_entry_value(&r->from, &entries->list[i], SPARSE_OP_N);
		entries->list[i].at = i;
	}
	return true;
}

/* The block of each entry in place of it, in order, each block once; `at` is left of one. */
static struct sparse_entries blocks_of(struct sparse_task *task,
	const struct sparse_entries *entries, const struct sparse_matrix *to)
{
	struct sparse_entries blocks = {0};
	int64_t kept = 0;

	blocks.list = sparse_scratch(task, entries->count, sizeof(*blocks.list));
	if (!blocks.list)
		return blocks;
	blocks.count = entries->count;
	for (int64_t i = 0; i < entries->count; i++)
		blocks.list[i] = (struct sparse_entry){entries->list[i].row / to->row_block,
			entries->list[i].col / to->col_block, i};
	sparse_sort(&blocks);
	for (int64_t i = 0; i < blocks.count; i++)
		if (!kept || blocks.list[kept - 1].row != blocks.list[i].row ||
			blocks.list[kept - 1].col != blocks.list[i].col)
			blocks.list[kept++] = blocks.list[i];
	blocks.count = kept;
	return blocks;
}

/* The offsets and places of blocks are those of a CSR matrix of blocks. */
static struct sparse_matrix grid(const struct sparse_matrix *m)
{
	struct sparse_matrix g = *m;

	g.format = SPARSE_CSR;
	g.rows /= m->row_block;
	g.cols /= m->col_block;
	return g;
}

int64_t sparse_put_block_offsets(struct sparse_task *task, const struct sparse_matrix *m,
	const struct sparse_entries *entries)
{
	struct sparse_matrix to = grid(m);
	struct sparse_entries blocks = blocks_of(task, entries, m);
	bool put = blocks.list && sparse_put_offsets(task, &to, &blocks);

	free(blocks.list);
	return put ? blocks.count : -1;
}

static void count_run(struct sparse_task *task, void *arguments)
{
	struct regroup *r = arguments;
	struct sparse_entries entries;
	sparse_number *values;
	int64_t blocks;

	if (!read_all(task, r, &entries, &values))
		return;
	blocks = sparse_put_block_offsets(task, &r->to, &entries);
	if (blocks >= 0)
		legacy_count(task, &r->count, blocks);
	free(entries.list);
	free(values);
}

static const struct sparse_entry *find(
	const struct sparse_entries *blocks, int64_t row, int64_t col)
{
	int64_t low = 0, high = blocks->count;

	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		const struct sparse_entry *b = &blocks->list[middle];

		if (b->row < row || (b->row == row && b->col < col))
			low = middle + 1;
		else
			high = middle;
	}
	return &blocks->list[low];
}

static void fill(struct sparse_task *task, const struct sparse_matrix *to,
	const struct sparse_entries *entries, const struct sparse_entries *blocks,
	const sparse_number *values)
{
	int64_t rows = to->row_block, cols = to->col_block, size = rows * cols;
	void *out =
		sparse_area(task, to->values, 0, blocks->count * size, sparse_size(to->type));

	for (int64_t i = 0; out && i < blocks->count * size; i++)
		sparse_store(to->type, out, i, 0);
	for (int64_t i = 0; out && i < entries->count; i++) {
		const struct sparse_entry *e = &entries->list[i];
		int64_t block = find(blocks, e->row / rows, e->col / cols) - blocks->list;
		int64_t row = e->row % rows, col = e->col % cols;

		sparse_store(to->type, out,
			block * size + (to->order == SPARSE_ORDER_ROW ? row * cols + col
								      : col * rows + row),
			values[e->at]);
	}
}

bool sparse_put_blocks(struct sparse_task *task, const struct sparse_matrix *m,
	const struct sparse_entries *entries, const sparse_number *values)
{
	struct sparse_matrix to = grid(m);
	struct sparse_entries blocks = blocks_of(task, entries, m);
	bool put = blocks.list && sparse_put(task, &to, &blocks, NULL, 0);

	if (put && values)
		fill(task, m, entries, &blocks, values);
	free(blocks.list);
	return put;
}

static void to_blocks_run(struct sparse_task *task, void *arguments)
{
	struct regroup *r = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (!read_all(task, r, &entries, &values))
		return;
	sparse_put_blocks(task, &r->to, &entries, values);
	free(entries.list);
	free(values);
}

static void to_csr_run(struct sparse_task *task, void *arguments)
{
	struct regroup *r = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (!read_all(task, r, &entries, &values))
		return;
	sparse_put(task, &r->to, &entries, values, 0);
	free(entries.list);
	free(values);
}

/* ---- checks ---- */

static int check(const struct sparse_handle *h, int dir, int m, int n, int nnz,
	const struct legacy_descr *a, int rows_a, int cols_a, const struct legacy_descr *c,
	int rows_c, int cols_c)
{
	int status = legacy_check(h,
		m >= 0 && n >= 0 && nnz >= 0 && legacy_block(rows_a, cols_a) &&
			legacy_block(rows_c, cols_c) && (dir == 0 || dir == 1),
		a);

	if (!status && !c)
		return SPARSE_INVALID_VALUE;
	return !status && (a->type || c->type) ? SPARSE_MATRIX_TYPE_NOT_SUPPORTED : status;
}

/* As many blocks as cover so many elements. */
static int64_t cover(int64_t elements, int block)
{
	return (elements + block - 1) / block;
}

/* ---- CSR to blocks ---- */

static struct regroup csr2gebsr(int type, int dir, int m, int n, const struct legacy_descr *a,
	const void *values, const int *offsets, const int *indices,
	const struct legacy_descr *c, void *values_c, int *offsets_c, int *indices_c, int rows,
	int cols)
{
	return (struct regroup){
		.from = legacy_csr(a, type, m, n, -1, values, offsets, indices),
		.to = legacy_bsr(c, type, dir, cover(m, rows), cover(n, cols), 0, values_c,
			offsets_c, indices_c, rows, cols),
		.values = true,
	};
}

static int csr2gebsr_count(struct sparse_handle *h, int dir, int m, int n,
	const struct legacy_descr *a, const int *offsets, const int *indices,
	const struct legacy_descr *c, int *offsets_c, int rows, int cols, int *nnz)
{
	int status = check(h, dir, m, n, 0, a, 1, 1, c, rows, cols);
	struct regroup r;

	if (status || !nnz)
		return status ? status : SPARSE_INVALID_VALUE;
	/* Values are not looked at: the places stand in for them. */
	r = csr2gebsr(SPARSE_S, dir, m, n, a, indices, offsets, indices, c, NULL, offsets_c,
		NULL, rows, cols);
	r.values = false;
	return legacy_submit_count(h, count_run, &r, sizeof(r), &r.count, nnz, NULL);
}

static int csr2gebsr_submit(struct sparse_handle *h, int type, int dir, int m, int n,
	const struct legacy_descr *a, const void *values, const int *offsets,
	const int *indices, const struct legacy_descr *c, void *values_c, int *offsets_c,
	int *indices_c, int rows, int cols)
{
	int status = check(h, dir, m, n, 0, a, 1, 1, c, rows, cols);
	struct regroup r;

	if (status)
		return status;
	r = csr2gebsr(type, dir, m, n, a, values, offsets, indices, c, values_c, offsets_c,
		indices_c, rows, cols);
	return sparse_submit(h, to_blocks_run, &r, sizeof(r), NULL);
}

CALL(cusparseXcsr2bsrNnz, struct sparse_handle *h, int dir, int m, int n,
	const struct legacy_descr *a, const int *offsets, const int *indices, int block,
	const struct legacy_descr *c, int *offsets_c, int *nnz)
{
	return csr2gebsr_count(
		h, dir, m, n, a, offsets, indices, c, offsets_c, block, block, nnz);
}

CALL(cusparseXcsr2gebsrNnz, struct sparse_handle *h, int dir, int m, int n,
	const struct legacy_descr *a, const int *offsets, const int *indices,
	const struct legacy_descr *c, int *offsets_c, int rows, int cols, int *nnz, void *work)
{
	(void)work;
	return csr2gebsr_count(
		h, dir, m, n, a, offsets, indices, c, offsets_c, rows, cols, nnz);
}

/* ---- blocks to CSR ---- */

static int gebsr2csr(struct sparse_handle *h, int type, int dir, int mb, int nb,
	const struct legacy_descr *a, const void *values, const int *offsets,
	const int *indices, int rows, int cols, const struct legacy_descr *c, void *values_c,
	int *offsets_c, int *indices_c)
{
	int status = check(h, dir, mb, nb, 0, a, rows, cols, c, 1, 1);

	if (status)
		return status;
	return sparse_submit(h, to_csr_run,
		&(struct regroup){
			.from = legacy_bsr(
				a, type, dir, mb, nb, -1, values, offsets, indices, rows, cols),
			.to = legacy_csr(c, type, (int64_t)mb * rows, (int64_t)nb * cols, 0,
				values_c, offsets_c, indices_c),
			.values = true,
		},
		sizeof(struct regroup), NULL);
}

/* ---- blocks to other blocks ---- */

static struct regroup gebsr2gebsr(int type, int dir, int mb, int nb, int nnzb,
	const struct legacy_descr *a, const void *values, const int *offsets,
	const int *indices, int rows_a, int cols_a, const struct legacy_descr *c,
	void *values_c, int *offsets_c, int *indices_c, int rows_c, int cols_c)
{
	return (struct regroup){
		.from = legacy_bsr(
			a, type, dir, mb, nb, nnzb, values, offsets, indices, rows_a, cols_a),
		.to = legacy_bsr(c, type, dir, cover((int64_t)mb * rows_a, rows_c),
			cover((int64_t)nb * cols_a, cols_c), 0, values_c, offsets_c, indices_c,
			rows_c, cols_c),
		.values = true,
	};
}

/* The places alone, of blocks whose values nobody gave. */
static void places_run(struct sparse_task *task, void *arguments)
{
	struct regroup *p = arguments;
	struct sparse_matrix blocks = grid(&p->from);
	struct sparse_entries at, all = {0};
	int64_t rows = p->from.row_block, cols = p->from.col_block, count;

	if (!complete(task, &p->from))
		return;
	blocks.nnz = p->from.nnz;
	blocks.type = SPARSE_S; /* the places stand in for values */
	blocks.values = blocks.indices;
	if (!sparse_entries(task, &blocks, 0, false, &at))
		return;
	all.list = sparse_scratch(task, at.count * rows * cols, sizeof(*all.list));
	for (int64_t i = 0; all.list && i < at.count; i++)
		for (int64_t k = 0; k < rows * cols; k++)
			all.list[all.count++] =
				(struct sparse_entry){at.list[i].row * rows + k / cols,
					at.list[i].col * cols + k % cols, 0};
	free(at.list);
	if (!all.list)
		return;
	count = sparse_put_block_offsets(task, &p->to, &all);
	if (count >= 0)
		legacy_count(task, &p->count, count);
	free(all.list);
}

CALL(cusparseXgebsr2gebsrNnz, struct sparse_handle *h, int dir, int mb, int nb, int nnzb,
	const struct legacy_descr *a, const int *offsets, const int *indices, int rows_a,
	int cols_a, const struct legacy_descr *c, int *offsets_c, int rows_c, int cols_c,
	int *nnz, void *work)
{
	int status = check(h, dir, mb, nb, nnzb, a, rows_a, cols_a, c, rows_c, cols_c);
	struct regroup r;

	(void)work;
	if (status || !nnz)
		return status ? status : SPARSE_INVALID_VALUE;
	r = gebsr2gebsr(SPARSE_S, dir, mb, nb, nnzb, a, NULL, offsets, indices, rows_a, cols_a,
		c, NULL, offsets_c, NULL, rows_c, cols_c);
	return legacy_submit_count(h, places_run, &r, sizeof(r), &r.count, nnz, NULL);
}

static int gebsr2gebsr_submit(struct sparse_handle *h, int type, int dir, int mb, int nb,
	int nnzb, const struct legacy_descr *a, const void *values, const int *offsets,
	const int *indices, int rows_a, int cols_a, const struct legacy_descr *c,
	void *values_c, int *offsets_c, int *indices_c, int rows_c, int cols_c)
{
	int status = check(h, dir, mb, nb, nnzb, a, rows_a, cols_a, c, rows_c, cols_c);
	struct regroup r;

	if (status)
		return status;
	r = gebsr2gebsr(type, dir, mb, nb, nnzb, a, values, offsets, indices, rows_a, cols_a, c,
		values_c, offsets_c, indices_c, rows_c, cols_c);
	return sparse_submit(h, to_blocks_run, &r, sizeof(r), NULL);
}

/* ---- by type ---- */

#define A                                                                                      \
	const struct legacy_descr *a, const void *values, const int *offsets, const int *indices
#define THE_A a, values, offsets, indices
#define SIZE(NAME, CHECK, ...)                                                                 \
	CALL(NAME##_bufferSize, __VA_ARGS__, int *size)                                        \
	{                                                                                      \
		(void)values, (void)offsets, (void)indices;                                    \
		return legacy_tell(CHECK, size);                                               \
	}

#define BLOCKS(T)                                                                              \
	CALL(cusparse##T##csr2bsr, struct sparse_handle *h, int dir, int m, int n, A,          \
		int block, const struct legacy_descr *c, void *values_c, int *offsets_c,       \
		int *indices_c)                                                                \
	{                                                                                      \
		return csr2gebsr_submit(h, SPARSE_##T, dir, m, n, THE_A, c, values_c,          \
			offsets_c, indices_c, block, block);                                   \
	}                                                                                      \
	CALL(cusparse##T##csr2gebsr, struct sparse_handle *h, int dir, int m, int n, A,        \
		const struct legacy_descr *c, void *values_c, int *offsets_c, int *indices_c,  \
		int rows, int cols, void *work)                                                \
	{                                                                                      \
		(void)work;                                                                    \
		return csr2gebsr_submit(h, SPARSE_##T, dir, m, n, THE_A, c, values_c,          \
			offsets_c, indices_c, rows, cols);                                     \
	}                                                                                      \
	SIZE(cusparse##T##csr2gebsr, check(h, dir, m, n, 0, a, 1, 1, a, rows, cols),           \
		struct sparse_handle *h, int dir, int m, int n, A, int rows, int cols)         \
	CALL(cusparse##T##bsr2csr, struct sparse_handle *h, int dir, int mb, int nb, A,        \
		int block, const struct legacy_descr *c, void *values_c, int *offsets_c,       \
		int *indices_c)                                                                \
	{                                                                                      \
		return gebsr2csr(h, SPARSE_##T, dir, mb, nb, THE_A, block, block, c, values_c, \
			offsets_c, indices_c);                                                 \
	}                                                                                      \
	CALL(cusparse##T##gebsr2csr, struct sparse_handle *h, int dir, int mb, int nb, A,      \
		int rows, int cols, const struct legacy_descr *c, void *values_c,              \
		int *offsets_c, int *indices_c)                                                \
	{                                                                                      \
		return gebsr2csr(h, SPARSE_##T, dir, mb, nb, THE_A, rows, cols, c, values_c,   \
			offsets_c, indices_c);                                                 \
	}                                                                                      \
	CALL(cusparse##T##gebsr2gebsr, struct sparse_handle *h, int dir, int mb, int nb,       \
		int nnzb, A, int rows_a, int cols_a, const struct legacy_descr *c,             \
		void *values_c, int *offsets_c, int *indices_c, int rows_c, int cols_c,        \
		void *work)                                                                    \
	{                                                                                      \
		(void)work;                                                                    \
		return gebsr2gebsr_submit(h, SPARSE_##T, dir, mb, nb, nnzb, THE_A, rows_a,     \
			cols_a, c, values_c, offsets_c, indices_c, rows_c, cols_c);            \
	}                                                                                      \
	SIZE(cusparse##T##gebsr2gebsr,                                                         \
		check(h, dir, mb, nb, nnzb, a, rows_a, cols_a, a, rows_c, cols_c),             \
		struct sparse_handle *h, int dir, int mb, int nb, int nnzb, A, int rows_a,     \
		int cols_a, int rows_c, int cols_c)                                            \
	CALL(cusparse##T##gebsr2gebsc, struct sparse_handle *h, int mb, int nb, int nnzb,      \
		const void *values, const int *offsets, const int *indices, int rows,          \
		int cols, void *to_values, int *to_indices, int *to_offsets, int action,       \
		int base, void *work)                                                          \
	{                                                                                      \
		(void)work;                                                                    \
		return legacy_gebsr2gebsc(h, SPARSE_##T, mb, nb, nnzb, values, offsets,        \
			indices, rows, cols, to_values, to_indices, to_offsets, action, base); \
	}                                                                                      \
	SIZE(cusparse##T##gebsr2gebsc,                                                         \
		!h ? SPARSE_NO_HANDLE                                                          \
		: mb < 0 || nb < 0 || nnzb < 0 || !legacy_block(rows, cols)                    \
			? SPARSE_INVALID_VALUE                                                 \
			: SPARSE_SUCCESS,                                                      \
		struct sparse_handle * h, int mb, int nb, int nnzb, const void *values,        \
		const int *offsets, const int *indices, int rows, int cols)
EACH_TYPE(BLOCKS)
