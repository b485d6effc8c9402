/* SPDX-License-Identifier: Apache-2.0
 *
 * D = epilogue(alpha op(A) op(B) + beta C): the operands are laid out without gaps in the type
 * of the computation, multiplied by OpenBLAS, and each element goes through what comes behind.
 */
#include <cblas.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/lt.h"

/* The types of a product of real numbers, by its compute type. */
static bool types_match(
	const struct lt_matmul *d, uint32_t a, uint32_t b, uint32_t c, uint32_t out)
{
	bool half = a == BLAS_F16 || a == BLAS_BF16;
	bool small =
		(a == LT_F8_E4M3 || a == LT_F8_E5M2) && (b == LT_F8_E4M3 || b == LT_F8_E5M2);
	bool float_out = out == BLAS_F32 || out == BLAS_F16 || out == BLAS_BF16;

	switch (d->compute) {
	case 64: /* 16F, and pedantic */
	case 65: return d->scale == BLAS_F16 && a == BLAS_F16 && b == a && c == a && out == a;
	case 68: /* 32F: default, pedantic, fast in 16F, 16BF, TF32, emulated */
	case 69:
	case 74:
	case 75:
	case 77:
	case 78:
		if (d->scale != BLAS_F32)
			return false;
		if (small)
			return float_out ? c == out
					 : (out == LT_F8_E4M3 || out == LT_F8_E5M2) &&
						   (c == BLAS_F16 || c == BLAS_BF16);
		return a == b && c == out &&
		       ((half && (out == a || out == BLAS_F32)) ||
			       ((a == BLAS_F32 || a == BLAS_I8) && out == BLAS_F32));
	case 70: /* 64F: default, pedantic, emulated */
	case 71:
	case 79: return d->scale == BLAS_F64 && a == BLAS_F64 && b == a && c == a && out == a;
	case 72: /* 32I, and pedantic */
	case 73:
		return a == BLAS_I8 && b == a && c == out &&
		       ((d->scale == BLAS_I32 && out == BLAS_I32) ||
			       (d->scale == BLAS_F32 && out == BLAS_I8));
	default: return false;
	}
}

static bool layout_served(const struct lt_layout *l, const struct lt_layout *out)
{
	return l->order >= LT_COL && l->order <= LT_COL32_2R_4R4 &&
	       l->batch_mode <= LT_GROUPED && l->batch_mode == out->batch_mode &&
	       (l->batch_mode != LT_GROUPED ||
		       (l->batch == out->batch && l->order <= LT_ROW)) &&
	       (l->batch == out->batch || (l->batch == 1 && out->batch >= 1)) &&
	       l->batch_stride >= 0 && l->rows <= INT_MAX && l->cols <= INT_MAX;
}

/* Tiles are for 8-bit integers, A and the transposed B each in its own. */
static bool orders_match(const struct lt_matmul *d, const struct lt_layout *a,
	const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *out)
{
	if (a->order <= LT_ROW && b->order <= LT_ROW && c->order <= LT_ROW &&
		out->order <= LT_ROW)
		return true;
	return a->type == BLAS_I8 && a->order == LT_COL32 && b->order >= LT_COL4_4R2_8C &&
	       c->order == LT_COL32 && out->order == LT_COL32 && !d->transa &&
	       d->transb == BLAS_OP_T;
}

static bool numbers_match(const struct lt_matmul *d, const struct lt_layout *a,
	const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *out)
{
	if (lt_half(out->type) != UINT32_MAX)
		return lt_complex_match(d, a, b, c, out);
	return !a->plane && !b->plane && !c->plane && !out->plane &&
	       types_match(d, a->type, b->type, c->type, out->type);
}

static bool epilogue_served(const struct lt_matmul *d)
{
	switch (d->epilogue) {
	case LT_DEFAULT:
	case LT_BIAS:
	case LT_RELU:
	case LT_RELU | LT_BIAS:
	case LT_RELU | LT_AUX:
	case LT_RELU | LT_AUX | LT_BIAS:
	case LT_GELU:
	case LT_GELU | LT_BIAS:
	case LT_GELU | LT_AUX:
	case LT_GELU | LT_AUX | LT_BIAS:
	case LT_DRELU | LT_AUX:
	case LT_DRELU | LT_AUX | LT_BGRAD:
	case LT_DGELU | LT_AUX:
	case LT_DGELU | LT_AUX | LT_BGRAD:
	case LT_BGRADA:
	case LT_BGRADB: return true;
	default: return false;
	}
}

/* The shapes of one product. */
static bool shapes_match(const struct lt_matmul *d, const struct lt_layout *a,
	const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *out)
{
	uint64_t m = out->rows, n = out->cols, k = d->transa ? a->rows : a->cols;

	return (d->transa ? a->cols : a->rows) == m && (d->transb ? b->cols : b->rows) == k &&
	       (d->transb ? b->rows : b->cols) == n && (!c || (c->rows == m && c->cols == n)) &&
	       lt_extent(a) != UINT64_MAX && lt_extent(b) != UINT64_MAX &&
	       lt_extent(out) != UINT64_MAX && (!c || lt_extent(c) != UINT64_MAX);
}

int lt_check(const struct lt_matmul *d, const struct lt_layout *a, const struct lt_layout *b,
	const struct lt_layout *c, const struct lt_layout *out)
{
	uint64_t aux = d->epilogue & (LT_RELU | LT_DRELU) ? 128 : 8;
	bool grouped = out->batch_mode == LT_GROUPED;

	if (d->transa < 0 || d->transa > BLAS_OP_C || d->transb < 0 || d->transb > BLAS_OP_C)
		return BLAS_INVALID_VALUE;
	if (!numbers_match(d, a, b, c ? c : out, out) || !layout_served(a, out) ||
		!layout_served(b, out) || !layout_served(c ? c : out, out) ||
		!layout_served(out, out) || !orders_match(d, a, b, c ? c : out, out) ||
		!epilogue_served(d) || d->transc || d->fill != 2 || d->pointer_mode < 0 ||
		d->pointer_mode > LT_VECTOR_HOST || !lt_scales_served(d, a->type, out->type) ||
		(grouped && (d->epilogue != LT_DEFAULT || lt_half(out->type) != UINT32_MAX)) ||
		((d->alpha_batch || d->beta_batch) &&
			(d->pointer_mode != LT_DEVICE || lt_half(out->type) != UINT32_MAX)))
		return BLAS_NOT_SUPPORTED;
	if (!grouped && !shapes_match(d, a, b, c, out))
		return BLAS_INVALID_VALUE;
	if (d->epilogue & LT_AUX &&
		(d->aux_ld < 0 || (uint64_t)d->aux_ld < out->rows || (uint64_t)d->aux_ld % aux))
		return BLAS_INVALID_VALUE;
	return BLAS_SUCCESS;
}

/* op of a matrix, rows by cols, column after column, as doubles or floats. `of_b`: its rows are
 * what is summed over. */
static void *packed(const void *at, const struct lt_layout *l, int op, bool wide,
	const struct lt_scales *scales, bool of_b)
{
	uint64_t rows = op ? l->cols : l->rows, cols = op ? l->rows : l->cols;
	void *to = calloc(rows * cols + 1, wide ? sizeof(double) : sizeof(float));

	for (uint64_t j = 0; to && j < cols; j++)
		for (uint64_t i = 0; i < rows; i++) {
			double v = lt_get(at, l->type, op ? lt_at(l, j, i) : lt_at(l, i, j));

			if (scales->mode)
				v *= of_b ? lt_scale(scales, i, j) : lt_scale(scales, j, i);
			if (wide)
				((double *)to)[j * rows + i] = v;
			else
				((float *)to)[j * rows + i] = (float)v;
		}
	return to;
}

static double gelu(double x)
{
	return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
	double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));

	return 0.5 * (1 + t) +
	       0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

static bool aux_bit(uint8_t *aux, uint64_t at, bool write, bool value)
{
	uint8_t bit = (uint8_t)(1u << at % 8);

	if (write && value)
		aux[at / 8] |= bit;
	else if (write)
		aux[at / 8] &= (uint8_t)~bit;
	return aux[at / 8] & bit;
}

/* What one member of the batch has beside its matrices. */
struct behind {
	void *bias, *aux;
	uint32_t bias_type, aux_type;
};

/* One element through the epilogue; *sum gets what a bias gradient adds up. */
static double finish(const struct lt_task *t, const struct behind *e, uint64_t row,
	uint64_t col, double v, double *sum)
{
	uint32_t how = t->desc.epilogue;
	uint64_t aux = col * (uint64_t)t->desc.aux_ld + row;

	if (how & LT_BIAS)
		v += lt_get(e->bias, e->bias_type, row);
	if (how & LT_RELU) {
		if (how & LT_AUX)
			aux_bit(e->aux, aux, true, v > 0);
		v = v > 0 ? v : 0;
	}
	if (how & LT_GELU) {
		if (how & LT_AUX)
			lt_put(e->aux, e->aux_type, aux, v);
		v = gelu(v);
	}
	if (how & LT_DRELU)
		v = aux_bit(e->aux, aux, false, false) ? v : 0;
	if (how & LT_DGELU)
		v *= gelu_slope(lt_get(e->aux, e->aux_type, aux));
	*sum += v;
	return v;
}

/* Where member I of something lies whose members are so many bytes apart. Numbers come from the
 * program: they may be anything, and what they lead to is checked. */
static void *step(const void *base, int64_t stride, int i, uint64_t bytes)
{
	return (void *)((uintptr_t)base + (uint64_t)stride * (uint64_t)i * bytes);
}

/* Bias, auxiliary matrix and their like of member I; false, and the handle failed, where the
 * device has not all of it. */
static bool behind_of(struct lt_task *t, struct behind *e, int i)
{
	const struct lt_matmul *d = &t->desc;
	uint64_t m = t->d.rows, n = t->d.cols, bytes;
	uint64_t count = d->epilogue & LT_BGRADB ? n : m;

	e->bias_type = d->bias_type >= 0	 ? (uint32_t)d->bias_type
		       : lt_size(t->d.type) == 1 ? (uint32_t)BLAS_BF16
						 : t->d.type;
	e->aux_type = d->aux_type >= 0 ? (uint32_t)d->aux_type : t->d.type;
	e->bias = step(d->bias, d->bias_stride, i, lt_size(e->bias_type));
	e->aux = d->aux;
	if (d->epilogue & (LT_BIAS | LT_BGRAD | LT_BGRADA | LT_BGRADB) &&
		(!lt_size(e->bias_type) || !blas_reaches(e->bias, count * lt_size(e->bias_type),
						   lt_size(e->bias_type))))
		return false;
	if (!(d->epilogue & LT_AUX))
		return true;
	if (__builtin_mul_overflow((uint64_t)d->aux_ld, n, &bytes))
		return false;
	if (d->epilogue & (LT_RELU | LT_DRELU)) {
		e->aux = step(d->aux, d->aux_stride / 8, i, 1);
		return blas_reaches(e->aux, bytes / 8, 1);
	}
	e->aux = step(d->aux, d->aux_stride, i, lt_size(e->aux_type));
	return lt_size(e->aux_type) &&
	       !__builtin_mul_overflow(bytes, lt_size(e->aux_type), &bytes) &&
	       blas_reaches(e->aux, bytes, lt_size(e->aux_type));
}

/* Gradients of a bias that are sums over k of an operand. */
static void operand_sums(const struct lt_task *t, const struct behind *e, const void *packed_at,
	uint64_t k, bool wide)
{
	bool of_a = t->desc.epilogue & LT_BGRADA;
	uint64_t count = of_a ? t->d.rows : t->d.cols;

	for (uint64_t i = 0; i < count; i++) {
		double sum = 0;

		for (uint64_t l = 0; l < k; l++) {
			uint64_t at = of_a ? l * count + i : i * k + l;

			sum += wide ? ((const double *)packed_at)[at]
				    : ((const float *)packed_at)[at];
		}
		lt_put(e->bias, e->bias_type, i, sum);
	}
}

static double factor(struct lt_task *t, const void *at)
{
	if (!at)
		return 1;
	if (blas_reaches(at, sizeof(float), sizeof(float)))
		return *(const float *)at;
	t->base.handle->failed = true;
	return 0;
}

static void matmul_member(struct lt_task *t, int member)
{
	const struct lt_matmul *d = &t->desc;
	uint64_t m = t->d.rows, n = t->d.cols, k = d->transa ? t->a.rows : t->a.cols;
	struct lt_scales scale_a = {d->scale_a, d->modes[0], k, m};
	struct lt_scales scale_b = {d->scale_b, d->modes[1], k, n};
	bool parts = scale_a.mode || scale_b.mode;
	bool wide = t->a.type == BLAS_F64 || t->a.type == BLAS_I8 || parts; /* exact */
	const void *a = lt_member(&t->base, t->at_a, &t->a, member);
	const void *b = lt_member(&t->base, t->at_b, &t->b, member);
	bool reads_c = t->at_c && (t->beta != 0 || t->beta_at);
	const void *c = reads_c ? lt_member(&t->base, t->at_c, &t->c, member) : NULL;
	void *out = lt_member(&t->base, t->at_d, &t->d, member);
	double ab = parts ? 1 : factor(t, d->scale_a) * factor(t, d->scale_b);
	double sc = factor(t, d->scale_c), sd = factor(t, d->scale_d), largest = 0;
	uint32_t each = lt_size((uint32_t)d->scale);
	bool vector = d->pointer_mode >= LT_DEVICE_VECTOR;
	const void *alphas =
		t->alpha_at ? step(t->alpha_at, d->alpha_stride + d->alpha_batch, member, each)
			    : NULL;
	const void *betas = t->beta_at ? step(t->beta_at, d->beta_batch, member, each) : NULL;
	struct behind e;
	void *pa, *pb, *product;

	if (t->base.handle->failed || !behind_of(t, &e, member) ||
		!lt_scales_reached(t, &scale_a) || !lt_scales_reached(t, &scale_b) ||
		(alphas && !blas_reaches(alphas, (vector ? m : 1) * each, each)) ||
		(betas && !blas_reaches(betas, (vector ? m : 1) * each, each))) {
		t->base.handle->failed = true;
		return;
	}
	pa = packed(a, &t->a, d->transa, wide, &scale_a, false);
	pb = packed(b, &t->b, d->transb, wide, &scale_b, true);
	product = calloc(m * n + 1, wide ? sizeof(double) : sizeof(float));
	if (!pa || !pb || !product) {
		t->base.handle->failed = true;
		goto out;
	}
	if (wide && m && n && k)
		cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k,
			1, pa, (int)m, pb, (int)k, 0, product, (int)m);
	else if (m && n && k)
		cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k,
			1, pa, (int)m, pb, (int)k, 0, product, (int)m);
	for (uint64_t i = 0; i < m; i++) {
		double alpha = creal(t->alpha), beta = creal(t->beta), sum = 0;
		uint64_t at = vector ? i : 0;

		if (t->alpha_at)
			alpha = lt_get(alphas, (uint32_t)d->scale, at);
		if (t->beta_at)
			beta = lt_get(betas, (uint32_t)d->scale, at);
		for (uint64_t j = 0; j < n; j++) {
			double v = wide ? ((double *)product)[j * m + i]
					: ((float *)product)[j * m + i];

			v *= alpha * ab;
			if (c && beta != 0)
				v += beta * sc * lt_get(c, t->c.type, lt_at(&t->c, i, j));
			v = finish(t, &e, i, j, v, &sum);
			if (fabs(v) > largest)
				largest = fabs(v);
			lt_put(out, t->d.type, lt_at(&t->d, i, j), v * sd);
		}
		if (d->epilogue & LT_BGRAD)
			lt_put(e.bias, e.bias_type, i, sum);
	}
	if (d->epilogue & (LT_BGRADA | LT_BGRADB))
		operand_sums(t, &e, d->epilogue & LT_BGRADA ? pa : pb, k, wide);
	if (d->amax && blas_reaches(d->amax, sizeof(float), sizeof(float)))
		*(float *)d->amax = (float)largest;
out:
	free(pa);
	free(pb);
	free(product);
}

/* Number I of an array of the device's; false, and the handle failed, where it has not that. */
static bool shape_of(struct lt_task *t, const void *array, bool wide, int i, uint64_t *to)
{
	uint32_t size = wide ? sizeof(int64_t) : sizeof(int32_t);
	const void *at = step(array, 1, i, size);

	if (!blas_reaches(at, size, size)) {
		t->base.handle->failed = true;
		return false;
	}
	*to = wide ? *(const uint64_t *)at : (uint64_t)*(const int32_t *)at;
	return true;
}

static bool group_of(struct lt_task *t, struct lt_layout *l, int i)
{
	uint64_t ld;

	if (!shape_of(t, l->array[0], l->shape_width, i, &l->rows) ||
		!shape_of(t, l->array[1], l->shape_width, i, &l->cols) ||
		!shape_of(t, l->array[2], l->ld_width, i, &ld))
		return false;
	l->ld = (int64_t)ld;
	return l->rows <= INT_MAX && l->cols <= INT_MAX;
}

/* Product I of those with shapes of their own; what is none fails when it runs. */
static void matmul_group(struct lt_task *t, int i)
{
	const struct lt_layout *c = t->at_c ? &t->c : NULL;

	if (group_of(t, &t->a, i) && group_of(t, &t->b, i) && group_of(t, &t->c, i) &&
		group_of(t, &t->d, i) && shapes_match(&t->desc, &t->a, &t->b, c, &t->d))
		matmul_member(t, i);
	else
		t->base.handle->failed = true;
}

static void matmul_run(struct blas_task *base)
{
	struct lt_task *t = (struct lt_task *)base;
	bool vector = t->desc.pointer_mode >= LT_DEVICE_VECTOR;
	uint32_t size = lt_size((uint32_t)t->desc.scale);
	bool is_complex = lt_half(t->d.type) != UINT32_MAX;
	bool grouped = t->d.batch_mode == LT_GROUPED;

	if ((t->beta_at && !grouped &&
		    !blas_reaches(t->beta_at, (vector ? t->d.rows : 1) * size, size)) ||
		(is_complex && t->alpha_at && !blas_reaches(t->alpha_at, size, size))) {
		base->handle->failed = true;
		return;
	}
	for (int i = 0; i < t->d.batch && !base->handle->failed; i++)
		if (is_complex)
			lt_complex_member(t, i);
		else if (grouped)
			matmul_group(t, i);
		else
			matmul_member(t, i);
	if (t->bit_count &&
		blas_reaches(t->bit_count, sizeof(*t->bit_count), sizeof(*t->bit_count)))
		*t->bit_count = -1;
	else if (t->bit_count)
		base->handle->failed = true;
}

BLAS_EXPORT int cublasLtMatmul(void *handle, const void *desc, const void *alpha, const void *a,
	const void *la, const void *b, const void *lb, const void *beta, const void *c,
	const void *lc, void *d, const void *ld, const struct lt_algo *algo, void *workspace,
	size_t workspace_bytes, CUstream stream);
BLAS_EXPORT int cublasLtMatmul(void *handle, const void *desc, const void *alpha, const void *a,
	const void *la, const void *b, const void *lb, const void *beta, const void *c,
	const void *lc, void *d, const void *ld, const struct lt_algo *algo, void *workspace,
	size_t workspace_bytes, CUstream stream)
{
	const struct lt_matmul *how = desc;
	struct blas_handle *h = handle;
	struct lt_task *t;
	int status;

	(void)workspace;
	(void)workspace_bytes;
	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (!how || !la || !lb || !ld || !alpha || (algo && algo->mark != LT_ALGO))
		return BLAS_INVALID_VALUE;
	if (h->failed)
		return BLAS_EXECUTION_FAILED;
	status = lt_check(how, la, lb, lc, ld);
	if (status)
		return status;
	if (((const struct lt_layout *)ld)->batch_mode != LT_GROUPED &&
		(!((const struct lt_layout *)ld)->rows ||
			!((const struct lt_layout *)ld)->cols))
		return BLAS_SUCCESS;
	t = aligned_alloc(16, (sizeof(*t) + 15) & ~(size_t)15);
	if (!t)
		return BLAS_ALLOC_FAILED;
	memset(t, 0, sizeof(*t));
	blas_begin(&t->base, h, matmul_run);
	t->base.scalar = (enum blas_type)how->scale;
	t->desc = *how;
	memcpy(&t->a, la, sizeof(t->a));
	memcpy(&t->b, lb, sizeof(t->b));
	memcpy(&t->d, ld, sizeof(t->d));
	t->c = t->d;
	if (lc)
		memcpy(&t->c, lc, sizeof(t->c));
	t->at_a = a;
	t->at_b = b;
	t->at_c = c;
	t->at_d = d;
	if (how->emulation)
		t->bit_count = how->emulation->bit_count;
	if (how->pointer_mode == LT_HOST)
		t->alpha = lt_scalar(alpha, (uint32_t)how->scale, 0);
	else
		t->alpha_at = alpha;
	if (how->pointer_mode == LT_HOST || how->pointer_mode == LT_VECTOR_HOST)
		t->beta = beta ? lt_scalar(beta, (uint32_t)how->scale, 0) : 0;
	else if (how->pointer_mode != LT_VECTOR_ZERO)
		t->beta_at = beta;
	h->stream = stream;
	return blas_submit(&t->base, NULL, 0);
}
