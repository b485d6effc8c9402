/* SPDX-License-Identifier: Apache-2.0
 *
 * C = alpha op(A) + beta op(B), between layouts and types.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/lt.h"

struct transform_task {
	struct blas_task base; /* first: it is freed as one */
	struct lt_transform desc;
	struct lt_layout layout[3];
	const void *at[2]; /* NULL: not there */
	void *to;
	double factor[2];
	const void *factor_at[2];
};

static void transform_member(struct transform_task *t, int member)
{
	const struct lt_layout *out = &t->layout[2];
	void *to = lt_member(&t->base, t->to, out, member);
	const void *from[2] = {NULL, NULL};
	int op[2] = {t->desc.transa, t->desc.transb};

	for (int i = 0; i < 2; i++)
		if (t->at[i])
			from[i] = lt_member(&t->base, t->at[i], &t->layout[i], member);
	if (t->base.handle->failed)
		return;
	for (uint64_t col = 0; col < out->cols; col++)
		for (uint64_t row = 0; row < out->rows; row++) {
			double v = 0;

			for (int i = 0; i < 2; i++)
				if (from[i])
					v += t->factor[i] *
					     lt_get(from[i], t->layout[i].type,
						     op[i] ? lt_at(&t->layout[i], col, row)
							   : lt_at(&t->layout[i], row, col));
			lt_put(to, out->type, lt_at(out, row, col), v);
		}
}

static void transform_run(struct blas_task *base)
{
	struct transform_task *t = (struct transform_task *)base;
	uint32_t size = lt_size((uint32_t)t->desc.scale);

	for (int i = 0; i < 2; i++) {
		if (!t->factor_at[i])
			continue;
		if (!blas_reaches(t->factor_at[i], size, size)) {
			base->handle->failed = true;
			return;
		}
		t->factor[i] = lt_get(t->factor_at[i], (uint32_t)t->desc.scale, 0);
	}
	for (int i = 0; i < t->layout[2].batch && !base->handle->failed; i++)
		transform_member(t, i);
}

static bool transform_served(const struct lt_layout *l, const struct lt_layout *out, int op)
{
	return lt_size(l->type) && l->type != BLAS_C32 && l->type != BLAS_C64 &&
	       l->order >= LT_COL && l->order <= LT_COL32_2R_4R4 && !l->plane &&
	       l->batch_mode == out->batch_mode && l->batch_mode <= LT_POINTERS &&
	       (l->batch == out->batch || l->batch == 1) && l->batch_stride >= 0 &&
	       (op ? l->cols : l->rows) == out->rows && (op ? l->rows : l->cols) == out->cols;
}

BLAS_EXPORT int cublasLtMatrixTransform(void *handle, const void *desc, const void *alpha,
	const void *a, const void *la, const void *beta, const void *b, const void *lb, void *c,
	const void *lc, CUstream stream);
BLAS_EXPORT int cublasLtMatrixTransform(void *handle, const void *desc, const void *alpha,
	const void *a, const void *la, const void *beta, const void *b, const void *lb, void *c,
	const void *lc, CUstream stream)
{
	const void *layouts[] = {la, lb, lc}, *factors[] = {alpha, beta}, *at[] = {a, b};
	const struct lt_transform *how = desc;
	struct blas_handle *h = handle;
	struct transform_task *t;

	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (!how || !lc || !c || (a && !la) || (b && !lb))
		return BLAS_INVALID_VALUE;
	if (h->failed)
		return BLAS_EXECUTION_FAILED;
	if (how->pointer_mode < LT_HOST || how->pointer_mode > LT_DEVICE ||
		!lt_size((uint32_t)how->scale) || !transform_served(lc, lc, 0) ||
		(a && !transform_served(la, lc, how->transa)) ||
		(b && !transform_served(lb, lc, how->transb)))
		return BLAS_NOT_SUPPORTED;
	t = aligned_alloc(16, (sizeof(*t) + 15) & ~(size_t)15);
	if (!t)
		return BLAS_ALLOC_FAILED;
	memset(t, 0, sizeof(*t));
	blas_begin(&t->base, h, transform_run);
	t->base.scalar = (enum blas_type)how->scale;
	t->desc = *how;
	t->to = c;
	for (int i = 0; i < 3; i++)
		if (layouts[i])
			memcpy(&t->layout[i], layouts[i], sizeof(t->layout[i]));
	for (int i = 0; i < 2; i++) {
		t->at[i] = at[i];
		if (at[i] && how->pointer_mode == LT_DEVICE)
			t->factor_at[i] = factors[i];
		else if (at[i] && factors[i])
			t->factor[i] = lt_get(factors[i], (uint32_t)how->scale, 0);
	}
	h->stream = stream;
	return blas_submit(&t->base, NULL, 0);
}
