/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls for symmetric eigenvalue problems: each says what it wants of eigen.c.
 */
#include "softgpu/solver/eigen.h"
#include "softgpu/solver/jacobi.h"

#define REAL_S float
#define REAL_D double
#define REAL_C float
#define REAL_Z double

/* What the calls are given, in the order in which their arguments begin. */
static struct eigen problem(
	enum solver_type type, int jobz, int uplo, int64_t n, const void *a, int64_t lda)
{
	return (struct eigen){.type = type,
		.jobz = jobz,
		.uplo = uplo,
		.range = EIGEN_RANGE_ALL,
		.n = n,
		.a = (void *)(uintptr_t)a,
		.lda = lda,
		.batch = 1};
}

static struct eigen with_b(struct eigen e, int itype, const void *b, int64_t ldb)
{
	e.itype = itype ? itype : -1; /* no kind has this number */
	e.b = (void *)(uintptr_t)b;
	e.ldb = ldb;
	return e;
}

static struct eigen with_range(
	struct eigen e, int range, double low, double high, int64_t first, int64_t last)
{
	e.range = range;
	e.low = low;
	e.high = high;
	e.first = first;
	e.last = last;
	return e;
}

static struct eigen with_work(struct eigen e, void *w, void *work, uint64_t bytes, int *info)
{
	e.w = w;
	e.work = work;
	e.bytes = bytes;
	e.info = info;
	return e;
}

/* Matrices one after the other. */
static struct eigen with_batch(struct eigen e, int64_t batch)
{
	e.batch = batch;
	e.stride_a = e.lda * e.n;
	e.stride_w = e.n;
	return e;
}

static int tell(struct solver_handle *h, struct eigen e, int *lwork)
{
	return solver_tell(h, eigen_valid(&e), eigen_need(&e), lwork);
}

static int tell_64(
	struct solver_handle *h, bool valid, struct eigen e, size_t *device, size_t *host)
{
	return solver_tell_bytes(h, valid && e.type != SOLVER_NO_TYPE && eigen_valid(&e),
		eigen_need(&e), e.type, device, host);
}

/* By Jacobi's method, as far as the program can tell. */
static int turn(struct solver_handle *h, struct eigen e, struct solver_jacobi *jacobi)
{
	int status;
	struct solver_task *t;

	if (h && !jacobi)
		return SOLVER_INVALID_VALUE;
	t = eigen_task(h, &e, &status);
	if (!t)
		return status;
	solver_jacobi_keep(t, jacobi);
	return solver_submit(t);
}

static int some(struct solver_handle *h, struct eigen e, int *found)
{
	int64_t count = 0;
	int status = eigen_some(h, &e, found ? &count : NULL);

	if (!status)
		*found = (int)count;
	return status;
}

#define BYTES(P) (uint64_t)solver_max(lwork, 0) * solver_size(SOLVER_##P)
#define HEAD struct solver_handle *h
#define WANT int jobz, int uplo, int n, const void *a, int lda
#define WANT_A int jobz, int uplo, int n, void *a, int lda
#define OUT void *w, void *work, int lwork, int *info
#define E(P) problem(SOLVER_##P, jobz, uplo, n, a, lda)
#define ONE(P, O)                                                                              \
	CALL(cusolverDn##P##O##evd_bufferSize, HEAD, WANT, const void *w, int *lwork)          \
	{                                                                                      \
		(void)w;                                                                       \
		return tell(h, E(P), lwork);                                                   \
	}                                                                                      \
	CALL(cusolverDn##P##O##evd, HEAD, WANT_A, OUT)                                         \
	{                                                                                      \
		struct eigen e = with_work(E(P), w, work, BYTES(P), info);                     \
                                                                                               \
		return eigen_all(h, &e);                                                       \
	}                                                                                      \
	CALL(cusolverDn##P##O##evj_bufferSize, HEAD, WANT, const void *w, int *lwork,          \
		struct solver_jacobi *jacobi)                                                  \
	{                                                                                      \
		(void)w;                                                                       \
		return h && !jacobi ? SOLVER_INVALID_VALUE : tell(h, E(P), lwork);             \
	}                                                                                      \
	CALL(cusolverDn##P##O##evj, HEAD, WANT_A, OUT, struct solver_jacobi *jacobi)           \
	{                                                                                      \
		return turn(h, with_work(E(P), w, work, BYTES(P), info), jacobi);              \
	}                                                                                      \
	CALL(cusolverDn##P##O##evjBatched_bufferSize, HEAD, WANT, const void *w, int *lwork,   \
		struct solver_jacobi *jacobi, int batch)                                       \
	{                                                                                      \
		(void)w;                                                                       \
		return h && !jacobi ? SOLVER_INVALID_VALUE                                     \
				    : tell(h, with_batch(E(P), batch), lwork);                 \
	}                                                                                      \
	CALL(cusolverDn##P##O##evjBatched, HEAD, WANT_A, OUT, struct solver_jacobi *jacobi,    \
		int batch)                                                                     \
	{                                                                                      \
		return turn(h, with_batch(with_work(E(P), w, work, BYTES(P), info), batch),    \
			jacobi);                                                               \
	}
ONE(S, sy)
ONE(D, sy)
ONE(C, he)
ONE(Z, he)

#define WANT_B int jobz, int uplo, int n, const void *a, int lda, const void *b, int ldb
#define WANT_AB int jobz, int uplo, int n, void *a, int lda, void *b, int ldb
#define PAIR(P, O)                                                                             \
	CALL(cusolverDn##P##O##gvd_bufferSize, HEAD, int itype, WANT_B, const void *w,         \
		int *lwork)                                                                    \
	{                                                                                      \
		(void)w;                                                                       \
		return tell(h, with_b(E(P), itype, b, ldb), lwork);                            \
	}                                                                                      \
	CALL(cusolverDn##P##O##gvd, HEAD, int itype, WANT_AB, OUT)                             \
	{                                                                                      \
		struct eigen e =                                                               \
			with_work(with_b(E(P), itype, b, ldb), w, work, BYTES(P), info);       \
                                                                                               \
		return eigen_all(h, &e);                                                       \
	}                                                                                      \
	CALL(cusolverDn##P##O##gvj_bufferSize, HEAD, int itype, WANT_B, const void *w,         \
		int *lwork, struct solver_jacobi *jacobi)                                      \
	{                                                                                      \
		(void)w;                                                                       \
		return h && !jacobi ? SOLVER_INVALID_VALUE                                     \
				    : tell(h, with_b(E(P), itype, b, ldb), lwork);             \
	}                                                                                      \
	CALL(cusolverDn##P##O##gvj, HEAD, int itype, WANT_AB, OUT,                             \
		struct solver_jacobi *jacobi)                                                  \
	{                                                                                      \
		return turn(h,                                                                 \
			with_work(with_b(E(P), itype, b, ldb), w, work, BYTES(P), info),       \
			jacobi);                                                               \
	}
PAIR(S, sy)
PAIR(D, sy)
PAIR(C, he)
PAIR(Z, he)

#define RANGE(P) REAL_##P low, REAL_##P high, int first, int last, int *found
#define R(P, X) with_range(X, range, (double)low, (double)high, first, last)
#define SOME(P, O)                                                                             \
	CALL(cusolverDn##P##O##evdx_bufferSize, HEAD, int jobz, int range, int uplo, int n,    \
		const void *a, int lda, RANGE(P), const void *w, int *lwork)                   \
	{                                                                                      \
		(void)found;                                                                   \
		(void)w;                                                                       \
		return tell(h, R(P, E(P)), lwork);                                             \
	}                                                                                      \
	CALL(cusolverDn##P##O##evdx, HEAD, int jobz, int range, int uplo, int n, void *a,      \
		int lda, RANGE(P), OUT)                                                        \
	{                                                                                      \
		return some(h, with_work(R(P, E(P)), w, work, BYTES(P), info), found);         \
	}                                                                                      \
	CALL(cusolverDn##P##O##gvdx_bufferSize, HEAD, int itype, int jobz, int range,          \
		int uplo, int n, const void *a, int lda, const void *b, int ldb, RANGE(P),     \
		const void *w, int *lwork)                                                     \
	{                                                                                      \
		(void)found;                                                                   \
		(void)w;                                                                       \
		return tell(h, R(P, with_b(E(P), itype, b, ldb)), lwork);                      \
	}                                                                                      \
	CALL(cusolverDn##P##O##gvdx, HEAD, int itype, int jobz, int range, int uplo, int n,    \
		void *a, int lda, void *b, int ldb, RANGE(P), OUT)                             \
	{                                                                                      \
		return some(h,                                                                 \
			with_work(R(P, with_b(E(P), itype, b, ldb)), w, work, BYTES(P), info), \
			found);                                                                \
	}
SOME(S, sy)
SOME(D, sy)
SOME(C, he)
SOME(Z, he)

/* ---- 64-bit calls ---- */

#define HEAD_64 struct solver_handle *h, SOLVER_PARAMS
#define OUT_64 int compute, void *work, size_t bytes, void *host, size_t host_bytes, int *info
#define TELL_64 int compute, size_t *device, size_t *host
#define E_64 problem(solver_type_of(type), jobz, uplo, n, a, lda)

/* Whether the types of one call go together. */
static bool types(int type, int type_w, int compute)
{
	enum solver_type t = solver_type_of(type);

	return t != SOLVER_NO_TYPE && compute == type &&
	       solver_type_of(type_w) == solver_real_type(t);
}

/* A bound of a range on the host, of the type of the values. */
static double bound(const void *at, int type_w)
{
	return !at ? 0 : type_w ? *(const double *)at : (double)*(const float *)at;
}

#define WANT_64 int jobz, int uplo, int64_t n, int type, const void *a, int64_t lda
#define WANT_A_64 int jobz, int uplo, int64_t n, int type, void *a, int64_t lda
CALL(cusolverDnXsyevd_bufferSize, HEAD_64, WANT_64, int type_w, const void *w, TELL_64)
{
	(void)w;
	return tell_64(h, types(type, type_w, compute), E_64, device, host);
}

CALL(cusolverDnXsyevd, HEAD_64, WANT_A_64, int type_w, void *w, OUT_64)
{
	struct eigen e = with_work(E_64, w, work, bytes, info);

	(void)host;
	(void)host_bytes;
	if (h && !types(type, type_w, compute))
		return SOLVER_INVALID_VALUE;
	return eigen_all(h, &e);
}

CALL(cusolverDnXsyevBatched_bufferSize, HEAD_64, WANT_64, int type_w, const void *w, TELL_64,
	int64_t batch)
{
	(void)w;
	return tell_64(h, types(type, type_w, compute), with_batch(E_64, batch), device, host);
}

CALL(cusolverDnXsyevBatched, HEAD_64, WANT_A_64, int type_w, void *w, OUT_64, int64_t batch)
{
	struct eigen e = with_batch(with_work(E_64, w, work, bytes, info), batch);

	(void)host;
	(void)host_bytes;
	if (h && !types(type, type_w, compute))
		return SOLVER_INVALID_VALUE;
	return eigen_all(h, &e);
}

#define RANGE_64 void *low, void *high, int64_t first, int64_t last, int64_t *found
#define R_64(X) with_range(X, range, bound(low, type_w), bound(high, type_w), first, last)
CALL(cusolverDnXsyevdx_bufferSize, HEAD_64, int jobz, int range, int uplo, int64_t n, int type,
	const void *a, int64_t lda, RANGE_64, int type_w, const void *w, TELL_64)
{
	(void)found;
	(void)w;
	return tell_64(h, types(type, type_w, compute), R_64(E_64), device, host);
}

CALL(cusolverDnXsyevdx, HEAD_64, int jobz, int range, int uplo, int64_t n, int type, void *a,
	int64_t lda, RANGE_64, int type_w, void *w, OUT_64)
{
	struct eigen e = with_work(R_64(E_64), w, work, bytes, info);

	(void)host;
	(void)host_bytes;
	if (h && !types(type, type_w, compute))
		return SOLVER_INVALID_VALUE;
	return eigen_some(h, &e, found);
}

#define B_64 int type_b, const void *b, int64_t ldb
CALL(cusolverDnXsygvd_bufferSize, HEAD_64, int itype, WANT_64, B_64, int type_w, const void *w,
	TELL_64)
{
	(void)w;
	return tell_64(h, types(type, type_w, compute) && type_b == type,
		with_b(E_64, itype, b, ldb), device, host);
}

CALL(cusolverDnXsygvd, HEAD_64, int itype, WANT_A_64, B_64, int type_w, void *w, OUT_64)
{
	struct eigen e = with_work(with_b(E_64, itype, b, ldb), w, work, bytes, info);

	(void)host;
	(void)host_bytes;
	if (h && (!types(type, type_w, compute) || type_b != type))
		return SOLVER_INVALID_VALUE;
	return eigen_all(h, &e);
}

/* Natively, too, the sizes are asked for without a range. */
CALL(cusolverDnXsygvdx_bufferSize, HEAD_64, int itype, WANT_64, B_64, RANGE_64, int type_w,
	const void *w, TELL_64)
{
	(void)low;
	(void)high;
	(void)first;
	(void)last;
	(void)found;
	(void)w;
	return tell_64(h, types(type, type_w, compute) && type_b == type,
		with_b(E_64, itype, b, ldb), device, host);
}

CALL(cusolverDnXsygvdx, HEAD_64, int itype, int jobz, int range, int uplo, int64_t n, int type,
	void *a, int64_t lda, B_64, RANGE_64, int type_w, void *w, OUT_64)
{
	struct eigen e = with_work(R_64(with_b(E_64, itype, b, ldb)), w, work, bytes, info);

	(void)host;
	(void)host_bytes;
	if (h && (!types(type, type_w, compute) || type_b != type))
		return SOLVER_INVALID_VALUE;
	return eigen_some(h, &e, found);
}

static struct eigen with_strides(struct eigen e, int64_t a, int64_t b, int64_t w, int64_t batch)
{
	e.stride_a = a;
	e.stride_b = b;
	e.stride_w = w;
	e.batch = batch;
	return e;
}

CALL(cusolverDnXsygvStridedBatched_bufferSize, HEAD_64, int itype, WANT_64, int64_t stride_a,
	B_64, int64_t stride_b, int type_w, const void *w, int64_t stride_w, int compute,
	int64_t batch, size_t *device, size_t *host)
{
	(void)w;
	return tell_64(h, types(type, type_w, compute) && type_b == type,
		with_strides(with_b(E_64, itype, b, ldb), stride_a, stride_b, stride_w, batch),
		device, host);
}

CALL(cusolverDnXsygvStridedBatched, HEAD_64, int itype, WANT_A_64, int64_t stride_a, B_64,
	int64_t stride_b, int type_w, void *w, int64_t stride_w, int compute, int64_t batch,
	void *work, size_t bytes, void *host, size_t host_bytes, int *info)
{
	struct eigen e =
		with_strides(with_work(with_b(E_64, itype, b, ldb), w, work, bytes, info),
			stride_a, stride_b, stride_w, batch);

	(void)host;
	(void)host_bytes;
	if (h && (!types(type, type_w, compute) || type_b != type))
		return SOLVER_INVALID_VALUE;
	return eigen_all(h, &e);
}
