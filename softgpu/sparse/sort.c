/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries put in order, with what permutation did it; rows as offsets and as indices; a
 * matrix's rows as columns.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/sparse/legacy.h"

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

struct sorting {
	int lines, nnz, base;
	const int *offsets; /* NULL: `major` has the rows of a list */
	int *major, *minor, *permutation;
};

/* The entries of a line, cut to what there is. */
static void line_range(
	const int *offsets, int64_t line, int base, int nnz, int64_t *from, int64_t *to)
{
	*from = (int64_t)offsets[line] - base;
	*to = (int64_t)offsets[line + 1] - base;
	if (*from < 0)
		*from = 0;
	if (*to > nnz)
		*to = nnz;
}

/* Which line entry I belongs to, of offsets that rise. */
static void lines_of(const struct sorting *s, const int *offsets, struct sparse_entry *list)
{
	int64_t from, to;

	for (int64_t line = 0; line < s->lines; line++) {
		line_range(offsets, line, s->base, s->nnz, &from, &to);
		for (int64_t i = from; i < to; i++)
			list[i].row = line;
	}
}

static void sort_run(struct sparse_task *task, void *arguments)
{
	struct sorting *s = arguments;
	int *major = sparse_area(task, s->major, 0, s->offsets ? 0 : s->nnz, 4);
	int *minor = sparse_area(task, s->minor, 0, s->nnz, 4);
	int *p = sparse_area(task, s->permutation, 0, s->permutation ? s->nnz : 0, 4);
	const int *offsets =
		sparse_area(task, s->offsets, 0, s->offsets ? (int64_t)s->lines + 1 : 0, 4);
	struct sparse_entries entries = {.count = s->nnz};
	int *old;

	if (!major || !minor || !p || !offsets)
		return;
	entries.list = sparse_scratch(task, s->nnz, sizeof(*entries.list));
	old = sparse_scratch(task, s->nnz, sizeof(*old));
	if (entries.list && old) {
		for (int64_t i = 0; i < s->nnz; i++)
			entries.list[i] =
				(struct sparse_entry){s->offsets ? 0 : major[i], minor[i], i};
		if (s->offsets)
			lines_of(s, offsets, entries.list);
		if (s->permutation)
			memcpy(old, p, (size_t)s->nnz * sizeof(*old));
		sparse_sort(&entries);
		for (int64_t i = 0; i < s->nnz; i++) {
			if (!s->offsets)
				major[i] = (int)entries.list[i].row;
			minor[i] = (int)entries.list[i].col;
			if (s->permutation)
				p[i] = old[entries.list[i].at];
		}
	}
	free(entries.list);
	free(old);
}

static int sort(struct sparse_handle *h, int m, int n, struct sorting s)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (m < 0 || n < 0 || s.nnz < 0 || (s.nnz && !s.minor))
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, sort_run, &s, sizeof(s), NULL);
}

static int sort_size(struct sparse_handle *h, int m, int n, int nnz, size_t *size)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	return legacy_tell_bytes(
		m >= 0 && n >= 0 && nnz >= 0 ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE, size);
}

#define SORT_SIZE(NAME)                                                                        \
	CALL(cusparseX##NAME##_bufferSizeExt, struct sparse_handle *h, int m, int n, int nnz,  \
		const int *a, const int *b, size_t *size)                                      \
	{                                                                                      \
		(void)a;                                                                       \
		(void)b;                                                                       \
		return sort_size(h, m, n, nnz, size);                                          \
	}
SORT_SIZE(coosort)
SORT_SIZE(csrsort)
SORT_SIZE(cscsort)

CALL(cusparseXcoosortByRow, struct sparse_handle *h, int m, int n, int nnz, int *rows,
	int *cols, int *p, void *work)
{
	(void)work;
	return sort(h, m, n,
		(struct sorting){.nnz = nnz, .major = rows, .minor = cols, .permutation = p});
}

CALL(cusparseXcoosortByColumn, struct sparse_handle *h, int m, int n, int nnz, int *rows,
	int *cols, int *p, void *work)
{
	(void)work;
	return sort(h, m, n,
		(struct sorting){.nnz = nnz, .major = cols, .minor = rows, .permutation = p});
}

#define SORT_LINES(NAME, LINES)                                                                \
	CALL(cusparseX##NAME, struct sparse_handle *h, int m, int n, int nnz,                  \
		const struct legacy_descr *descr, const int *offsets, int *indices, int *p,    \
		void *work)                                                                    \
	{                                                                                      \
		(void)work;                                                                    \
		if (h && (!descr || !offsets))                                                 \
			return SPARSE_INVALID_VALUE;                                           \
		return sort(h, m, n,                                                           \
			(struct sorting){.lines = LINES,                                       \
				.nnz = nnz,                                                    \
				.base = descr ? descr->base : 0,                               \
				.offsets = offsets,                                            \
				.minor = indices,                                              \
				.permutation = p});                                            \
	}
SORT_LINES(csrsort, m)
SORT_LINES(cscsort, n)

/* ---- offsets and rows ---- */

struct rows {
	int nnz, m, base;
	int *rows, *offsets;
};

static void identity_run(struct sparse_task *task, void *arguments)
{
	struct rows *r = arguments;
	int *to = sparse_area(task, r->rows, 0, r->nnz, 4);

	for (int i = 0; to && i < r->nnz; i++)
		to[i] = i;
}

static void to_offsets_run(struct sparse_task *task, void *arguments)
{
	struct rows *r = arguments;
	const int *rows = sparse_area(task, r->rows, 0, r->nnz, 4);
	int *offsets = sparse_area(task, r->offsets, 0, (int64_t)r->m + 1, 4), at = 0;

	for (int row = 0; rows && offsets && row <= r->m; row++) {
		while (at < r->nnz && (int64_t)rows[at] - r->base < row)
			at++;
		offsets[row] = at + r->base;
	}
}

static void to_rows_run(struct sparse_task *task, void *arguments)
{
	struct rows *r = arguments;
	int *rows = sparse_area(task, r->rows, 0, r->nnz, 4);
	const int *offsets = sparse_area(task, r->offsets, 0, (int64_t)r->m + 1, 4);

	int64_t from, to;

	for (int row = 0; rows && offsets && row < r->m; row++) {
		line_range(offsets, row, r->base, r->nnz, &from, &to);
		for (int64_t i = from; i < to; i++)
			rows[i] = row + r->base;
	}
}

static int rows_submit(struct sparse_handle *h, sparse_run *run, struct rows r)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (r.nnz < 0 || r.m < 0 || (r.base != 0 && r.base != 1))
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, run, &r, sizeof(r), NULL);
}

CALL(cusparseCreateIdentityPermutation, struct sparse_handle *h, int n, int *p)
{
	return rows_submit(h, identity_run, (struct rows){n, 0, 0, p, NULL});
}

CALL(cusparseXcoo2csr, struct sparse_handle *h, const int *rows, int nnz, int m, int *offsets,
	int base)
{
	return rows_submit(h, to_offsets_run, (struct rows){nnz, m, base, ANY(rows), offsets});
}

CALL(cusparseXcsr2coo, struct sparse_handle *h, const int *offsets, int nnz, int m, int *rows,
	int base)
{
	return rows_submit(h, to_rows_run, (struct rows){nnz, m, base, rows, ANY(offsets)});
}

/* ---- rows as columns ---- */

struct transposition {
	struct sparse_matrix from, to;
	bool values;
};

static void transpose_run(struct sparse_task *task, void *arguments)
{
	struct transposition *t = arguments;
	struct sparse_entries entries;
	sparse_number *values = NULL;

	if (!sparse_entries(task, &t->from, 0, true, &entries))
		return;
	if (t->values) {
		values = sparse_scratch(task, t->from.nnz, sizeof(*values));
		for (int64_t i = 0; values && i < t->from.nnz; i++)
			values[i] = sparse_load(t->from.type, t->from.values, i);
	}
	if (values || !t->values)
		sparse_put(task, &t->to, &entries, values, 0);
	free(entries.list);
	free(values);
}

static int transpose_check(
	struct sparse_handle *h, int m, int n, int nnz, int type, int action, int base, int alg)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (m < 0 || n < 0 || nnz < 0 || (action != 0 && action != 1) ||
		(base != 0 && base != 1) || alg != 1)
		return SPARSE_INVALID_VALUE;
	return sparse_size(type) ? SPARSE_SUCCESS : SPARSE_NOT_SUPPORTED;
}

CALL(cusparseCsr2cscEx2, struct sparse_handle *h, int m, int n, int nnz, const void *values,
	const int *offsets, const int *indices, void *to_values, int *to_offsets,
	int *to_indices, int type, int action, int base, int alg, void *work)
{
	int status = transpose_check(h, m, n, nnz, type, action, base, alg);
	const struct legacy_descr descr = {.base = base};

	(void)work;
	if (status)
		return status;
	/* Where values are not copied, they may be nowhere. */
	return sparse_submit(h, transpose_run,
		&(struct transposition){
			.from = legacy_csr(&descr, action ? type : SPARSE_S, m, n, nnz,
				action ? values : indices, offsets, indices),
			.to = legacy_csr(
				&descr, type, n, m, nnz, to_values, to_offsets, to_indices),
			.values = action,
		},
		sizeof(struct transposition), NULL);
}

CALL(cusparseCsr2cscEx2_bufferSize, struct sparse_handle *h, int m, int n, int nnz,
	const void *values, const int *offsets, const int *indices, void *to_values,
	int *to_offsets, int *to_indices, int type, int action, int base, int alg, size_t *size)
{
	(void)values, (void)offsets, (void)indices;
	(void)to_values, (void)to_offsets, (void)to_indices;
	return legacy_tell_bytes(transpose_check(h, m, n, nnz, type, action, base, alg), size);
}
