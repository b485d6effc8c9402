/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of a sparse matrix with dense vectors and matrices, and of dense matrices at a
 * sparse one's places.
 */
#include <stdlib.h>

#include "softgpu/sparse/product.h"

/* ---- sparse matrix times dense vector ---- */

struct spmv {
	struct sparse_matrix a;
	struct sparse_vector x, y, z; /* y is what beta scales, z takes the result */
	struct sparse_scalar alpha, beta;
	int op;
};

static void spmv_run(struct sparse_task *task, void *arguments)
{
	struct spmv *s = arguments;
	struct sparse_entries entries;
	sparse_number alpha, beta, *sum;
	void *x = sparse_area(task, s->x.values, 0, s->x.size, sparse_size(s->x.type));
	void *y = sparse_area(task, s->y.values, 0, s->y.size, sparse_size(s->y.type));
	void *z = sparse_area(task, s->z.values, 0, s->z.size, sparse_size(s->z.type));

	if (!x || !y || !z || !sparse_scalar_value(task, &s->alpha, &alpha) ||
		!sparse_scalar_value(task, &s->beta, &beta) ||
		!sparse_entries(task, &s->a, 0, s->op != SPARSE_OP_N, &entries))
		return;
	sum = sparse_scratch(task, s->z.size, sizeof(*sum));
	for (int64_t i = 0; sum && i < entries.count; i++) {
		const struct sparse_entry *e = &entries.list[i];

		sum[e->row] +=
			sparse_entry_value(&s->a, e, s->op) * sparse_load(s->x.type, x, e->col);
	}
	for (int64_t i = 0; sum && i < s->z.size; i++) {
		sparse_number value = alpha * sum[i];

		if (beta != 0)
			value += beta * sparse_load(s->y.type, y, i);
		sparse_store(s->z.type, z, i, value);
	}
	free(sum);
	free(entries.list);
}

int sparse_product_vector(struct sparse_handle *h, int op, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_vector *x, const void *beta,
	const struct sparse_vector *y, int compute)
{
	return sparse_submit(h, spmv_run,
		&(struct spmv){*a, *x, *y, *y, sparse_scalar(h, alpha, compute),
			sparse_scalar(h, beta, compute), op},
		sizeof(struct spmv), NULL);
}

static int spmv_check(struct sparse_handle *h, int op, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_vector *x, const void *beta,
	const struct sparse_vector *y, int compute)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op) || !alpha || !beta || !a || !x || !y ||
		x->size != sparse_op_rows(op, a->cols, a->rows) ||
		y->size != sparse_op_rows(op, a->rows, a->cols))
		return SPARSE_INVALID_VALUE;
	if (a->format == SPARSE_BLOCKED_ELL ||
		!sparse_types(a->type, x->type, y->type, compute))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMV, struct sparse_handle *h, int op, const void *alpha, struct sparse_matrix *a,
	struct sparse_vector *x, const void *beta, struct sparse_vector *y, int compute,
	int alg, void *buffer)
{
	int status = spmv_check(h, op, alpha, a, x, beta, y, compute);

	(void)alg; /* one loop is all algorithms */
	(void)buffer;
	return status ? status : sparse_product_vector(h, op, alpha, a, x, beta, y, compute);
}

CALL(cusparseSpMV_bufferSize, struct sparse_handle *h, int op, const void *alpha,
	struct sparse_matrix *a, struct sparse_vector *x, const void *beta,
	struct sparse_vector *y, int compute, int alg, size_t *size)
{
	int status = spmv_check(h, op, alpha, a, x, beta, y, compute);

	(void)alg;
	if (status || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMV_preprocess, struct sparse_handle *h, int op, const void *alpha,
	struct sparse_matrix *a, struct sparse_vector *x, const void *beta,
	struct sparse_vector *y, int compute, int alg, void *buffer)
{
	(void)alg;
	(void)buffer;
	return spmv_check(h, op, alpha, a, x, beta, y, compute);
}

/* ---- sparse matrix times dense matrix ---- */

struct spmm {
	struct sparse_matrix a;
	struct sparse_dense b, c;
	struct sparse_scalar alpha, beta;
	int op_a, op_b, batches;
};

static void spmm_batch(struct sparse_task *task, const struct spmm *s, int batch,
	sparse_number alpha, sparse_number beta)
{
	struct sparse_entries entries;
	void *b = sparse_dense_values(task, &s->b, s->b.batches > 1 ? batch : 0);
	void *c = sparse_dense_values(task, &s->c, batch);
	int64_t cells;
	sparse_number *sum;

	if (!b || !c || __builtin_mul_overflow(s->c.rows, s->c.cols, &cells) ||
		!sparse_entries(task, &s->a, s->a.batches > 1 ? batch : 0,
			s->op_a != SPARSE_OP_N, &entries))
		return;
	sum = sparse_scratch(task, cells, sizeof(*sum));
	for (int64_t i = 0; sum && i < entries.count; i++) {
		const struct sparse_entry *e = &entries.list[i];
		sparse_number value = sparse_entry_value(&s->a, e, s->op_a);

		for (int64_t j = 0; j < s->c.cols; j++) {
			int64_t at = s->op_b == SPARSE_OP_N ? sparse_dense_at(&s->b, e->col, j)
							    : sparse_dense_at(&s->b, j, e->col);
			sparse_number other = sparse_load(s->b.type, b, at);

			sum[e->row * s->c.cols + j] +=
				value * (s->op_b == SPARSE_OP_C ? conj(other) : other);
		}
	}
	for (int64_t i = 0; sum && i < s->c.rows; i++)
		for (int64_t j = 0; j < s->c.cols; j++)
			sparse_blend(s->c.type, c, sparse_dense_at(&s->c, i, j), alpha,
				sum[i * s->c.cols + j], beta);
	free(sum);
	free(entries.list);
}

static void spmm_run(struct sparse_task *task, void *arguments)
{
	struct spmm *s = arguments;
	sparse_number alpha, beta;

	if (!sparse_scalar_value(task, &s->alpha, &alpha) ||
		!sparse_scalar_value(task, &s->beta, &beta))
		return;
	for (int batch = 0; batch < s->batches; batch++)
		spmm_batch(task, s, batch, alpha, beta);
}

int sparse_product_matrix(struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_dense *b, const void *beta,
	const struct sparse_dense *c, int compute)
{
	return sparse_submit(h, spmm_run,
		&(struct spmm){*a, *b, *c, sparse_scalar(h, alpha, compute),
			sparse_scalar(h, beta, compute), op_a, op_b, c->batches},
		sizeof(struct spmm), NULL);
}

static int spmm_check(struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_dense *b, const void *beta,
	const struct sparse_dense *c, int compute)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op_a) || !sparse_op(op_b) || !alpha || !beta || !a || !b || !c ||
		sparse_op_rows(op_a, a->rows, a->cols) != c->rows ||
		sparse_op_rows(op_a, a->cols, a->rows) !=
			sparse_op_rows(op_b, b->rows, b->cols) ||
		sparse_op_rows(op_b, b->cols, b->rows) != c->cols ||
		(a->batches > 1 && a->batches != c->batches) ||
		(b->batches > 1 && b->batches != c->batches))
		return SPARSE_INVALID_VALUE;
	if (a->format == SPARSE_SLICED_ELL ||
		(a->format == SPARSE_BLOCKED_ELL && op_a != SPARSE_OP_N) ||
		(!sparse_types(a->type, b->type, c->type, compute) &&
			/* Blocked ELL alone computes in half. */
			!(a->format == SPARSE_BLOCKED_ELL && a->type == SPARSE_R_16F &&
				b->type == a->type && c->type == a->type &&
				compute == a->type)))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMM, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_dense *b, const void *beta,
	struct sparse_dense *c, int compute, int alg, void *buffer)
{
	int status = spmm_check(h, op_a, op_b, alpha, a, b, beta, c, compute);

	(void)alg;
	(void)buffer;
	return status ? status
		      : sparse_product_matrix(h, op_a, op_b, alpha, a, b, beta, c, compute);
}

CALL(cusparseSpMM_bufferSize, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_dense *b, const void *beta,
	struct sparse_dense *c, int compute, int alg, size_t *size)
{
	int status = spmm_check(h, op_a, op_b, alpha, a, b, beta, c, compute);

	(void)alg;
	if (status || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpMM_preprocess, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_dense *b, const void *beta,
	struct sparse_dense *c, int compute, int alg, void *buffer)
{
	(void)alg;
	(void)buffer;
	return spmm_check(h, op_a, op_b, alpha, a, b, beta, c, compute);
}

/* ---- dense times dense, at the places of a sparse matrix ---- */

struct sddmm {
	struct sparse_dense a, b;
	struct sparse_matrix c;
	struct sparse_scalar alpha, beta;
	int op_a, op_b, batches;
};

static sparse_number sddmm_sum(
	const struct sddmm *s, const void *a, const void *b, const struct sparse_entry *e)
{
	int64_t inner = sparse_op_rows(s->op_a, s->a.cols, s->a.rows);
	sparse_number sum = 0;

	for (int64_t k = 0; k < inner; k++) {
		int64_t at_a = s->op_a == SPARSE_OP_N ? sparse_dense_at(&s->a, e->row, k)
						      : sparse_dense_at(&s->a, k, e->row);
		int64_t at_b = s->op_b == SPARSE_OP_N ? sparse_dense_at(&s->b, k, e->col)
						      : sparse_dense_at(&s->b, e->col, k);

		sum += sparse_load(s->a.type, a, at_a) * sparse_load(s->b.type, b, at_b);
	}
	return sum;
}

static void sddmm_run(struct sparse_task *task, void *arguments)
{
	struct sddmm *s = arguments;
	sparse_number alpha, beta;
	struct sparse_entries entries;

	if (!sparse_scalar_value(task, &s->alpha, &alpha) ||
		!sparse_scalar_value(task, &s->beta, &beta))
		return;
	for (int batch = 0; batch < s->batches; batch++) {
		void *a = sparse_dense_values(task, &s->a, s->a.batches > 1 ? batch : 0);
		void *b = sparse_dense_values(task, &s->b, s->b.batches > 1 ? batch : 0);

		if (!a || !b || !sparse_entries(task, &s->c, batch, false, &entries))
			return;
		for (int64_t i = 0; i < entries.count; i++)
			sparse_blend(s->c.type, s->c.values, entries.list[i].at, alpha,
				sddmm_sum(s, a, b, &entries.list[i]), beta);
		free(entries.list);
	}
}

static int sddmm_check(struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_dense *a, const struct sparse_dense *b, const void *beta,
	const struct sparse_matrix *c, int compute)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op_a) || !sparse_op(op_b) || !alpha || !beta || !a || !b || !c ||
		sparse_op_rows(op_a, a->rows, a->cols) != c->rows ||
		sparse_op_rows(op_a, a->cols, a->rows) !=
			sparse_op_rows(op_b, b->rows, b->cols) ||
		sparse_op_rows(op_b, b->cols, b->rows) != c->cols ||
		(a->batches > 1 && a->batches != c->batches) ||
		(b->batches > 1 && b->batches != c->batches))
		return SPARSE_INVALID_VALUE;
	if ((c->format != SPARSE_CSR && c->format != SPARSE_BSR) || op_a == SPARSE_OP_C ||
		op_b == SPARSE_OP_C || !sparse_types(a->type, b->type, c->type, compute))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

CALL(cusparseSDDMM, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_dense *a, struct sparse_dense *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, void *buffer)
{
	int status = sddmm_check(h, op_a, op_b, alpha, a, b, beta, c, compute);

	(void)alg;
	(void)buffer;
	if (status)
		return status;
	return sparse_submit(h, sddmm_run,
		&(struct sddmm){*a, *b, *c, sparse_scalar(h, alpha, compute),
			sparse_scalar(h, beta, compute), op_a, op_b, c->batches},
		sizeof(struct sddmm), NULL);
}

CALL(cusparseSDDMM_bufferSize, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_dense *a, struct sparse_dense *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, size_t *size)
{
	int status = sddmm_check(h, op_a, op_b, alpha, a, b, beta, c, compute);

	(void)alg;
	if (status || !size)
		return status ? status : SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSDDMM_preprocess, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_dense *a, struct sparse_dense *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, void *buffer)
{
	(void)alg;
	(void)buffer;
	return sddmm_check(h, op_a, op_b, alpha, a, b, beta, c, compute);
}
