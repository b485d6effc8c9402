/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices of one format as those of another (SpMatConvert).
 */
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

struct reshape {
	struct sparse_matrix from, to;
	int op;
	bool values;
	int64_t count; /* left: how many entries or blocks the target has */
};

/* Nothing stays between the calls: the entries are read again. */
struct reshape_descr {
	char unused;
};

static bool read_all(struct sparse_task *task, const struct reshape *r,
	struct sparse_entries *entries, sparse_number **values)
{
	if (!sparse_entries(task, &r->from, 0, r->op != SPARSE_OP_N, entries))
		return false;
	*values = sparse_scratch(task, entries->count, sizeof(**values));
	if (!*values) {
		free(entries->list);
		return false;
	}
	for (int64_t i = 0; i < entries->count; i++) {
		(*values)[i] = sparse_entry_value(&r->from, &entries->list[i], r->op);
		entries->list[i].at = i;
	}
	return true;
}

static void analysis_run(struct sparse_task *task, void *arguments)
{
	struct reshape *r = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (!read_all(task, r, &entries, &values))
		return;
	r->count = entries.count;
	if (r->to.format == SPARSE_BSR)
		r->count = sparse_put_block_offsets(task, &r->to, &entries);
	else if (r->to.format != SPARSE_COO)
		sparse_put_offsets(task, &r->to, &entries);
	free(entries.list);
	free(values);
}

static void convert_run(struct sparse_task *task, void *arguments)
{
	struct reshape *r = arguments;
	struct sparse_entries entries;
	sparse_number *values;

	if (!read_all(task, r, &entries, &values))
		return;
	if (r->to.format == SPARSE_BSR)
		sparse_put_blocks(task, &r->to, &entries, r->values ? values : NULL);
	else
		sparse_put(task, &r->to, &entries, r->values ? values : NULL, 0);
	free(entries.list);
	free(values);
}

static int check(const struct sparse_handle *h, int op, const struct sparse_matrix *from,
	const struct sparse_matrix *to, int action, int alg, const struct reshape_descr *descr)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op) || !from || !to || !descr || alg || (action != 0 && action != 1) ||
		sparse_op_rows(op, from->rows, from->cols) != to->rows ||
		sparse_op_rows(op, from->cols, from->rows) != to->cols)
		return SPARSE_INVALID_VALUE;
	if (from->type != to->type || (!sparse_writable(to) && to->format != SPARSE_BSR))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatConvertDescrCreate, struct reshape_descr **descr)
{
	if (!descr)
		return SPARSE_INVALID_VALUE;
	*descr = calloc(1, sizeof(**descr));
	return *descr ? SPARSE_SUCCESS : SPARSE_ALLOC_FAILED;
}

CALL(cusparseSpMatConvertDescrDestroy, struct reshape_descr *descr)
{
	if (!descr)
		return SPARSE_INVALID_VALUE;
	free(descr);
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatConvert_bufferSize, struct sparse_handle *h, int op,
	struct sparse_matrix *from, struct sparse_matrix *to, int action, int alg,
	struct reshape_descr *descr, size_t *size)
{
	int status = check(h, op, from, to, action, alg, descr);

	if (status || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMatConvert_analysis, struct sparse_handle *h, int op, struct sparse_matrix *from,
	struct sparse_matrix *to, int action, int alg, struct reshape_descr *descr,
	void *buffer)
{
	int status = check(h, op, from, to, action, alg, descr);
	struct reshape r;

	(void)buffer;
	if (status)
		return status;
	r = (struct reshape){.from = *from, .to = *to, .op = op};
	status = sparse_finish(h, analysis_run, &r, sizeof(r), NULL);
	if (!status)
		to->nnz = r.count;
	return status;
}

CALL(cusparseSpMatConvert, struct sparse_handle *h, int op, struct sparse_matrix *from,
	struct sparse_matrix *to, int action, int alg, struct reshape_descr *descr,
	void *buffer)
{
	int status = check(h, op, from, to, action, alg, descr);

	(void)buffer;
	if (status)
		return status;
	return sparse_submit(h, convert_run,
		&(struct reshape){.from = *from, .to = *to, .op = op, .values = action},
		sizeof(struct reshape), NULL);
}
