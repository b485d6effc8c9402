/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangles of sparse matrices, and systems solved with them: what SpSV, SpSM, bsrsv2 and
 * bsrsm2 share.
 */
#ifndef VCUDA_SOFTGPU_SPARSE_TRIANGLE_H
#define VCUDA_SOFTGPU_SPARSE_TRIANGLE_H

#include "softgpu/sparse/sparse.h"

/* A triangle of op(A), its entries sorted by row. */
struct triangle {
	struct sparse_entries entries; /* `at` is a place in A's values */
	sparse_number *values;	       /* of the entries */
	int64_t *starts;	       /* of rows: n + 1 */
	int64_t n, nnz;		       /* nnz: of A's values */
	int op;
	bool lower, unit;
};

/* As A's attributes say which. False: the handle failed, and *triangle is empty. */
bool triangle_read(struct sparse_task *task, const struct sparse_matrix *a, int op,
	struct triangle *triangle);
void triangle_free(struct triangle *triangle);
/* Replaces x by the solution of op(A) y = x. */
void triangle_solve(const struct triangle *triangle, sparse_number *x);

#endif
