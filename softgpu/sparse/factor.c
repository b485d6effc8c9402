/* SPDX-License-Identifier: Apache-2.0
 *
 * Incomplete factorizations at a matrix's own places: LU and Cholesky, of elements and of
 * blocks. A block is a small dense matrix; an element is a block of one.
 */
#include <math.h>
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"

struct factor {
	struct sparse_matrix a; /* BSR */
	bool cholesky;
};

/* The blocks as dense row-major arrays of numbers, and where each row of them starts. */
struct work {
	struct sparse_entries blocks; /* sorted; `at` is a place among the values' blocks */
	sparse_number *values;	      /* of `blocks`, in their order */
	int64_t *starts, *diagonal;   /* diagonal: -1 where there is none */
	int64_t rows, size;	      /* size: rows of a block */
};

static void work_free(struct work *w)
{
	free(w->blocks.list);
	free(w->values);
	free(w->starts);
	free(w->diagonal);
}

static int64_t in_block(const struct sparse_matrix *a, int64_t i, int64_t j)
{
	return a->order == SPARSE_ORDER_ROW ? i * a->col_block + j : j * a->row_block + i;
}

/* The values go in and out with their order in a block. */
static void move_values(const struct sparse_matrix *a, struct work *w, bool out)
{
	int64_t size = w->size, cells = size * size;

	for (int64_t b = 0; b < w->blocks.count; b++)
		for (int64_t i = 0; i < size; i++)
			for (int64_t j = 0; j < size; j++) {
				sparse_number *v = &w->values[b * cells + i * size + j];
				int64_t at = w->blocks.list[b].at * cells + in_block(a, i, j);

				if (out)
					sparse_store(a->type, a->values, at, *v);
				else
					*v = sparse_load(a->type, a->values, at);
			}
}

static bool work_read(struct sparse_task *task, const struct sparse_matrix *a, struct work *w)
{
	struct sparse_matrix grid = *a;
	int64_t cells = a->row_block * a->row_block;

	*w = (struct work){.rows = a->rows / a->row_block, .size = a->row_block};
	grid.format = SPARSE_CSR;
	grid.rows = grid.cols = w->rows;
	grid.type = SPARSE_S;
	grid.values = grid.indices; /* they stand in for values, which are blocks */
	if (!sparse_area(task, a->values, 0, a->nnz * cells, sparse_size(a->type)) ||
		!sparse_entries(task, &grid, 0, false, &w->blocks))
		return false;
	sparse_sort(&w->blocks);
	w->values = sparse_scratch(task, w->blocks.count * cells, sizeof(*w->values));
	w->starts = sparse_scratch(task, w->rows + 1, sizeof(*w->starts));
	w->diagonal = sparse_scratch(task, w->rows, sizeof(*w->diagonal));
	if (!w->values || !w->starts || !w->diagonal) {
		work_free(w);
		return false;
	}
	for (int64_t i = 0; i < w->rows; i++)
		w->diagonal[i] = -1;
	for (int64_t b = 0; b < w->blocks.count; b++) {
		const struct sparse_entry *e = &w->blocks.list[b];

		w->starts[e->row + 1]++;
		if (e->row == e->col)
			w->diagonal[e->row] = b;
	}
	for (int64_t i = 0; i < w->rows; i++)
		w->starts[i + 1] += w->starts[i];
	move_values(a, w, false);
	return true;
}

static sparse_number *block_at(const struct work *w, int64_t b)
{
	return w->values + b * w->size * w->size;
}

/* The block (row, col); NULL: there is none. */
static sparse_number *block_of(const struct work *w, int64_t row, int64_t col)
{
	for (int64_t b = w->starts[row]; b < w->starts[row + 1]; b++)
		if (w->blocks.list[b].col == col)
			return block_at(w, b);
	return NULL;
}

/* ---- small dense matrices, by rows ---- */

/* C -= A B, or A B^H. */
static void subtract(int64_t n, sparse_number *c, const sparse_number *a,
	const sparse_number *b, bool adjoint)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++)
			for (int64_t k = 0; k < n; k++)
				c[i * n + j] -= a[i * n + k] *
						(adjoint ? conj(b[j * n + k]) : b[k * n + j]);
}

/* B := B U^-1, of the upper triangle of U. */
static void divide_by_upper(int64_t n, sparse_number *b, const sparse_number *u)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) {
			for (int64_t k = 0; k < j; k++)
				b[i * n + j] -= b[i * n + k] * u[k * n + j];
			b[i * n + j] /= u[j * n + j];
		}
}

/* B := L^-1 B, L's diagonal being of ones. */
static void divide_by_lower(int64_t n, sparse_number *b, const sparse_number *l)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < i; k++)
			for (int64_t j = 0; j < n; j++)
				b[i * n + j] -= l[i * n + k] * b[k * n + j];
}

/* B := B L^-H. */
static void divide_by_adjoint(int64_t n, sparse_number *b, const sparse_number *l)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = 0; j < n; j++) {
			for (int64_t k = 0; k < j; k++)
				b[i * n + j] -= b[i * n + k] * conj(l[j * n + k]);
			b[i * n + j] /= conj(l[j * n + j]);
		}
}

/* Of one block, in place; false: a pivot is 0. */
static bool lu(struct legacy_state *state, int64_t n, sparse_number *a)
{
	bool good = true;

	for (int64_t k = 0; k < n; k++) {
		if (state->boost && cabs(a[k * n + k]) <= state->tolerance)
			a[k * n + k] = state->boost_value;
		good = good && a[k * n + k] != 0;
		for (int64_t i = k + 1; i < n; i++) {
			a[i * n + k] /= a[k * n + k];
			for (int64_t j = k + 1; j < n; j++)
				a[i * n + j] -= a[i * n + k] * a[k * n + j];
		}
	}
	return good;
}

/* The lower triangle; what lies above stays. */
static bool cholesky(int64_t n, sparse_number *a)
{
	bool good = true;

	for (int64_t k = 0; k < n; k++) {
		for (int64_t j = 0; j < k; j++)
			a[k * n + k] -= a[k * n + j] * conj(a[k * n + j]);
		good = good && creal(a[k * n + k]) > 0;
		a[k * n + k] = sqrt(creal(a[k * n + k]));
		for (int64_t i = k + 1; i < n; i++) {
			for (int64_t j = 0; j < k; j++)
				a[i * n + k] -= a[i * n + j] * conj(a[k * n + j]);
			a[i * n + k] /= a[k * n + k];
		}
	}
	return good;
}

/* ---- by rows of blocks; -1, or the first whose diagonal is 0 or missing ---- */

static int64_t factor_lu(struct legacy_state *state, struct work *w)
{
	int64_t n = w->size, zero = -1;

	for (int64_t i = 0; i < w->rows; i++) {
		for (int64_t b = w->starts[i]; b < w->starts[i + 1]; b++) {
			int64_t k = w->blocks.list[b].col;

			if (k >= i)
				break;
			if (w->diagonal[k] < 0)
				continue;
			divide_by_upper(n, block_at(w, b), block_at(w, w->diagonal[k]));
			for (int64_t c = b + 1; c < w->starts[i + 1]; c++) {
				sparse_number *u = block_of(w, k, w->blocks.list[c].col);

				if (u)
					subtract(n, block_at(w, c), block_at(w, b), u, false);
			}
		}
		if (w->diagonal[i] < 0 || !lu(state, n, block_at(w, w->diagonal[i])))
			zero = zero < 0 ? i : zero;
		for (int64_t b = w->starts[i]; w->diagonal[i] >= 0 && b < w->starts[i + 1]; b++)
			if (w->blocks.list[b].col > i)
				divide_by_lower(n, block_at(w, b), block_at(w, w->diagonal[i]));
	}
	return zero;
}

static int64_t factor_cholesky(struct work *w)
{
	int64_t n = w->size, zero = -1;

	for (int64_t i = 0; i < w->rows; i++) {
		for (int64_t b = w->starts[i]; b < w->starts[i + 1]; b++) {
			int64_t j = w->blocks.list[b].col;

			if (j > i)
				break;
			for (int64_t c = w->starts[i]; c < b; c++) {
				sparse_number *l = block_of(w, j, w->blocks.list[c].col);

				if (l)
					subtract(n, block_at(w, b), block_at(w, c), l, true);
			}
			if (j == i) {
				if (!cholesky(n, block_at(w, b)) && zero < 0)
					zero = i;
			} else if (w->diagonal[j] >= 0) {
				divide_by_adjoint(
					n, block_at(w, b), block_at(w, w->diagonal[j]));
			}
		}
		if (w->diagonal[i] < 0 && zero < 0)
			zero = i;
	}
	return zero;
}

/* ---- tasks ---- */

static void note_zero(struct sparse_task *task, const struct factor *f, int64_t zero)
{
	legacy_state(task)->zero = zero < 0 ? -1 : zero + f->a.base;
}

static void analysis_run(struct sparse_task *task, void *arguments)
{
	struct factor *f = arguments;
	struct work w;
	int64_t zero = -1;

	if (!work_read(task, &f->a, &w))
		return;
	for (int64_t i = 0; i < w.rows && zero < 0; i++)
		if (w.diagonal[i] < 0)
			zero = i;
	note_zero(task, f, zero);
	work_free(&w);
}

static void factor_run(struct sparse_task *task, void *arguments)
{
	struct factor *f = arguments;
	struct work w;

	if (!work_read(task, &f->a, &w))
		return;
	note_zero(
		task, f, f->cholesky ? factor_cholesky(&w) : factor_lu(legacy_state(task), &w));
	move_values(&f->a, &w, true);
	work_free(&w);
}

struct boost {
	bool enable;
	struct sparse_scalar tolerance, value;
};

static void boost_run(struct sparse_task *task, void *arguments)
{
	struct boost *b = arguments;
	struct legacy_state *state = legacy_state(task);
	sparse_number tolerance;

	if (!sparse_scalar_value(task, &b->tolerance, &tolerance) ||
		!sparse_scalar_value(task, &b->value, &state->boost_value))
		return;
	state->tolerance = creal(tolerance);
	state->boost = b->enable;
}

/* ---- calls ---- */

static int check(const struct sparse_handle *h, int dir, int mb, int nnzb,
	const struct legacy_descr *descr, const void *values, const int *offsets,
	const int *indices, int block, const struct legacy_info *info)
{
	int status = legacy_check(h, mb >= 0 && nnzb >= 0 && legacy_block(block, block), descr);

	if (status)
		return status;
	if ((dir != 0 && dir != 1) || !info || (mb && !offsets) ||
		(nnzb && (!values || !indices)))
		return SPARSE_INVALID_VALUE;
	return descr->type ? SPARSE_MATRIX_TYPE_NOT_SUPPORTED : SPARSE_SUCCESS;
}

static int factor(struct sparse_handle *h, int type, int dir, int mb, int nnzb,
	const struct legacy_descr *descr, const void *values, const int *offsets,
	const int *indices, int block, const struct legacy_info *info, sparse_run *run,
	bool is_cholesky)
{
	int status = check(h, dir, mb, nnzb, descr, values, offsets, indices, block, info);

	if (status)
		return status;
	return sparse_submit(h, run,
		&(struct factor){legacy_bsr(descr, type, dir, mb, mb, nnzb, values, offsets,
					 indices, block, block),
			is_cholesky},
		sizeof(struct factor), &info->state->base);
}

static int numeric_boost(struct sparse_handle *h, int type, struct legacy_info *info,
	int enable, const double *tolerance, const void *value)
{
	struct boost b = {.enable = enable};

	if (!h)
		return SPARSE_NO_HANDLE;
	if (!info || (enable && (!tolerance || !value)))
		return SPARSE_INVALID_VALUE;
	if (enable) {
		b.tolerance = sparse_scalar(h, tolerance, SPARSE_D);
		b.value = sparse_scalar(h, value, type);
	}
	return sparse_submit(h, boost_run, &b, sizeof(b), &info->state->base);
}

#define ELEMENTS                                                                               \
	struct sparse_handle *h, int m, int nnz, const struct legacy_descr *descr,             \
		const void *values, const int *offsets, const int *indices,                    \
		struct legacy_info *info
#define BLOCKS                                                                                 \
	struct sparse_handle *h, int dir, int mb, int nnzb, const struct legacy_descr *descr,  \
		const void *values, const int *offsets, const int *indices, int block,         \
		struct legacy_info *info
#define OF_ELEMENTS h, 0, m, nnz, descr, values, offsets, indices, 1, info
#define OF_BLOCKS h, dir, mb, nnzb, descr, values, offsets, indices, block, info

#define FACTOR(T, NAME, IS_CHOLESKY)                                                           \
	CALL(cusparse##T##csr##NAME##_bufferSize, ELEMENTS, int *size)                         \
	{                                                                                      \
		return legacy_tell(check(OF_ELEMENTS), size);                                  \
	}                                                                                      \
	CALL(cusparse##T##csr##NAME##_analysis, ELEMENTS, int policy, void *buffer)            \
	{                                                                                      \
		(void)policy, (void)buffer;                                                    \
		return factor(h, SPARSE_##T, 0, m, nnz, descr, values, offsets, indices, 1,    \
			info, analysis_run, IS_CHOLESKY);                                      \
	}                                                                                      \
	CALL(cusparse##T##csr##NAME, ELEMENTS, int policy, void *buffer)                       \
	{                                                                                      \
		(void)policy, (void)buffer;                                                    \
		return factor(h, SPARSE_##T, 0, m, nnz, descr, values, offsets, indices, 1,    \
			info, factor_run, IS_CHOLESKY);                                        \
	}                                                                                      \
	CALL(cusparse##T##bsr##NAME##_bufferSize, BLOCKS, int *size)                           \
	{                                                                                      \
		return legacy_tell(check(OF_BLOCKS), size);                                    \
	}                                                                                      \
	CALL(cusparse##T##bsr##NAME##_analysis, BLOCKS, int policy, void *buffer)              \
	{                                                                                      \
		(void)policy, (void)buffer;                                                    \
		return factor(h, SPARSE_##T, dir, mb, nnzb, descr, values, offsets, indices,   \
			block, info, analysis_run, IS_CHOLESKY);                               \
	}                                                                                      \
	CALL(cusparse##T##bsr##NAME, BLOCKS, int policy, void *buffer)                         \
	{                                                                                      \
		(void)policy, (void)buffer;                                                    \
		return factor(h, SPARSE_##T, dir, mb, nnzb, descr, values, offsets, indices,   \
			block, info, factor_run, IS_CHOLESKY);                                 \
	}

#define FACTORS(T)                                                                             \
	FACTOR(T, ilu02, false)                                                                \
	FACTOR(T, ic02, true)                                                                  \
	CALL(cusparse##T##csrilu02_numericBoost, struct sparse_handle *h,                      \
		struct legacy_info *info, int enable, double *tolerance, void *value)          \
	{                                                                                      \
		return numeric_boost(h, SPARSE_##T, info, enable, tolerance, value);           \
	}                                                                                      \
	CALL(cusparse##T##bsrilu02_numericBoost, struct sparse_handle *h,                      \
		struct legacy_info *info, int enable, double *tolerance, void *value)          \
	{                                                                                      \
		return numeric_boost(h, SPARSE_##T, info, enable, tolerance, value);           \
	}
EACH_TYPE(FACTORS)
