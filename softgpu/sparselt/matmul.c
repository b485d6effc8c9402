/* SPDX-License-Identifier: Apache-2.0
 *
 * D = activation(alpha op(A) op(B) + beta C + bias), one of A and B compressed.
 */
#include <math.h>
#include <stdlib.h>

#include "softgpu/sparselt/sparselt.h"

struct product {
	struct lt_matmul plan;
	const void *a, *b, *c;
	void *d;
	double alpha, beta;
	const void *alphas, *betas; /* vectors of the device, one number for each row of D */
};

/* A compressed matrix's numbers at their places, lines one after another. */
static double *expand(
	struct sparse_task *task, const struct lt_lines *l, const void *at, int batch)
{
	int64_t bytes = lt_compressed_bytes(l), numbers = l->lines * l->groups * LT_GROUP;
	const char *from =
		sparse_area(task, at, l->matrix.batches > 1 ? bytes * batch : 0, bytes, 1);
	double *to = from ? sparse_scratch(task, numbers, sizeof(*to)) : NULL;
	const unsigned char *places;

	if (!to)
		return NULL;
	places = (const unsigned char *)from +
		 l->lines * l->groups * LT_KEPT * sparse_size(l->matrix.type);
	for (int64_t g = 0; g < l->lines * l->groups; g++) {
		unsigned bits = (unsigned)places[g / 2] >> (g % 2 ? 4 : 0);

		for (unsigned i = 0; i < LT_KEPT; i++)
			to[g * LT_GROUP + (bits >> 2 * i & 3)] = creal(
				sparse_load(l->matrix.type, from, g * LT_KEPT + (int64_t)i));
	}
	return to;
}

/* A dense one in the same order: lines are rows of op(A) or columns of op(B). */
static double *gather(
	struct sparse_task *task, const struct lt_lines *l, const void *at, int batch)
{
	const void *from = lt_values(task, &l->matrix, at, batch);
	int64_t length = l->by_row ? l->matrix.cols : l->matrix.rows;
	double *to = from ? sparse_scratch(task, l->lines * length, sizeof(*to)) : NULL;

	for (int64_t line = 0; to && line < l->lines; line++)
		for (int64_t i = 0; i < length; i++)
			to[line * length + i] = creal(
				sparse_load(l->matrix.type, from, lt_line_at(l, line, i)));
	return to;
}

static double activated(const struct lt_matmul *m, double v)
{
	if (m->relu) {
		v = v > (double)m->threshold ? v : 0;
		v = v < (double)m->upper_bound ? v : (double)m->upper_bound;
	}
	if (m->gelu)
		v = (double)m->gelu_scaling * v * 0.5 *
		    (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
	return v;
}

static int bias_type(const struct lt_matmul *m)
{
	return m->d.type == SPARSE_R_16F || m->d.type == SPARSE_R_16BF ? m->d.type
								       : SPARSE_R_32F;
}

/* The vectors that have a number for each row of D. */
struct rows {
	const void *bias, *alphas, *betas;
};

static bool rows_reach(
	struct sparse_task *task, const struct product *p, int batch, struct rows *rows)
{
	const struct lt_matmul *m = &p->plan;
	int64_t n = m->d.rows, first = 0;

	if (m->bias && __builtin_mul_overflow(m->bias_stride, (int64_t)batch, &first)) {
		sparse_fail(task);
		return false;
	}
	rows->bias =
		sparse_area(task, m->bias, first, m->bias ? n : 0, sparse_size(bias_type(m)));
	rows->alphas = sparse_area(task, p->alphas, 0, p->alphas ? n : 0, sizeof(float));
	rows->betas = sparse_area(task, p->betas, 0, p->betas ? n : 0, sizeof(float));
	return rows->bias && rows->alphas && rows->betas;
}

static void finish_element(const struct product *p, const struct rows *rows, const void *c,
	void *d, int64_t i, int64_t j, double sum)
{
	const struct lt_matmul *m = &p->plan;
	double alpha = p->alphas ? (double)((const float *)rows->alphas)[i] : p->alpha;
	double beta = p->betas ? (double)((const float *)rows->betas)[i] : p->beta;
	double v = alpha * sum;

	if (beta != 0)
		v += beta * creal(sparse_load(m->c.type, c, lt_at(&m->c, i, j)));
	if (m->bias)
		v += creal(sparse_load(bias_type(m), rows->bias, i));
	sparse_store(m->d.type, d, lt_at(&m->d, i, j), activated(m, v));
}

static void batch_run(struct sparse_task *task, const struct product *p, int batch)
{
	const struct lt_matmul *m = &p->plan;
	struct lt_lines in_a = lt_lines(&m->a, true, m->op_a);
	struct lt_lines in_b = lt_lines(&m->b, false, m->op_b);
	int64_t inner = m->op_a == SPARSE_OP_N ? m->a.cols : m->a.rows;
	double *a = m->a.structured ? expand(task, &in_a, p->a, batch)
				    : gather(task, &in_a, p->a, batch);
	double *b = m->b.structured ? expand(task, &in_b, p->b, batch)
				    : gather(task, &in_b, p->b, batch);
	const void *c = p->beta != 0 || p->betas ? lt_values(task, &m->c, p->c, batch) : p->d;
	void *d = lt_values(task, &m->d, p->d, batch);
	struct rows rows;

	if (a && b && c && d && rows_reach(task, p, batch, &rows))
		for (int64_t i = 0; i < m->d.rows; i++)
			for (int64_t j = 0; j < m->d.cols; j++) {
				double sum = 0;

				for (int64_t k = 0; k < inner; k++)
					sum += a[i * inner + k] * b[j * inner + k];
				finish_element(p, &rows, c, d, i, j, sum);
			}
	free(a);
	free(b);
}

static void product_run(struct sparse_task *task, void *arguments)
{
	struct product *p = arguments;

	for (int batch = 0; batch < p->plan.d.batches; batch++)
		batch_run(task, p, batch);
}

static int matmul(const struct lt_handle *h, const struct lt_matmul *plan, const void *alpha,
	const void *a, const void *b, const void *beta, const void *c, void *d,
	const CUstream *streams, int32_t count)
{
	struct product p = {.a = a, .b = b, .c = c, .d = d};

	if (!lt_is_handle(h) || !lt_is_plan(plan) || !alpha || !a || !b || !beta || !d ||
		count < 0 || (count && !streams))
		return SPARSE_INVALID_VALUE;
	p.plan = *plan;
	if (plan->alpha_vector)
		p.alphas = alpha;
	else
		p.alpha = (double)*(const float *)alpha;
	if (plan->beta_vector)
		p.betas = beta;
	else
		p.beta = (double)*(const float *)beta;
	if (!c && (p.betas || p.beta != 0))
		return SPARSE_INVALID_VALUE;
	return lt_submit(count ? streams[0] : NULL, product_run, &p, sizeof(p));
}

CALL(cusparseLtMatmul, const struct lt_handle *h, const struct lt_matmul *plan,
	const void *alpha, const void *a, const void *b, const void *beta, const void *c,
	void *d, void *work, CUstream *streams, int32_t count)
{
	(void)work;
	return matmul(h, plan, alpha, a, b, beta, c, d, streams, count);
}

/* One algorithm is the best. */
CALL(cusparseLtMatmulSearch, const struct lt_handle *h, struct lt_matmul *plan,
	const void *alpha, const void *a, const void *b, const void *beta, const void *c,
	void *d, void *work, CUstream *streams, int32_t count)
{
	(void)work;
	return matmul(h, plan, alpha, a, b, beta, c, d, streams, count);
}
