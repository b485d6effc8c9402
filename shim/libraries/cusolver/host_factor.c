/* SPDX-License-Identifier: Apache-2.0
 *
 * Factorizations in steps whose arrays are the host's: each step is the device's, on what is
 * put there for it. The workspace that the program gives is not touched; one on the device
 * lives as long as the info object.
 */
#include <stdlib.h>

#include "protocol/generated/cusolver_api.h"
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

enum factorization { QR = 0x71725f68, CHOLESKY = 0x63685f68 };

/* csrqrInfoHost_t and csrcholInfoHost_t */
struct steps {
	uint32_t kind; /* enum factorization; else it is none */
	csrqrInfo_t qr;
	csrcholInfo_t cholesky;
	void *work; /* on the device */
};

static struct steps *find(void *info, enum factorization kind)
{
	struct steps *s = info;

	return s && s->kind == kind ? s : NULL;
}

static int create(void **to, enum factorization kind)
{
	struct steps *s;
	int status;

	if (!to)
		return CUSOLVER_STATUS_INVALID_VALUE;
	s = calloc(1, sizeof(*s));
	if (!s)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	s->kind = kind;
	status = kind == QR ? cusolverSpCreateCsrqrInfo(&s->qr)
			    : cusolverSpCreateCsrcholInfo(&s->cholesky);
	if (status)
		free(s);
	else
		*to = s;
	return status;
}

static int destroy(void *info, enum factorization kind)
{
	struct steps *s = find(info, kind);
	int status;

	if (!s)
		return CUSOLVER_STATUS_INVALID_VALUE;
	status = kind == QR ? cusolverSpDestroyCsrqrInfo(s->qr)
			    : cusolverSpDestroyCsrcholInfo(s->cholesky);
	if (s->work)
		cuMemFree((CUdeviceptr)(uintptr_t)s->work);
	s->kind = 0;
	free(s);
	return status;
}

cusolverStatus_t hand_cusolverSpCreateCsrqrInfoHost(csrqrInfoHost_t *info)
{
	return create((void **)info, QR);
}

cusolverStatus_t hand_cusolverSpDestroyCsrqrInfoHost(csrqrInfoHost_t info)
{
	return destroy(info, QR);
}

cusolverStatus_t hand_cusolverSpCreateCsrcholInfoHost(csrcholInfoHost_t *info)
{
	return create((void **)info, CHOLESKY);
}

cusolverStatus_t hand_cusolverSpDestroyCsrcholInfoHost(csrcholInfoHost_t info)
{
	return destroy(info, CHOLESKY);
}

/* A step: its arrays on the device. */
struct step {
	struct cusolver_memory memory;
	struct steps *s;
	CUstream stream;
	const void *values;
	const int *rows, *columns;
	void *b, *x;
	int status;
};

static bool step_begin(
	struct step *t, cusolverSpHandle_t handle, void *info, enum factorization kind)
{
	const struct library_handle *h = vcuda_library_find(&cusolverSpHandle_front, handle);

	*t = (struct step){.s = find(info, kind)};
	t->status = !h	    ? CUSOLVER_STATUS_NOT_INITIALIZED
		    : !t->s ? CUSOLVER_STATUS_INVALID_VALUE
			    : CUSOLVER_STATUS_SUCCESS;
	if (h)
		t->stream = h->stream;
	return !t->status;
}

/* Of m rows; SIZE 0: the pattern alone. */
static bool step_matrix(struct step *t, int m, int nnz, const void *values, const int *rows,
	const int *columns, size_t size)
{
	if (m < 0 || nnz < 0 || !rows || (nnz && (!columns || (size && !values))))
		t->status = CUSOLVER_STATUS_INVALID_VALUE;
	if (t->status)
		return false;
	if (size)
		t->values = cusolver_memory_put(&t->memory, values, (uint64_t)nnz * size);
	t->rows = cusolver_memory_put(&t->memory, rows, ((uint64_t)m + 1) * sizeof(*rows));
	t->columns = cusolver_memory_put(&t->memory, columns, (uint64_t)nnz * sizeof(*columns));
	cusolver_memory_wait(&t->memory);
	return !t->memory.status;
}

/* B of m numbers, and room for X of n; neither where the program gives none. */
static bool step_sides(struct step *t, int m, int n, const void *b, const void *x, size_t size)
{
	if (m < 0 || n < 0)
		t->status = CUSOLVER_STATUS_INVALID_VALUE;
	if (t->status)
		return false;
	if (b && x) {
		t->b = cusolver_memory_put(&t->memory, b, (uint64_t)m * size);
		t->x = cusolver_memory_put(&t->memory, NULL, (uint64_t)n * size);
		cusolver_memory_wait(&t->memory);
	}
	return !t->memory.status;
}

/* The workspace that the device's steps need, in place of the program's. */
static void step_room(struct step *t, uint64_t bytes)
{
	CUdeviceptr at = 0;
	CUresult status;

	if (t->s->work)
		cuMemFree((CUdeviceptr)(uintptr_t)t->s->work);
	status = cuMemAlloc(&at, bytes ? bytes : 1);
	t->s->work = (void *)(uintptr_t)at;
	t->status = front_status(&cusolver_front, status);
}

/* After the step: X, of BYTES, where it was asked for. */
static int step_end(struct step *t, void *x, uint64_t bytes)
{
	if (!t->status && !t->memory.status)
		cusolver_memory_get(&t->memory, t->stream, x, t->x, t->x ? bytes : 0);
	return cusolver_memory_end(&t->memory, t->status);
}

cusolverStatus_t hand_cusolverSpXcsrqrAnalysisHost(cusolverSpHandle_t handle, int m, int n,
	int nnzA, const cusparseMatDescr_t descrA, const int *csrRowPtrA, const int *csrColIndA,
	csrqrInfoHost_t info)
{
	struct step t;

	if (step_begin(&t, handle, info, QR) &&
		step_matrix(&t, m, nnzA, NULL, csrRowPtrA, csrColIndA, 0))
		t.status = cusolverSpXcsrqrAnalysis(
			handle, m, n, nnzA, descrA, t.rows, t.columns, t.s->qr);
	return step_end(&t, NULL, 0);
}

cusolverStatus_t hand_cusolverSpXcsrcholAnalysisHost(cusolverSpHandle_t handle, int n, int nnzA,
	const cusparseMatDescr_t descrA, const int *csrRowPtrA, const int *csrColIndA,
	csrcholInfoHost_t info)
{
	struct step t;

	if (step_begin(&t, handle, info, CHOLESKY) &&
		step_matrix(&t, n, nnzA, NULL, csrRowPtrA, csrColIndA, 0))
		t.status = cusolverSpXcsrcholAnalysis(
			handle, n, nnzA, descrA, t.rows, t.columns, t.s->cholesky);
	return step_end(&t, NULL, 0);
}

#define MATRIX(TYPE)                                                                           \
	const cusparseMatDescr_t descr, const TYPE *values, const int *rows, const int *columns
#define EACH(P, TYPE, REAL)                                                                    \
	cusolverStatus_t hand_cusolverSp##P##csrqrBufferInfoHost(cusolverSpHandle_t handle,    \
		int m, int n, int nnz, MATRIX(TYPE), csrqrInfoHost_t info, size_t *inside,     \
		size_t *bytes)                                                                 \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		if (step_begin(&t, handle, info, QR) &&                                        \
			step_matrix(&t, m, nnz, values, rows, columns, sizeof(TYPE)))          \
			t.status = cusolverSp##P##csrqrBufferInfo(handle, m, n, nnz, descr,    \
				t.values, t.rows, t.columns, t.s->qr, inside, bytes);          \
		if (!t.status && !t.memory.status)                                             \
			step_room(&t, *bytes);                                                 \
		return step_end(&t, NULL, 0);                                                  \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrqrSetupHost(cusolverSpHandle_t handle, int m,  \
		int n, int nnz, MATRIX(TYPE), TYPE mu, csrqrInfoHost_t info)                   \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		if (step_begin(&t, handle, info, QR) &&                                        \
			step_matrix(&t, m, nnz, values, rows, columns, sizeof(TYPE)))          \
			t.status = cusolverSp##P##csrqrSetup(handle, m, n, nnz, descr,         \
				t.values, t.rows, t.columns, mu, t.s->qr);                     \
		return step_end(&t, NULL, 0);                                                  \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrqrFactorHost(cusolverSpHandle_t handle, int m, \
		int n, int nnz, TYPE *b, TYPE *x, csrqrInfoHost_t info, void *buffer)          \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		(void)buffer;                                                                  \
		if (step_begin(&t, handle, info, QR) &&                                        \
			step_sides(&t, m, n, b, x, sizeof(TYPE)))                              \
			t.status = cusolverSp##P##csrqrFactor(                                 \
				handle, m, n, nnz, t.b, t.x, t.s->qr, t.s->work);              \
		return step_end(&t, x, (uint64_t)n * sizeof(TYPE));                            \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrqrZeroPivotHost(                               \
		cusolverSpHandle_t handle, csrqrInfoHost_t info, REAL tol, int *position)      \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		if (!step_begin(&t, handle, info, QR))                                         \
			return t.status;                                                       \
		return cusolverSp##P##csrqrZeroPivot(handle, t.s->qr, tol, position);          \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrqrSolveHost(cusolverSpHandle_t handle, int m,  \
		int n, TYPE *b, TYPE *x, csrqrInfoHost_t info, void *buffer)                   \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		(void)buffer;                                                                  \
		if (step_begin(&t, handle, info, QR) &&                                        \
			step_sides(&t, m, n, b, x, sizeof(TYPE)))                              \
			t.status = cusolverSp##P##csrqrSolve(                                  \
				handle, m, n, t.b, t.x, t.s->qr, t.s->work);                   \
		return step_end(&t, x, (uint64_t)n * sizeof(TYPE));                            \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrcholBufferInfoHost(cusolverSpHandle_t handle,  \
		int n, int nnz, MATRIX(TYPE), csrcholInfoHost_t info, size_t *inside,          \
		size_t *bytes)                                                                 \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		if (step_begin(&t, handle, info, CHOLESKY) &&                                  \
			step_matrix(&t, n, nnz, values, rows, columns, sizeof(TYPE)))          \
			t.status = cusolverSp##P##csrcholBufferInfo(handle, n, nnz, descr,     \
				t.values, t.rows, t.columns, t.s->cholesky, inside, bytes);    \
		if (!t.status && !t.memory.status)                                             \
			step_room(&t, *bytes);                                                 \
		return step_end(&t, NULL, 0);                                                  \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrcholFactorHost(cusolverSpHandle_t handle,      \
		int n, int nnz, MATRIX(TYPE), csrcholInfoHost_t info, void *buffer)            \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		(void)buffer;                                                                  \
		if (step_begin(&t, handle, info, CHOLESKY) &&                                  \
			step_matrix(&t, n, nnz, values, rows, columns, sizeof(TYPE)))          \
			t.status = cusolverSp##P##csrcholFactor(handle, n, nnz, descr,         \
				t.values, t.rows, t.columns, t.s->cholesky, t.s->work);        \
		return step_end(&t, NULL, 0);                                                  \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrcholZeroPivotHost(                             \
		cusolverSpHandle_t handle, csrcholInfoHost_t info, REAL tol, int *position)    \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		if (!step_begin(&t, handle, info, CHOLESKY))                                   \
			return t.status;                                                       \
		return cusolverSp##P##csrcholZeroPivot(handle, t.s->cholesky, tol, position);  \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrcholSolveHost(cusolverSpHandle_t handle,       \
		int n, const TYPE *b, TYPE *x, csrcholInfoHost_t info, void *buffer)           \
	{                                                                                      \
		struct step t;                                                                 \
                                                                                               \
		(void)buffer;                                                                  \
		if (step_begin(&t, handle, info, CHOLESKY) &&                                  \
			step_sides(&t, n, n, b, x, sizeof(TYPE)))                              \
			t.status = cusolverSp##P##csrcholSolve(                                \
				handle, n, t.b, t.x, t.s->cholesky, t.s->work);                \
		return step_end(&t, x, (uint64_t)n * sizeof(TYPE));                            \
	}
EACH(S, float, float)
EACH(D, double, double)
EACH(C, cuComplex, float)
EACH(Z, cuDoubleComplex, double)
