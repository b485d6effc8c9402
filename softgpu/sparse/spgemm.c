/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of two sparse matrices. What one phase finds stays in the descriptor's state, so the
 * program's buffers are not used.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/sparse/sparse.h"

struct product {
	struct sparse_entries entries; /* `at` is a place in `values` */
	sparse_number *values;
};

struct spgemm_state {
	struct sparse_state base;
	struct product product;
};

struct spgemm {			    /* cusparseSpGEMMDescr_t */
	struct spgemm_state *state; /* first */
	int64_t products;
};

struct spgemm_call {
	struct sparse_matrix a, b, c;
	struct sparse_scalar alpha, beta;
	int64_t count; /* left: what the task counted */
};

static void product_free(struct product *p)
{
	free(p->entries.list);
	free(p->values);
	*p = (struct product){0};
}

static void state_fini(struct sparse_state *state)
{
	product_free(&((struct spgemm_state *)state)->product);
}

/* ---- the product ---- */

/* Where each row of sorted entries starts; rows + 1 numbers. */
static int64_t *row_starts(
	struct sparse_task *task, const struct sparse_entries *entries, int64_t rows)
{
	int64_t *starts = sparse_scratch(task, rows + 1, sizeof(*starts));

	for (int64_t i = 0; starts && i < entries->count; i++)
		starts[entries->list[i].row + 1]++;
	for (int64_t i = 0; starts && i < rows; i++)
		starts[i + 1] += starts[i];
	return starts;
}

struct factors {
	const struct sparse_matrix *a, *b;
	struct sparse_entries in_a, in_b;
	int64_t *starts_a, *starts_b;
};

static bool factors_read(struct sparse_task *task, struct factors *f)
{
	if (!sparse_entries(task, f->a, 0, false, &f->in_a) ||
		!sparse_entries(task, f->b, 0, false, &f->in_b))
		return false;
	sparse_sort(&f->in_a);
	sparse_sort(&f->in_b);
	f->starts_a = row_starts(task, &f->in_a, f->a->rows);
	f->starts_b = row_starts(task, &f->in_b, f->b->rows);
	return f->starts_a && f->starts_b;
}

static void factors_free(struct factors *f)
{
	free(f->in_a.list);
	free(f->in_b.list);
	free(f->starts_a);
	free(f->starts_b);
}

static int64_t count_products(const struct factors *f)
{
	int64_t count = 0;

	for (int64_t i = 0; i < f->in_a.count; i++) {
		int64_t k = f->in_a.list[i].col;

		count += f->starts_b[k + 1] - f->starts_b[k];
	}
	return count;
}

/* Row ROW of the product: `sum` has a number for each column, `last` the row that used it. */
static void multiply_row(const struct factors *f, int64_t row, sparse_number alpha,
	sparse_number *sum, int64_t *last, struct product *p)
{
	int64_t from = p->entries.count;

	for (int64_t i = f->starts_a[row]; i < f->starts_a[row + 1]; i++) {
		int64_t k = f->in_a.list[i].col;
		sparse_number a = sparse_entry_value(f->a, &f->in_a.list[i], SPARSE_OP_N);

		for (int64_t j = f->starts_b[k]; j < f->starts_b[k + 1]; j++) {
			int64_t col = f->in_b.list[j].col;

			if (last[col] != row + 1) {
				last[col] = row + 1;
				sum[col] = 0;
				p->entries.list[p->entries.count++] =
					(struct sparse_entry){row, col, 0};
			}
			sum[col] += a * sparse_entry_value(f->b, &f->in_b.list[j], SPARSE_OP_N);
		}
	}
	for (int64_t i = from; i < p->entries.count; i++) {
		p->entries.list[i].at = i;
		p->values[i] = alpha * sum[p->entries.list[i].col];
	}
}

/* alpha A B; *p is empty where the handle fails. */
static bool multiply(struct sparse_task *task, const struct sparse_matrix *a,
	const struct sparse_matrix *b, sparse_number alpha, struct product *p)
{
	struct factors f = {.a = a, .b = b};
	sparse_number *sum = NULL;
	int64_t *last = NULL, most;
	bool ok = factors_read(task, &f);

	*p = (struct product){0};
	if (ok) {
		most = count_products(&f);
		p->entries.list = sparse_scratch(task, most, sizeof(*p->entries.list));
		p->values = sparse_scratch(task, most, sizeof(*p->values));
		sum = sparse_scratch(task, b->cols, sizeof(*sum));
		last = sparse_scratch(task, b->cols, sizeof(*last));
		ok = p->entries.list && p->values && sum && last;
	}
	for (int64_t row = 0; ok && row < a->rows; row++)
		multiply_row(&f, row, alpha, sum, last, p);
	if (!ok)
		product_free(p);
	factors_free(&f);
	free(sum);
	free(last);
	return ok;
}

/* ---- tasks ---- */

static void count_run(struct sparse_task *task, void *arguments)
{
	struct spgemm_call *call = arguments;
	struct factors f = {.a = &call->a, .b = &call->b};

	if (factors_read(task, &f))
		call->count = count_products(&f);
	factors_free(&f);
}

static void compute_run(struct sparse_task *task, void *arguments)
{
	struct spgemm_call *call = arguments;
	struct spgemm_state *state = (struct spgemm_state *)sparse_task_state(task);
	sparse_number alpha;

	product_free(&state->product);
	if (sparse_scalar_value(task, &call->alpha, &alpha) &&
		multiply(task, &call->a, &call->b, alpha, &state->product))
		call->count = state->product.entries.count;
}

static void copy_run(struct sparse_task *task, void *arguments)
{
	struct spgemm_call *call = arguments;
	struct product *p = &((struct spgemm_state *)sparse_task_state(task))->product;
	sparse_number beta;

	if (sparse_scalar_value(task, &call->beta, &beta))
		sparse_put(task, &call->c, &p->entries, p->values, beta);
}

static void copy_places_run(struct sparse_task *task, void *arguments)
{
	struct spgemm_call *call = arguments;
	struct product *p = &((struct spgemm_state *)sparse_task_state(task))->product;

	sparse_put(task, &call->c, &p->entries, NULL, 0);
}

static void values_run(struct sparse_task *task, void *arguments)
{
	struct spgemm_call *call = arguments;
	struct product p;
	sparse_number alpha, beta;

	if (!sparse_scalar_value(task, &call->alpha, &alpha) ||
		!sparse_scalar_value(task, &call->beta, &beta) ||
		!multiply(task, &call->a, &call->b, alpha, &p))
		return;
	sparse_put(task, &call->c, &p.entries, p.values, beta);
	product_free(&p);
}

/* ---- calls ---- */

CALL(cusparseSpGEMM_createDescr, struct spgemm **descr)
{
	return sparse_descr_new(
		descr, sizeof(**descr), sizeof(struct spgemm_state), state_fini);
}

CALL(cusparseSpGEMM_destroyDescr, struct spgemm *descr)
{
	return sparse_descr_drop(descr);
}

static int check(struct sparse_handle *h, int op_a, int op_b, const struct sparse_matrix *a,
	const struct sparse_matrix *b, const struct sparse_matrix *c,
	const struct spgemm *descr)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op_a) || !sparse_op(op_b) || !a || !b || !c || !descr ||
		a->cols != b->rows || a->rows != c->rows || b->cols != c->cols)
		return SPARSE_INVALID_VALUE;
	if (op_a != SPARSE_OP_N || op_b != SPARSE_OP_N || a->format != SPARSE_CSR ||
		b->format != SPARSE_CSR || c->format != SPARSE_CSR || a->type != b->type ||
		a->type != c->type)
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

/* `alpha` and `beta` are NULL where a phase has none. */
static struct spgemm_call call_of(const struct sparse_handle *h, const void *alpha,
	const struct sparse_matrix *a, const struct sparse_matrix *b, const void *beta,
	const struct sparse_matrix *c, int compute)
{
	struct spgemm_call call = {.a = *a, .b = *b, .c = *c};

	if (alpha)
		call.alpha = sparse_scalar(h, alpha, compute);
	if (beta)
		call.beta = sparse_scalar(h, beta, compute);
	return call;
}

/* The sizes of buffers that a call with NULL asks for. */
static int tell(size_t *size)
{
	if (!size)
		return SPARSE_INVALID_VALUE;
	*size = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpGEMM_workEstimation, struct sparse_handle *h, int op_a, int op_b,
	const void *alpha, struct sparse_matrix *a, struct sparse_matrix *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, struct spgemm *descr, size_t *size,
	void *buffer)
{
	int status = check(h, op_a, op_b, a, b, c, descr);
	struct spgemm_call call;

	(void)alg;
	if (status || !alpha || !beta)
		return status ? status : SPARSE_INVALID_VALUE;
	if (!buffer)
		return tell(size);
	call = call_of(h, alpha, a, b, beta, c, compute);
	status = sparse_finish(h, count_run, &call, sizeof(call), NULL);
	if (!status)
		descr->products = call.count;
	return status;
}

CALL(cusparseSpGEMM_getNumProducts, const struct spgemm *descr, int64_t *products)
{
	if (!descr || !products)
		return SPARSE_INVALID_VALUE;
	*products = descr->products;
	return SPARSE_SUCCESS;
}

CALL(cusparseSpGEMM_estimateMemory, struct sparse_handle *h, int op_a, int op_b,
	const void *alpha, struct sparse_matrix *a, struct sparse_matrix *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, struct spgemm *descr, float fraction,
	size_t *size3, void *buffer3, size_t *size2)
{
	enum { ALG1 = 3, ALG3 = 5 };
	int status = check(h, op_a, op_b, a, b, c, descr);

	(void)compute;
	if (status || !alpha || !beta)
		return status ? status : SPARSE_INVALID_VALUE;
	if (alg <= ALG1 || alg > ALG3)
		return SPARSE_NOT_SUPPORTED;
	if (alg == ALG3 && !(fraction > 0 && fraction <= 1))
		return SPARSE_INVALID_VALUE;
	return buffer3 ? tell(size2) : tell(size3);
}

CALL(cusparseSpGEMM_compute, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_matrix *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, struct spgemm *descr, size_t *size,
	void *buffer)
{
	int status = check(h, op_a, op_b, a, b, c, descr);
	struct spgemm_call call;

	(void)alg;
	if (status || !alpha || !beta)
		return status ? status : SPARSE_INVALID_VALUE;
	if (!buffer)
		return tell(size);
	call = call_of(h, alpha, a, b, beta, c, compute);
	status = sparse_finish(h, compute_run, &call, sizeof(call), &descr->state->base);
	if (!status)
		c->nnz = call.count;
	return status;
}

CALL(cusparseSpGEMM_copy, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, struct sparse_matrix *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, struct spgemm *descr)
{
	int status = check(h, op_a, op_b, a, b, c, descr);
	struct spgemm_call call;

	(void)alg;
	if (status || !alpha || !beta)
		return status ? status : SPARSE_INVALID_VALUE;
	call = call_of(h, alpha, a, b, beta, c, compute);
	return sparse_submit(h, copy_run, &call, sizeof(call), &descr->state->base);
}

/* ---- the same places again and again ---- */

CALL(cusparseSpGEMMreuse_workEstimation, struct sparse_handle *h, int op_a, int op_b,
	struct sparse_matrix *a, struct sparse_matrix *b, struct sparse_matrix *c, int alg,
	struct spgemm *descr, size_t *size, void *buffer)
{
	int status = check(h, op_a, op_b, a, b, c, descr);

	(void)alg;
	return status || buffer ? status : tell(size);
}

CALL(cusparseSpGEMMreuse_nnz, struct sparse_handle *h, int op_a, int op_b,
	struct sparse_matrix *a, struct sparse_matrix *b, struct sparse_matrix *c, int alg,
	struct spgemm *descr, size_t *size2, void *buffer2, size_t *size3, void *buffer3,
	size_t *size4, void *buffer4)
{
	int status = check(h, op_a, op_b, a, b, c, descr);
	struct spgemm_call call;

	(void)alg;
	if (status)
		return status;
	if (!buffer2 || !buffer3 || !buffer4)
		return tell(size2) || tell(size3) ? SPARSE_INVALID_VALUE : tell(size4);
	call = call_of(h, NULL, a, b, NULL, c, 0);
	status = sparse_finish(h, compute_run, &call, sizeof(call), &descr->state->base);
	if (!status)
		c->nnz = call.count;
	return status;
}

CALL(cusparseSpGEMMreuse_copy, struct sparse_handle *h, int op_a, int op_b,
	struct sparse_matrix *a, struct sparse_matrix *b, struct sparse_matrix *c, int alg,
	struct spgemm *descr, size_t *size, void *buffer)
{
	int status = check(h, op_a, op_b, a, b, c, descr);
	struct spgemm_call call;

	(void)alg;
	if (status)
		return status;
	if (!buffer)
		return tell(size);
	call = call_of(h, NULL, a, b, NULL, c, 0);
	return sparse_submit(h, copy_places_run, &call, sizeof(call), &descr->state->base);
}

CALL(cusparseSpGEMMreuse_compute, struct sparse_handle *h, int op_a, int op_b,
	const void *alpha, struct sparse_matrix *a, struct sparse_matrix *b, const void *beta,
	struct sparse_matrix *c, int compute, int alg, struct spgemm *descr)
{
	int status = check(h, op_a, op_b, a, b, c, descr);
	struct spgemm_call call;

	(void)alg;
	if (status || !alpha || !beta)
		return status ? status : SPARSE_INVALID_VALUE;
	call = call_of(h, alpha, a, b, beta, c, compute);
	return sparse_submit(h, values_run, &call, sizeof(call), NULL);
}
