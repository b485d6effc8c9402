/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangular systems with one right side (SpSV) or many (SpSM). An analysis keeps the matrix's
 * values: natively they lie in the program's buffer, and updateMatrix replaces them.
 */
#include <stdlib.h>

#include "softgpu/sparse/triangle.h"

struct solve_state {
	struct sparse_state base;
	struct triangle triangle;
};

struct solve {			   /* cusparseSpSVDescr_t, cusparseSpSMDescr_t */
	struct solve_state *state; /* first */
	int64_t n;		   /* of the analysed matrix */
	int type;
	bool analysed;
};

struct analysis {
	struct sparse_matrix a;
	int op;
};

struct update {
	void *values;
	int type;
	bool diagonal;
};

struct system {
	struct sparse_dense b, c;
	struct sparse_scalar alpha;
	int op_b;
};

static void state_fini(struct sparse_state *state)
{
	triangle_free(&((struct solve_state *)state)->triangle);
}

static struct triangle *triangle_of(const struct sparse_task *task)
{
	return &((struct solve_state *)sparse_task_state(task))->triangle;
}

/* ---- tasks ---- */

static void analysis_run(struct sparse_task *task, void *arguments)
{
	struct analysis *analysis = arguments;
	struct triangle *t = triangle_of(task);

	triangle_free(t);
	triangle_read(task, &analysis->a, analysis->op, t);
}

static void update_run(struct sparse_task *task, void *arguments)
{
	struct update *update = arguments;
	struct triangle *t = triangle_of(task);
	void *from = sparse_area(task, update->values, 0, update->diagonal ? t->n : t->nnz,
		sparse_size(update->type));

	for (int64_t i = 0; from && i < t->entries.count; i++) {
		const struct sparse_entry *e = &t->entries.list[i];
		sparse_number value;

		if (update->diagonal && e->row != e->col)
			continue;
		value = sparse_load(update->type, from, update->diagonal ? e->row : e->at);
		t->values[i] = t->op == SPARSE_OP_C ? conj(value) : value;
	}
}

static void solve_run(struct sparse_task *task, void *arguments)
{
	struct system *s = arguments;
	const struct triangle *t = triangle_of(task);
	void *b = sparse_dense_values(task, &s->b, 0), *c = sparse_dense_values(task, &s->c, 0);
	sparse_number alpha, *x;

	if (!b || !c || !sparse_scalar_value(task, &s->alpha, &alpha) || t->n != s->c.rows)
		return;
	x = sparse_scratch(task, t->n, sizeof(*x));
	for (int64_t j = 0; x && j < s->c.cols; j++) {
		for (int64_t i = 0; i < t->n; i++) {
			sparse_number v = sparse_load(s->b.type, b,
				s->op_b == SPARSE_OP_N ? sparse_dense_at(&s->b, i, j)
						       : sparse_dense_at(&s->b, j, i));

			x[i] = alpha * (s->op_b == SPARSE_OP_C ? conj(v) : v);
		}
		triangle_solve(t, x);
		for (int64_t i = 0; i < t->n; i++)
			sparse_store(s->c.type, c, sparse_dense_at(&s->c, i, j), x[i]);
	}
	free(x);
}

/* ---- what both have ---- */

static int create(struct solve **descr)
{
	return sparse_descr_new(descr, sizeof(**descr), sizeof(struct solve_state), state_fini);
}

static int check(struct sparse_handle *h, int op, const void *alpha,
	const struct sparse_matrix *a, int b_type, int c_type, int compute,
	const struct solve *descr)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op) || !alpha || !a || a->rows != a->cols || !descr)
		return SPARSE_INVALID_VALUE;
	if (a->type != b_type || !sparse_types(a->type, b_type, c_type, compute) ||
		a->type != compute ||
		(a->format != SPARSE_CSR && a->format != SPARSE_COO &&
			a->format != SPARSE_SLICED_ELL))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

static int analyse(
	struct sparse_handle *h, int op, const struct sparse_matrix *a, struct solve *descr)
{
	struct analysis analysis = {*a, op};
	int status = sparse_submit(
		h, analysis_run, &analysis, sizeof(analysis), &descr->state->base);

	if (!status) {
		descr->n = a->rows;
		descr->type = a->type;
		descr->analysed = true;
	}
	return status;
}

static int update(struct sparse_handle *h, struct solve *descr, void *values, int part)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!descr || !descr->analysed || !values || (part != 0 && part != 1))
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, update_run, &(struct update){values, descr->type, part},
		sizeof(struct update), &descr->state->base);
}

static int tell(size_t *size)
{
	if (!size)
		return SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

/* ---- one right side ---- */

static int vector_check(struct sparse_handle *h, int op, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_vector *x,
	const struct sparse_vector *y, int compute, const struct solve *descr)
{
	if (h && (!x || !y || !a || x->size != a->rows || y->size != a->rows))
		return SPARSE_INVALID_VALUE;
	return check(h, op, alpha, a, x ? x->type : 0, y ? y->type : 0, compute, descr);
}

/* A vector is a matrix of one column. */
static struct sparse_dense column(const struct sparse_vector *v)
{
	return (struct sparse_dense){
		.rows = v->size,
		.cols = 1,
		.ld = v->size,
		.values = v->values,
		.type = v->type,
		.order = SPARSE_ORDER_COL,
		.batches = 1,
	};
}

CALL(cusparseSpSV_createDescr, struct solve **descr)
{
	return create(descr);
}

CALL(cusparseSpSV_destroyDescr, struct solve *descr)
{
	return sparse_descr_drop(descr);
}

CALL(cusparseSpSV_bufferSize, struct sparse_handle *h, int op, const void *alpha,
	struct sparse_matrix *a, struct sparse_vector *x, struct sparse_vector *y, int compute,
	int alg, struct solve *descr, size_t *size)
{
	int status = vector_check(h, op, alpha, a, x, y, compute, descr);

	(void)alg;
	return status ? status : tell(size);
}

CALL(cusparseSpSV_analysis, struct sparse_handle *h, int op, const void *alpha,
	struct sparse_matrix *a, struct sparse_vector *x, struct sparse_vector *y, int compute,
	int alg, struct solve *descr, void *buffer)
{
	int status = vector_check(h, op, alpha, a, x, y, compute, descr);

	(void)alg;
	(void)buffer;
	return status ? status : analyse(h, op, a, descr);
}

CALL(cusparseSpSV_solve, struct sparse_handle *h, int op, const void *alpha,
	struct sparse_matrix *a, struct sparse_vector *x, struct sparse_vector *y, int compute,
	int alg, struct solve *descr)
{
	int status = vector_check(h, op, alpha, a, x, y, compute, descr);

	(void)alg;
	if (status)
		return status;
	if (!descr->analysed || descr->n != a->rows)
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, solve_run,
		&(struct system){column(x), column(y), sparse_scalar(h, alpha, compute), 0},
		sizeof(struct system), &descr->state->base);
}

CALL(cusparseSpSV_updateMatrix, struct sparse_handle *h, struct solve *descr, void *values,
	int part)
{
	return update(h, descr, values, part);
}

/* ---- many ---- */

static int matrix_check(struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_dense *b,
	const struct sparse_dense *c, int compute, const struct solve *descr)
{
	if (h && (!b || !c || !a || !sparse_op(op_b) || c->rows != a->rows ||
			 sparse_op_rows(op_b, b->rows, b->cols) != c->rows ||
			 sparse_op_rows(op_b, b->cols, b->rows) != c->cols))
		return SPARSE_INVALID_VALUE;
	return check(h, op_a, alpha, a, b ? b->type : 0, c ? c->type : 0, compute, descr);
}

CALL(cusparseSpSM_createDescr, struct solve **descr)
{
	return create(descr);
}

CALL(cusparseSpSM_destroyDescr, struct solve *descr)
{
	return sparse_descr_drop(descr);
}

CALL(cusparseSpSM_bufferSize, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_dense *b, struct sparse_dense *c, int compute,
	int alg, struct solve *descr, size_t *size)
{
	int status = matrix_check(h, op_a, op_b, alpha, a, b, c, compute, descr);

	(void)alg;
	return status ? status : tell(size);
}

CALL(cusparseSpSM_analysis, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_dense *b, struct sparse_dense *c, int compute,
	int alg, struct solve *descr, void *buffer)
{
	int status = matrix_check(h, op_a, op_b, alpha, a, b, c, compute, descr);

	(void)alg;
	(void)buffer;
	return status ? status : analyse(h, op_a, a, descr);
}

CALL(cusparseSpSM_solve, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_dense *b, struct sparse_dense *c, int compute,
	int alg, struct solve *descr)
{
	int status = matrix_check(h, op_a, op_b, alpha, a, b, c, compute, descr);

	(void)alg;
	if (status)
		return status;
	if (!descr->analysed || descr->n != a->rows)
		return SPARSE_INVALID_VALUE;
	return sparse_submit(h, solve_run,
		&(struct system){*b, *c, sparse_scalar(h, alpha, compute), op_b},
		sizeof(struct system), &descr->state->base);
}

CALL(cusparseSpSM_updateMatrix, struct sparse_handle *h, struct solve *descr, void *values,
	int part)
{
	return update(h, descr, values, part);
}
