/* SPDX-License-Identifier: Apache-2.0
 *
 * Symmetric and Hermitian matrices as LDL: with Bunch and Kaufman's pivots, or with none where
 * the program gives no room for them; what is solved and inverted with it.
 */
#include <complex.h>
#include <stdlib.h>

#include "softgpu/solver/solver.h"

LAPACK4(sytrf, const char *, const int *, void *, const int *, int *, void *, const int *,
	int *, size_t);
LAPACK_COMPLEX(hetrf, const char *, const int *, void *, const int *, int *, void *,
	const int *, int *, size_t);
LAPACK4(sytrs, const char *, const int *, const int *, const void *, const int *, const int *,
	void *, const int *, int *, size_t);
LAPACK_COMPLEX(hetrs, const char *, const int *, const int *, const void *, const int *,
	const int *, void *, const int *, int *, size_t);
LAPACK4(sytri, const char *, const int *, void *, const int *, const int *, void *, int *,
	size_t);
LAPACK4(trsm, const char *, const char *, const char *, const char *, const int *, const int *,
	const void *, const void *, const int *, void *, const int *, size_t, size_t, size_t,
	size_t);

/* ---- without pivots ---- */

#define SAME(X) (X)
/* Column K of L, or of U from the last one on, and the rest of the triangle without it; and the
 * division by D, in between the triangles when solving. */
#define WITHOUT(P, T, CONJ)                                                                    \
	static int factor_##P(bool lower, bool hermitian, int n, T *a, int64_t ld)             \
	{                                                                                      \
		int info = 0;                                                                  \
                                                                                               \
		for (int step = 0; step < n; step++) {                                         \
			int k = lower ? step : n - 1 - step;                                   \
			int from = lower ? k + 1 : 0, to = lower ? n : k;                      \
			T d = a[k + k * ld];                                                   \
                                                                                               \
			if (d == 0) {                                                          \
				info = info ? info : k + 1;                                    \
				continue;                                                      \
			}                                                                      \
			for (int j = from; j < to; j++) {                                      \
				T other = hermitian ? CONJ(a[j + k * ld]) : a[j + k * ld];     \
                                                                                               \
				for (int i = lower ? j : from; i < (lower ? to : j + 1); i++)  \
					a[i + j * ld] -= a[i + k * ld] * other / d;            \
			}                                                                      \
			for (int i = from; i < to; i++)                                        \
				a[i + k * ld] /= d;                                            \
		}                                                                              \
		return info;                                                                   \
	}                                                                                      \
	static void divide_##P(int n, int nrhs, const T *a, int64_t lda, T *b, int64_t ldb)    \
	{                                                                                      \
		for (int j = 0; j < nrhs; j++)                                                 \
			for (int i = 0; i < n; i++)                                            \
				b[i + j * ldb] /= a[i + i * lda];                              \
	}
WITHOUT(S, float, SAME)
WITHOUT(D, double, SAME)
WITHOUT(C, float complex, conjf)
WITHOUT(Z, double complex, conj)

static int factor_without(struct solver_task *t)
{
	bool lower = t->uplo == 'L';

	switch (t->type) {
	case SOLVER_S: return factor_S(lower, t->flag, t->n, t->a.at, t->a.ld);
	case SOLVER_D: return factor_D(lower, t->flag, t->n, t->a.at, t->a.ld);
	case SOLVER_C: return factor_C(lower, t->flag, t->n, t->a.at, t->a.ld);
	default: return factor_Z(lower, t->flag, t->n, t->a.at, t->a.ld);
	}
}

static void triangle(struct solver_task *t, const char *op)
{
	static const double one[] = {1, 0};
	static const float one_single[] = {1, 0};

	lapack_trsm[t->type]("L", &t->uplo, op, "U", &t->n, &t->k,
		solver_real(t->type) == 4 ? (const void *)one_single : one, t->a.at, &t->a.ld,
		t->b.at, &t->b.ld, 1, 1, 1, 1);
}

static void solve_without(struct solver_task *t)
{
	triangle(t, "N");
	switch (t->type) {
	case SOLVER_S: divide_S(t->n, t->k, t->a.at, t->a.ld, t->b.at, t->b.ld); break;
	case SOLVER_D: divide_D(t->n, t->k, t->a.at, t->a.ld, t->b.at, t->b.ld); break;
	case SOLVER_C: divide_C(t->n, t->k, t->a.at, t->a.ld, t->b.at, t->b.ld); break;
	default: divide_Z(t->n, t->k, t->a.at, t->a.ld, t->b.at, t->b.ld);
	}
	triangle(t, t->flag ? "C" : "T");
	*t->info = 0;
}

/* ---- with pivots ---- */

static void factor_run(struct solver_task *t)
{
	int wanted = 64 * t->n + 64;
	int *pivots;
	void *work;

	if (!t->pivots) {
		*t->info = factor_without(t);
		return;
	}
	pivots = solver_scratch(t, (uint64_t)t->n, sizeof(*pivots));
	work = solver_scratch(t, (uint64_t)wanted, solver_size(t->type));
	if (pivots && work) {
		if (t->flag)
			lapack_complex_hetrf[t->type - SOLVER_C](&t->uplo, &t->n, t->a.at,
				&t->a.ld, pivots, work, &wanted, t->info, 1);
		else
			lapack_sytrf[t->type](&t->uplo, &t->n, t->a.at, &t->a.ld, pivots, work,
				&wanted, t->info, 1);
		for (int i = 0; i < t->n; i++)
			if (t->wide)
				((int64_t *)t->pivots)[i] = pivots[i];
			else
				((int *)t->pivots)[i] = pivots[i];
	}
	free(work);
	free(pivots);
}

/* The pivots as LAPACK takes them: each names a row, and negative ones come in pairs. NULL:
 * they do not, and the handle failed. free() takes them. */
static int *narrow(struct solver_task *t)
{
	int *pivots = solver_scratch(t, (uint64_t)t->n, sizeof(*pivots));
	int negative = 0;

	for (int i = 0; pivots && i < t->n; i++) {
		int64_t row = t->wide ? ((int64_t *)t->pivots)[i] : ((int *)t->pivots)[i];

		if (!row || row > t->n || row < -t->n || (row > 0 && negative % 2) ||
			(row < 0 && i == t->n - 1 && negative % 2 == 0)) {
			t->handle->failed = true;
			free(pivots);
			return NULL;
		}
		negative += row < 0;
		pivots[i] = (int)row;
	}
	return pivots;
}

static void solve_run(struct solver_task *t)
{
	int *pivots;

	if (!t->pivots) {
		solve_without(t);
		return;
	}
	pivots = narrow(t);
	if (!pivots)
		return;
	if (t->flag)
		lapack_complex_hetrs[t->type - SOLVER_C](&t->uplo, &t->n, &t->k, t->a.at,
			&t->a.ld, pivots, t->b.at, &t->b.ld, t->info, 1);
	else
		lapack_sytrs[t->type](&t->uplo, &t->n, &t->k, t->a.at, &t->a.ld, pivots,
			t->b.at, &t->b.ld, t->info, 1);
	free(pivots);
}

static void invert_run(struct solver_task *t)
{
	int *pivots = narrow(t);
	void *work = solver_scratch(t, 2 * (uint64_t)t->n, solver_size(t->type));

	if (pivots && work)
		lapack_sytri[t->type](
			&t->uplo, &t->n, t->a.at, &t->a.ld, pivots, work, t->info, 1);
	free(work);
	free(pivots);
}

/* ---- the calls ---- */

/* What the three kinds of call have in common; nrhs is 0 where there is no B. */
struct ldl {
	enum solver_type type;
	int uplo;
	int64_t n, nrhs;
	const void *a;
	int64_t lda;
	const void *pivots;
	bool wide, hermitian;
	void *b;
	int64_t ldb;
	void *work;
	uint64_t bytes;
	int *info;
};

static int ldl(struct solver_handle *h, void (*run)(struct solver_task *), const struct ldl *c)
{
	int status;
	struct solver_task *t = solver_new(h, run, c->type, &status);

	if (!t)
		return status;
	t->uplo = solver_uplo(c->uplo);
	if (!t->uplo || !solver_shape(c->n, c->n, c->lda) || c->n > INT_MAX / 128 ||
		!solver_shape(c->n, c->nrhs, c->ldb) ||
		c->bytes < (uint64_t)solver_need(c->n, c->nrhs) * solver_size(c->type)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = (int)c->n;
	t->k = (int)c->nrhs;
	t->a = solver_matrix(t, c->a, c->n, c->n, c->lda);
	t->b = solver_matrix(t, c->b, c->n, c->nrhs, c->ldb);
	t->flag = c->hermitian && solver_complex(c->type);
	t->wide = c->wide;
	t->pivots = (void *)(uintptr_t)c->pivots;
	if (c->pivots)
		solver_uses(t, c->pivots, (uint64_t)c->n, c->wide ? 8 : 4);
	t->info = c->info;
	solver_uses(t, c->info, 1, sizeof(*c->info));
	solver_work(t, c->work, c->bytes);
	return solver_submit(t);
}

#define BYTES(P) (uint64_t)solver_max(lwork, 0) * solver_size(SOLVER_##P)
#define LDL(P)                                                                                 \
	CALL(cusolverDn##P##sytrf_bufferSize, struct solver_handle *h, int n, void *a,         \
		int lda, int *lwork)                                                           \
	{                                                                                      \
		(void)a;                                                                       \
		return solver_tell(h, solver_shape(n, n, lda), solver_need(n, 0), lwork);      \
	}                                                                                      \
	CALL(cusolverDn##P##sytrf, struct solver_handle *h, int uplo, int n, void *a, int lda, \
		int *pivots, void *work, int lwork, int *info)                                 \
	{                                                                                      \
		return ldl(h, factor_run,                                                      \
			&(struct ldl){SOLVER_##P, uplo, n, 0, a, lda, pivots, false, false,    \
				NULL, INT_MAX, work, BYTES(P), info});                         \
	}                                                                                      \
	CALL(cusolverDn##P##sytri_bufferSize, struct solver_handle *h, int uplo, int n,        \
		void *a, int lda, const int *pivots, int *lwork)                               \
	{                                                                                      \
		(void)a;                                                                       \
		(void)pivots;                                                                  \
		return solver_tell(h, solver_uplo(uplo) && solver_shape(n, n, lda),            \
			solver_need(n, 0), lwork);                                             \
	}                                                                                      \
	CALL(cusolverDn##P##sytri, struct solver_handle *h, int uplo, int n, void *a, int lda, \
		const int *pivots, void *work, int lwork, int *info)                           \
	{                                                                                      \
		if (h && n > 0 && !pivots)                                                     \
			return SOLVER_INVALID_VALUE;                                           \
		return ldl(h, invert_run,                                                      \
			&(struct ldl){SOLVER_##P, uplo, n, 0, a, lda, pivots, false, false,    \
				NULL, INT_MAX, work, BYTES(P), info});                         \
	}
EACH_TYPE(LDL)

#define FACTOR_64(NAME, HERMITIAN)                                                             \
	CALL(cusolverDnX##NAME##_bufferSize, struct solver_handle *h, SOLVER_PARAMS, int uplo, \
		int64_t n, int type, const void *a, int64_t lda, const int64_t *pivots,        \
		int compute, size_t *device, size_t *host)                                     \
	{                                                                                      \
		(void)a;                                                                       \
		(void)pivots;                                                                  \
		return solver_tell_bytes(h,                                                    \
			solver_uplo(uplo) && solver_shape(n, n, lda) && compute == type,       \
			solver_need(n, 0), solver_type_of(type), device, host);                \
	}                                                                                      \
	CALL(cusolverDnX##NAME, struct solver_handle *h, SOLVER_PARAMS, int uplo, int64_t n,   \
		int type, void *a, int64_t lda, int64_t *pivots, int compute, void *work,      \
		size_t bytes, void *host, size_t host_bytes, int *info)                        \
	{                                                                                      \
		(void)host;                                                                    \
		(void)host_bytes;                                                              \
		if (h && compute != type)                                                      \
			return SOLVER_INVALID_VALUE;                                           \
		return ldl(h, factor_run,                                                      \
			&(struct ldl){solver_type_of(type), uplo, n, 0, a, lda, pivots, true,  \
				HERMITIAN, NULL, INT_MAX, work, bytes, info});                 \
	}
FACTOR_64(sytrf, false)
FACTOR_64(hetrf, true)

#define SOLVE_HEAD                                                                             \
	int uplo, int64_t n, int64_t nrhs, int type, const void *a, int64_t lda,               \
		const int64_t *pivots, int type_b, void *b, int64_t ldb
static int solve_tell(struct solver_handle *h, SOLVE_HEAD, size_t *device, size_t *host)
{
	(void)a;
	(void)pivots;
	(void)b;
	return solver_tell_bytes(h,
		solver_uplo(uplo) && solver_shape(n, n, lda) && solver_shape(n, nrhs, ldb) &&
			type == type_b,
		solver_need(n, nrhs), solver_type_of(type), device, host);
}

static int solve(struct solver_handle *h, bool hermitian, SOLVE_HEAD, void *work, size_t bytes,
	int *info)
{
	if (h && type != type_b)
		return SOLVER_INVALID_VALUE;
	return ldl(h, solve_run,
		&(struct ldl){solver_type_of(type), uplo, n, nrhs, a, lda, pivots, true,
			hermitian, b, ldb, work, bytes, info});
}

#define SOLVE_NAMES uplo, n, nrhs, type, a, lda, pivots, type_b, b, ldb
CALL(cusolverDnXsytrs_bufferSize, struct solver_handle *h, SOLVE_HEAD, size_t *device,
	size_t *host)
{
	return solve_tell(h, SOLVE_NAMES, device, host);
}

CALL(cusolverDnXsytrs, struct solver_handle *h, SOLVE_HEAD, void *work, size_t bytes,
	void *host, size_t host_bytes, int *info)
{
	(void)host;
	(void)host_bytes;
	return solve(h, false, SOLVE_NAMES, work, bytes, info);
}

CALL(cusolverDnXhetrs_bufferSize, struct solver_handle *h, SOLVER_PARAMS, SOLVE_HEAD,
	size_t *device, size_t *host)
{
	return solve_tell(h, SOLVE_NAMES, device, host);
}

CALL(cusolverDnXhetrs, struct solver_handle *h, SOLVER_PARAMS, SOLVE_HEAD, void *work,
	size_t bytes, void *host, size_t host_bytes, int *info)
{
	(void)host;
	(void)host_bytes;
	return solve(h, true, SOLVE_NAMES, work, bytes, info);
}
