/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions to two diagonals (gebrd) and to three (sytrd, hetrd).
 */
#include <stdlib.h>

#include "softgpu/solver/solver.h"

LAPACK4(gebrd, const int *, const int *, void *, const int *, void *, void *, void *, void *,
	void *, const int *, int *);
LAPACK22(sytrd, hetrd, const char *, const int *, void *, const int *, void *, void *, void *,
	void *, const int *, int *, size_t);

static void gebrd_run(struct solver_task *t)
{
	int size = 64 * (t->m + t->n) + 64;
	void *work = solver_scratch(t, (uint64_t)size, solver_size(t->type));

	if (work)
		lapack_gebrd[t->type](&t->m, &t->n, t->a.at, &t->a.ld, t->w, t->w2, t->b.at,
			t->c.at, work, &size, t->info);
	free(work);
}

static void sytrd_run(struct solver_task *t)
{
	int size = 64 * t->n + 64;
	void *work = solver_scratch(t, (uint64_t)size, solver_size(t->type));

	if (work)
		lapack_sytrd[t->type](&t->uplo, &t->n, t->a.at, &t->a.ld, t->w, t->w2, t->b.at,
			work, &size, t->info, 1);
	free(work);
}

/* The task for A, its diagonals and reflectors; `uplo` is 0 for a matrix of any shape. */
static int reduce(struct solver_handle *h, void (*run)(struct solver_task *),
	enum solver_type type, char uplo, int m, int n, void *a, int lda, void *d, void *e,
	void *tauq, void *taup, void *work, int lwork, int *info)
{
	int status;
	uint64_t least = (uint64_t)solver_max(solver_min(m, n), 0);
	struct solver_task *t = solver_new(h, run, type, &status);

	if (!t)
		return status;
	if (!solver_shape(m, n, lda) || m < n || (int64_t)m + n > INT_MAX / 128 ||
		lwork < solver_need(m, n)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->uplo = uplo;
	t->m = m;
	t->n = n;
	t->a = solver_matrix(t, a, m, n, lda);
	t->w = d;
	t->w2 = e;
	t->b.at = tauq;
	t->c.at = taup;
	solver_uses(t, d, least, solver_real(type));
	solver_uses(t, e, least ? least - 1 : 0, solver_real(type));
	solver_uses(t, tauq, uplo && least ? least - 1 : least, solver_size(type));
	solver_uses(t, taup, uplo ? 0 : least, solver_size(type));
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	solver_work(t, work, (uint64_t)lwork * solver_size(type));
	return solver_submit(t);
}

#define GEBRD(P)                                                                               \
	CALL(cusolverDn##P##gebrd_bufferSize, struct solver_handle *h, int m, int n,           \
		int *lwork)                                                                    \
	{                                                                                      \
		return solver_tell(h, m >= 0 && n >= 0, solver_need(m, n), lwork);             \
	}                                                                                      \
	CALL(cusolverDn##P##gebrd, struct solver_handle *h, int m, int n, void *a, int lda,    \
		void *d, void *e, void *tauq, void *taup, void *work, int lwork, int *info)    \
	{                                                                                      \
		return reduce(h, gebrd_run, SOLVER_##P, 0, m, n, a, lda, d, e, tauq, taup,     \
			work, lwork, info);                                                    \
	}
EACH_TYPE(GEBRD)

#define SYTRD(P, O)                                                                            \
	CALL(cusolverDn##P##O##trd_bufferSize, struct solver_handle *h, int uplo, int n,       \
		const void *a, int lda, const void *d, const void *e, const void *tau,         \
		int *lwork)                                                                    \
	{                                                                                      \
		(void)a;                                                                       \
		(void)d;                                                                       \
		(void)e;                                                                       \
		(void)tau;                                                                     \
		return solver_tell(h, solver_uplo(uplo) && solver_shape(n, n, lda),            \
			solver_need(n, n), lwork);                                             \
	}                                                                                      \
	CALL(cusolverDn##P##O##trd, struct solver_handle *h, int uplo, int n, void *a,         \
		int lda, void *d, void *e, void *tau, void *work, int lwork, int *info)        \
	{                                                                                      \
		if (h && !solver_uplo(uplo))                                                   \
			return SOLVER_INVALID_VALUE;                                           \
		return reduce(h, sytrd_run, SOLVER_##P, solver_uplo(uplo), n, n, a, lda, d, e, \
			tau, NULL, work, lwork, info);                                         \
	}
SYTRD(S, sy)
SYTRD(D, sy)
SYTRD(C, he)
SYTRD(Z, he)
