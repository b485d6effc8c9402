/* SPDX-License-Identifier: Apache-2.0
 *
 * Singular values and vectors by LAPACK's gesvd, cut to what a call wants: of one matrix or of
 * a batch, all or the largest, V in place of its conjugate transpose.
 */
#include "softgpu/solver/svd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/solver/gesvd.h"
#include "softgpu/solver/jacobi.h"

LAPACK4(gemm, const char *, const char *, const int *, const int *, const int *, const void *,
	const void *, const int *, const void *, const int *, const void *, void *, const int *,
	size_t, size_t);

/* One matrix's factors as LAPACK gives them, before they are cut. */
struct whole {
	void *a, *s, *u, *vt;
	int rows_vt;
};

/* V's columns are the conjugates of the rows of V^H. */
static void put_right(struct solver_task *t, const struct whole *w, void *v, int cols)
{
	int64_t parts = solver_complex(t->type) ? 2 : 1;

	for (int64_t j = 0; j < cols; j++)
		for (int64_t i = 0; i < t->n; i++) {
			int64_t from = (j + i * w->rows_vt) * parts;
			int64_t to = (i + j * t->d.ld) * parts;

			solver_set_number(t, v, to, solver_number(t, w->vt, from));
			if (parts == 2)
				solver_set_number(
					t, v, to + 1, -solver_number(t, w->vt, from + 1));
		}
}

static void put_left(struct solver_task *t, const struct whole *w, void *u, int cols)
{
	for (int64_t j = 0; j < cols; j++)
		memcpy(solver_at(t, u, j * t->c.ld), solver_at(t, w->u, j * t->m),
			(size_t)t->m * solver_size(t->type));
}

/* What is left of A V - U S; of vectors of the call's, or of the whole. */
static void left_over(struct solver_task *t, const void *a, const struct whole *w)
{
	static const double nought[2], one[] = {1, 0};
	static const float one_single[] = {1, 0};
	int least = t->m < t->n ? t->m : t->n;
	void *av = solver_scratch(t, (uint64_t)t->m * (uint64_t)least, solver_size(t->type));

	if (av) {
		if (least)
			lapack_gemm[t->type]("N", "C", &t->m, &least, &t->n,
				solver_real(t->type) == 4 ? (const void *)one_single : one, a,
				&t->a.ld, w->vt, &w->rows_vt, nought, av, &t->m, 1, 1);
		solver_jacobi_left(t, t->m, least, av, w->u, t->m, w->s);
	}
	free(av);
}

/* Matrix I of the batch. */
static void one(struct solver_task *t, int i, const struct whole *w)
{
	int least = t->m < t->n ? t->m : t->n;
	const void *a = solver_at(t, t->a.at, i * t->a.stride);
	bool vectors = t->job == 'V' || t->job2 == 'V' || t->jacobi;
	char job = !vectors ? 'N' : t->flag ? 'S' : 'A';
	double rest = 0;

	for (int64_t j = 0; j < t->n; j++)
		memcpy(solver_at(t, w->a, j * t->m),
			solver_at(t, (void *)(uintptr_t)a, j * t->a.ld),
			(size_t)t->m * solver_size(t->type));
	gesvd_lapack(t, job, job, w->a, t->m, w->s, w->u, t->m, w->vt, w->rows_vt, NULL,
		&t->info[i]);
	memcpy((char *)t->w + (uint64_t)i * (uint64_t)t->b.stride * solver_real(t->type), w->s,
		(size_t)t->k * solver_real(t->type));
	if (t->job == 'V')
		put_left(t, w, solver_at(t, t->c.at, i * t->c.stride), t->flag ? t->k : t->m);
	if (t->job2 == 'V')
		put_right(t, w, solver_at(t, t->d.at, i * t->d.stride), t->flag ? t->k : t->n);
	if (t->jacobi && t->batch == 1)
		left_over(t, a, w);
	for (int j = t->k; j < least; j++)
		rest += solver_number(t, w->s, j) * solver_number(t, w->s, j);
	if (t->numbers)
		t->numbers[i] = sqrt(rest);
}

static void run(struct solver_task *t)
{
	uint64_t m = (uint64_t)t->m, n = (uint64_t)t->n, least = m < n ? m : n;
	unsigned size = solver_size(t->type);
	struct whole w = {.rows_vt = (int)solver_max(1, t->flag ? (int64_t)least : t->n)};

	w.a = solver_scratch(t, m * n, size);
	w.s = solver_scratch(t, least, solver_real(t->type));
	w.u = solver_scratch(t, m * (t->flag ? least : m), size);
	w.vt = solver_scratch(t, (uint64_t)w.rows_vt * n, size);
	if (w.a && w.s && w.u && w.vt)
		for (int i = 0; i < t->batch && !t->handle->failed; i++)
			one(t, i, &w);
	free(w.vt);
	free(w.u);
	free(w.s);
	free(w.a);
}

bool svd_valid(const struct svd *c)
{
	int64_t least = solver_min(c->m, c->n);

	return solver_shape(c->m, c->n, c->lda) && c->m <= INT_MAX / 128 &&
	       c->n <= INT_MAX / 128 && c->batch >= 0 && c->batch <= INT_MAX && c->rank >= 0 &&
	       c->rank <= least && (!c->left || solver_shape(c->m, c->rank, c->ldu)) &&
	       (!c->right || solver_shape(c->n, c->rank, c->ldv));
}

int64_t svd_need(const struct svd *c)
{
	return solver_need(c->m, c->n);
}

struct solver_task *svd_task(struct solver_handle *h, const struct svd *c, int *status)
{
	struct solver_task *t = solver_new(h, run, c->type, status);
	uint64_t count = (uint64_t)c->batch;

	if (!t)
		return NULL;
	if (!svd_valid(c) || c->bytes < (uint64_t)svd_need(c) * solver_size(c->type)) {
		solver_drop(t);
		*status = SOLVER_INVALID_VALUE;
		return NULL;
	}
	t->m = (int)c->m;
	t->n = (int)c->n;
	t->k = (int)c->rank;
	t->batch = (int)c->batch;
	t->flag = c->econ;
	t->job = c->left ? 'V' : 'N';
	t->job2 = c->right ? 'V' : 'N';
	t->numbers = c->numbers;
	t->a = solver_matrices(t, c->a, c->m, c->n, c->lda, c->stride_a, c->batch);
	if (c->left)
		t->c = solver_matrices(
			t, c->u, c->m, c->econ ? c->rank : c->m, c->ldu, c->stride_u, c->batch);
	if (c->right)
		t->d = solver_matrices(
			t, c->v, c->n, c->econ ? c->rank : c->n, c->ldv, c->stride_v, c->batch);
	t->w = c->s;
	t->b.stride = c->stride_s;
	if (c->stride_s < 0 && count > 1)
		t->too_much = true;
	else if (count)
		solver_uses(t, c->s, (uint64_t)c->stride_s * (count - 1) + (uint64_t)c->rank,
			solver_real(c->type));
	t->info = c->info;
	solver_uses(t, c->info, count, sizeof(*c->info));
	solver_work(t, c->work, c->bytes);
	return t;
}

int svd_run(struct solver_handle *h, const struct svd *c)
{
	int status;
	struct solver_task *t = svd_task(h, c, &status);

	if (!t)
		return status;
	if (!c->numbers)
		return solver_submit(t);
	status = solver_finish(t);
	if (!status)
		solver_drop(t);
	return status;
}
