/* SPDX-License-Identifier: Apache-2.0
 *
 * QR, the orthogonal matrices that it and the reductions leave as reflectors, and blocks of
 * these.
 */
#include <stdlib.h>

#include "softgpu/solver/solver.h"

LAPACK4(geqrf, const int *, const int *, void *, const int *, void *, void *, const int *,
	int *);
LAPACK22(orgqr, ungqr, const int *, const int *, const int *, void *, const int *, const void *,
	void *, const int *, int *);
LAPACK22(ormqr, unmqr, const char *, const char *, const int *, const int *, const int *,
	const void *, const int *, const void *, void *, const int *, void *, const int *,
	int *, size_t, size_t);
LAPACK22(orgbr, ungbr, const char *, const int *, const int *, const int *, void *, const int *,
	const void *, void *, const int *, int *, size_t);
LAPACK22(orgtr, ungtr, const char *, const int *, void *, const int *, const void *, void *,
	const int *, int *, size_t);
LAPACK22(ormtr, unmtr, const char *, const char *, const char *, const int *, const int *,
	const void *, const int *, const void *, void *, const int *, void *, const int *,
	int *, size_t, size_t, size_t);
LAPACK4(larft, const char *, const char *, const int *, const int *, const void *, const int *,
	const void *, void *, const int *, size_t, size_t);

/* Runs FUNCTION twice: LAPACK tells the size of its workspace first. */
static void with_work(
	struct solver_task *t, void (*function)(struct solver_task *, void *, const int *))
{
	double query[2] = {0};
	int size = -1;
	void *work;

	function(t, query, &size);
	size = solver_lapack_work(t->type, query);
	work = solver_scratch(t, (uint64_t)size, solver_size(t->type));
	if (work)
		function(t, work, &size);
	free(work);
}

#define WITH_WORK(NAME, ...)                                                                   \
	static void NAME##_call(struct solver_task *t, void *work, const int *size)            \
	{                                                                                      \
		lapack_##NAME[t->type](__VA_ARGS__);                                           \
	}                                                                                      \
	static void NAME##_run(struct solver_task *t)                                          \
	{                                                                                      \
		with_work(t, NAME##_call);                                                     \
	}
WITH_WORK(geqrf, &t->m, &t->n, t->a.at, &t->a.ld, t->w, work, size, t->info)
WITH_WORK(orgqr, &t->m, &t->n, &t->k, t->a.at, &t->a.ld, t->w, work, size, t->info)
WITH_WORK(ormqr, &t->side, &t->op, &t->m, &t->n, &t->k, t->a.at, &t->a.ld, t->w, t->c.at,
	&t->c.ld, work, size, t->info, 1, 1)
WITH_WORK(orgbr, &t->side, &t->m, &t->n, &t->k, t->a.at, &t->a.ld, t->w, work, size, t->info, 1)
WITH_WORK(orgtr, &t->uplo, &t->n, t->a.at, &t->a.ld, t->w, work, size, t->info, 1)
WITH_WORK(ormtr, &t->side, &t->uplo, &t->op, &t->m, &t->n, t->a.at, &t->a.ld, t->w, t->c.at,
	&t->c.ld, work, size, t->info, 1, 1, 1)

/* What a call names beside its matrices. */
struct rest {
	void *work;
	uint64_t bytes;
	int *info;
};
#define REST(P)                                                                                \
	((struct rest){work, (uint64_t)solver_max(lwork, 0) * solver_size(SOLVER_##P), info})

/* The task for A of so many rows and columns and `taus` reflectors, or NULL. */
static struct solver_task *reflectors(struct solver_handle *h,
	void (*run)(struct solver_task *), enum solver_type type, int64_t rows, int64_t cols,
	const void *a, int64_t lda, const void *tau, int64_t taus, int64_t need,
	const struct rest *rest, int *status)
{
	struct solver_task *t = solver_new(h, run, type, status);

	if (!t)
		return NULL;
	if (!solver_shape(rows, cols, lda) || taus < 0 ||
		rest->bytes < (uint64_t)need * solver_size(type)) {
		solver_drop(t);
		*status = SOLVER_INVALID_VALUE;
		return NULL;
	}
	t->a = solver_matrix(t, a, rows, cols, lda);
	t->w = (void *)(uintptr_t)tau;
	solver_uses(t, tau, (uint64_t)taus, solver_size(type));
	t->info = rest->info;
	solver_uses(t, rest->info, 1, sizeof(int));
	solver_work(t, rest->work, rest->bytes);
	return t;
}

static int geqrf(struct solver_handle *h, enum solver_type type, int64_t m, int64_t n, void *a,
	int64_t lda, void *tau, struct rest rest)
{
	int status;
	struct solver_task *t = reflectors(h, geqrf_run, type, m, n, a, lda, tau,
		solver_min(m, n), solver_need(m, n), &rest, &status);

	if (!t)
		return status;
	t->m = (int)m;
	t->n = (int)n;
	return solver_submit(t);
}

static bool orgqr_valid(int m, int n, int k, int lda)
{
	return solver_shape(m, n, lda) && n <= m && k >= 0 && k <= n;
}

static int orgqr(struct solver_handle *h, enum solver_type type, int m, int n, int k, void *a,
	int lda, const void *tau, struct rest rest)
{
	int status;
	struct solver_task *t;

	if (h && !orgqr_valid(m, n, k, lda))
		return SOLVER_INVALID_VALUE;
	t = reflectors(
		h, orgqr_run, type, m, n, a, lda, tau, k, solver_need(m, n), &rest, &status);
	if (!t)
		return status;
	t->m = m;
	t->n = n;
	t->k = k;
	return solver_submit(t);
}

static bool ormqr_valid(
	enum solver_type type, int side, int op, int m, int n, int k, int lda, int ldc)
{
	int order = side == SOLVER_LEFT ? m : n;

	return solver_side(side) && solver_op(op, type) && !(solver_complex(type) && op == 1) &&
	       k >= 0 && k <= order && solver_shape(order, k, lda) && solver_shape(m, n, ldc);
}

static int ormqr(struct solver_handle *h, enum solver_type type, int side, int op, int m, int n,
	int k, const void *a, int lda, const void *tau, void *c, int ldc, struct rest rest)
{
	int status;
	struct solver_task *t;

	if (h && !ormqr_valid(type, side, op, m, n, k, lda, ldc))
		return SOLVER_INVALID_VALUE;
	t = reflectors(h, ormqr_run, type, side == SOLVER_LEFT ? m : n, k, a, lda, tau, k,
		solver_need(m, n), &rest, &status);
	if (!t)
		return status;
	t->side = solver_side(side);
	t->op = solver_op(op, type);
	t->m = m;
	t->n = n;
	t->k = k;
	t->c = solver_matrix(t, c, m, n, ldc);
	return solver_submit(t);
}

#define QR(P)                                                                                  \
	CALL(cusolverDn##P##geqrf_bufferSize, struct solver_handle *h, int m, int n, void *a,  \
		int lda, int *lwork)                                                           \
	{                                                                                      \
		(void)a;                                                                       \
		return solver_tell(h, solver_shape(m, n, lda), solver_need(m, n), lwork);      \
	}                                                                                      \
	CALL(cusolverDn##P##geqrf, struct solver_handle *h, int m, int n, void *a, int lda,    \
		void *tau, void *work, int lwork, int *info)                                   \
	{                                                                                      \
		return geqrf(h, SOLVER_##P, m, n, a, lda, tau, REST(P));                       \
	}
EACH_TYPE(QR)

/* A real type's name and a complex one's, `or` and `un`. */
#define ORTHOGONAL(P, O)                                                                       \
	CALL(cusolverDn##P##O##gqr_bufferSize, struct solver_handle *h, int m, int n, int k,   \
		const void *a, int lda, const void *tau, int *lwork)                           \
	{                                                                                      \
		(void)a;                                                                       \
		(void)tau;                                                                     \
		return solver_tell(h, orgqr_valid(m, n, k, lda), solver_need(m, n), lwork);    \
	}                                                                                      \
	CALL(cusolverDn##P##O##gqr, struct solver_handle *h, int m, int n, int k, void *a,     \
		int lda, const void *tau, void *work, int lwork, int *info)                    \
	{                                                                                      \
		return orgqr(h, SOLVER_##P, m, n, k, a, lda, tau, REST(P));                    \
	}                                                                                      \
	CALL(cusolverDn##P##O##mqr_bufferSize, struct solver_handle *h, int side, int op,      \
		int m, int n, int k, const void *a, int lda, const void *tau, const void *c,   \
		int ldc, int *lwork)                                                           \
	{                                                                                      \
		(void)a;                                                                       \
		(void)tau;                                                                     \
		(void)c;                                                                       \
		return solver_tell(h, ormqr_valid(SOLVER_##P, side, op, m, n, k, lda, ldc),    \
			solver_need(m, n), lwork);                                             \
	}                                                                                      \
	CALL(cusolverDn##P##O##mqr, struct solver_handle *h, int side, int op, int m, int n,   \
		int k, const void *a, int lda, const void *tau, void *c, int ldc, void *work,  \
		int lwork, int *info)                                                          \
	{                                                                                      \
		return ormqr(h, SOLVER_##P, side, op, m, n, k, a, lda, tau, c, ldc, REST(P));  \
	}
ORTHOGONAL(S, or)
ORTHOGONAL(D, or)
ORTHOGONAL(C, un)
ORTHOGONAL(Z, un)

CALL(cusolverDnXgeqrf_bufferSize, struct solver_handle *h, SOLVER_PARAMS, int64_t m, int64_t n,
	int type, const void *a, int64_t lda, int type_tau, const void *tau, int compute,
	size_t *device, size_t *host)
{
	(void)a;
	(void)tau;
	return solver_tell_bytes(h,
		solver_shape(m, n, lda) && compute == type && type_tau == type,
		solver_need(m, n), solver_type_of(type), device, host);
}

CALL(cusolverDnXgeqrf, struct solver_handle *h, SOLVER_PARAMS, int64_t m, int64_t n, int type,
	void *a, int64_t lda, int type_tau, void *tau, int compute, void *work, size_t bytes,
	void *host, size_t host_bytes, int *info)
{
	(void)host;
	(void)host_bytes;
	if (h && (compute != type || type_tau != type))
		return SOLVER_INVALID_VALUE;
	return geqrf(
		h, solver_type_of(type), m, n, a, lda, tau, (struct rest){work, bytes, info});
}

/* ---- what the reductions to two and three diagonals leave (diagonals.c) ---- */

static bool orgbr_valid(int side, int m, int n, int k, int lda)
{
	return solver_side(side) && solver_shape(m, n, lda) && k >= 0 &&
	       (side == SOLVER_LEFT ? n <= m && n >= solver_min(m, k)
				    : m <= n && m >= solver_min(n, k));
}

static int orgbr(struct solver_handle *h, enum solver_type type, int side, int m, int n, int k,
	void *a, int lda, const void *tau, struct rest rest)
{
	int status;
	struct solver_task *t;

	if (h && !orgbr_valid(side, m, n, k, lda))
		return SOLVER_INVALID_VALUE;
	t = reflectors(h, orgbr_run, type, m, n, a, lda, tau,
		solver_min(side == SOLVER_LEFT ? m : n, k), solver_need(m, n), &rest, &status);
	if (!t)
		return status;
	t->side = side == SOLVER_LEFT ? 'Q' : 'P';
	t->m = m;
	t->n = n;
	t->k = k;
	return solver_submit(t);
}

static int orgtr(struct solver_handle *h, enum solver_type type, int uplo, int n, void *a,
	int lda, const void *tau, struct rest rest)
{
	int status;
	struct solver_task *t;

	if (h && !solver_uplo(uplo))
		return SOLVER_INVALID_VALUE;
	t = reflectors(h, orgtr_run, type, n, n, a, lda, tau, solver_max(n - 1, 0),
		solver_need(n, n), &rest, &status);
	if (!t)
		return status;
	t->uplo = solver_uplo(uplo);
	t->n = n;
	return solver_submit(t);
}

static bool ormtr_valid(
	enum solver_type type, int side, int uplo, int op, int m, int n, int lda, int ldc)
{
	int order = side == SOLVER_LEFT ? m : n;

	return solver_side(side) && solver_uplo(uplo) && solver_op(op, type) &&
	       !(solver_complex(type) && op == 1) && solver_shape(order, order, lda) &&
	       solver_shape(m, n, ldc);
}

static int ormtr(struct solver_handle *h, enum solver_type type, int side, int uplo, int op,
	int m, int n, const void *a, int lda, const void *tau, void *c, int ldc,
	struct rest rest)
{
	int status, order = side == SOLVER_LEFT ? m : n;
	struct solver_task *t;

	if (h && !ormtr_valid(type, side, uplo, op, m, n, lda, ldc))
		return SOLVER_INVALID_VALUE;
	t = reflectors(h, ormtr_run, type, order, order, a, lda, tau, solver_max(order - 1, 0),
		solver_need(m, n), &rest, &status);
	if (!t)
		return status;
	t->side = solver_side(side);
	t->uplo = solver_uplo(uplo);
	t->op = solver_op(op, type);
	t->m = m;
	t->n = n;
	t->c = solver_matrix(t, c, m, n, ldc);
	return solver_submit(t);
}

#define REDUCED(P, O)                                                                          \
	CALL(cusolverDn##P##O##gbr_bufferSize, struct solver_handle *h, int side, int m,       \
		int n, int k, const void *a, int lda, const void *tau, int *lwork)             \
	{                                                                                      \
		(void)a;                                                                       \
		(void)tau;                                                                     \
		return solver_tell(                                                            \
			h, orgbr_valid(side, m, n, k, lda), solver_need(m, n), lwork);         \
	}                                                                                      \
	CALL(cusolverDn##P##O##gbr, struct solver_handle *h, int side, int m, int n, int k,    \
		void *a, int lda, const void *tau, void *work, int lwork, int *info)           \
	{                                                                                      \
		return orgbr(h, SOLVER_##P, side, m, n, k, a, lda, tau, REST(P));              \
	}                                                                                      \
	CALL(cusolverDn##P##O##gtr_bufferSize, struct solver_handle *h, int uplo, int n,       \
		const void *a, int lda, const void *tau, int *lwork)                           \
	{                                                                                      \
		(void)a;                                                                       \
		(void)tau;                                                                     \
		return solver_tell(h, solver_uplo(uplo) && solver_shape(n, n, lda),            \
			solver_need(n, n), lwork);                                             \
	}                                                                                      \
	CALL(cusolverDn##P##O##gtr, struct solver_handle *h, int uplo, int n, void *a,         \
		int lda, const void *tau, void *work, int lwork, int *info)                    \
	{                                                                                      \
		return orgtr(h, SOLVER_##P, uplo, n, a, lda, tau, REST(P));                    \
	}                                                                                      \
	CALL(cusolverDn##P##O##mtr_bufferSize, struct solver_handle *h, int side, int uplo,    \
		int op, int m, int n, const void *a, int lda, const void *tau, const void *c,  \
		int ldc, int *lwork)                                                           \
	{                                                                                      \
		(void)a;                                                                       \
		(void)tau;                                                                     \
		(void)c;                                                                       \
		return solver_tell(h, ormtr_valid(SOLVER_##P, side, uplo, op, m, n, lda, ldc), \
			solver_need(m, n), lwork);                                             \
	}                                                                                      \
	CALL(cusolverDn##P##O##mtr, struct solver_handle *h, int side, int uplo, int op,       \
		int m, int n, void *a, int lda, void *tau, void *c, int ldc, void *work,       \
		int lwork, int *info)                                                          \
	{                                                                                      \
		return ormtr(                                                                  \
			h, SOLVER_##P, side, uplo, op, m, n, a, lda, tau, c, ldc, REST(P));    \
	}
REDUCED(S, or)
REDUCED(D, or)
REDUCED(C, un)
REDUCED(Z, un)

/* ---- blocks of reflectors ---- */

static void larft_run(struct solver_task *t)
{
	lapack_larft[t->type](&t->job, &t->job2, &t->n, &t->k, t->a.at, &t->a.ld, t->w, t->c.at,
		&t->c.ld, 1, 1);
}

static bool larft_valid(int direct, int storev, int64_t n, int64_t k, int64_t ldv, int64_t ldt)
{
	return (direct == 0 || direct == 1) && (storev == 0 || storev == 1) && k <= n &&
	       (storev ? solver_shape(k, n, ldv) : solver_shape(n, k, ldv)) &&
	       solver_shape(k, k, ldt);
}

CALL(cusolverDnXlarft_bufferSize, struct solver_handle *h, SOLVER_PARAMS, int direct,
	int storev, int64_t n, int64_t k, int type, const void *v, int64_t ldv, int type_tau,
	const void *tau, int type_t, void *to, int64_t ldt, int compute, size_t *device,
	size_t *host)
{
	(void)v;
	(void)tau;
	(void)to;
	return solver_tell_bytes(h,
		larft_valid(direct, storev, n, k, ldv, ldt) && type_tau == type &&
			type_t == type && compute == type,
		solver_need(n, k), solver_type_of(type), device, host);
}

CALL(cusolverDnXlarft, struct solver_handle *h, SOLVER_PARAMS, int direct, int storev,
	int64_t n, int64_t k, int type, const void *v, int64_t ldv, int type_tau,
	const void *tau, int type_t, void *to, int64_t ldt, int compute, void *work,
	size_t bytes, void *host, size_t host_bytes)
{
	int status;
	struct solver_task *t = solver_new(h, larft_run, solver_type_of(type), &status);

	(void)host;
	(void)host_bytes;
	if (!t)
		return status;
	if (!larft_valid(direct, storev, n, k, ldv, ldt) || type_tau != type ||
		type_t != type || compute != type ||
		bytes < (uint64_t)solver_need(n, k) * solver_size(t->type)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->job = direct ? 'B' : 'F';
	t->job2 = storev ? 'R' : 'C';
	t->n = (int)n;
	t->k = (int)k;
	t->a = storev ? solver_matrix(t, v, k, n, ldv) : solver_matrix(t, v, n, k, ldv);
	t->w = (void *)(uintptr_t)tau;
	solver_uses(t, tau, (uint64_t)k, solver_size(t->type));
	t->c = solver_matrix(t, to, k, k, ldt);
	solver_work(t, work, bytes);
	return solver_submit(t);
}
