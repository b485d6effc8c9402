/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices as dense ones, and dense as sparse.
 */
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

struct conversion {
	struct sparse_matrix sparse;
	struct sparse_dense dense;
	int64_t count; /* left: what the analysis found */
};

static void to_dense_run(struct sparse_task *task, void *arguments)
{
	struct conversion *c = arguments;
	struct sparse_entries entries;
	void *to = sparse_dense_values(task, &c->dense, 0);

	if (!to || !sparse_entries(task, &c->sparse, 0, false, &entries))
		return;
	for (int64_t i = 0; i < c->dense.rows; i++)
		for (int64_t j = 0; j < c->dense.cols; j++)
			sparse_store(c->dense.type, to, sparse_dense_at(&c->dense, i, j), 0);
	for (int64_t i = 0; i < entries.count; i++) {
		const struct sparse_entry *e = &entries.list[i];

		sparse_store(c->dense.type, to, sparse_dense_at(&c->dense, e->row, e->col),
			sparse_entry_value(&c->sparse, e, SPARSE_OP_N));
	}
	free(entries.list);
}

/* The numbers that are not 0; `at` and *values for sparse_put. */
static bool dense_entries(struct sparse_task *task, const struct sparse_dense *d,
	struct sparse_entries *entries, sparse_number **values)
{
	void *from = sparse_dense_values(task, d, 0);
	int64_t cells;

	*entries = (struct sparse_entries){0};
	*values = NULL;
	if (!from || __builtin_mul_overflow(d->rows, d->cols, &cells))
		return false;
	entries->list = sparse_scratch(task, cells, sizeof(*entries->list));
	*values = sparse_scratch(task, cells, sizeof(**values));
	if (!entries->list || !*values)
		return false;
	for (int64_t i = 0; i < d->rows; i++)
		for (int64_t j = 0; j < d->cols; j++) {
			sparse_number v = sparse_load(d->type, from, sparse_dense_at(d, i, j));

			if (v == 0)
				continue;
			(*values)[entries->count] = v;
			entries->list[entries->count] =
				(struct sparse_entry){i, j, entries->count};
			entries->count++;
		}
	return true;
}

static void analysis_run(struct sparse_task *task, void *arguments)
{
	struct conversion *c = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (dense_entries(task, &c->dense, &entries, &values)) {
		c->count = entries.count;
		/* A list of rows has no memory before its length is known. */
		if (c->sparse.format != SPARSE_COO)
			sparse_put_offsets(task, &c->sparse, &entries);
	}
	free(entries.list);
	free(values);
}

/* The places are the program's: what the dense matrix has elsewhere is left out. */
static void to_blocks(struct sparse_task *task, const struct conversion *c)
{
	struct sparse_entries entries;
	void *from = sparse_dense_values(task, &c->dense, 0);

	if (!from || !sparse_entries(task, &c->sparse, 0, false, &entries))
		return;
	for (int64_t i = 0; i < entries.count; i++) {
		const struct sparse_entry *e = &entries.list[i];

		sparse_store(c->sparse.type, c->sparse.values, e->at,
			sparse_load(c->dense.type, from,
				sparse_dense_at(&c->dense, e->row, e->col)));
	}
	free(entries.list);
}

static void to_sparse_run(struct sparse_task *task, void *arguments)
{
	struct conversion *c = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (c->sparse.format == SPARSE_BLOCKED_ELL) {
		to_blocks(task, c);
		return;
	}
	if (dense_entries(task, &c->dense, &entries, &values))
		sparse_put(task, &c->sparse, &entries, values, 0);
	free(entries.list);
	free(values);
}

static int check(
	struct sparse_handle *h, const struct sparse_matrix *s, const struct sparse_dense *d)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!s || !d || s->rows != d->rows || s->cols != d->cols)
		return SPARSE_INVALID_VALUE;
	if (s->type != d->type || (!sparse_writable(s) && s->format != SPARSE_BLOCKED_ELL))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

CALL(cusparseSparseToDense_bufferSize, struct sparse_handle *h, struct sparse_matrix *a,
	struct sparse_dense *b, int alg, size_t *size)
{
	int status = check(h, a, b);

	if (status || alg || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSparseToDense, struct sparse_handle *h, struct sparse_matrix *a,
	struct sparse_dense *b, int alg, void *buffer)
{
	int status = check(h, a, b);

	(void)buffer;
	if (status || alg)
		return status ? status : SPARSE_INVALID_VALUE;
	return sparse_submit(h, to_dense_run, &(struct conversion){*a, *b, 0},
		sizeof(struct conversion), NULL);
}

CALL(cusparseDenseToSparse_bufferSize, struct sparse_handle *h, struct sparse_dense *a,
	struct sparse_matrix *b, int alg, size_t *size)
{
	int status = check(h, b, a);

	if (status || alg || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseDenseToSparse_analysis, struct sparse_handle *h, struct sparse_dense *a,
	struct sparse_matrix *b, int alg, void *buffer)
{
	int status = check(h, b, a);
	struct conversion c;

	(void)buffer;
	if (status || alg)
		return status ? status : SPARSE_INVALID_VALUE;
	if (b->format == SPARSE_BLOCKED_ELL)
		return SPARSE_SUCCESS; /* the program says how many there are */
	c = (struct conversion){*b, *a, 0};
	status = sparse_finish(h, analysis_run, &c, sizeof(c), NULL);
	if (!status)
		b->nnz = c.count;
	return status;
}

CALL(cusparseDenseToSparse_convert, struct sparse_handle *h, struct sparse_dense *a,
	struct sparse_matrix *b, int alg, void *buffer)
{
	int status = check(h, b, a);

	(void)buffer;
	if (status || alg)
		return status ? status : SPARSE_INVALID_VALUE;
	return sparse_submit(h, to_sparse_run, &(struct conversion){*b, *a, 0},
		sizeof(struct conversion), NULL);
}
