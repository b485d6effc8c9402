/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that give U and V: natively by Jacobi's method, by its cousin for batches of high
 * matrices, by polar decomposition, and of a random projection.
 */
#include "softgpu/solver/jacobi.h"
#include "softgpu/solver/svd.h"

#define JACOBI_BATCH_MAX 32 /* rows and columns of gesvdjBatched's matrices */

/* One matrix; `vectors` is cusolverEigMode_t. */
static struct svd problem(enum solver_type type, int vectors, bool econ, int64_t m, int64_t n,
	const void *a, int64_t lda)
{
	return (struct svd){.type = type,
		.left = vectors == 1,
		.right = vectors == 1,
		.econ = econ,
		.rank = solver_min(m, n),
		.m = m,
		.n = n,
		.a = a,
		/* Other modes: no leading dimension fits. */
		.lda = solver_vectors(vectors) ? lda : -1,
		.batch = 1};
}

static struct svd with_out(
	struct svd c, void *s, const void *u, int64_t ldu, const void *v, int64_t ldv)
{
	c.s = s;
	c.u = (void *)(uintptr_t)u;
	c.ldu = ldu;
	c.v = (void *)(uintptr_t)v;
	c.ldv = ldv;
	return c;
}

static struct svd with_work(struct svd c, void *work, uint64_t bytes, int *info)
{
	c.work = work;
	c.bytes = bytes;
	c.info = info;
	return c;
}

/* Matrices one after the other, each with all its vectors. */
static struct svd with_batch(struct svd c, int batch)
{
	c.batch = batch;
	c.stride_a = c.lda * c.n;
	c.stride_s = c.rank;
	c.stride_u = c.ldu * c.m;
	c.stride_v = c.ldv * c.n;
	return c;
}

static int turn(struct solver_handle *h, struct svd c, struct solver_jacobi *jacobi)
{
	int status;
	struct solver_task *t;

	if (h && !jacobi)
		return SOLVER_INVALID_VALUE;
	t = svd_task(h, &c, &status);
	if (!t)
		return status;
	solver_jacobi_keep(t, jacobi);
	return solver_submit(t);
}

static int tell(struct solver_handle *h, bool valid, struct svd c, int *lwork)
{
	return solver_tell(h, valid && svd_valid(&c), svd_need(&c), lwork);
}

#define BYTES(P) (uint64_t)solver_max(lwork, 0) * solver_size(SOLVER_##P)
#define HEAD struct solver_handle *h, int jobz
#define LIKE                                                                                   \
	const void *a, int lda, const void *s, const void *u, int ldu, const void *v, int ldv
#define OUT void *a, int lda, void *s, void *u, int ldu, void *v, int ldv
#define END void *work, int lwork, int *info, struct solver_jacobi *jacobi
#define C(P, ECON) with_out(problem(SOLVER_##P, jobz, ECON, m, n, a, lda), s, u, ldu, v, ldv)
#define ASKED(P, ECON)                                                                         \
	with_out(problem(SOLVER_##P, jobz, ECON, m, n, a, lda), NULL, u, ldu, v, ldv)
#define SMALL (m <= JACOBI_BATCH_MAX && n <= JACOBI_BATCH_MAX)
#define JACOBI(P)                                                                              \
	CALL(cusolverDn##P##gesvdj_bufferSize, HEAD, int econ, int m, int n, LIKE, int *lwork, \
		struct solver_jacobi *jacobi)                                                  \
	{                                                                                      \
		(void)s;                                                                       \
		return tell(h, jacobi, ASKED(P, econ), lwork);                                 \
	}                                                                                      \
	CALL(cusolverDn##P##gesvdj, HEAD, int econ, int m, int n, OUT, END)                    \
	{                                                                                      \
		return turn(h, with_work(C(P, econ), work, BYTES(P), info), jacobi);           \
	}                                                                                      \
	CALL(cusolverDn##P##gesvdjBatched_bufferSize, HEAD, int m, int n, LIKE, int *lwork,    \
		struct solver_jacobi *jacobi, int batch)                                       \
	{                                                                                      \
		(void)s;                                                                       \
		return tell(h, jacobi && SMALL, with_batch(ASKED(P, false), batch), lwork);    \
	}                                                                                      \
	CALL(cusolverDn##P##gesvdjBatched, HEAD, int m, int n, OUT, END, int batch)            \
	{                                                                                      \
		if (h && !SMALL)                                                               \
			return SOLVER_INVALID_VALUE;                                           \
		return turn(h,                                                                 \
			with_work(with_batch(C(P, false), batch), work, BYTES(P), info),       \
			jacobi);                                                               \
	}
EACH_TYPE(JACOBI)

/* ---- batches of high matrices, each somewhere ---- */

static struct svd strided(struct svd c, int rank, const long long strides[4], int batch)
{
	c.rank = rank;
	c.stride_a = strides[0];
	c.stride_s = strides[1];
	c.stride_u = strides[2];
	c.stride_v = strides[3];
	c.batch = batch;
	return c;
}

#define STRIDES ((const long long[]){stride_a, stride_s, stride_u, stride_v})
#define STRIDED(P)                                                                             \
	CALL(cusolverDn##P##gesvdaStridedBatched_bufferSize, HEAD, int rank, int m, int n,     \
		const void *a, int lda, long long stride_a, const void *s, long long stride_s, \
		const void *u, int ldu, long long stride_u, const void *v, int ldv,            \
		long long stride_v, int *lwork, int batch)                                     \
	{                                                                                      \
		(void)s;                                                                       \
		return tell(h, true, strided(ASKED(P, true), rank, STRIDES, batch), lwork);    \
	}                                                                                      \
	CALL(cusolverDn##P##gesvdaStridedBatched, HEAD, int rank, int m, int n, const void *a, \
		int lda, long long stride_a, void *s, long long stride_s, void *u, int ldu,    \
		long long stride_u, void *v, int ldv, long long stride_v, void *work,          \
		int lwork, int *info, double *rest, int batch)                                 \
	{                                                                                      \
		struct svd c = with_work(                                                      \
			strided(C(P, true), rank, STRIDES, batch), work, BYTES(P), info);      \
                                                                                               \
		c.numbers = rest;                                                              \
		return svd_run(h, &c);                                                         \
	}
EACH_TYPE(STRIDED)

/* ---- 64-bit calls ---- */

static bool types(int type, int type_s, int type_u, int type_v, int compute)
{
	enum solver_type t = solver_type_of(type);

	return t != SOLVER_NO_TYPE && solver_type_of(type_s) == solver_real_type(t) &&
	       type_u == type && type_v == type && compute == type;
}

#define HEAD_64 struct solver_handle *h, SOLVER_PARAMS
#define LIKE_64                                                                                \
	int type, const void *a, int64_t lda, int type_s, const void *s, int type_u,           \
		const void *u, int64_t ldu, int type_v, const void *v, int64_t ldv,            \
		int compute, size_t *device, size_t *host
#define OUT_64                                                                                 \
	int type, void *a, int64_t lda, int type_s, void *s, int type_u, void *u, int64_t ldu, \
		int type_v, void *v, int64_t ldv, int compute, void *work, size_t bytes,       \
		void *host, size_t host_bytes, int *info
#define TYPES types(type, type_s, type_u, type_v, compute)
#define C_64(VECTORS, ECON)                                                                    \
	with_out(problem(solver_type_of(type), VECTORS, ECON, m, n, a, lda), NULL, u, ldu, v,  \
		ldv)

CALL(cusolverDnXgesvdp_bufferSize, HEAD_64, int jobz, int econ, int64_t m, int64_t n, LIKE_64)
{
	struct svd c = C_64(jobz, econ);

	(void)s;
	return solver_tell_bytes(h, TYPES && svd_valid(&c), svd_need(&c), c.type, device, host);
}

/* Natively the matrix may be changed a little before its polar decomposition; here it is not.
 */
CALL(cusolverDnXgesvdp, HEAD_64, int jobz, int econ, int64_t m, int64_t n, OUT_64,
	double *changed)
{
	struct svd c = with_work(C_64(jobz, econ), work, bytes, info);
	int status;

	(void)host;
	(void)host_bytes;
	if (h && (!TYPES || !changed))
		return SOLVER_INVALID_VALUE;
	c.s = s;
	status = svd_run(h, &c);
	if (!status)
		*changed = 0;
	return status;
}

/* The largest K; what natively is approached by P more columns and so many turns is exact here.
 */
static bool random_problem(
	struct svd *c, signed char jobu, signed char jobv, int64_t k, int64_t p, int64_t turns)
{
	if ((jobu != 'S' && jobu != 'N') || (jobv != 'S' && jobv != 'N') || k < 0 || p < 0 ||
		turns < 0 || k > c->rank || p > c->rank - k)
		return false;
	c->left = jobu == 'S';
	c->right = jobv == 'S';
	c->rank = k;
	return true;
}

CALL(cusolverDnXgesvdr_bufferSize, HEAD_64, signed char jobu, signed char jobv, int64_t m,
	int64_t n, int64_t k, int64_t p, int64_t turns, LIKE_64)
{
	struct svd c = C_64(0, true);

	(void)s;
	return solver_tell_bytes(h,
		TYPES && random_problem(&c, jobu, jobv, k, p, turns) && svd_valid(&c),
		svd_need(&c), c.type, device, host);
}

CALL(cusolverDnXgesvdr, HEAD_64, signed char jobu, signed char jobv, int64_t m, int64_t n,
	int64_t k, int64_t p, int64_t turns, OUT_64)
{
	struct svd c = with_work(C_64(0, true), work, bytes, info);

	(void)host;
	(void)host_bytes;
	if (h && (!TYPES || !random_problem(&c, jobu, jobv, k, p, turns)))
		return SOLVER_INVALID_VALUE;
	c.s = s;
	return svd_run(h, &c);
}
