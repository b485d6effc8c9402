/* SPDX-License-Identifier: Apache-2.0
 *
 * LU with partial pivoting, or with none where the program gives no room for pivots, and what
 * is solved with it; exchanges of rows.
 */
#include <complex.h>
#include <stdlib.h>

#include "softgpu/solver/solver.h"

LAPACK4(getrf, const int *, const int *, void *, const int *, int *, int *);
LAPACK4(getrs, const char *, const int *, const int *, const void *, const int *, const int *,
	void *, const int *, int *, size_t);
LAPACK4(laswp, const int *, void *, const int *, const int *, const int *, const int *,
	const int *);
LAPACK4(trsm, const char *, const char *, const char *, const char *, const int *, const int *,
	const void *, const void *, const int *, void *, const int *, size_t, size_t, size_t,
	size_t);

/* Gauss's elimination as it stands, in each type. */
#define ELIMINATE(P, T)                                                                        \
	static int eliminate_##P(int m, int n, T *a, int64_t ld)                               \
	{                                                                                      \
		int info = 0;                                                                  \
                                                                                               \
		for (int k = 0; k < m && k < n; k++) {                                         \
			if (a[k + k * ld] == 0) {                                              \
				info = info ? info : k + 1;                                    \
				continue;                                                      \
			}                                                                      \
			for (int i = k + 1; i < m; i++)                                        \
				a[i + k * ld] /= a[k + k * ld];                                \
			for (int j = k + 1; j < n; j++)                                        \
				for (int i = k + 1; i < m; i++)                                \
					a[i + j * ld] -= a[i + k * ld] * a[k + j * ld];        \
		}                                                                              \
		return info;                                                                   \
	}
ELIMINATE(S, float)
ELIMINATE(D, double)
ELIMINATE(C, float complex)
ELIMINATE(Z, double complex)

static int eliminate(struct solver_task *t)
{
	switch (t->type) {
	case SOLVER_S: return eliminate_S(t->m, t->n, t->a.at, t->a.ld);
	case SOLVER_D: return eliminate_D(t->m, t->n, t->a.at, t->a.ld);
	case SOLVER_C: return eliminate_C(t->m, t->n, t->a.at, t->a.ld);
	default: return eliminate_Z(t->m, t->n, t->a.at, t->a.ld);
	}
}

static void getrf_run(struct solver_task *t)
{
	int least = t->m < t->n ? t->m : t->n, info;
	int *pivots;

	if (!t->pivots) {
		*t->info = eliminate(t);
		return;
	}
	pivots = t->wide ? solver_scratch(t, (uint64_t)least, sizeof(*pivots)) : t->pivots;
	if (!pivots)
		return;
	lapack_getrf[t->type](&t->m, &t->n, t->a.at, &t->a.ld, pivots, &info);
	*t->info = info;
	if (!t->wide)
		return;
	for (int i = 0; i < least; i++)
		((int64_t *)t->pivots)[i] = pivots[i];
	free(pivots);
}

static int getrf(struct solver_handle *h, enum solver_type type, int64_t m, int64_t n, void *a,
	int64_t lda, void *work, uint64_t bytes, void *pivots, bool wide, int *info)
{
	int status;
	struct solver_task *t = solver_new(h, getrf_run, type, &status);

	if (!t)
		return status;
	if (!solver_shape(m, n, lda) ||
		bytes < (uint64_t)solver_need(m, n) * solver_size(type)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->m = (int)m;
	t->n = (int)n;
	t->a = solver_matrix(t, a, m, n, lda);
	t->wide = wide;
	t->pivots = pivots;
	if (pivots)
		solver_uses(t, pivots, (uint64_t)solver_min(m, n), wide ? 8 : 4);
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	solver_work(t, work, bytes);
	return solver_submit(t);
}

/* A's triangles one after the other, where there are no pivots. */
static void solve_without(struct solver_task *t)
{
	static const double one[] = {1, 0};
	static const float one_single[] = {1, 0};
	const void *scale = solver_real(t->type) == 4 ? (const void *)one_single : one;
	bool plain = t->op == 'N';

	lapack_trsm[t->type]("L", plain ? "L" : "U", &t->op, plain ? "U" : "N", &t->n, &t->k,
		scale, t->a.at, &t->a.ld, t->b.at, &t->b.ld, 1, 1, 1, 1);
	lapack_trsm[t->type]("L", plain ? "U" : "L", &t->op, plain ? "N" : "U", &t->n, &t->k,
		scale, t->a.at, &t->a.ld, t->b.at, &t->b.ld, 1, 1, 1, 1);
	*t->info = 0;
}

/* The pivots as LAPACK takes them; NULL: one names no row, and the handle failed. free() takes
 * them. */
static int *narrow(struct solver_task *t, int count, int64_t rows)
{
	int *pivots = solver_scratch(t, (uint64_t)count, sizeof(*pivots));

	for (int i = 0; pivots && i < count; i++) {
		int64_t row = t->wide ? ((int64_t *)t->pivots)[i] : ((int *)t->pivots)[i];

		if (row < 1 || row > rows) {
			t->handle->failed = true;
			free(pivots);
			return NULL;
		}
		pivots[i] = (int)row;
	}
	return pivots;
}

static void getrs_run(struct solver_task *t)
{
	int *pivots;

	if (!t->pivots) {
		solve_without(t);
		return;
	}
	pivots = narrow(t, t->n, t->n);
	if (!pivots)
		return;
	lapack_getrs[t->type](
		&t->op, &t->n, &t->k, t->a.at, &t->a.ld, pivots, t->b.at, &t->b.ld, t->info, 1);
	free(pivots);
}

static int getrs(struct solver_handle *h, enum solver_type type, int op, int64_t n,
	int64_t nrhs, const void *a, int64_t lda, const void *pivots, bool wide, void *b,
	int64_t ldb, int *info)
{
	int status;
	struct solver_task *t = solver_new(h, getrs_run, type, &status);

	if (!t)
		return status;
	t->op = solver_op(op, type);
	if (!t->op || !solver_shape(n, n, lda) || !solver_shape(n, nrhs, ldb)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = (int)n;
	t->k = (int)nrhs;
	t->a = solver_matrix(t, a, n, n, lda);
	t->b = solver_matrix(t, b, n, nrhs, ldb);
	t->wide = wide;
	t->pivots = (void *)(uintptr_t)pivots;
	if (pivots)
		solver_uses(t, pivots, (uint64_t)n, wide ? 8 : 4);
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	return solver_submit(t);
}

/* ---- exchanges: rows k1 to k2, each with the one that its pivot names ---- */

static void laswp_run(struct solver_task *t)
{
	int64_t lowest = t->last;

	for (int i = 0; i <= t->last - t->first; i++) {
		int row = ((int *)t->pivots)[t->first - 1 + (int64_t)i * abs(t->kind)];

		if (row < 1 || row > t->a.ld) {
			t->handle->failed = true;
			return;
		}
		lowest = solver_max(lowest, row);
	}
	if (t->n && !solver_reaches(t, t->a.at,
			    (uint64_t)(t->n - 1) * (uint64_t)t->a.ld + (uint64_t)lowest,
			    solver_size(t->type)))
		return;
	lapack_laswp[t->type](
		&t->n, t->a.at, &t->a.ld, &t->first, &t->last, t->pivots, &t->kind);
}

static int laswp(struct solver_handle *h, enum solver_type type, int n, void *a, int lda,
	int k1, int k2, const int *pivots, int step)
{
	int status;
	struct solver_task *t = solver_new(h, laswp_run, type, &status);

	if (!t)
		return status;
	if (n < 0 || lda < 1 || k1 < 1 || k2 < k1 || k2 > lda || !step || step == INT_MIN) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = n;
	t->a = solver_matrix(t, a, k2, n, lda);
	t->first = k1;
	t->last = k2;
	t->kind = step;
	t->pivots = (void *)(uintptr_t)pivots;
	solver_uses(t, pivots, (uint64_t)k1 + (uint64_t)(k2 - k1) * (uint64_t)abs(step),
		sizeof(*pivots));
	return solver_submit(t);
}

/* ---- the calls ---- */

#define LU(P)                                                                                  \
	CALL(cusolverDn##P##getrf_bufferSize, struct solver_handle *h, int m, int n, void *a,  \
		int lda, int *lwork)                                                           \
	{                                                                                      \
		(void)a;                                                                       \
		return solver_tell(h, solver_shape(m, n, lda), solver_need(m, n), lwork);      \
	}                                                                                      \
	CALL(cusolverDn##P##getrf, struct solver_handle *h, int m, int n, void *a, int lda,    \
		void *work, int *pivots, int *info)                                            \
	{                                                                                      \
		return getrf(h, SOLVER_##P, m, n, a, lda, work,                                \
			(uint64_t)solver_need(m, n) * solver_size(SOLVER_##P), pivots, false,  \
			info);                                                                 \
	}                                                                                      \
	CALL(cusolverDn##P##getrs, struct solver_handle *h, int op, int n, int nrhs,           \
		const void *a, int lda, const int *pivots, void *b, int ldb, int *info)        \
	{                                                                                      \
		return getrs(h, SOLVER_##P, op, n, nrhs, a, lda, pivots, false, b, ldb, info); \
	}                                                                                      \
	CALL(cusolverDn##P##laswp, struct solver_handle *h, int n, void *a, int lda, int k1,   \
		int k2, const int *pivots, int step)                                           \
	{                                                                                      \
		return laswp(h, SOLVER_##P, n, a, lda, k1, k2, pivots, step);                  \
	}
EACH_TYPE(LU)

CALL(cusolverDnXgetrf_bufferSize, struct solver_handle *h, SOLVER_PARAMS, int64_t m, int64_t n,
	int type, const void *a, int64_t lda, int compute, size_t *device, size_t *host)
{
	(void)a;
	return solver_tell_bytes(h, solver_shape(m, n, lda) && compute == type,
		solver_need(m, n), solver_type_of(type), device, host);
}

CALL(cusolverDnXgetrf, struct solver_handle *h, SOLVER_PARAMS, int64_t m, int64_t n, int type,
	void *a, int64_t lda, int64_t *pivots, int compute, void *work, size_t bytes,
	void *host, size_t host_bytes, int *info)
{
	(void)host;
	(void)host_bytes;
	if (h && compute != type)
		return SOLVER_INVALID_VALUE;
	return getrf(h, solver_type_of(type), m, n, a, lda, work, bytes, pivots, true, info);
}

CALL(cusolverDnXgetrs, struct solver_handle *h, SOLVER_PARAMS, int op, int64_t n, int64_t nrhs,
	int type, const void *a, int64_t lda, const int64_t *pivots, int type_b, void *b,
	int64_t ldb, int *info)
{
	if (h && type != type_b)
		return SOLVER_INVALID_VALUE;
	return getrs(h, solver_type_of(type), op, n, nrhs, a, lda, pivots, true, b, ldb, info);
}
