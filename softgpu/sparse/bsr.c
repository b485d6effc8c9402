/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of blocks: their products with vectors and matrices, and triangular systems.
 */
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"
#include "softgpu/sparse/product.h"
#include "softgpu/sparse/triangle.h"

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

static int check(const struct sparse_handle *h, int dir, int op, int mb, int nb, int nnzb,
	int block, const struct legacy_descr *descr, const void *values, const int *offsets,
	const int *indices)
{
	int status = legacy_check(
		h, mb >= 0 && nb >= 0 && nnzb >= 0 && legacy_block(block, block), descr);

	if (status)
		return status;
	if ((dir != 0 && dir != 1) || !sparse_op(op) || (mb && !offsets) ||
		(nnzb && (!values || !indices)))
		return SPARSE_INVALID_VALUE;
	return SPARSE_SUCCESS;
}

/* A product's matrix has neither symmetry nor triangle. */
static int general(int status, const struct legacy_descr *descr)
{
	return !status && descr->type ? SPARSE_MATRIX_TYPE_NOT_SUPPORTED : status;
}

/* ---- products ---- */

static int bsrmv(struct sparse_handle *h, int type, int dir, int op, int mb, int nb, int nnzb,
	const void *alpha, const struct legacy_descr *descr, const void *values,
	const int *offsets, const int *indices, int block, const void *x, const void *beta,
	void *y)
{
	int status = general(
		check(h, dir, op, mb, nb, nnzb, block, descr, values, offsets, indices), descr);
	struct sparse_matrix a;
	struct sparse_vector in, out;

	if (status)
		return status;
	if (!alpha || !beta || op != SPARSE_OP_N)
		return SPARSE_INVALID_VALUE;
	a = legacy_bsr(descr, type, dir, mb, nb, nnzb, values, offsets, indices, block, block);
	in = (struct sparse_vector){.size = a.cols, .values = ANY(x), .type = type};
	out = (struct sparse_vector){.size = a.rows, .values = y, .type = type};
	return sparse_product_vector(h, op, alpha, &a, &in, beta, &out, type);
}

static int bsrmm(struct sparse_handle *h, int type, int dir, int op_a, int op_b, int mb, int n,
	int kb, int nnzb, const void *alpha, const struct legacy_descr *descr,
	const void *values, const int *offsets, const int *indices, int block, const void *b,
	int ldb, const void *beta, void *c, int ldc)
{
	int status = general(
		check(h, dir, op_a, mb, kb, nnzb, block, descr, values, offsets, indices),
		descr);
	struct sparse_matrix a;
	struct sparse_dense in, out;

	if (status)
		return status;
	if (!alpha || !beta || n < 0 || op_a != SPARSE_OP_N || !sparse_op(op_b))
		return SPARSE_INVALID_VALUE;
	a = legacy_bsr(descr, type, dir, mb, kb, nnzb, values, offsets, indices, block, block);
	in = (struct sparse_dense){.rows = op_b == SPARSE_OP_N ? a.cols : n,
		.cols = op_b == SPARSE_OP_N ? n : a.cols,
		.ld = ldb,
		.values = ANY(b),
		.type = type,
		.order = SPARSE_ORDER_COL,
		.batches = 1};
	out = (struct sparse_dense){.rows = a.rows,
		.cols = n,
		.ld = ldc,
		.values = c,
		.type = type,
		.order = SPARSE_ORDER_COL,
		.batches = 1};
	if (in.ld < in.rows || out.ld < out.rows)
		return SPARSE_INVALID_VALUE;
	return sparse_product_matrix(h, op_a, op_b, alpha, &a, &in, beta, &out, type);
}

/* ---- some rows of blocks alone, whose ends are given ---- */

struct bsrxmv {
	struct sparse_matrix a;
	const int *mask, *ends;
	int masked;
	const void *x;
	void *y;
	struct sparse_scalar alpha, beta;
};

static void masked_row(const struct bsrxmv *s, int64_t row, const int *begins, const int *ends,
	const int *cols, sparse_number alpha, sparse_number beta)
{
	int64_t block = s->a.row_block, base = s->a.base, most = s->a.nnz;
	int64_t from = begins[row] - base, to = ends[row] - base;

	for (int64_t i = 0; i < block; i++) {
		sparse_number sum = 0;

		for (int64_t at = from < 0 ? 0 : from; at < to && at < most; at++) {
			int64_t col = cols[at] - base;

			for (int64_t j = 0; col >= 0 && col < s->a.cols / block && j < block;
				j++) {
				int64_t in = s->a.order == SPARSE_ORDER_ROW ? i * block + j
									    : j * block + i;

				sum += sparse_load(s->a.type, s->a.values,
					       at * block * block + in) *
				       sparse_load(s->a.type, s->x, col * block + j);
			}
		}
		sparse_blend(s->a.type, s->y, row * block + i, alpha, sum, beta);
	}
}

static void bsrxmv_run(struct sparse_task *task, void *arguments)
{
	struct bsrxmv *s = arguments;
	int64_t rows = s->a.rows / s->a.row_block;
	unsigned size = sparse_size(s->a.type);
	const int *mask = sparse_area(task, s->mask, 0, s->masked, 4);
	const int *begins = sparse_area(task, s->a.offsets, 0, rows, 4);
	const int *ends = sparse_area(task, s->ends, 0, rows, 4);
	const int *cols = sparse_area(task, s->a.indices, 0, s->a.nnz, 4);
	sparse_number alpha, beta;

	if (!mask || !begins || !ends || !cols ||
		!sparse_area(task, s->a.values, 0, s->a.nnz * s->a.row_block * s->a.col_block,
			size) ||
		!sparse_area(task, s->x, 0, s->a.cols, size) ||
		!sparse_area(task, s->y, 0, s->a.rows, size) ||
		!sparse_scalar_value(task, &s->alpha, &alpha) ||
		!sparse_scalar_value(task, &s->beta, &beta))
		return;
	for (int i = 0; i < s->masked; i++) {
		int64_t row = mask[i] - s->a.base;

		if (row >= 0 && row < rows)
			masked_row(s, row, begins, ends, cols, alpha, beta);
	}
}

static int bsrxmv(struct sparse_handle *h, int type, int dir, int op, int masked, int mb,
	int nb, int nnzb, const void *alpha, const struct legacy_descr *descr,
	const void *values, const int *mask, const int *offsets, const int *ends,
	const int *indices, int block, const void *x, const void *beta, void *y)
{
	int status = general(
		check(h, dir, op, mb, nb, nnzb, block, descr, values, offsets, indices), descr);

	if (status)
		return status;
	if (!alpha || !beta || op != SPARSE_OP_N || masked < 0)
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, bsrxmv_run,
		&(struct bsrxmv){
			.a = legacy_bsr(descr, type, dir, mb, nb, nnzb, values, offsets,
				indices, block, block),
			.mask = mask,
			.ends = ends,
			.masked = masked,
			.x = x,
			.y = y,
			.alpha = sparse_scalar(h, alpha, type),
			.beta = sparse_scalar(h, beta, type),
		},
		sizeof(struct bsrxmv), NULL);
}

/* ---- triangular systems ---- */

struct system {
	struct sparse_matrix a;
	struct sparse_dense b, x;
	struct sparse_scalar alpha;
	int op, op_x;
};

/* The first block whose place on the diagonal is empty, or has a number 0 there. */
static int64_t zero_at(const struct triangle *t, int64_t block, bool numbers)
{
	if (t->unit)
		return -1;
	for (int64_t row = 0; row < t->n; row++) {
		bool found = false;

		for (int64_t i = t->starts[row]; i < t->starts[row + 1]; i++)
			found = found || (t->entries.list[i].col == row &&
						 (!numbers || t->values[i] != 0));
		if (!found)
			return row / block;
	}
	return -1;
}

static void note_zero(struct sparse_task *task, const struct system *s,
	const struct triangle *t, bool numbers)
{
	int64_t zero = zero_at(t, s->a.row_block, numbers);

	legacy_state(task)->zero = zero < 0 ? -1 : zero + s->a.base;
}

static void analysis_run(struct sparse_task *task, void *arguments)
{
	struct system *s = arguments;
	struct triangle t;

	if (!triangle_read(task, &s->a, s->op, &t))
		return;
	note_zero(task, s, &t, false);
	triangle_free(&t);
}

static int64_t side_at(
	const struct system *s, const struct sparse_dense *d, int64_t i, int64_t j)
{
	return s->op_x == SPARSE_OP_N ? sparse_dense_at(d, i, j) : sparse_dense_at(d, j, i);
}

static void solve_run(struct sparse_task *task, void *arguments)
{
	struct system *s = arguments;
	void *b = sparse_dense_values(task, &s->b, 0), *x = sparse_dense_values(task, &s->x, 0);
	int64_t sides = s->op_x == SPARSE_OP_N ? s->b.cols : s->b.rows;
	struct triangle t;
	sparse_number alpha, *column;

	if (!b || !x || !sparse_scalar_value(task, &s->alpha, &alpha) ||
		!triangle_read(task, &s->a, s->op, &t))
		return;
	note_zero(task, s, &t, true);
	column = sparse_scratch(task, t.n, sizeof(*column));
	for (int64_t j = 0; column && j < sides; j++) {
		for (int64_t i = 0; i < t.n; i++) {
			sparse_number v = sparse_load(s->b.type, b, side_at(s, &s->b, i, j));

			column[i] = alpha * (s->op_x == SPARSE_OP_C ? conj(v) : v);
		}
		triangle_solve(&t, column);
		for (int64_t i = 0; i < t.n; i++)
			sparse_store(s->x.type, x, side_at(s, &s->x, i, j),
				s->op_x == SPARSE_OP_C ? conj(column[i]) : column[i]);
	}
	free(column);
	triangle_free(&t);
}

static int analyse(struct sparse_handle *h, int type, int dir, int op, int mb, int nnzb,
	const struct legacy_descr *descr, const void *values, const int *offsets,
	const int *indices, int block, struct legacy_info *info)
{
	int status = check(h, dir, op, mb, mb, nnzb, block, descr, values, offsets, indices);

	if (status || !info)
		return status ? status : SPARSE_INVALID_VALUE;
	return sparse_submit(h, analysis_run,
		&(struct system){
			.a = legacy_bsr(descr, type, dir, mb, mb, nnzb, values, offsets,
				indices, block, block),
			.op = op,
		},
		sizeof(struct system), &info->state->base);
}

static struct sparse_dense sides(int type, int op, int64_t rows, int n, const void *at, int ld)
{
	return (struct sparse_dense){.rows = op == SPARSE_OP_N ? rows : n,
		.cols = op == SPARSE_OP_N ? n : rows,
		.ld = ld,
		.values = ANY(at),
		.type = type,
		.order = SPARSE_ORDER_COL,
		.batches = 1};
}

static int solve(struct sparse_handle *h, int type, int dir, int op, int op_x, int mb, int n,
	int nnzb, const void *alpha, const struct legacy_descr *descr, const void *values,
	const int *offsets, const int *indices, int block, struct legacy_info *info,
	const void *b, int ldb, void *x, int ldx)
{
	int status = check(h, dir, op, mb, mb, nnzb, block, descr, values, offsets, indices);
	struct system s;

	if (status)
		return status;
	if (!info || !alpha || n < 0 || !sparse_op(op_x))
		return SPARSE_INVALID_VALUE;
	s.a = legacy_bsr(
		descr, type, dir, mb, mb, nnzb, values, offsets, indices, block, block);
	s.b = sides(type, op_x, s.a.rows, n, b, ldb);
	s.x = sides(type, op_x, s.a.rows, n, x, ldx);
	s.alpha = sparse_scalar(h, alpha, type);
	s.op = op;
	s.op_x = op_x;
	if (s.b.ld < s.b.rows || s.x.ld < s.x.rows)
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, solve_run, &s, sizeof(s), &info->state->base);
}

/* ---- by type ---- */

#define A                                                                                      \
	const struct legacy_descr *descr, const void *values, const int *offsets,              \
		const int *indices, int block
#define THE_A descr, values, offsets, indices, block

#define PRODUCTS(T)                                                                            \
	CALL(cusparse##T##bsrmv, struct sparse_handle *h, int dir, int op, int mb, int nb,     \
		int nnzb, const void *alpha, A, const void *x, const void *beta, void *y)      \
	{                                                                                      \
		return bsrmv(h, SPARSE_##T, dir, op, mb, nb, nnzb, alpha, THE_A, x, beta, y);  \
	}                                                                                      \
	CALL(cusparse##T##bsrmm, struct sparse_handle *h, int dir, int op_a, int op_b, int mb, \
		int n, int kb, int nnzb, const void *alpha, A, const void *b, int ldb,         \
		const void *beta, void *c, int ldc)                                            \
	{                                                                                      \
		return bsrmm(h, SPARSE_##T, dir, op_a, op_b, mb, n, kb, nnzb, alpha, THE_A, b, \
			ldb, beta, c, ldc);                                                    \
	}                                                                                      \
	CALL(cusparse##T##bsrxmv, struct sparse_handle *h, int dir, int op, int masked,        \
		int mb, int nb, int nnzb, const void *alpha, const struct legacy_descr *descr, \
		const void *values, const int *mask, const int *offsets, const int *ends,      \
		const int *indices, int block, const void *x, const void *beta, void *y)       \
	{                                                                                      \
		return bsrxmv(h, SPARSE_##T, dir, op, masked, mb, nb, nnzb, alpha, descr,      \
			values, mask, offsets, ends, indices, block, x, beta, y);              \
	}
EACH_TYPE(PRODUCTS)

#define SYSTEMS(T)                                                                             \
	CALL(cusparse##T##bsrsv2_bufferSize, struct sparse_handle *h, int dir, int op, int mb, \
		int nnzb, A, struct legacy_info *info, int *size)                              \
	{                                                                                      \
		int status = check(                                                            \
			h, dir, op, mb, mb, nnzb, block, descr, values, offsets, indices);     \
                                                                                               \
		return legacy_tell(info ? status : SPARSE_INVALID_VALUE, size);                \
	}                                                                                      \
	CALL(cusparse##T##bsrsv2_analysis, struct sparse_handle *h, int dir, int op, int mb,   \
		int nnzb, A, struct legacy_info *info, int policy, void *buffer)               \
	{                                                                                      \
		(void)policy;                                                                  \
		(void)buffer;                                                                  \
		return analyse(h, SPARSE_##T, dir, op, mb, nnzb, THE_A, info);                 \
	}                                                                                      \
	CALL(cusparse##T##bsrsv2_solve, struct sparse_handle *h, int dir, int op, int mb,      \
		int nnzb, const void *alpha, A, struct legacy_info *info, const void *f,       \
		void *x, int policy, void *buffer)                                             \
	{                                                                                      \
		int ld = mb > 0 && block > 0 ? mb * block : 1;                                 \
                                                                                               \
		(void)policy;                                                                  \
		(void)buffer;                                                                  \
		return solve(h, SPARSE_##T, dir, op, 0, mb, 1, nnzb, alpha, THE_A, info, f,    \
			ld, x, ld);                                                            \
	}                                                                                      \
	CALL(cusparse##T##bsrsm2_bufferSize, struct sparse_handle *h, int dir, int op,         \
		int op_x, int mb, int n, int nnzb, A, struct legacy_info *info, int *size)     \
	{                                                                                      \
		int status = check(                                                            \
			h, dir, op, mb, mb, nnzb, block, descr, values, offsets, indices);     \
                                                                                               \
		return legacy_tell(                                                            \
			info && n >= 0 && sparse_op(op_x) ? status : SPARSE_INVALID_VALUE,     \
			size);                                                                 \
	}                                                                                      \
	CALL(cusparse##T##bsrsm2_analysis, struct sparse_handle *h, int dir, int op, int op_x, \
		int mb, int n, int nnzb, A, struct legacy_info *info, int policy,              \
		void *buffer)                                                                  \
	{                                                                                      \
		(void)policy;                                                                  \
		(void)buffer;                                                                  \
		if (h && (n < 0 || !sparse_op(op_x)))                                          \
			return SPARSE_INVALID_VALUE;                                           \
		return analyse(h, SPARSE_##T, dir, op, mb, nnzb, THE_A, info);                 \
	}                                                                                      \
	CALL(cusparse##T##bsrsm2_solve, struct sparse_handle *h, int dir, int op, int op_x,    \
		int mb, int n, int nnzb, const void *alpha, A, struct legacy_info *info,       \
		const void *b, int ldb, void *x, int ldx, int policy, void *buffer)            \
	{                                                                                      \
		(void)policy;                                                                  \
		(void)buffer;                                                                  \
		return solve(h, SPARSE_##T, dir, op, op_x, mb, n, nnzb, alpha, THE_A, info, b, \
			ldb, x, ldx);                                                          \
	}
EACH_TYPE(SYSTEMS)
