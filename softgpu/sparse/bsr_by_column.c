/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of blocks by column, made of those by row: a block is moved whole.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/sparse/legacy.h"

struct by_column {
	struct sparse_matrix from, to; /* of blocks as elements */
	int type;
	int64_t block; /* elements of one */
	bool values;
};

static void by_column_run(struct sparse_task *task, void *arguments)
{
	struct by_column *b = arguments;
	int64_t bytes = b->block * sparse_size(b->type);
	struct sparse_entries entries;
	char *from = NULL, *to = NULL;

	if (b->values) {
		from = sparse_area(
			task, b->from.values, 0, b->from.nnz * b->block, sparse_size(b->type));
		to = sparse_area(
			task, b->to.values, 0, b->from.nnz * b->block, sparse_size(b->type));
		if (!from || !to)
			return;
	}
	b->from.values = b->from.indices; /* they stand in for values */
	if (!sparse_entries(task, &b->from, 0, true, &entries))
		return;
	if (sparse_put(task, &b->to, &entries, NULL, 0))
		for (int64_t i = 0; b->values && i < entries.count; i++)
			memcpy(to + i * bytes, from + entries.list[i].at * bytes,
				(size_t)bytes);
	free(entries.list);
}

int legacy_gebsr2gebsc(struct sparse_handle *h, int type, int mb, int nb, int nnzb,
	const void *values, const int *offsets, const int *indices, int rows, int cols,
	void *to_values, int *to_indices, int *to_offsets, int action, int base)
{
	const struct legacy_descr descr = {.base = base};

	if (!h)
		return SPARSE_NO_HANDLE;
	if (mb < 0 || nb < 0 || nnzb < 0 || !legacy_block(rows, cols) ||
		(action != 0 && action != 1) || (base != 0 && base != 1))
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, by_column_run,
		&(struct by_column){
			.from = legacy_csr(
				&descr, SPARSE_S, mb, nb, nnzb, values, offsets, indices),
			.to = legacy_csr(&descr, SPARSE_S, nb, mb, nnzb, to_values, to_offsets,
				to_indices),
			.type = type,
			.block = (int64_t)rows * cols,
			.values = action,
		},
		sizeof(struct by_column), NULL);
}
