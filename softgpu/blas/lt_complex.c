/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of complex numbers: real and imaginary part beside each other, or each in a plane of
 * its own.  All are computed as f64.
 */
#include <cblas.h>
#include <stdlib.h>

#include "softgpu/blas/lt.h"

uint32_t lt_half(uint32_t type)
{
	switch (type) {
	case BLAS_C32: return BLAS_F32;
	case BLAS_C64: return BLAS_F64;
	case LT_C16F: return BLAS_F16;
	case LT_C16BF: return BLAS_BF16;
	default: return UINT32_MAX;
	}
}

double complex lt_scalar(const void *at, uint32_t type, uint64_t i)
{
	uint32_t half = lt_half(type);

	if (half == UINT32_MAX)
		return lt_get(at, type, i);
	return __builtin_complex(lt_get(at, half, 2 * i), lt_get(at, half, 2 * i + 1));
}

bool lt_complex_match(const struct lt_matmul *d, const struct lt_layout *a,
	const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *out)
{
	bool planes = out->plane, small = a->type == LT_C16F || a->type == LT_C16BF;

	if (d->epilogue != LT_DEFAULT || d->pointer_mode > LT_DEVICE || b->type != a->type ||
		c->type != out->type || !a->plane == planes || !b->plane == planes ||
		!c->plane == planes || planes != small)
		return false;
	switch (d->compute) {
	case 68: /* 32F: default, pedantic, fast in 16F, 16BF, TF32, emulated */
	case 69:
	case 74:
	case 75:
	case 77:
	case 78:
		return d->scale == BLAS_C32 && (small || a->type == BLAS_C32) &&
		       (out->type == a->type || out->type == BLAS_C32);
	case 70: /* 64F: default, pedantic, emulated */
	case 71:
	case 79: return d->scale == BLAS_C64 && a->type == BLAS_C64 && out->type == BLAS_C64;
	default: return false;
	}
}

/* A matrix that the device has: where its real parts are and where the imaginary ones. */
struct parts {
	const struct lt_layout *l;
	uint32_t half;
	void *real, *imaginary;
	uint64_t step;
};

static bool parts_of(
	struct lt_task *t, struct parts *p, const void *base, const struct lt_layout *l, int i)
{
	uint32_t half = lt_half(l->type), size = lt_size(half);
	uint64_t bytes;

	*p = (struct parts){.l = l, .half = half, .step = l->plane ? 1 : 2};
	p->real = lt_begin(&t->base, base, l, i, p->step * size);
	p->imaginary = (void *)((uintptr_t)p->real + (l->plane ? (uint64_t)l->plane : size));
	if (!t->base.handle->failed &&
		!__builtin_mul_overflow(lt_extent(l), p->step * size, &bytes) &&
		blas_reaches(p->real, bytes, size) &&
		(!l->plane || blas_reaches(p->imaginary, bytes, size)))
		return true;
	t->base.handle->failed = true;
	return false;
}

static double complex part_get(const struct parts *p, uint64_t row, uint64_t col)
{
	uint64_t at = lt_at(p->l, row, col) * p->step;

	return __builtin_complex(
		lt_get(p->real, p->half, at), lt_get(p->imaginary, p->half, at));
}

/* op of a matrix, rows by cols, column after column. */
static double complex *packed(const struct parts *p, int op, uint64_t rows, uint64_t cols)
{
	double complex *to = calloc(rows * cols + 1, sizeof(*to));

	for (uint64_t j = 0; to && j < cols; j++)
		for (uint64_t i = 0; i < rows; i++) {
			double complex v = op ? part_get(p, j, i) : part_get(p, i, j);

			to[j * rows + i] = op == BLAS_OP_C ? conj(v) : v;
		}
	return to;
}

void lt_complex_member(struct lt_task *t, int i)
{
	const struct lt_matmul *d = &t->desc;
	uint64_t m = t->d.rows, n = t->d.cols, k = d->transa ? t->a.rows : t->a.cols;
	uint32_t scale = (uint32_t)d->scale;
	double complex alpha = t->alpha_at ? lt_scalar(t->alpha_at, scale, 0) : t->alpha;
	double complex beta = t->beta_at ? lt_scalar(t->beta_at, scale, 0) : t->beta;
	static const double complex one = 1, zero = 0;
	double complex *pa, *pb, *product;
	struct parts a, b, c, out;
	bool reads_c = t->at_c && beta != 0;

	if (!parts_of(t, &a, t->at_a, &t->a, i) || !parts_of(t, &b, t->at_b, &t->b, i) ||
		!parts_of(t, &out, t->at_d, &t->d, i) ||
		(reads_c && !parts_of(t, &c, t->at_c, &t->c, i)))
		return;
	pa = packed(&a, d->transa, m, k);
	pb = packed(&b, d->transb, k, n);
	product = calloc(m * n + 1, sizeof(*product));
	if (!pa || !pb || !product)
		t->base.handle->failed = true;
	else if (k)
		cblas_zgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k,
			&one, pa, (int)m, pb, (int)k, &zero, product, (int)m);
	for (uint64_t j = 0; j < n && !t->base.handle->failed; j++)
		for (uint64_t r = 0; r < m; r++) {
			double complex v = alpha * product[j * m + r];
			uint64_t at = lt_at(out.l, r, j) * out.step;

			if (reads_c)
				v += beta * part_get(&c, r, j);
			lt_put(out.real, out.half, at, creal(v));
			lt_put(out.imaginary, out.half, at, cimag(v));
		}
	free(pa);
	free(pb);
	free(product);
}
