/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that are counted, and numbers that are left out: those that are 0, those at or below
 * a threshold, a share of the smallest.
 */
#include <math.h>
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

/* ---- a dense matrix's numbers by row or by column ---- */

struct nnz {
	struct sparse_dense a;
	int dir;
	int *lines;
	struct legacy_count total;
};

static void nnz_run(struct sparse_task *task, void *arguments)
{
	struct nnz *n = arguments;
	int64_t lines = n->dir ? n->a.cols : n->a.rows, length = n->dir ? n->a.rows : n->a.cols;
	void *a = sparse_dense_values(task, &n->a, 0);
	int *to = sparse_area(task, n->lines, 0, lines, 4);
	int64_t total = 0;

	for (int64_t i = 0; a && to && i < lines; i++) {
		to[i] = 0;
		for (int64_t j = 0; j < length; j++)
			to[i] += sparse_load(n->a.type, a,
					 n->dir ? sparse_dense_at(&n->a, j, i)
						: sparse_dense_at(&n->a, i, j)) != 0;
		total += to[i];
	}
	legacy_count(task, &n->total, total);
}

static int nnz(struct sparse_handle *h, int type, int dir, int m, int n,
	const struct legacy_descr *descr, const void *a, int ld, int *lines, int *total)
{
	int status = legacy_check(h, m >= 0 && n >= 0 && ld >= m && ld > 0, descr);
	struct nnz task;

	if (status || !total || (dir != 0 && dir != 1))
		return status ? status : SPARSE_INVALID_VALUE;
	if (descr->type)
		return SPARSE_MATRIX_TYPE_NOT_SUPPORTED;
	task = (struct nnz){
		.a = {.rows = m,
			.cols = n,
			.ld = ld,
			.values = ANY(a),
			.type = type,
			.order = SPARSE_ORDER_COL,
			.batches = 1},
		.dir = dir,
		.lines = lines,
	};
	return legacy_submit_count(h, nnz_run, &task, sizeof(task), &task.total, total, NULL);
}

/* ---- what is kept of a matrix ---- */

struct prune {
	struct sparse_matrix from; /* nnz -1: of its offsets; CSR */
	struct sparse_dense dense; /* in place of it, where `from` has no format */
	struct sparse_matrix to;
	struct sparse_scalar threshold;
	double percentage; /* 0 and above: the threshold is found with it */
	bool values;
	int *lines; /* of nnz_compress: where the number of each row goes */
	struct legacy_count count;
};

/* Every number, with `at` its place in *values. */
static bool candidates(struct sparse_task *task, struct prune *p,
	struct sparse_entries *entries, sparse_number **values)
{
	void *dense = NULL;

	*values = NULL;
	*entries = (struct sparse_entries){0};
	if (p->from.format) {
		if (p->from.nnz < 0)
			p->from.nnz = legacy_nnz(task, p->from.offsets, p->from.rows);
		if (p->from.nnz < 0 || !sparse_entries(task, &p->from, 0, false, entries))
			return false;
	} else {
		dense = sparse_dense_values(task, &p->dense, 0);
		if (!dense)
			return false;
		entries->list = sparse_scratch(
			task, p->dense.rows * p->dense.cols, sizeof(*entries->list));
		for (int64_t i = 0; entries->list && i < p->dense.rows; i++)
			for (int64_t j = 0; j < p->dense.cols; j++)
				entries->list[entries->count++] = (struct sparse_entry){
					i, j, sparse_dense_at(&p->dense, i, j)};
	}
	*values = sparse_scratch(task, entries->count, sizeof(**values));
	for (int64_t i = 0; entries->list && *values && i < entries->count; i++) {
		struct sparse_entry *e = &entries->list[i];

		(*values)[i] = dense ? sparse_load(p->dense.type, dense, e->at)
				     : sparse_entry_value(&p->from, e, SPARSE_OP_N);
		e->at = i;
	}
	if (entries->list && *values)
		return true;
	free(entries->list);
	free(*values);
	return false;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The size below which and at which the share of numbers lies. */
static double share(
	struct sparse_task *task, double percentage, const sparse_number *values, int64_t count)
{
	double *sizes, found;
	int64_t at = (int64_t)ceil((double)count * percentage / 100) - 1;

	if (!count)
		return 0;
	sizes = sparse_scratch(task, count, sizeof(*sizes));
	if (!sizes)
		return 0;
	for (int64_t i = 0; i < count; i++)
		sizes[i] = cabs(values[i]);
	qsort(sizes, (size_t)count, sizeof(*sizes), by_size);
	found = sizes[at < 0 ? 0 : at >= count ? count - 1 : at];
	free(sizes);
	return found;
}

/* Those that are larger than the threshold. */
static bool kept(struct sparse_task *task, struct prune *p, struct sparse_entries *entries,
	sparse_number **values)
{
	sparse_number threshold;
	int64_t count = 0;

	if (!sparse_scalar_value(task, &p->threshold, &threshold) ||
		!candidates(task, p, entries, values))
		return false;
	if (p->percentage >= 0)
		threshold = share(task, p->percentage, *values, entries->count);
	for (int64_t i = 0; i < entries->count; i++)
		if (cabs((*values)[i]) > creal(threshold))
			entries->list[count++] = entries->list[i];
	entries->count = count;
	return true;
}

static void count_run(struct sparse_task *task, void *arguments)
{
	struct prune *p = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (!kept(task, p, &entries, &values))
		return;
	sparse_put_offsets(task, &p->to, &entries);
	legacy_count(task, &p->count, entries.count);
	free(entries.list);
	free(values);
}

/* How many of each row are larger, of a matrix whose columns are not given. */
static void rows_count_run(struct sparse_task *task, void *arguments)
{
	struct prune *p = arguments;
	int64_t nnz = legacy_nnz(task, p->from.offsets, p->from.rows), total = 0;
	const int *offsets = p->from.offsets;
	const void *values;
	int *lines = sparse_area(task, p->lines, 0, p->from.rows, 4);

	if (nnz < 0 || !lines)
		return;
	values = sparse_area(task, p->from.values, 0, nnz, sparse_size(p->from.type));
	for (int64_t row = 0; values && row < p->from.rows; row++) {
		lines[row] = 0;
		for (int64_t i = offsets[row] - p->from.base;
			i < offsets[row + 1] - p->from.base; i++)
			lines[row] += i >= 0 && i < nnz &&
				      cabs(sparse_load(p->from.type, values, i)) >
					      creal(p->threshold.value);
		total += lines[row];
	}
	legacy_count(task, &p->count, total);
}

static void prune_run(struct sparse_task *task, void *arguments)
{
	struct prune *p = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (!kept(task, p, &entries, &values))
		return;
	sparse_put(task, &p->to, &entries, values, 0);
	free(entries.list);
	free(values);
}

/* ---- calls ---- */

/* A threshold of the program's, or a percentage where that is NULL. */
static int prune(struct sparse_handle *h, int type, struct prune p, const void *threshold,
	double percentage, int *total)
{
	if (threshold)
		p.threshold = sparse_scalar(h, threshold, type);
	p.percentage = threshold ? -1 : percentage;
	if (!threshold && !(percentage >= 0 && percentage <= 100))
		return SPARSE_INVALID_VALUE;
	if (total)
		return legacy_submit_count(h, count_run, &p, sizeof(p), &p.count, total, NULL);
	return sparse_submit(h, prune_run, &p, sizeof(p), NULL);
}

static int dense_check(
	const struct sparse_handle *h, int m, int n, int ld, const struct legacy_descr *c)
{
	int status = legacy_check(h, m >= 0 && n >= 0 && ld >= m && ld > 0, c);

	return !status && c->type ? SPARSE_MATRIX_TYPE_NOT_SUPPORTED : status;
}

static int csr_check(const struct sparse_handle *h, int m, int n, int nnz_a,
	const struct legacy_descr *a, const struct legacy_descr *c)
{
	int status = legacy_check(h, m >= 0 && n >= 0 && nnz_a >= 0 && c, a);

	return !status && (a->type || c->type) ? SPARSE_MATRIX_TYPE_NOT_SUPPORTED : status;
}

static struct prune of_dense(int type, int m, int n, const void *a, int ld,
	const struct legacy_descr *c, const void *values, const int *offsets,
	const int *indices)
{
	return (struct prune){
		.dense = {.rows = m,
			.cols = n,
			.ld = ld,
			.values = ANY(a),
			.type = type,
			.order = SPARSE_ORDER_COL,
			.batches = 1},
		.to = legacy_csr(c, type, m, n, 0, values, offsets, indices),
	};
}

static struct prune of_csr(int type, int m, int n, int nnz_a, const struct legacy_descr *a,
	const void *values_a, const int *offsets_a, const int *indices_a,
	const struct legacy_descr *c, const void *values, const int *offsets,
	const int *indices)
{
	return (struct prune){
		.from = legacy_csr(a, type, m, n, nnz_a, values_a, offsets_a, indices_a),
		.to = legacy_csr(c, type, m, n, 0, values, offsets, indices),
	};
}

/* ---- with a tolerance that is given by value ---- */

static int compress_count(struct sparse_handle *h, int type, int m,
	const struct legacy_descr *descr, const void *values, const int *offsets, int *lines,
	int *total, sparse_number tolerance)
{
	int status = legacy_check(h, m >= 0 && creal(tolerance) >= 0, descr);
	struct prune p;

	if (status || !lines || !total)
		return status ? status : SPARSE_INVALID_VALUE;
	p = (struct prune){
		.from = legacy_csr(descr, type, m, 1, -1, values, offsets, NULL),
		.threshold = {.type = type, .value = tolerance},
		.percentage = -1,
		.lines = lines,
	};
	return legacy_submit_count(h, rows_count_run, &p, sizeof(p), &p.count, total, NULL);
}

static int compress(struct sparse_handle *h, int type, int m, int n,
	const struct legacy_descr *descr, const void *values, const int *indices,
	const int *offsets, int nnz_a, void *values_c, int *indices_c, int *offsets_c,
	sparse_number tolerance)
{
	int status = csr_check(h, m, n, nnz_a, descr, descr);
	struct prune p;

	if (status || creal(tolerance) < 0)
		return status ? status : SPARSE_INVALID_VALUE;
	p = of_csr(type, m, n, nnz_a, descr, values, offsets, indices, descr, values_c,
		offsets_c, indices_c);
	p.threshold = (struct sparse_scalar){.type = type, .value = tolerance};
	p.percentage = -1;
	return sparse_submit(h, prune_run, &p, sizeof(p), NULL);
}

/* ---- by type ---- */

#define DENSE struct sparse_handle *h, int m, int n, const void *a, int lda
#define CSR                                                                                    \
	struct sparse_handle *h, int m, int n, int nnz_a, const struct legacy_descr *a,        \
		const void *values_a, const int *offsets_a, const int *indices_a
#define COMMA ,
#define OUT                                                                                    \
	const struct legacy_descr *c, const void *values, const int *offsets, const int *indices
#define UNUSED_OUT (void)values, (void)offsets, (void)indices

/* One of the two forms: HOW is what says which numbers go, MORE what comes after the result. */
#define PRUNES(T, SUFFIX, HOW, MORE, UNUSED, THRESHOLD, PERCENTAGE)                            \
	CALL(cusparse##T##pruneDense2csr##SUFFIX##_bufferSizeExt, DENSE, HOW, OUT MORE,        \
		size_t *size)                                                                  \
	{                                                                                      \
		(void)a, UNUSED_OUT, UNUSED;                                                   \
		return legacy_tell_bytes(dense_check(h, m, n, lda, c), size);                  \
	}                                                                                      \
	CALL(cusparse##T##pruneDense2csrNnz##SUFFIX, DENSE, HOW, const struct legacy_descr *c, \
		int *offsets, int *total MORE, void *work)                                     \
	{                                                                                      \
		int status = dense_check(h, m, n, lda, c);                                     \
                                                                                               \
		(void)work;                                                                    \
		if (status || !total)                                                          \
			return status ? status : SPARSE_INVALID_VALUE;                         \
		return prune(h, SPARSE_##T,                                                    \
			of_dense(SPARSE_##T, m, n, a, lda, c, NULL, offsets, NULL), THRESHOLD, \
			PERCENTAGE, total);                                                    \
	}                                                                                      \
	CALL(cusparse##T##pruneDense2csr##SUFFIX, DENSE, HOW, OUT MORE, void *work)            \
	{                                                                                      \
		int status = dense_check(h, m, n, lda, c);                                     \
                                                                                               \
		(void)work;                                                                    \
		return status ? status                                                         \
			      : prune(h, SPARSE_##T,                                           \
					of_dense(SPARSE_##T, m, n, a, lda, c, values, offsets, \
						indices),                                      \
					THRESHOLD, PERCENTAGE, NULL);                          \
	}                                                                                      \
	CALL(cusparse##T##pruneCsr2csr##SUFFIX##_bufferSizeExt, CSR, HOW, OUT MORE,            \
		size_t *size)                                                                  \
	{                                                                                      \
		(void)values_a, (void)offsets_a, (void)indices_a, UNUSED_OUT, UNUSED;          \
		return legacy_tell_bytes(csr_check(h, m, n, nnz_a, a, c), size);               \
	}                                                                                      \
	CALL(cusparse##T##pruneCsr2csrNnz##SUFFIX, CSR, HOW, const struct legacy_descr *c,     \
		int *offsets, int *total MORE, void *work)                                     \
	{                                                                                      \
		int status = csr_check(h, m, n, nnz_a, a, c);                                  \
                                                                                               \
		(void)work;                                                                    \
		if (status || !total)                                                          \
			return status ? status : SPARSE_INVALID_VALUE;                         \
		return prune(h, SPARSE_##T,                                                    \
			of_csr(SPARSE_##T, m, n, nnz_a, a, values_a, offsets_a, indices_a, c,  \
				NULL, offsets, NULL),                                          \
			THRESHOLD, PERCENTAGE, total);                                         \
	}                                                                                      \
	CALL(cusparse##T##pruneCsr2csr##SUFFIX, CSR, HOW, OUT MORE, void *work)                \
	{                                                                                      \
		int status = csr_check(h, m, n, nnz_a, a, c);                                  \
                                                                                               \
		(void)work;                                                                    \
		return status ? status                                                         \
			      : prune(h, SPARSE_##T,                                           \
					of_csr(SPARSE_##T, m, n, nnz_a, a, values_a,           \
						offsets_a, indices_a, c, values, offsets,      \
						indices),                                      \
					THRESHOLD, PERCENTAGE, NULL);                          \
	}
#define PRUNE(T)                                                                               \
	PRUNES(T, , const void *threshold, , (void)threshold, threshold, -1)                   \
	PRUNES(T, ByPercentage, float percentage, COMMA struct legacy_info *info,              \
		(void)percentage COMMA(void) info, NULL, info ? (double)percentage : -1.0)
PRUNE(H)
PRUNE(S)
PRUNE(D)

#define COMPRESS(T, NUMBER)                                                                    \
	CALL(cusparse##T##nnz, struct sparse_handle *h, int dir, int m, int n,                 \
		const struct legacy_descr *descr, const void *a, int lda, int *lines,          \
		int *total)                                                                    \
	{                                                                                      \
		return nnz(h, SPARSE_##T, dir, m, n, descr, a, lda, lines, total);             \
	}                                                                                      \
	CALL(cusparse##T##nnz_compress, struct sparse_handle *h, int m,                        \
		const struct legacy_descr *descr, const void *values, const int *offsets,      \
		int *lines, int *total, NUMBER tolerance)                                      \
	{                                                                                      \
		return compress_count(h, SPARSE_##T, m, descr, values, offsets, lines, total,  \
			(sparse_number)tolerance);                                             \
	}                                                                                      \
	CALL(cusparse##T##csr2csr_compress, struct sparse_handle *h, int m, int n,             \
		const struct legacy_descr *descr, const void *values, const int *indices,      \
		const int *offsets, int nnz_a, const int *lines, void *values_c,               \
		int *indices_c, int *offsets_c, NUMBER tolerance)                              \
	{                                                                                      \
		(void)lines; /* counted again */                                               \
		return compress(h, SPARSE_##T, m, n, descr, values, indices, offsets, nnz_a,   \
			values_c, indices_c, offsets_c, (sparse_number)tolerance);             \
	}
COMPRESS(S, float)
COMPRESS(D, double)
COMPRESS(C, float _Complex)
COMPRESS(Z, double _Complex)
