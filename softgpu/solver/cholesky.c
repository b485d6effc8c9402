/* SPDX-License-Identifier: Apache-2.0
 *
 * Cholesky's factorization, what is solved and inverted with it, and triangles.
 */
#include "softgpu/solver/solver.h"

LAPACK4(potrf, const char *, const int *, void *, const int *, int *, size_t);
LAPACK4(potrs, const char *, const int *, const int *, const void *, const int *, void *,
	const int *, int *, size_t);
LAPACK4(potri, const char *, const int *, void *, const int *, int *, size_t);
LAPACK4(lauum, const char *, const int *, void *, const int *, int *, size_t);
LAPACK4(trtri, const char *, const char *, const int *, void *, const int *, int *, size_t,
	size_t);

/* ---- of one matrix, in place ---- */

static void potrf_run(struct solver_task *t)
{
	lapack_potrf[t->type](&t->uplo, &t->n, t->a.at, &t->a.ld, t->info, 1);
}
static void potri_run(struct solver_task *t)
{
	lapack_potri[t->type](&t->uplo, &t->n, t->a.at, &t->a.ld, t->info, 1);
}
static void lauum_run(struct solver_task *t)
{
	lapack_lauum[t->type](&t->uplo, &t->n, t->a.at, &t->a.ld, t->info, 1);
}
static void trtri_run(struct solver_task *t)
{
	lapack_trtri[t->type](&t->uplo, &t->diag, &t->n, t->a.at, &t->a.ld, t->info, 1, 1);
}

static int square(struct solver_handle *h, void (*run)(struct solver_task *),
	enum solver_type type, int uplo, int diag, int64_t n, void *a, int64_t lda, void *work,
	uint64_t bytes, int *info)
{
	int status;
	struct solver_task *t = solver_new(h, run, type, &status);

	if (!t)
		return status;
	t->uplo = solver_uplo(uplo);
	t->diag = solver_diag(diag);
	if (!t->uplo || !t->diag || !solver_shape(n, n, lda) ||
		bytes < (uint64_t)solver_need(n, n) * solver_size(type)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = (int)n;
	t->a = solver_matrix(t, a, n, n, lda);
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	solver_work(t, work, bytes);
	return solver_submit(t);
}

/* `any`: a size below 0 has a workspace too, as natively (H200, 2026-11-23). */
static bool size_valid(bool any, int uplo, int n, int lda)
{
	return solver_uplo(uplo) && ((any && n < 0) || solver_shape(n, n, lda));
}

#define SQUARE(P, NAME, ANY)                                                                   \
	CALL(cusolverDn##P##NAME##_bufferSize, struct solver_handle *h, int uplo, int n,       \
		void *a, int lda, int *lwork)                                                  \
	{                                                                                      \
		(void)a;                                                                       \
		return solver_tell(                                                            \
			h, size_valid(ANY, uplo, n, lda), solver_need(n, n), lwork);           \
	}                                                                                      \
	CALL(cusolverDn##P##NAME, struct solver_handle *h, int uplo, int n, void *a, int lda,  \
		void *work, int lwork, int *info)                                              \
	{                                                                                      \
		return square(h, NAME##_run, SOLVER_##P, uplo, 0, n, a, lda, work,             \
			(uint64_t)solver_max(lwork, 0) * solver_size(SOLVER_##P), info);       \
	}
#define SQUARES(P) SQUARE(P, potrf, true) SQUARE(P, potri, false) SQUARE(P, lauum, false)
EACH_TYPE(SQUARES)

CALL(cusolverDnXpotrf_bufferSize, struct solver_handle *h, SOLVER_PARAMS, int uplo, int64_t n,
	int type, const void *a, int64_t lda, int compute, size_t *device, size_t *host)
{
	(void)a;
	return solver_tell_bytes(h,
		solver_uplo(uplo) && solver_shape(n, n, lda) && compute == type,
		solver_need(n, n), solver_type_of(type), device, host);
}

CALL(cusolverDnXpotrf, struct solver_handle *h, SOLVER_PARAMS, int uplo, int64_t n, int type,
	void *a, int64_t lda, int compute, void *work, size_t bytes, void *host,
	size_t host_bytes, int *info)
{
	(void)host;
	(void)host_bytes;
	if (h && compute != type)
		return SOLVER_INVALID_VALUE;
	return square(
		h, potrf_run, solver_type_of(type), uplo, 0, n, a, lda, work, bytes, info);
}

CALL(cusolverDnXtrtri_bufferSize, struct solver_handle *h, int uplo, int diag, int64_t n,
	int type, void *a, int64_t lda, size_t *device, size_t *host)
{
	(void)a;
	return solver_tell_bytes(h,
		solver_uplo(uplo) && solver_diag(diag) && solver_shape(n, n, lda),
		solver_need(n, n), solver_type_of(type), device, host);
}

CALL(cusolverDnXtrtri, struct solver_handle *h, int uplo, int diag, int64_t n, int type,
	void *a, int64_t lda, void *work, size_t bytes, void *host, size_t host_bytes,
	int *info)
{
	(void)host;
	(void)host_bytes;
	return square(
		h, trtri_run, solver_type_of(type), uplo, diag, n, a, lda, work, bytes, info);
}

/* ---- right-hand sides ---- */

static void potrs_run(struct solver_task *t)
{
	lapack_potrs[t->type](
		&t->uplo, &t->n, &t->k, t->a.at, &t->a.ld, t->b.at, &t->b.ld, t->info, 1);
}

static int potrs(struct solver_handle *h, enum solver_type type, int uplo, int64_t n,
	int64_t nrhs, const void *a, int64_t lda, void *b, int64_t ldb, int *info)
{
	int status;
	struct solver_task *t = solver_new(h, potrs_run, type, &status);

	if (!t)
		return status;
	t->uplo = solver_uplo(uplo);
	if (!t->uplo || !solver_shape(n, n, lda) || !solver_shape(n, nrhs, ldb)) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = (int)n;
	t->k = (int)nrhs;
	t->a = solver_matrix(t, a, n, n, lda);
	t->b = solver_matrix(t, b, n, nrhs, ldb);
	t->info = info;
	solver_uses(t, info, 1, sizeof(*info));
	return solver_submit(t);
}

#define POTRS(P)                                                                               \
	CALL(cusolverDn##P##potrs, struct solver_handle *h, int uplo, int n, int nrhs,         \
		const void *a, int lda, void *b, int ldb, int *info)                           \
	{                                                                                      \
		return potrs(h, SOLVER_##P, uplo, n, nrhs, a, lda, b, ldb, info);              \
	}
EACH_TYPE(POTRS)

CALL(cusolverDnXpotrs, struct solver_handle *h, SOLVER_PARAMS, int uplo, int64_t n,
	int64_t nrhs, int type, const void *a, int64_t lda, int type_b, void *b, int64_t ldb,
	int *info)
{
	if (h && type != type_b)
		return SOLVER_INVALID_VALUE;
	return potrs(h, solver_type_of(type), uplo, n, nrhs, a, lda, b, ldb, info);
}

/* ---- batches: arrays of addresses on the device ---- */

/* Matrix I of an array of addresses; NULL where the device does not have it. */
static void *member(struct solver_task *t, const struct solver_matrix *array, int i, int cols)
{
	void *at = ((void **)array->at)[i];
	uint64_t elements =
		t->n && cols ? (uint64_t)(cols - 1) * (uint64_t)array->ld + (uint64_t)t->n : 0;

	return solver_reaches(t, at, elements, solver_size(t->type)) ? at : NULL;
}

static void potrf_batch_run(struct solver_task *t)
{
	for (int i = 0; i < t->batch && !t->handle->failed; i++) {
		void *a = member(t, &t->a, i, t->n);

		if (a)
			lapack_potrf[t->type](&t->uplo, &t->n, a, &t->a.ld, &t->info[i], 1);
	}
}

/* One right-hand side each, and one info for the call. */
static void potrs_batch_run(struct solver_task *t)
{
	*t->info = 0;
	for (int i = 0; i < t->batch && !t->handle->failed; i++) {
		void *a = member(t, &t->a, i, t->n), *b = member(t, &t->b, i, t->k);
		int info;

		if (a && b)
			lapack_potrs[t->type](
				&t->uplo, &t->n, &t->k, a, &t->a.ld, b, &t->b.ld, &info, 1);
	}
}

static int batch(struct solver_handle *h, void (*run)(struct solver_task *),
	enum solver_type type, int uplo, int n, int nrhs, void *a, int lda, void *b, int ldb,
	int *info, int count)
{
	int status;
	struct solver_task *t = solver_new(h, run, type, &status);

	if (!t)
		return status;
	t->uplo = solver_uplo(uplo);
	if (!t->uplo || !solver_shape(n, n, lda) || count < 0 ||
		(b && !solver_shape(n, nrhs, ldb))) {
		solver_drop(t);
		return SOLVER_INVALID_VALUE;
	}
	t->n = n;
	t->k = nrhs;
	t->batch = count;
	t->a = (struct solver_matrix){a, lda, 0};
	t->b = (struct solver_matrix){b, ldb, 0};
	t->info = info;
	solver_uses(t, a, (uint64_t)count, sizeof(void *));
	if (b)
		solver_uses(t, b, (uint64_t)count, sizeof(void *));
	solver_uses(t, info, b ? 1 : (uint64_t)count, sizeof(*info));
	return solver_submit(t);
}

#define BATCHES(P)                                                                             \
	CALL(cusolverDn##P##potrfBatched, struct solver_handle *h, int uplo, int n, void *a[], \
		int lda, int *info, int count)                                                 \
	{                                                                                      \
		return batch(h, potrf_batch_run, SOLVER_##P, uplo, n, 0, a, lda, NULL, 1,      \
			info, count);                                                          \
	}                                                                                      \
	CALL(cusolverDn##P##potrsBatched, struct solver_handle *h, int uplo, int n, int nrhs,  \
		void *a[], int lda, void *b[], int ldb, int *info, int count)                  \
	{                                                                                      \
		if (h && (nrhs != 1 || (!b && count)))                                         \
			return nrhs != 1 ? SOLVER_NOT_SUPPORTED : SOLVER_INVALID_VALUE;        \
		return batch(h, potrs_batch_run, SOLVER_##P, uplo, n, nrhs, a, lda, b, ldb,    \
			info, count);                                                          \
	}
EACH_TYPE(BATCHES)
