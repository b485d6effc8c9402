/* SPDX-License-Identifier: Apache-2.0
 *
 * A dense matrix times a sparse vector; a matrix's rows in colours of which no two neighbours
 * have the same; unsorted CSR sorted and back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/sparse/legacy.h"

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

/* ---- gemvi ---- */

struct gemvi {
	struct sparse_dense a;
	struct sparse_vector x;
	void *y;
	struct sparse_scalar alpha, beta;
	int op;
};

static void gemvi_run(struct sparse_task *task, void *arguments)
{
	struct gemvi *g = arguments;
	int64_t rows = sparse_op_rows(g->op, g->a.rows, g->a.cols);
	int64_t cols = sparse_op_rows(g->op, g->a.cols, g->a.rows);
	void *a = sparse_dense_values(task, &g->a, 0);
	void *y = sparse_area(task, g->y, 0, rows, sparse_size(g->a.type));
	sparse_number alpha, beta;

	if (!a || !y || !sparse_area(task, g->x.indices, 0, g->x.nnz, 4) ||
		!sparse_area(task, g->x.values, 0, g->x.nnz, sparse_size(g->a.type)) ||
		!sparse_scalar_value(task, &g->alpha, &alpha) ||
		!sparse_scalar_value(task, &g->beta, &beta))
		return;
	for (int64_t i = 0; i < rows; i++) {
		sparse_number sum = 0;

		for (int64_t k = 0; k < g->x.nnz; k++) {
			int64_t j = sparse_index(SPARSE_INDEX_32I, g->x.indices, k) - g->x.base;
			sparse_number v;

			if (j < 0 || j >= cols)
				continue;
			v = sparse_load(g->a.type, a,
				g->op == SPARSE_OP_N ? sparse_dense_at(&g->a, i, j)
						     : sparse_dense_at(&g->a, j, i));
			sum += (g->op == SPARSE_OP_C ? conj(v) : v) *
			       sparse_load(g->a.type, g->x.values, k);
		}
		sparse_blend(g->a.type, y, i, alpha, sum, beta);
	}
}

static int gemvi_check(const struct sparse_handle *h, int op, int m, int n, int nnz)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	return sparse_op(op) && m >= 0 && n >= 0 && nnz >= 0 ? SPARSE_SUCCESS
							     : SPARSE_INVALID_VALUE;
}

static int gemvi(struct sparse_handle *h, int type, int op, int m, int n, const void *alpha,
	const void *a, int lda, int nnz, const void *values, const int *indices,
	const void *beta, void *y, int base)
{
	int status = gemvi_check(h, op, m, n, nnz);

	if (status)
		return status;
	if (!alpha || !beta || lda < m || lda < 1 || (base != 0 && base != 1))
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, gemvi_run,
		&(struct gemvi){
			.a = {.rows = m,
				.cols = n,
				.ld = lda,
				.values = ANY(a),
				.type = type,
				.order = SPARSE_ORDER_COL,
				.batches = 1},
			.x = {.nnz = nnz,
				.indices = ANY(indices),
				.values = ANY(values),
				.base = base},
			.y = y,
			.alpha = sparse_scalar(h, alpha, type),
			.beta = sparse_scalar(h, beta, type),
			.op = op,
		},
		sizeof(struct gemvi), NULL);
}

/* ---- csrcolor ---- */

struct color {
	struct sparse_matrix a;
	int *coloring, *reordering; /* reordering may be NULL */
	struct legacy_count colors;
};

/* Rows by their colour, those of one in their order. */
static void reorder(
	struct sparse_task *task, const struct color *c, const int *coloring, int colors)
{
	int *to = sparse_area(task, c->reordering, 0, c->a.rows, 4), at = 0;

	for (int color = 0; to && color < colors; color++)
		for (int64_t i = 0; i < c->a.rows; i++)
			if (coloring[i] == color)
				to[i] = at++;
}

/* The first colour that no neighbour, in either direction, has. */
static void color_run(struct sparse_task *task, void *arguments)
{
	struct color *c = arguments;
	int *coloring = sparse_area(task, c->coloring, 0, c->a.rows, 4);
	struct sparse_entries entries;
	bool *taken;
	int colors = 0;

	if (!coloring || !sparse_entries(task, &c->a, 0, false, &entries))
		return;
	taken = sparse_scratch(task, c->a.rows + 1, sizeof(*taken));
	for (int64_t i = 0; i < c->a.rows; i++)
		coloring[i] = -1;
	for (int64_t i = 0; taken && i < c->a.rows; i++) {
		int color = 0;

		memset(taken, 0, (size_t)c->a.rows + 1);
		for (int64_t k = 0; k < entries.count; k++) {
			const struct sparse_entry *e = &entries.list[k];
			int64_t other = e->row == i ? e->col : e->col == i ? e->row : i;

			if (other != i && coloring[other] >= 0)
				taken[coloring[other]] = true;
		}
		while (taken[color])
			color++;
		coloring[i] = color;
		colors = color >= colors ? color + 1 : colors;
	}
	if (c->reordering)
		reorder(task, c, coloring, colors);
	legacy_count(task, &c->colors, colors);
	free(entries.list);
	free(taken);
}

static int csrcolor(struct sparse_handle *h, int type, int m, int nnz,
	const struct legacy_descr *descr, const void *values, const int *offsets,
	const int *indices, const void *fraction, int *colors, int *coloring, int *reordering,
	const struct legacy_info *info)
{
	int status = legacy_check(h, m >= 0 && nnz >= 0, descr);
	struct color c;

	if (status || !info || !fraction || !colors)
		return status ? status : SPARSE_INVALID_VALUE;
	c = (struct color){
		.a = legacy_csr(descr, type, m, m, nnz, values, offsets, indices),
		.coloring = coloring,
		.reordering = reordering,
	};
	return legacy_submit_count(h, color_run, &c, sizeof(c), &c.colors, colors, NULL);
}

/* ---- csru2csr and back ---- */

struct unsorted {
	struct sparse_matrix a;
};

static void permute(const struct sparse_matrix *a, const struct sparse_entry *list,
	int64_t count, const int64_t *cols, const sparse_number *values)
{
	for (int64_t i = 0; i < count; i++) {
		sparse_set_index(a->index_type, a->indices, i, cols[list[i].at] + a->base);
		sparse_store(a->type, a->values, i, values[list[i].at]);
	}
}

/* The order of LIST, applied to all places and values of the matrix. */
static void apply(struct sparse_task *task, const struct sparse_matrix *a,
	const struct sparse_entry *list, int64_t count)
{
	int64_t *cols = sparse_scratch(task, count, sizeof(*cols));
	sparse_number *values = sparse_scratch(task, count, sizeof(*values));

	for (int64_t i = 0; cols && values && i < count; i++) {
		cols[i] = sparse_index(a->index_type, a->indices, i) - a->base;
		values[i] = sparse_load(a->type, a->values, i);
	}
	if (cols && values)
		permute(a, list, count, cols, values);
	free(cols);
	free(values);
}

static void to_sorted_run(struct sparse_task *task, void *arguments)
{
	struct unsorted *u = arguments;
	struct legacy_state *state = legacy_state(task);
	struct sparse_entries entries;

	if (!sparse_entries(task, &u->a, 0, false, &entries))
		return;
	sparse_sort(&entries);
	free(state->order);
	state->order = sparse_scratch(task, entries.count, sizeof(*state->order));
	state->count = state->order && entries.count == u->a.nnz ? entries.count : 0;
	for (int64_t i = 0; i < state->count; i++)
		state->order[i] = (int)entries.list[i].at;
	if (entries.count == u->a.nnz)
		apply(task, &u->a, entries.list, entries.count);
	free(entries.list);
}

static void to_unsorted_run(struct sparse_task *task, void *arguments)
{
	struct unsorted *u = arguments;
	const struct legacy_state *state = legacy_state(task);
	struct sparse_entries entries;

	if (!sparse_entries(task, &u->a, 0, false, &entries))
		return;
	if (entries.count == u->a.nnz && entries.count == state->count) {
		for (int64_t i = 0; i < state->count; i++)
			entries.list[state->order[i]].at = i;
		apply(task, &u->a, entries.list, entries.count);
	}
	free(entries.list);
}

static int unsorted(struct sparse_handle *h, sparse_run *run, int type, int m, int n, int nnz,
	const struct legacy_descr *descr, void *values, const int *offsets, int *indices,
	struct legacy_info *info)
{
	int status = legacy_check(h, m >= 0 && n >= 0 && nnz >= 0, descr);

	if (status || !info)
		return status ? status : SPARSE_INVALID_VALUE;
	return sparse_submit(h, run,
		&(struct unsorted){
			legacy_csr(descr, type, m, n, nnz, values, offsets, indices)},
		sizeof(struct unsorted), &info->state->base);
}

#define REST(T)                                                                                \
	CALL(cusparse##T##gemvi_bufferSize, struct sparse_handle *h, int op, int m, int n,     \
		int nnz, int *size)                                                            \
	{                                                                                      \
		return legacy_tell(gemvi_check(h, op, m, n, nnz), size);                       \
	}                                                                                      \
	CALL(cusparse##T##gemvi, struct sparse_handle *h, int op, int m, int n,                \
		const void *alpha, const void *a, int lda, int nnz, const void *values,        \
		const int *indices, const void *beta, void *y, int base, void *buffer)         \
	{                                                                                      \
		(void)buffer;                                                                  \
		return gemvi(h, SPARSE_##T, op, m, n, alpha, a, lda, nnz, values, indices,     \
			beta, y, base);                                                        \
	}                                                                                      \
	CALL(cusparse##T##csrcolor, struct sparse_handle *h, int m, int nnz,                   \
		const struct legacy_descr *descr, const void *values, const int *offsets,      \
		const int *indices, const void *fraction, int *colors, int *coloring,          \
		int *reordering, const struct legacy_info *info)                               \
	{                                                                                      \
		return csrcolor(h, SPARSE_##T, m, nnz, descr, values, offsets, indices,        \
			fraction, colors, coloring, reordering, info);                         \
	}                                                                                      \
	CALL(cusparse##T##csru2csr_bufferSizeExt, struct sparse_handle *h, int m, int n,       \
		int nnz, void *values, const int *offsets, int *indices,                       \
		struct legacy_info *info, size_t *size)                                        \
	{                                                                                      \
		(void)values, (void)offsets, (void)indices;                                    \
		if (!h)                                                                        \
			return SPARSE_NO_HANDLE;                                               \
		return legacy_tell_bytes(m >= 0 && n >= 0 && nnz >= 0 && info                  \
						 ? SPARSE_SUCCESS                              \
						 : SPARSE_INVALID_VALUE,                       \
			size);                                                                 \
	}                                                                                      \
	CALL(cusparse##T##csru2csr, struct sparse_handle *h, int m, int n, int nnz,            \
		const struct legacy_descr *descr, void *values, const int *offsets,            \
		int *indices, struct legacy_info *info, void *buffer)                          \
	{                                                                                      \
		(void)buffer;                                                                  \
		return unsorted(h, to_sorted_run, SPARSE_##T, m, n, nnz, descr, values,        \
			offsets, indices, info);                                               \
	}                                                                                      \
	CALL(cusparse##T##csr2csru, struct sparse_handle *h, int m, int n, int nnz,            \
		const struct legacy_descr *descr, void *values, const int *offsets,            \
		int *indices, struct legacy_info *info, void *buffer)                          \
	{                                                                                      \
		(void)buffer;                                                                  \
		return unsorted(h, to_unsorted_run, SPARSE_##T, m, n, nnz, descr, values,      \
			offsets, indices, info);                                               \
	}
EACH_TYPE(REST)
