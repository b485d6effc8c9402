/* SPDX-License-Identifier: Apache-2.0
 *
 * Systems that are factored in fewer bits and refined to the full precision, and least
 * squares. Only double precision is refined, from single by LAPACK; all else is solved in the
 * type that it has, which is as exact and needs no turn.
 */
#include "softgpu/solver/refine.h"

#include <stdlib.h>
#include <string.h>

void dsgesv_(const int *, const int *, void *, const int *, int *, const void *, const int *,
	void *, const int *, void *, void *, int *, int *);
void zcgesv_(const int *, const int *, void *, const int *, int *, const void *, const int *,
	void *, const int *, void *, void *, void *, int *, int *);
LAPACK4(gesv, const int *, const int *, void *, const int *, int *, void *, const int *, int *);
LAPACK4(gels, const char *, const int *, const int *, const int *, void *, const int *, void *,
	const int *, void *, const int *, int *, size_t);

/* The columns of a matrix, so far apart as both have them. */
static void copy(struct solver_task *t, void *to, int ld_to, const void *from, int ld_from,
	int rows, int cols)
{
	for (int64_t j = 0; j < cols; j++)
		memcpy(solver_at(t, to, j * ld_to),
			solver_at(t, (void *)(uintptr_t)from, j * ld_from),
			(size_t)rows * solver_size(t->type));
}

static void refined(struct solver_task *t, int *pivots)
{
	uint64_t n = (uint64_t)t->n, nrhs = (uint64_t)t->k;
	unsigned size = solver_size(t->type);
	void *work = solver_scratch(t, n * nrhs, size);
	void *low = solver_scratch(t, n * (n + nrhs), size / 2);
	void *real = solver_scratch(t, n, sizeof(double));

	if (work && low && real) {
		if (t->type == SOLVER_D)
			dsgesv_(&t->n, &t->k, t->a.at, &t->a.ld, pivots, t->b.at, &t->b.ld,
				t->c.at, &t->c.ld, work, low, &t->result, t->info);
		else
			zcgesv_(&t->n, &t->k, t->a.at, &t->a.ld, pivots, t->b.at, &t->b.ld,
				t->c.at, &t->c.ld, work, low, real, &t->result, t->info);
	}
	free(real);
	free(low);
	free(work);
}

static void solved(struct solver_task *t, int *pivots)
{
	uint64_t n = (uint64_t)t->n;
	void *a = solver_scratch(t, n * n, solver_size(t->type));
	int ld = t->n ? t->n : 1;

	if (a) {
		copy(t, a, t->n, t->a.at, t->a.ld, t->n, t->n);
		copy(t, t->c.at, t->c.ld, t->b.at, t->b.ld, t->n, t->k);
		lapack_gesv[t->type](&t->n, &t->k, a, &ld, pivots, t->c.at, &t->c.ld, t->info);
	}
	free(a);
}

static void system_run(struct solver_task *t)
{
	int *pivots =
		t->pivots ? t->pivots : solver_scratch(t, (uint64_t)t->n, sizeof(*pivots));

	t->result = 0;
	if (pivots) {
		if (t->flag && (t->type == SOLVER_D || t->type == SOLVER_Z))
			refined(t, pivots);
		else
			solved(t, pivots);
	}
	if (!t->pivots)
		free(pivots);
}

static void least_run(struct solver_task *t)
{
	uint64_t m = (uint64_t)t->m;
	unsigned size = solver_size(t->type);
	int words = 64 * (t->n + t->k) + 64, ld = t->m ? t->m : 1;
	void *a = solver_scratch(t, m * (uint64_t)t->n, size);
	void *b = solver_scratch(t, m * (uint64_t)t->k, size);
	void *work = solver_scratch(t, (uint64_t)words, size);

	t->result = 0;
	if (a && b && work) {
		copy(t, a, t->m, t->a.at, t->a.ld, t->m, t->n);
		copy(t, b, t->m, t->b.at, t->b.ld, t->m, t->k);
		lapack_gels[t->type](
			"N", &t->m, &t->n, &t->k, a, &ld, b, &ld, work, &words, t->info, 1);
		copy(t, t->c.at, t->c.ld, b, t->m, t->n, t->k);
	}
	free(work);
	free(b);
	free(a);
}

static bool valid(const struct refine *c)
{
	return solver_shape(c->m, c->n, c->lda) && c->m >= c->n && c->m <= INT_MAX / 256 &&
	       c->nrhs <= INT_MAX / 256 && solver_shape(c->m, c->nrhs, c->ldb) &&
	       solver_shape(c->n, c->nrhs, c->ldx);
}

static uint64_t need(const struct refine *c)
{
	return (uint64_t)solver_need(c->m, c->nrhs) * solver_size(c->type);
}

int refine_tell(struct solver_handle *h, const struct refine *c, size_t *bytes)
{
	if (!h)
		return SOLVER_NOT_INITIALIZED;
	if (!valid(c) || !bytes)
		return SOLVER_INVALID_VALUE;
	*bytes = need(c);
	return SOLVER_SUCCESS;
}

int refine_run(struct solver_handle *h, const struct refine *c)
{
	int status;
	struct solver_task *t =
		solver_new(h, c->least ? least_run : system_run, c->type, &status);

	if (!t)
		return status;
	if (!valid(c) || !c->turns || c->bytes < need(c)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->m = c->m;
	t->n = c->n;
	t->k = c->nrhs;
	t->flag = c->lower;
	t->a = solver_matrix(t, c->a, c->m, c->n, c->lda);
	t->b = solver_matrix(t, c->b, c->m, c->nrhs, c->ldb);
	t->c = solver_matrix(t, c->x, c->n, c->nrhs, c->ldx);
	t->pivots = c->pivots;
	if (c->pivots)
		solver_uses(t, c->pivots, (uint64_t)c->n, sizeof(*c->pivots));
	t->info = c->info;
	solver_uses(t, c->info, 1, sizeof(*c->info));
	solver_work(t, c->work, c->bytes);
	status = solver_finish(t);
	if (!status) {
		*c->turns = t->result;
		solver_drop(t);
	}
	return status;
}
