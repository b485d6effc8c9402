/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse vectors with dense ones: sums, products, rotations, gathering and scattering.
 */
#include "softgpu/sparse/sparse.h"

struct vectors {
	struct sparse_vector x, y; /* sparse, dense */
	struct sparse_scalar first, second;
	int op;
	void *result; /* of SpVV; NULL: it stays in `sum` */
	int compute;
	sparse_number sum;
};

/* What scalars are given in: halves are computed as floats. */
static int compute_of(int type)
{
	switch (type) {
	case SPARSE_R_16F:
	case SPARSE_R_16BF: return SPARSE_R_32F;
	case SPARSE_C_16F:
	case SPARSE_C_16BF: return SPARSE_C_32F;
	default: return type;
	}
}

/* The vectors' memory, in `x.indices`, `x.values` and `y.values`. */
static bool reach(struct sparse_task *task, const struct vectors *v)
{
	return sparse_area(
		       task, v->x.indices, 0, v->x.nnz, sparse_index_size(v->x.index_type)) &&
	       sparse_area(task, v->x.values, 0, v->x.nnz, sparse_size(v->x.type)) &&
	       sparse_area(task, v->y.values, 0, v->y.size, sparse_size(v->y.type));
}

/* Where entry I of the sparse vector lies in the dense one; -1: beyond it. */
static int64_t place(const struct vectors *v, int64_t i)
{
	int64_t at = sparse_index(v->x.index_type, v->x.indices, i) - v->x.base;

	return at >= 0 && at < v->y.size ? at : -1;
}

static void axpby_run(struct sparse_task *task, void *arguments)
{
	struct vectors *v = arguments;
	sparse_number alpha, beta;

	if (!reach(task, v) || !sparse_scalar_value(task, &v->first, &alpha) ||
		!sparse_scalar_value(task, &v->second, &beta))
		return;
	for (int64_t i = 0; beta != 1 && i < v->y.size; i++)
		sparse_blend(v->y.type, v->y.values, i, 0, 0, beta);
	for (int64_t i = 0; i < v->x.nnz; i++) {
		int64_t at = place(v, i);

		if (at >= 0)
			sparse_blend(v->y.type, v->y.values, at, alpha,
				sparse_load(v->x.type, v->x.values, i), 1);
	}
}

static void gather_run(struct sparse_task *task, void *arguments)
{
	struct vectors *v = arguments;

	if (!reach(task, v))
		return;
	for (int64_t i = 0; i < v->x.nnz; i++)
		if (place(v, i) >= 0)
			sparse_store(v->x.type, v->x.values, i,
				sparse_load(v->y.type, v->y.values, place(v, i)));
}

static void scatter_run(struct sparse_task *task, void *arguments)
{
	struct vectors *v = arguments;

	if (!reach(task, v))
		return;
	for (int64_t i = 0; i < v->x.nnz; i++)
		if (place(v, i) >= 0)
			sparse_store(v->y.type, v->y.values, place(v, i),
				sparse_load(v->x.type, v->x.values, i));
}

static void rot_run(struct sparse_task *task, void *arguments)
{
	struct vectors *v = arguments;
	sparse_number c, s;

	if (!reach(task, v) || !sparse_scalar_value(task, &v->first, &c) ||
		!sparse_scalar_value(task, &v->second, &s))
		return;
	for (int64_t i = 0; i < v->x.nnz; i++) {
		int64_t at = place(v, i);
		sparse_number x = sparse_load(v->x.type, v->x.values, i), y;

		if (at < 0)
			continue;
		y = sparse_load(v->y.type, v->y.values, at);
		sparse_store(v->x.type, v->x.values, i, c * x + s * y);
		sparse_store(v->y.type, v->y.values, at, c * y - conj(s) * x);
	}
}

static void dot_run(struct sparse_task *task, void *arguments)
{
	struct vectors *v = arguments;
	sparse_number sum = 0;

	if (!reach(task, v) ||
		(v->result && !sparse_area(task, v->result, 0, 1, sparse_size(v->compute))))
		return;
	for (int64_t i = 0; i < v->x.nnz; i++) {
		sparse_number x = sparse_load(v->x.type, v->x.values, i);

		if (place(v, i) >= 0)
			sum += (v->op == SPARSE_OP_C ? conj(x) : x) *
			       sparse_load(v->y.type, v->y.values, place(v, i));
	}
	if (v->result)
		sparse_store(v->compute, v->result, 0, sum);
	v->sum = sum;
}

static int check(
	struct sparse_handle *h, const struct sparse_vector *x, const struct sparse_vector *y)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!x || !y || x->size != y->size)
		return SPARSE_INVALID_VALUE;
	return SPARSE_SUCCESS;
}

static int two_scalars(struct sparse_handle *h, sparse_run *run, const struct sparse_vector *x,
	const struct sparse_vector *y, const void *first, const void *second)
{
	int status = check(h, x, y);

	if (status || !first || !second)
		return status ? status : SPARSE_INVALID_VALUE;
	if (x->type != y->type || x->type == SPARSE_R_8I || x->type == SPARSE_R_32I)
		return SPARSE_NOT_SUPPORTED;
	return sparse_submit(h, run,
		&(struct vectors){
			.x = *x,
			.y = *y,
			.first = sparse_scalar(h, first, compute_of(x->type)),
			.second = sparse_scalar(h, second, compute_of(x->type)),
		},
		sizeof(struct vectors), NULL);
}

static int no_scalars(struct sparse_handle *h, sparse_run *run, const struct sparse_vector *x,
	const struct sparse_vector *y)
{
	int status = check(h, x, y);

	if (status)
		return status;
	if (x->type != y->type)
		return SPARSE_NOT_SUPPORTED;
	return sparse_submit(
		h, run, &(struct vectors){.x = *x, .y = *y}, sizeof(struct vectors), NULL);
}

CALL(cusparseAxpby, struct sparse_handle *h, const void *alpha, struct sparse_vector *x,
	const void *beta, struct sparse_vector *y)
{
	return two_scalars(h, axpby_run, x, y, alpha, beta);
}

CALL(cusparseRot, struct sparse_handle *h, const void *c, const void *s,
	struct sparse_vector *x, struct sparse_vector *y)
{
	return two_scalars(h, rot_run, x, y, c, s);
}

CALL(cusparseGather, struct sparse_handle *h, struct sparse_vector *y, struct sparse_vector *x)
{
	return no_scalars(h, gather_run, x, y);
}

CALL(cusparseScatter, struct sparse_handle *h, struct sparse_vector *x, struct sparse_vector *y)
{
	return no_scalars(h, scatter_run, x, y);
}

static int dot_check(struct sparse_handle *h, int op, const struct sparse_vector *x,
	const struct sparse_vector *y, int compute)
{
	int status = check(h, x, y);

	if (status)
		return status;
	if (op != SPARSE_OP_N && op != SPARSE_OP_C)
		return SPARSE_INVALID_VALUE;
	if (x->type != y->type ||
		(compute != compute_of(x->type) &&
			!(x->type == SPARSE_R_8I &&
				(compute == SPARSE_R_32I || compute == SPARSE_R_32F))))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpVV_bufferSize, struct sparse_handle *h, int op, struct sparse_vector *x,
	struct sparse_vector *y, const void *result, int compute, size_t *size)
{
	int status = dot_check(h, op, x, y, compute);

	if (status || !result || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpVV, struct sparse_handle *h, int op, struct sparse_vector *x,
	struct sparse_vector *y, void *result, int compute, void *buffer)
{
	int status = dot_check(h, op, x, y, compute);
	struct vectors v;

	(void)buffer;
	if (status || !result)
		return status ? status : SPARSE_INVALID_VALUE;
	v = (struct vectors){.x = *x, .y = *y, .op = op, .compute = compute};
	if (h->pointer_mode) {
		v.result = result;
		return sparse_submit(h, dot_run, &v, sizeof(v), NULL);
	}
	status = sparse_finish(h, dot_run, &v, sizeof(v), NULL);
	if (!status)
		sparse_store(compute, result, 0, v.sum);
	return status;
}
