/* SPDX-License-Identifier: Apache-2.0
 *
 * LU in steps of a matrix of the host, for refactorizations that begin with it. It is made in
 * the program (lu.h): no form of the device's hands out L, U and their permutations. The
 * workspace that the program gives is not touched.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/lu.h"

enum { LU = 0x6c75686f };
enum stage { MADE, ANALYSED, FACTORED };

/* csrluInfoHost_t */
struct lu_info {
	uint32_t kind; /* LU; else it is none */
	enum stage stage;
	int n;
	int *q; /* the order of columns, from the analysis */
	char type;
	struct cusolver_lu lu;
};

/* One that has come so far; NULL: *status says why not. */
static struct lu_info *find(
	cusolverSpHandle_t handle, void *info, enum stage stage, int *status)
{
	struct lu_info *i = info;

	*status = !vcuda_library_find(&cusolverSpHandle_front, handle)
			  ? CUSOLVER_STATUS_NOT_INITIALIZED
		  : !i || i->kind != LU || i->stage < stage ? CUSOLVER_STATUS_INVALID_VALUE
							    : CUSOLVER_STATUS_SUCCESS;
	return *status ? NULL : i;
}

cusolverStatus_t hand_cusolverSpCreateCsrluInfoHost(csrluInfoHost_t *info)
{
	struct lu_info *i;

	if (!info)
		return CUSOLVER_STATUS_INVALID_VALUE;
	i = calloc(1, sizeof(*i));
	if (!i)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	i->kind = LU;
	*info = (csrluInfoHost_t)(void *)i;
	return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t hand_cusolverSpDestroyCsrluInfoHost(csrluInfoHost_t info)
{
	struct lu_info *i = (void *)info;

	if (!i || i->kind != LU)
		return CUSOLVER_STATUS_INVALID_VALUE;
	cusolver_lu_drop(&i->lu);
	free(i->q);
	i->kind = 0;
	free(i);
	return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t hand_cusolverSpXcsrluAnalysisHost(cusolverSpHandle_t handle, int n, int nnzA,
	const cusparseMatDescr_t descrA, const int *csrRowPtrA, const int *csrColIndA,
	csrluInfoHost_t info)
{
	struct cusolver_pattern a;
	int status, *q;
	struct lu_info *i = find(handle, info, MADE, &status);

	if (!i)
		return status;
	status = cusolver_pattern(&a, handle, n, n, nnzA, descrA, csrRowPtrA, csrColIndA);
	if (status)
		return status;
	q = malloc(((size_t)n + 1) * sizeof(*q));
	status = q ? cusolver_order(&a, q) : CUSOLVER_STATUS_ALLOC_FAILED;
	if (status) {
		free(q);
		return status;
	}
	cusolver_lu_drop(&i->lu);
	free(i->q);
	i->q = q;
	i->n = n;
	i->stage = ANALYSED;
	return CUSOLVER_STATUS_SUCCESS;
}

/* What steps of all types have in common: what they are given is checked here. */
static struct lu_info *analysed(struct cusolver_pattern *a, cusolverSpHandle_t handle, int n,
	int nnz, const cusparseMatDescr_t descr, const void *values, const int *rows,
	const int *columns, void *info, int *status)
{
	struct lu_info *i = find(handle, info, ANALYSED, status);

	if (!i)
		return NULL;
	*status = cusolver_pattern(a, handle, n, n, nnz, descr, rows, columns);
	if (!*status && (n != i->n || (nnz && !values)))
		*status = CUSOLVER_STATUS_INVALID_VALUE;
	return *status ? NULL : i;
}

/* Factors anew, with numbers that are the caller's. */
static int factor(struct lu_info *i, char type, const struct cusolver_pattern *a,
	const double *re, const double *im, double threshold)
{
	int status;

	i->stage = ANALYSED;
	cusolver_lu_drop(&i->lu);
	if (!cusolver_lu_make(&i->lu, i->n, im))
		return CUSOLVER_STATUS_ALLOC_FAILED;
	memcpy(i->lu.q, i->q, (size_t)i->n * sizeof(int));
	status = cusolver_lu_factor(&i->lu, a, re, im, threshold);
	if (status) {
		cusolver_lu_drop(&i->lu);
		return status;
	}
	i->type = type;
	i->stage = FACTORED;
	return CUSOLVER_STATUS_SUCCESS;
}

/* One whose factors are of that type. */
static struct lu_info *factored(cusolverSpHandle_t handle, void *info, char type, int *status)
{
	struct lu_info *i = find(handle, info, FACTORED, status);

	if (i && i->type == type)
		return i;
	if (i)
		*status = CUSOLVER_STATUS_INVALID_VALUE;
	return NULL;
}

cusolverStatus_t hand_cusolverSpXcsrluNnzHost(
	cusolverSpHandle_t handle, int *nnzLRef, int *nnzURef, csrluInfoHost_t info)
{
	int status;
	struct lu_info *i = find(handle, info, FACTORED, &status);

	if (!i || !nnzLRef || !nnzURef)
		return i ? CUSOLVER_STATUS_INVALID_VALUE : status;
	*nnzLRef = cusolver_lu_count(&i->lu, false);
	*nnzURef = cusolver_lu_count(&i->lu, true);
	return CUSOLVER_STATUS_SUCCESS;
}

static void number_drop(struct cusolver_entries *e)
{
	free(e->re);
	free(e->im);
	free(e->index);
	*e = (struct cusolver_entries){0};
}

/* One factor by rows, in the program's arrays but for its numbers, which stay in E. */
static int rows_of(const struct lu_info *i, bool upper, const cusparseMatDescr_t descr,
	struct cusolver_entries *e, int *rows, int *columns)
{
	int count = cusolver_lu_count(&i->lu, upper);
	struct cusolver_matrix matrix;

	if (!cusolver_matrix_of(descr, &matrix) || !rows || (count && !columns))
		return CUSOLVER_STATUS_INVALID_VALUE;
	*e = (struct cusolver_entries){.from = rows, .count = count};
	e->index = malloc(((size_t)count + 1) * sizeof(*e->index));
	e->re = malloc(((size_t)count + 1) * sizeof(*e->re));
	e->im = i->lu.complex ? malloc(((size_t)count + 1) * sizeof(*e->im)) : NULL;
	if (!e->index || !e->re || (i->lu.complex && !e->im)) {
		number_drop(e);
		return CUSOLVER_STATUS_ALLOC_FAILED;
	}
	cusolver_lu_rows(&i->lu, upper, e);
	for (int k = 0; k <= i->n; k++)
		rows[k] += matrix.base;
	for (int k = 0; k < count; k++)
		columns[k] = e->index[k] + matrix.base;
	return CUSOLVER_STATUS_SUCCESS;
}

#define REAL_GET(V, RE, IM) (RE) = (V)
#define REAL_SET(V, RE, IM) (V) = (RE)
#define COMPLEX_GET(V, RE, IM) (RE) = (V).x, (IM) = (V).y
#define COMPLEX_SET(V, RE, IM) (V).x = (RE), (V).y = (IM)
#define MATRIX(TYPE)                                                                           \
	cusolverSpHandle_t handle, int n, int nnz, const cusparseMatDescr_t descr,             \
		const TYPE *values, const int *rows, const int *columns, csrluInfoHost_t info
#define FACTOR(P, TYPE, REAL, COMPLEX, GET)                                                    \
	cusolverStatus_t hand_cusolverSp##P##csrluBufferInfoHost(                              \
		MATRIX(TYPE), size_t *inside, size_t *bytes)                                   \
	{                                                                                      \
		struct cusolver_pattern a;                                                     \
		int status;                                                                    \
		struct lu_info *i = analysed(                                                  \
			&a, handle, n, nnz, descr, values, rows, columns, info, &status);      \
                                                                                               \
		if (!i || !inside || !bytes)                                                   \
			return i ? CUSOLVER_STATUS_INVALID_VALUE : status;                     \
		*inside = ((size_t)n + (size_t)nnz + 1) * 4 * sizeof(double);                  \
		*bytes = ((size_t)n + 1) * sizeof(TYPE);                                       \
		return CUSOLVER_STATUS_SUCCESS;                                                \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrluFactorHost(                                  \
		MATRIX(TYPE), REAL threshold, void *buffer)                                    \
	{                                                                                      \
		struct cusolver_pattern a;                                                     \
		int status;                                                                    \
		struct lu_info *i = analysed(                                                  \
			&a, handle, n, nnz, descr, values, rows, columns, info, &status);      \
		size_t room = (size_t)(i ? nnz : 0) + 1;                                       \
		double *numbers = malloc(room * (1 + COMPLEX) * sizeof(*numbers)), *im;        \
                                                                                               \
		(void)buffer;                                                                  \
		if (!i || !numbers) {                                                          \
			free(numbers);                                                         \
			return i ? CUSOLVER_STATUS_ALLOC_FAILED : status;                      \
		}                                                                              \
		im = COMPLEX ? numbers + room : NULL;                                          \
		for (int k = 0; k < nnz; k++)                                                  \
			GET(values[k], numbers[k], im[k]);                                     \
		status = factor(i, #P[0], &a, numbers, im, (double)threshold);                 \
		free(numbers);                                                                 \
		return status;                                                                 \
	}                                                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrluZeroPivotHost(                               \
		cusolverSpHandle_t handle, csrluInfoHost_t info, REAL tol, int *position)      \
	{                                                                                      \
		int status;                                                                    \
		struct lu_info *i = factored(handle, info, #P[0], &status);                    \
                                                                                               \
		if (!i || !position)                                                           \
			return i ? CUSOLVER_STATUS_INVALID_VALUE : status;                     \
		*position = cusolver_lu_zero(&i->lu, (double)tol);                             \
		return CUSOLVER_STATUS_SUCCESS;                                                \
	}
#define SOLVE(P, TYPE, COMPLEX, GET, SET)                                                      \
	cusolverStatus_t hand_cusolverSp##P##csrluSolveHost(cusolverSpHandle_t handle, int n,  \
		const TYPE *b, TYPE *x, csrluInfoHost_t info, void *buffer)                    \
	{                                                                                      \
		int status;                                                                    \
		struct lu_info *i = factored(handle, info, #P[0], &status);                    \
		double *to;                                                                    \
                                                                                               \
		(void)buffer;                                                                  \
		if (!i || n != i->n || (n && (!b || !x)))                                      \
			return i ? CUSOLVER_STATUS_INVALID_VALUE : status;                     \
		to = calloc(4 * ((size_t)n + 1), sizeof(*to));                                 \
		if (!to)                                                                       \
			return CUSOLVER_STATUS_ALLOC_FAILED;                                   \
		for (int k = 0; k < n; k++)                                                    \
			GET(b[k], to[2 * k], to[2 * k + 1]);                                   \
		cusolver_lu_solve(&i->lu, to, to + 2 * (size_t)n);                             \
		for (int k = 0; k < n; k++)                                                    \
			SET(x[k], (REAL_OF_##P)to[2 * k], (REAL_OF_##P)to[2 * k + 1]);         \
		free(to);                                                                      \
		return CUSOLVER_STATUS_SUCCESS;                                                \
	}
#define EXTRACT(P, TYPE, SET)                                                                  \
	cusolverStatus_t hand_cusolverSp##P##csrluExtractHost(cusolverSpHandle_t handle,       \
		int *order, int *columns_order, const cusparseMatDescr_t descr_l,              \
		TYPE *values_l, int *rows_l, int *columns_l, const cusparseMatDescr_t descr_u, \
		TYPE *values_u, int *rows_u, int *columns_u, csrluInfoHost_t info,             \
		void *buffer)                                                                  \
	{                                                                                      \
		struct cusolver_entries l = {0}, u = {0};                                      \
		int status;                                                                    \
		struct lu_info *i = factored(handle, info, #P[0], &status);                    \
                                                                                               \
		(void)buffer;                                                                  \
		if (!i || !order || !columns_order || !values_u || !values_l)                  \
			return i ? CUSOLVER_STATUS_INVALID_VALUE : status;                     \
		status = rows_of(i, false, descr_l, &l, rows_l, columns_l);                    \
		if (!status)                                                                   \
			status = rows_of(i, true, descr_u, &u, rows_u, columns_u);             \
		for (int k = 0; !status && k < l.count; k++)                                   \
			SET(values_l[k], (REAL_OF_##P)l.re[k], (REAL_OF_##P)l.im[k]);          \
		for (int k = 0; !status && k < u.count; k++)                                   \
			SET(values_u[k], (REAL_OF_##P)u.re[k], (REAL_OF_##P)u.im[k]);          \
		if (!status) {                                                                 \
			memcpy(order, i->lu.p, (size_t)i->n * sizeof(int));                    \
			memcpy(columns_order, i->lu.q, (size_t)i->n * sizeof(int));            \
		}                                                                              \
		number_drop(&l);                                                               \
		number_drop(&u);                                                               \
		return status;                                                                 \
	}
#define REAL_OF_S float
#define REAL_OF_D double
#define REAL_OF_C float
#define REAL_OF_Z double
#define EACH(P, TYPE, REAL, COMPLEX, GET, SET)                                                 \
	FACTOR(P, TYPE, REAL, COMPLEX, GET)                                                    \
	SOLVE(P, TYPE, COMPLEX, GET, SET)                                                      \
	EXTRACT(P, TYPE, SET)
EACH(S, float, float, 0, REAL_GET, REAL_SET)
EACH(D, double, double, 0, REAL_GET, REAL_SET)
EACH(C, cuComplex, float, 1, COMPLEX_GET, COMPLEX_SET)
EACH(Z, cuDoubleComplex, double, 1, COMPLEX_GET, COMPLEX_SET)
