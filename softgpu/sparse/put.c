/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of entries as a matrix in memory.
 */
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

static void arrange(const struct sparse_matrix *m, struct sparse_entries *entries)
{
	for (int64_t i = 0; m->format == SPARSE_CSC && i < entries->count; i++) {
		struct sparse_entry *e = &entries->list[i];

		*e = (struct sparse_entry){e->col, e->row, e->at};
	}
	sparse_sort(entries);
}

static bool put_offsets(struct sparse_task *task, const struct sparse_matrix *m,
	const struct sparse_entries *entries)
{
	int64_t lines = m->format == SPARSE_CSC ? m->cols : m->rows, at = 0;
	unsigned size = sparse_index_size(m->offset_type);
	void *offsets;

	if (m->format == SPARSE_COO) {
		offsets = sparse_area(task, m->offsets, 0, entries->count, size);
		for (int64_t i = 0; offsets && i < entries->count; i++)
			sparse_set_index(
				m->offset_type, offsets, i, entries->list[i].row + m->base);
		return offsets;
	}
	offsets = sparse_area(task, m->offsets, 0, lines + 1, size);
	for (int64_t line = 0; offsets && line <= lines; line++) {
		while (at < entries->count && entries->list[at].row < line)
			at++;
		sparse_set_index(m->offset_type, offsets, line, at + m->base);
	}
	return offsets;
}

bool sparse_put_offsets(
	struct sparse_task *task, const struct sparse_matrix *m, struct sparse_entries *entries)
{
	arrange(m, entries);
	return put_offsets(task, m, entries);
}

bool sparse_put(struct sparse_task *task, const struct sparse_matrix *m,
	struct sparse_entries *entries, const sparse_number *values, sparse_number beta)
{
	void *indices = sparse_area(
		task, m->indices, 0, entries->count, sparse_index_size(m->index_type));
	void *to =
		values ? sparse_area(task, m->values, 0, entries->count, sparse_size(m->type))
		       : indices;

	if (!indices || !to || !sparse_put_offsets(task, m, entries))
		return false;
	for (int64_t i = 0; i < entries->count; i++) {
		const struct sparse_entry *e = &entries->list[i];

		sparse_set_index(m->index_type, indices, i, e->col + m->base);
		if (values)
			sparse_blend(m->type, to, i, 1, values[e->at], beta);
	}
	return true;
}
