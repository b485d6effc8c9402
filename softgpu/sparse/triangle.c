/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangles, and systems solved with them.
 */
#include <stdlib.h>

#include "softgpu/sparse/triangle.h"

void triangle_free(struct triangle *t)
{
	free(t->entries.list);
	free(t->values);
	free(t->starts);
	*t = (struct triangle){0};
}

static void keep_triangle(struct triangle *t)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < t->entries.count; i++) {
		struct sparse_entry e = t->entries.list[i];

		if (e.row == e.col ? !t->unit : (e.row > e.col) == t->lower)
			t->entries.list[kept++] = e;
	}
	t->entries.count = kept;
}

bool triangle_read(
	struct sparse_task *task, const struct sparse_matrix *a, int op, struct triangle *t)
{
	*t = (struct triangle){
		.n = a->rows,
		.op = op,
		.nnz = a->format == SPARSE_SLICED_ELL ? a->ell_values : a->nnz,
		.lower = (a->fill == SPARSE_LOWER) == (op == SPARSE_OP_N),
		.unit = a->diag,
	};
	if (!sparse_entries(task, a, 0, op != SPARSE_OP_N, &t->entries))
		return false;
	keep_triangle(t);
	sparse_sort(&t->entries);
	t->values = sparse_scratch(task, t->entries.count, sizeof(*t->values));
	t->starts = sparse_scratch(task, t->n + 1, sizeof(*t->starts));
	if (!t->values || !t->starts) {
		triangle_free(t);
		return false;
	}
	for (int64_t i = 0; i < t->entries.count; i++) {
		t->values[i] = sparse_entry_value(a, &t->entries.list[i], op);
		t->starts[t->entries.list[i].row + 1]++;
	}
	for (int64_t i = 0; i < t->n; i++)
		t->starts[i + 1] += t->starts[i];
	return true;
}

void triangle_solve(const struct triangle *t, sparse_number *x)
{
	for (int64_t k = 0; k < t->n; k++) {
		int64_t row = t->lower ? k : t->n - 1 - k;
		sparse_number sum = x[row], pivot = t->unit;

		for (int64_t i = t->starts[row]; i < t->starts[row + 1]; i++) {
			int64_t col = t->entries.list[i].col;

			if (col == row)
				pivot += t->values[i];
			else
				sum -= t->values[i] * x[col];
		}
		x[row] = sum / pivot;
	}
}
