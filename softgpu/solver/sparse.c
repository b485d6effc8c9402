/* SPDX-License-Identifier: Apache-2.0
 *
 * See sparse.h: handles, descriptors, matrices spread out, and their factorizations.
 */
#include "softgpu/solver/sparse.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/task.h"

void zgeqrf_(const int *, const int *, void *, const int *, void *, void *, const int *, int *);
void zunmqr_(const char *, const char *, const int *, const int *, const int *, const void *,
	const int *, const void *, void *, const int *, void *, const int *, int *, size_t,
	size_t);
void ztrtrs_(const char *, const char *, const char *, const int *, const int *, const void *,
	const int *, void *, const int *, int *, size_t, size_t, size_t);
void zpotrf_(const char *, const int *, void *, const int *, int *, size_t);
void zpotrs_(const char *, const int *, const int *, const void *, const int *, void *,
	const int *, int *, size_t);

#define LARGEST 20000 /* rows or columns of what is spread out */

/* ---- handles and descriptors ---- */

CALL(cusolverSpCreate, struct solver_sparse_handle **handle)
{
	if (!handle)
		return SOLVER_INVALID_VALUE;
	*handle = calloc(1, sizeof(**handle));
	return *handle ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;
}

CALL(cusolverSpDestroy, struct solver_sparse_handle *handle)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	free(handle);
	return SOLVER_SUCCESS;
}

CALL(cusolverSpSetStream, struct solver_sparse_handle *handle, CUstream stream)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	handle->stream = stream;
	return SOLVER_SUCCESS;
}

CALL(cusolverSpGetStream, struct solver_sparse_handle *handle, CUstream *stream)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!stream)
		return SOLVER_INVALID_VALUE;
	*stream = handle->stream;
	return SOLVER_SUCCESS;
}

/* cuSOLVER stands on cuSPARSE for these alone, and here on itself. */
CALL(cusparseCreateMatDescr, struct solver_sparse_descriptor **descriptor)
{
	if (!descriptor)
		return SOLVER_INVALID_VALUE;
	*descriptor = calloc(1, sizeof(**descriptor));
	return *descriptor ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;
}

CALL(cusparseDestroyMatDescr, struct solver_sparse_descriptor *descriptor)
{
	free(descriptor);
	return SOLVER_SUCCESS;
}

#define PROPERTY(NAME, FIELD, MOST)                                                            \
	CALL(cusparseSetMat##NAME, struct solver_sparse_descriptor *descriptor, int value)     \
	{                                                                                      \
		if (!descriptor || value < 0 || value > (MOST))                                \
			return SOLVER_INVALID_VALUE;                                           \
		descriptor->FIELD = value;                                                     \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusparseGetMat##NAME, const struct solver_sparse_descriptor *descriptor)          \
	{                                                                                      \
		return descriptor ? descriptor->FIELD : 0;                                     \
	}
PROPERTY(Type, type, 3)
PROPERTY(FillMode, fill, 1)
PROPERTY(DiagType, diagonal, 1)
PROPERTY(IndexBase, base, 1)

/* ---- the device's memory ---- */

int solver_sparse_begin(CUstream stream)
{
	if (cuStreamSynchronize(stream))
		return SOLVER_EXECUTION_FAILED;
	cuSoftgpuTaskBegin();
	return SOLVER_SUCCESS;
}

void solver_sparse_end(void)
{
	cuSoftgpuTaskEnd();
}

bool solver_sparse_reaches(const void *at, uint64_t elements, unsigned size)
{
	uint64_t bytes;

	return !elements ||
	       (!((uintptr_t)at % 4) && !__builtin_mul_overflow(elements, size, &bytes) &&
		       cuSoftgpuTaskReaches((uint64_t)(uintptr_t)at, bytes));
}

number solver_sparse_get(enum solver_type type, const void *at, int64_t i)
{
	switch (type) {
	case SOLVER_S: return ((const float *)at)[i];
	case SOLVER_D: return ((const double *)at)[i];
	case SOLVER_C: return ((const float complex *)at)[i];
	default: return ((const number *)at)[i];
	}
}

void solver_sparse_set(enum solver_type type, void *at, int64_t i, number value)
{
	switch (type) {
	case SOLVER_S: ((float *)at)[i] = (float)creal(value); break;
	case SOLVER_D: ((double *)at)[i] = creal(value); break;
	case SOLVER_C: ((float complex *)at)[i] = (float complex)value; break;
	default: ((number *)at)[i] = value; break;
	}
}

/* Whether the indices are such of m rows, n columns and so many entries. */
static bool indices_valid(const struct solver_sparse_matrix *a)
{
	int base = a->descriptor->base;

	if (!solver_sparse_reaches(a->rows, (uint64_t)a->m + 1, sizeof(int)) ||
		!solver_sparse_reaches(a->columns, (uint64_t)a->entries, sizeof(int)) ||
		!solver_sparse_reaches(a->values, (uint64_t)a->entries, solver_size(a->type)) ||
		a->rows[0] != base || a->rows[a->m] - base != a->entries)
		return false;
	for (int i = 0; i < a->m; i++)
		if (a->rows[i + 1] < a->rows[i] || a->rows[i + 1] - base > a->entries)
			return false;
	for (int k = 0; k < a->entries; k++)
		if (a->columns[k] < base || a->columns[k] - base >= a->n)
			return false;
	return true;
}

number *solver_sparse_dense(const struct solver_sparse_matrix *a, int *status)
{
	number *to;
	int base;

	*status = SOLVER_INVALID_VALUE;
	if (!a->descriptor || a->m < 0 || a->n < 0 || a->entries < 0 || a->m > LARGEST ||
		a->n > LARGEST || !indices_valid(a))
		return NULL;
	base = a->descriptor->base;
	*status = SOLVER_ALLOC_FAILED;
	to = calloc((size_t)a->m * (size_t)a->n + 1, sizeof(*to));
	if (!to)
		return NULL;
	for (int i = 0; i < a->m; i++)
		for (int k = a->rows[i] - base; k < a->rows[i + 1] - base; k++)
			to[i + (int64_t)(a->columns[k] - base) * a->m] +=
				solver_sparse_get(a->type, a->values, k);
	*status = SOLVER_SUCCESS;
	return to;
}

number *solver_sparse_vector(enum solver_type type, const void *at, int64_t count, int *status)
{
	number *to = NULL;

	*status = SOLVER_INVALID_VALUE;
	if (count < 0 || !solver_sparse_reaches(at, (uint64_t)count, solver_size(type)))
		return NULL;
	*status = SOLVER_ALLOC_FAILED;
	to = calloc((size_t)count + 1, sizeof(*to));
	for (int64_t i = 0; to && i < count; i++)
		to[i] = solver_sparse_get(type, at, i);
	if (to)
		*status = SOLVER_SUCCESS;
	return to;
}

int solver_sparse_store(enum solver_type type, void *to, const number *from, int64_t count)
{
	if (!solver_sparse_reaches(to, (uint64_t)count, solver_size(type)))
		return SOLVER_INVALID_VALUE;
	for (int64_t i = 0; i < count; i++)
		solver_sparse_set(type, to, i, from[i]);
	return SOLVER_SUCCESS;
}

/* ---- factorizations ---- */

int solver_sparse_qr(struct solver_sparse_qr *qr, number *a, int m, int n)
{
	int words = 64 * (n + 1), ld = m ? m : 1, info = 0;
	number *work = malloc((size_t)words * sizeof(*work));

	*qr = (struct solver_sparse_qr){.m = m, .n = n, .a = a};
	qr->tau = calloc((size_t)n + 1, sizeof(*qr->tau));
	if (work && qr->tau && m && n)
		zgeqrf_(&m, &n, a, &ld, qr->tau, work, &words, &info);
	free(work);
	return work && qr->tau ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;
}

void solver_sparse_qr_drop(struct solver_sparse_qr *qr)
{
	free(qr->a);
	free(qr->tau);
	*qr = (struct solver_sparse_qr){0};
}

int solver_sparse_qr_singular(const struct solver_sparse_qr *qr, double tolerance)
{
	for (int64_t j = 0; j < qr->n; j++)
		if (!(cabs(qr->a[j + j * qr->m]) > tolerance))
			return (int)j;
	return -1;
}

int solver_sparse_qr_solve(const struct solver_sparse_qr *qr, number *b)
{
	int one = 1, info = 0, words = 64, ld = qr->m ? qr->m : 1;
	number work[64];

	if (!qr->m || !qr->n)
		return SOLVER_SUCCESS;
	zunmqr_("L", "C", &qr->m, &one, &qr->n, qr->a, &ld, qr->tau, b, &ld, work, &words,
		&info, 1, 1);
	if (!info)
		ztrtrs_("U", "N", "N", &qr->n, &one, qr->a, &ld, b, &ld, &info, 1, 1, 1);
	return info < 0 ? SOLVER_INTERNAL_ERROR : SOLVER_SUCCESS;
}

int solver_sparse_cholesky(number *a, int n)
{
	int info = 0, ld = n ? n : 1;

	zpotrf_("L", &n, a, &ld, &info, 1);
	return info > 0 ? info - 1 : -1;
}

int solver_sparse_cholesky_singular(const number *a, int n, double tolerance)
{
	for (int64_t j = 0; j < n; j++)
		if (!(creal(a[j + j * n]) > tolerance))
			return (int)j;
	return -1;
}

int solver_sparse_cholesky_solve(const number *a, int n, number *b)
{
	int one = 1, info = 0, ld = n ? n : 1;

	zpotrs_("L", &n, &one, a, &ld, b, &ld, &info, 1);
	return info ? SOLVER_INTERNAL_ERROR : SOLVER_SUCCESS;
}
