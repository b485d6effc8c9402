/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse factorizations that are kept: QR, alone and of a batch of matrices, and Cholesky's.
 * What an info object is given on the way is checked against what it was analysed for.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/solver/sparse.h"

struct qr_info {
	int m, n, entries;
	bool analysed;
	enum solver_type type;
	number *set; /* the matrix that a factorization will be of */
	struct solver_sparse_qr qr;
};

struct cholesky_info {
	int n, entries;
	bool analysed;
	enum solver_type type;
	number *factor;
	int ended; /* where the factorization did, or -1 */
};

#define OBJECT(NAME, TYPE, CLEAR)                                                              \
	CALL(cusolverSpCreate##NAME, struct TYPE **info)                                       \
	{                                                                                      \
		if (!info)                                                                     \
			return SOLVER_INVALID_VALUE;                                           \
		*info = calloc(1, sizeof(**info));                                             \
		return *info ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;                           \
	}                                                                                      \
	CALL(cusolverSpDestroy##NAME, struct TYPE *info)                                       \
	{                                                                                      \
		if (!info)                                                                     \
			return SOLVER_INVALID_VALUE;                                           \
		CLEAR;                                                                         \
		free(info);                                                                    \
		return SOLVER_SUCCESS;                                                         \
	}
OBJECT(CsrqrInfo, qr_info, solver_sparse_qr_drop(&info->qr); free(info->set))
OBJECT(CsrcholInfo, cholesky_info, free(info->factor))

#define PATTERN                                                                                \
	const struct solver_sparse_descriptor *descriptor, const int *rows, const int *columns
#define VALUES                                                                                 \
	const struct solver_sparse_descriptor *descriptor, const void *values,                 \
		const int *rows, const int *columns

/* Sizes as natively: they grow with the matrix. */
static int sizes(
	int m, int n, int entries, int batch, size_t *internal_bytes, size_t *work_bytes)
{
	if (m < 0 || n < 0 || entries < 0 || batch < 1 || !internal_bytes || !work_bytes)
		return SOLVER_INVALID_VALUE;
	*internal_bytes = sizeof(number) * ((size_t)entries + (size_t)m + (size_t)n);
	*work_bytes = sizeof(number) * ((size_t)m + (size_t)n + 1) * (size_t)batch;
	return SOLVER_SUCCESS;
}

/* ---- QR ---- */

static int qr_analyse(struct solver_sparse_handle *h, int m, int n, int entries, PATTERN,
	struct qr_info *info)
{
	if (!h)
		return SOLVER_NOT_INITIALIZED;
	if (!info || !descriptor || !rows || m < 0 || n < 0 || entries < 0 || m < n ||
		(entries && !columns))
		return SOLVER_INVALID_VALUE;
	info->m = m;
	info->n = n;
	info->entries = entries;
	info->analysed = true;
	return SOLVER_SUCCESS;
}

CALL(cusolverSpXcsrqrAnalysis, struct solver_sparse_handle *h, int m, int n, int entries,
	PATTERN, struct qr_info *info)
{
	return qr_analyse(h, m, n, entries, descriptor, rows, columns, info);
}

CALL(cusolverSpXcsrqrAnalysisBatched, struct solver_sparse_handle *h, int m, int n, int entries,
	PATTERN, struct qr_info *info)
{
	return qr_analyse(h, m, n, entries, descriptor, rows, columns, info);
}

static bool qr_fits(const struct qr_info *info, int m, int n, int entries)
{
	return info && info->analysed && info->m == m && info->n == n &&
	       info->entries == entries;
}

static int qr_setup(struct solver_sparse_handle *h, const struct solver_sparse_matrix *a,
	number shift, struct qr_info *info)
{
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;

	if (!status && !qr_fits(info, a->m, a->n, a->entries))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	free(info->set);
	info->set = solver_sparse_dense(a, &status);
	for (int64_t j = 0; info->set && j < a->n; j++)
		info->set[j + j * a->m] -= shift;
	info->type = a->type;
	solver_sparse_end();
	return status;
}

/* B, of m numbers on the device, becomes X, of n. */
static int qr_answer(const struct qr_info *info, const void *b, void *x)
{
	int status;
	number *both = solver_sparse_vector(info->type, b, info->m, &status);

	if (both)
		status = solver_sparse_qr_solve(&info->qr, both);
	if (!status)
		status = solver_sparse_store(info->type, x, both, info->n);
	free(both);
	return status;
}

static int qr_factor(struct solver_sparse_handle *h, enum solver_type type, int m, int n,
	int entries, const void *b, void *x, struct qr_info *info)
{
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;

	if (!status && (!qr_fits(info, m, n, entries) || !info->set || info->type != type))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	solver_sparse_qr_drop(&info->qr);
	status = solver_sparse_qr(&info->qr, info->set, m, n);
	info->set = NULL;
	if (!status && b && x)
		status = qr_answer(info, b, x);
	solver_sparse_end();
	return status;
}

static int qr_solve(struct solver_sparse_handle *h, enum solver_type type, int m, int n,
	const void *b, void *x, const struct qr_info *info)
{
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;

	if (!status &&
		(!info || !info->qr.a || info->type != type || info->m != m || info->n != n))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	status = qr_answer(info, b, x);
	solver_sparse_end();
	return status;
}

static int qr_pivot(struct solver_sparse_handle *h, const struct qr_info *info,
	double tolerance, int *position)
{
	if (!h)
		return SOLVER_NOT_INITIALIZED;
	if (!info || !info->qr.a || !position)
		return SOLVER_INVALID_VALUE;
	*position = solver_sparse_qr_singular(&info->qr, tolerance);
	return SOLVER_SUCCESS;
}

static int qr_batch(struct solver_sparse_handle *h, const struct solver_sparse_matrix *first,
	const void *b, void *x, int batch, const struct qr_info *info)
{
	unsigned size = solver_size(first->type);
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;
	struct solver_sparse_matrix a = *first;

	if (!status && (!qr_fits(info, a.m, a.n, a.entries) || batch < 1))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	for (int64_t i = 0; !status && i < batch; i++) {
		struct qr_info one = {.m = a.m, .n = a.n, .type = a.type};
		number *dense;

		a.values = (const char *)first->values + i * a.entries * size;
		dense = solver_sparse_dense(&a, &status);
		if (dense)
			status = solver_sparse_qr(&one.qr, dense, a.m, a.n);
		if (!status)
			status = qr_answer(&one, (const char *)b + i * a.m * size,
				(char *)x + i * a.n * size);
		solver_sparse_qr_drop(&one.qr);
	}
	solver_sparse_end();
	return status;
}

#define QR(P, REAL, NUMBER)                                                                    \
	CALL(cusolverSp##P##csrqrBufferInfo, struct solver_sparse_handle *h, int m, int n,     \
		int entries, VALUES, struct qr_info *info, size_t *internal_bytes,             \
		size_t *work_bytes)                                                            \
	{                                                                                      \
		(void)descriptor, (void)values, (void)rows, (void)columns;                     \
		return !h ? SOLVER_NOT_INITIALIZED                                             \
		       : !qr_fits(info, m, n, entries)                                         \
			       ? SOLVER_INVALID_VALUE                                          \
			       : sizes(m, n, entries, 1, internal_bytes, work_bytes);          \
	}                                                                                      \
	CALL(cusolverSp##P##csrqrBufferInfoBatched, struct solver_sparse_handle *h, int m,     \
		int n, int entries, VALUES, int batch, struct qr_info *info,                   \
		size_t *internal_bytes, size_t *work_bytes)                                    \
	{                                                                                      \
		(void)descriptor, (void)values, (void)rows, (void)columns;                     \
		return !h ? SOLVER_NOT_INITIALIZED                                             \
		       : !qr_fits(info, m, n, entries)                                         \
			       ? SOLVER_INVALID_VALUE                                          \
			       : sizes(m, n, entries, batch, internal_bytes, work_bytes);      \
	}                                                                                      \
	CALL(cusolverSp##P##csrqrsvBatched, struct solver_sparse_handle *h, int m, int n,      \
		int entries, VALUES, const void *b, void *x, int batch, struct qr_info *info,  \
		void *work)                                                                    \
	{                                                                                      \
		struct solver_sparse_matrix a = {                                              \
			SOLVER_##P, m, n, entries, descriptor, values, rows, columns};         \
                                                                                               \
		(void)work;                                                                    \
		return qr_batch(h, &a, b, x, batch, info);                                     \
	}                                                                                      \
	CALL(cusolverSp##P##csrqrSetup, struct solver_sparse_handle *h, int m, int n,          \
		int entries, VALUES, NUMBER mu, struct qr_info *info)                          \
	{                                                                                      \
		struct solver_sparse_matrix a = {                                              \
			SOLVER_##P, m, n, entries, descriptor, values, rows, columns};         \
                                                                                               \
		return qr_setup(h, &a, mu, info);                                              \
	}                                                                                      \
	CALL(cusolverSp##P##csrqrFactor, struct solver_sparse_handle *h, int m, int n,         \
		int entries, void *b, void *x, struct qr_info *info, void *work)               \
	{                                                                                      \
		(void)work;                                                                    \
		return qr_factor(h, SOLVER_##P, m, n, entries, b, x, info);                    \
	}                                                                                      \
	CALL(cusolverSp##P##csrqrZeroPivot, struct solver_sparse_handle *h,                    \
		struct qr_info *info, REAL tolerance, int *position)                           \
	{                                                                                      \
		return qr_pivot(h, info, tolerance, position);                                 \
	}                                                                                      \
	CALL(cusolverSp##P##csrqrSolve, struct solver_sparse_handle *h, int m, int n, void *b, \
		void *x, struct qr_info *info, void *work)                                     \
	{                                                                                      \
		(void)work;                                                                    \
		return qr_solve(h, SOLVER_##P, m, n, b, x, info);                              \
	}
QR(S, float, float)
QR(D, double, double)
QR(C, float, float complex)
QR(Z, double, double complex)

/* ---- Cholesky ---- */

CALL(cusolverSpXcsrcholAnalysis, struct solver_sparse_handle *h, int n, int entries, PATTERN,
	struct cholesky_info *info)
{
	if (!h)
		return SOLVER_NOT_INITIALIZED;
	if (!info || !descriptor || !rows || n < 0 || entries < 0 || (entries && !columns))
		return SOLVER_INVALID_VALUE;
	info->n = n;
	info->entries = entries;
	info->analysed = true;
	return SOLVER_SUCCESS;
}

static int cholesky_factor(struct solver_sparse_handle *h, const struct solver_sparse_matrix *a,
	struct cholesky_info *info)
{
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;

	if (!status &&
		(!info || !info->analysed || info->n != a->m || info->entries != a->entries))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	free(info->factor);
	info->factor = solver_sparse_dense(a, &status);
	info->type = a->type;
	if (info->factor)
		info->ended = solver_sparse_cholesky(info->factor, info->n);
	solver_sparse_end();
	return status;
}

static int cholesky_pivot(struct solver_sparse_handle *h, const struct cholesky_info *info,
	double tolerance, int *position)
{
	if (!h)
		return SOLVER_NOT_INITIALIZED;
	if (!info || !info->factor || !position)
		return SOLVER_INVALID_VALUE;
	*position = info->ended >= 0
			    ? info->ended
			    : solver_sparse_cholesky_singular(info->factor, info->n, tolerance);
	return SOLVER_SUCCESS;
}

static int cholesky_solve(struct solver_sparse_handle *h, enum solver_type type, int n,
	const void *b, void *x, const struct cholesky_info *info)
{
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;
	number *both;

	if (!status && (!info || !info->factor || info->type != type || info->n != n))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	both = solver_sparse_vector(type, b, n, &status);
	if (both)
		status = solver_sparse_cholesky_solve(info->factor, n, both);
	if (!status)
		status = solver_sparse_store(type, x, both, n);
	free(both);
	solver_sparse_end();
	return status;
}

static int cholesky_diagonal(struct solver_sparse_handle *h, enum solver_type type,
	const struct cholesky_info *info, void *diagonal)
{
	enum solver_type real = solver_real_type(type);
	int status = h ? SOLVER_SUCCESS : SOLVER_NOT_INITIALIZED;

	if (!status && (!info || !info->factor || info->type != type))
		status = SOLVER_INVALID_VALUE;
	if (!status)
		status = solver_sparse_begin(h->stream);
	if (status)
		return status;
	if (solver_sparse_reaches(diagonal, (uint64_t)info->n, solver_size(real)))
		for (int64_t i = 0; i < info->n; i++)
			solver_sparse_set(real, diagonal, i, info->factor[i + i * info->n]);
	else
		status = SOLVER_INVALID_VALUE;
	solver_sparse_end();
	return status;
}

#define CHOLESKY(P, REAL)                                                                      \
	CALL(cusolverSp##P##csrcholBufferInfo, struct solver_sparse_handle *h, int n,          \
		int entries, VALUES, struct cholesky_info *info, size_t *internal_bytes,       \
		size_t *work_bytes)                                                            \
	{                                                                                      \
		(void)descriptor, (void)values, (void)rows, (void)columns;                     \
		return !h ? SOLVER_NOT_INITIALIZED                                             \
		       : !info || !info->analysed                                              \
			       ? SOLVER_INVALID_VALUE                                          \
			       : sizes(n, n, entries, 1, internal_bytes, work_bytes);          \
	}                                                                                      \
	CALL(cusolverSp##P##csrcholFactor, struct solver_sparse_handle *h, int n, int entries, \
		VALUES, struct cholesky_info *info, void *work)                                \
	{                                                                                      \
		struct solver_sparse_matrix a = {                                              \
			SOLVER_##P, n, n, entries, descriptor, values, rows, columns};         \
                                                                                               \
		(void)work;                                                                    \
		return cholesky_factor(h, &a, info);                                           \
	}                                                                                      \
	CALL(cusolverSp##P##csrcholZeroPivot, struct solver_sparse_handle *h,                  \
		struct cholesky_info *info, REAL tolerance, int *position)                     \
	{                                                                                      \
		return cholesky_pivot(h, info, tolerance, position);                           \
	}                                                                                      \
	CALL(cusolverSp##P##csrcholSolve, struct solver_sparse_handle *h, int n,               \
		const void *b, void *x, struct cholesky_info *info, void *work)                \
	{                                                                                      \
		(void)work;                                                                    \
		return cholesky_solve(h, SOLVER_##P, n, b, x, info);                           \
	}                                                                                      \
	CALL(cusolverSp##P##csrcholDiag, struct solver_sparse_handle *h,                       \
		struct cholesky_info *info, void *diagonal)                                    \
	{                                                                                      \
		return cholesky_diagonal(h, SOLVER_##P, info, diagonal);                       \
	}
CHOLESKY(S, float)
CHOLESKY(D, double)
CHOLESKY(C, float)
CHOLESKY(Z, double)
