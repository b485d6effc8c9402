/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse systems whose arrays are the host's: they are put on the device, and the form on the
 * device solves them.  LU's is QR's there: it takes any matrix that LU does.
 */
#include "protocol/generated/cusolver_api.h"
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

struct arrays {
	struct cusolver_memory memory;
	CUstream stream;
	const void *values;
	const int *rows, *columns;
	const void *given; /* b, or what an iteration begins with */
	void *found, *value;
	int status;
};

/* Of n × n numbers of SIZE bytes; false: a.status says why. */
static bool arrays_put(struct arrays *a, cusolverSpHandle_t handle, int n, int nnz, size_t size,
	const void *values, const int *rows, const int *columns, const void *given)
{
	const struct library_handle *h = vcuda_library_find(&cusolverSpHandle_front, handle);

	a->status =
		!h ? CUSOLVER_STATUS_NOT_INITIALIZED
		: n < 0 || nnz < 0 || !rows || (nnz && (!values || !columns)) || (n && !given)
			? CUSOLVER_STATUS_INVALID_VALUE
			: CUSOLVER_STATUS_SUCCESS;
	if (a->status)
		return false;
	a->stream = h->stream;
	a->values = cusolver_memory_put(&a->memory, values, (uint64_t)nnz * size);
	a->rows = cusolver_memory_put(&a->memory, rows, ((uint64_t)n + 1) * sizeof(*rows));
	a->columns = cusolver_memory_put(&a->memory, columns, (uint64_t)nnz * sizeof(*columns));
	a->given = cusolver_memory_put(&a->memory, given, (uint64_t)n * size);
	a->found = cusolver_memory_put(&a->memory, NULL, (uint64_t)n * size);
	a->value = cusolver_memory_put(&a->memory, NULL, size);
	cusolver_memory_wait(&a->memory);
	return !a->memory.status;
}

static int arrays_end(struct arrays *a, void *to, int n, size_t size)
{
	if (!a->status && !a->memory.status)
		cusolver_memory_get(&a->memory, a->stream, to, a->found, (uint64_t)n * size);
	return cusolver_memory_end(&a->memory, a->status);
}

#define MATRIX(TYPE)                                                                           \
	cusolverSpHandle_t handle, int n, int nnz, const cusparseMatDescr_t descr,             \
		const TYPE *values, const int *rows, const int *columns
#define BY(NAME, FORM, P, TYPE, REAL)                                                          \
	cusolverStatus_t hand_cusolverSp##P##NAME##Host(                                       \
		MATRIX(TYPE), const TYPE *b, REAL tol, int reorder, TYPE *x, int *singularity) \
	{                                                                                      \
		struct arrays a = {0};                                                         \
                                                                                               \
		if (arrays_put(&a, handle, n, nnz, sizeof(TYPE), values, rows, columns, b))    \
			a.status = cusolverSp##P##FORM(handle, n, nnz, descr, a.values,        \
				a.rows, a.columns, a.given, tol, reorder, a.found,             \
				singularity);                                                  \
		return arrays_end(&a, x, n, sizeof(TYPE));                                     \
	}
#define EACH(P, TYPE, REAL)                                                                    \
	BY(csrlsvqr, csrlsvqr, P, TYPE, REAL)                                                  \
	BY(csrlsvlu, csrlsvqr, P, TYPE, REAL)                                                  \
	BY(csrlsvchol, csrlsvchol, P, TYPE, REAL)                                              \
                                                                                               \
	cusolverStatus_t hand_cusolverSp##P##csreigvsiHost(MATRIX(TYPE), TYPE mu0,             \
		const TYPE *x0, int maxite, REAL tol, TYPE *mu, TYPE *x)                       \
	{                                                                                      \
		struct arrays a = {0};                                                         \
                                                                                               \
		if (arrays_put(&a, handle, n, nnz, sizeof(TYPE), values, rows, columns, x0))   \
			a.status = cusolverSp##P##csreigvsi(handle, n, nnz, descr, a.values,   \
				a.rows, a.columns, mu0, a.given, maxite, tol, a.value,         \
				a.found);                                                      \
		if (!a.status && !a.memory.status)                                             \
			cusolver_memory_get(&a.memory, a.stream, mu, a.value, sizeof(TYPE));   \
		return arrays_end(&a, x, n, sizeof(TYPE));                                     \
	}
EACH(S, float, float)
EACH(D, double, double)
EACH(C, cuComplex, float)
EACH(Z, cuDoubleComplex, double)
