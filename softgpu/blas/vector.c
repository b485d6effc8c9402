/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 1: vectors.
 */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/blas.h"

static void *x_of(struct blas_task *t)
{
	return blas_member(t, &t->a, 0, blas_vector(t->n, t->lda));
}

static void *y_of(struct blas_task *t)
{
	return blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
}

static void axpy_run(struct blas_task *t)
{
	void *x = x_of(t), *y = y_of(t);

	if (!x || !y)
		return;
	BY_TYPE(t, cblas_saxpy(t->n, blas_f32(t->alpha), x, t->lda, y, t->ldb),
		cblas_daxpy(t->n, blas_f64(t->alpha), x, t->lda, y, t->ldb),
		cblas_caxpy(t->n, t->alpha, x, t->lda, y, t->ldb),
		cblas_zaxpy(t->n, t->alpha, x, t->lda, y, t->ldb))
}

/* The scalar may be real where the vector is complex. */
static void scal_run(struct blas_task *t)
{
	bool real = t->scalar != t->type;
	void *x = x_of(t);

	if (!x)
		return;
	if (real && t->type == BLAS_C32)
		cblas_csscal(t->n, blas_f32(t->alpha), x, t->lda);
	else if (real)
		cblas_zdscal(t->n, blas_f64(t->alpha), x, t->lda);
	else
		BY_TYPE(t, cblas_sscal(t->n, blas_f32(t->alpha), x, t->lda),
			cblas_dscal(t->n, blas_f64(t->alpha), x, t->lda),
			cblas_cscal(t->n, t->alpha, x, t->lda),
			cblas_zscal(t->n, t->alpha, x, t->lda))
}

static void copy_run(struct blas_task *t)
{
	void *x = x_of(t), *y = y_of(t);

	if (!x || !y)
		return;
	BY_TYPE(t, cblas_scopy(t->n, x, t->lda, y, t->ldb),
		cblas_dcopy(t->n, x, t->lda, y, t->ldb),
		cblas_ccopy(t->n, x, t->lda, y, t->ldb),
		cblas_zcopy(t->n, x, t->lda, y, t->ldb))
}

static void swap_run(struct blas_task *t)
{
	void *x = x_of(t), *y = y_of(t);

	if (!x || !y)
		return;
	BY_TYPE(t, cblas_sswap(t->n, x, t->lda, y, t->ldb),
		cblas_dswap(t->n, x, t->lda, y, t->ldb),
		cblas_cswap(t->n, x, t->lda, y, t->ldb),
		cblas_zswap(t->n, x, t->lda, y, t->ldb))
}

static double complex element(const struct blas_task *t, const void *v, int step, int i)
{
	ptrdiff_t at = (ptrdiff_t)(step < 0 ? i - t->n + 1 : i) * step;

	return t->type == BLAS_C32 ? ((const float complex *)v)[at]
				   : ((const double complex *)v)[at];
}

/* Not OpenBLAS's: 0.3.21's reads one element beyond the last where a step is not 1, and nothing
 * need be mapped there. */
static void strided_dot(struct blas_task *t, const void *x, const void *y)
{
	double complex sum = 0;

	for (int i = 0; i < t->n; i++) {
		double complex a = element(t, x, t->lda, i);

		sum += (t->conj ? conj(a) : a) * element(t, y, t->ldb, i);
	}
	if (t->type == BLAS_C32)
		*(float complex *)(void *)t->value = (float complex)sum;
	else
		*(double complex *)(void *)t->value = sum;
}

static void dot_run(struct blas_task *t)
{
	bool complex_type = t->type == BLAS_C32 || t->type == BLAS_C64;
	void *x, *y;

	if (t->n <= 0)
		return;
	x = x_of(t);
	y = y_of(t);
	if (!x || !y)
		return;
	if (complex_type && (t->lda != 1 || t->ldb != 1))
		strided_dot(t, x, y);
	else if (t->conj && t->type == BLAS_C32)
		cblas_cdotc_sub(t->n, x, 1, y, 1, (void *)t->value);
	else if (t->conj && t->type == BLAS_C64)
		cblas_zdotc_sub(t->n, x, 1, y, 1, (void *)t->value);
	else
		BY_TYPE(t, *(float *)(void *)t->value = cblas_sdot(t->n, x, t->lda, y, t->ldb),
			*(double *)(void *)t->value = cblas_ddot(t->n, x, t->lda, y, t->ldb),
			cblas_cdotu_sub(t->n, x, 1, y, 1, (void *)t->value),
			cblas_zdotu_sub(t->n, x, 1, y, 1, (void *)t->value))
}

static void nrm2_run(struct blas_task *t)
{
	float *single = (void *)t->value;
	double *twice = (void *)t->value;
	void *x;

	if (t->n <= 0 || t->lda <= 0)
		return;
	x = x_of(t);
	if (x)
		BY_TYPE(t, *single = cblas_snrm2(t->n, x, t->lda),
			*twice = cblas_dnrm2(t->n, x, t->lda),
			*single = cblas_scnrm2(t->n, x, t->lda),
			*twice = cblas_dznrm2(t->n, x, t->lda))
}

/* Not cblas_scasum: OpenBLAS 0.3.21's adds up wrong on a processor with AVX-512 unless N is a
 * multiple of 8. */
static float scasum(int n, const float *x, int step)
{
	double sum = 0;

	for (int i = 0; i < n; i++, x += 2 * (size_t)step)
		sum += fabs((double)x[0]) + fabs((double)x[1]);
	return (float)sum;
}

static void asum_run(struct blas_task *t)
{
	float *single = (void *)t->value;
	double *twice = (void *)t->value;
	void *x;

	if (t->n <= 0 || t->lda <= 0)
		return;
	x = x_of(t);
	if (x)
		BY_TYPE(t, *single = cblas_sasum(t->n, x, t->lda),
			*twice = cblas_dasum(t->n, x, t->lda),
			*single = scasum(t->n, x, t->lda),
			*twice = cblas_dzasum(t->n, x, t->lda))
}

/* Indices count from 1; 0: none. */
static void iamax_run(struct blas_task *t)
{
	size_t at = 0;
	void *x;

	if (t->n <= 0 || t->lda <= 0)
		return;
	x = x_of(t);
	if (!x)
		return;
	BY_TYPE(t, at = cblas_isamax(t->n, x, t->lda), at = cblas_idamax(t->n, x, t->lda),
		at = cblas_icamax(t->n, x, t->lda), at = cblas_izamax(t->n, x, t->lda))
	*(int *)(void *)t->value = (int)at + 1;
}

static void iamin_run(struct blas_task *t)
{
	size_t at = 0;
	void *x;

	if (t->n <= 0 || t->lda <= 0)
		return;
	x = x_of(t);
	if (!x)
		return;
	BY_TYPE(t, at = cblas_isamin(t->n, x, t->lda), at = cblas_idamin(t->n, x, t->lda),
		at = cblas_icamin(t->n, x, t->lda), at = cblas_izamin(t->n, x, t->lda))
	*(int *)(void *)t->value = (int)at + 1;
}

struct vectors {
	void *handle;
	void (*run)(struct blas_task *task);
	enum blas_type type, scalar;
	const void *alpha;
	int n;
	const void *x;
	int incx;
	const void *y;
	int incy;
	bool conj;
};

static struct blas_task *vectors_new(const struct vectors *v, int *status)
{
	struct blas_task *t =
		blas_new(v->handle, v->run, v->type, v->scalar, v->alpha, NULL, status);

	if (!t)
		return NULL;
	t->n = v->n;
	t->a.at = v->x;
	t->lda = v->incx;
	t->b.at = v->y;
	t->ldb = v->incy;
	t->conj = v->conj;
	return t;
}

static int vectors(const struct vectors *v)
{
	struct blas_task *t;
	int status;

	if (v->n <= 0)
		return v->handle ? BLAS_SUCCESS : BLAS_NOT_INITIALIZED;
	t = vectors_new(v, &status);
	return t ? blas_submit(t, NULL, 0) : status;
}

static int vectors_to(const struct vectors *v, void *result, uint32_t bytes)
{
	struct blas_task *t;
	int status;

	if (!result)
		return BLAS_INVALID_VALUE;
	t = vectors_new(v, &status);
	return t ? blas_submit(t, result, bytes) : status;
}

#define TWO void *h, int n, const void *x, int incx, const void *y, int incy
#define VECTOR_PAIR(NAME, RUN, TYPE)                                                           \
	BLAS_EXPORT int NAME(TWO);                                                             \
	BLAS_EXPORT int NAME(TWO)                                                              \
	{                                                                                      \
		return vectors(                                                                \
			&(struct vectors){h, RUN, TYPE, TYPE, NULL, n, x, incx, y, incy, 0});  \
	}
#define VECTOR_AXPY(NAME, TYPE)                                                                \
	BLAS_EXPORT int NAME(void *h, int n, const void *alpha, const void *x, int incx,       \
		const void *y, int incy);                                                      \
	BLAS_EXPORT int NAME(void *h, int n, const void *alpha, const void *x, int incx,       \
		const void *y, int incy)                                                       \
	{                                                                                      \
		return vectors(&(struct vectors){                                              \
			h, axpy_run, TYPE, TYPE, alpha, n, x, incx, y, incy, 0});              \
	}
#define VECTOR_SCAL(NAME, TYPE, SCALAR)                                                        \
	BLAS_EXPORT int NAME(void *h, int n, const void *alpha, const void *x, int incx);      \
	BLAS_EXPORT int NAME(void *h, int n, const void *alpha, const void *x, int incx)       \
	{                                                                                      \
		if (incx <= 0)                                                                 \
			return BLAS_SUCCESS;                                                   \
		return vectors(&(struct vectors){                                              \
			h, scal_run, TYPE, SCALAR, alpha, n, x, incx, NULL, 0, 0});            \
	}
#define VECTOR_DOT(NAME, TYPE, CONJ)                                                           \
	BLAS_EXPORT int NAME(TWO, void *result);                                               \
	BLAS_EXPORT int NAME(TWO, void *result)                                                \
	{                                                                                      \
		return vectors_to(&(struct vectors){h, dot_run, TYPE, TYPE, NULL, n, x, incx,  \
					  y, incy, CONJ},                                      \
			result, blas_size(TYPE));                                              \
	}
#define VECTOR_REDUCE(NAME, RUN, TYPE, BYTES)                                                  \
	BLAS_EXPORT int NAME(void *h, int n, const void *x, int incx, void *result);           \
	BLAS_EXPORT int NAME(void *h, int n, const void *x, int incx, void *result)            \
	{                                                                                      \
		return vectors_to(                                                             \
			&(struct vectors){h, RUN, TYPE, TYPE, NULL, n, x, incx, NULL, 0, 0},   \
			result, BYTES);                                                        \
	}
#define VECTOR_FORMS(L, TYPE)                                                                  \
	VECTOR_PAIR(cublas##L##copy_v2, copy_run, TYPE)                                        \
	VECTOR_PAIR(cublas##L##swap_v2, swap_run, TYPE)                                        \
	VECTOR_AXPY(cublas##L##axpy_v2, TYPE)                                                  \
	VECTOR_SCAL(cublas##L##scal_v2, TYPE, TYPE)
VECTOR_FORMS(S, BLAS_F32)
VECTOR_FORMS(D, BLAS_F64)
VECTOR_FORMS(C, BLAS_C32)
VECTOR_FORMS(Z, BLAS_C64)
VECTOR_SCAL(cublasCsscal_v2, BLAS_C32, BLAS_F32)
VECTOR_SCAL(cublasZdscal_v2, BLAS_C64, BLAS_F64)
VECTOR_DOT(cublasSdot_v2, BLAS_F32, false)
VECTOR_DOT(cublasDdot_v2, BLAS_F64, false)
VECTOR_DOT(cublasCdotu_v2, BLAS_C32, false)
VECTOR_DOT(cublasCdotc_v2, BLAS_C32, true)
VECTOR_DOT(cublasZdotu_v2, BLAS_C64, false)
VECTOR_DOT(cublasZdotc_v2, BLAS_C64, true)
VECTOR_REDUCE(cublasSnrm2_v2, nrm2_run, BLAS_F32, 4)
VECTOR_REDUCE(cublasDnrm2_v2, nrm2_run, BLAS_F64, 8)
VECTOR_REDUCE(cublasScnrm2_v2, nrm2_run, BLAS_C32, 4)
VECTOR_REDUCE(cublasDznrm2_v2, nrm2_run, BLAS_C64, 8)
VECTOR_REDUCE(cublasSasum_v2, asum_run, BLAS_F32, 4)
VECTOR_REDUCE(cublasDasum_v2, asum_run, BLAS_F64, 8)
VECTOR_REDUCE(cublasScasum_v2, asum_run, BLAS_C32, 4)
VECTOR_REDUCE(cublasDzasum_v2, asum_run, BLAS_C64, 8)
VECTOR_REDUCE(cublasIsamax_v2, iamax_run, BLAS_F32, 4)
VECTOR_REDUCE(cublasIdamax_v2, iamax_run, BLAS_F64, 4)
VECTOR_REDUCE(cublasIcamax_v2, iamax_run, BLAS_C32, 4)
VECTOR_REDUCE(cublasIzamax_v2, iamax_run, BLAS_C64, 4)
VECTOR_REDUCE(cublasIsamin_v2, iamin_run, BLAS_F32, 4)
VECTOR_REDUCE(cublasIdamin_v2, iamin_run, BLAS_F64, 4)
VECTOR_REDUCE(cublasIcamin_v2, iamin_run, BLAS_C32, 4)
VECTOR_REDUCE(cublasIzamin_v2, iamin_run, BLAS_C64, 4)
