/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 1 where each vector says its type: the Ex forms.
 */
#include <math.h>

#include "softgpu/blas/element.h"

static void *x_of(struct blas_task *t)
{
	return blas_member(t, &t->a, 0, blas_vector(t->n, t->lda));
}

static void *y_of(struct blas_task *t)
{
	return blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
}

static double complex x_at(const struct blas_task *t, const void *x, int i)
{
	return blas_get(x, t->a.type, blas_at(t->n, i, t->lda));
}

static double complex y_at(const struct blas_task *t, const void *y, int i)
{
	return blas_get(y, t->b.type, blas_at(t->n, i, t->ldb));
}

static void axpy_run(struct blas_task *t)
{
	double complex alpha = blas_get(t->alpha, t->type, 0);
	void *x = x_of(t), *y = y_of(t);

	for (int i = 0; x && y && i < t->n; i++)
		blas_put(y, t->b.type, blas_at(t->n, i, t->ldb),
			alpha * x_at(t, x, i) + y_at(t, y, i));
}

static void scal_run(struct blas_task *t)
{
	double complex alpha = blas_get(t->alpha, t->type, 0);
	void *x = x_of(t);

	for (int i = 0; x && i < t->n; i++)
		blas_put(x, t->a.type, blas_at(t->n, i, t->lda), alpha * x_at(t, x, i));
}

static void copy_run(struct blas_task *t)
{
	void *x = x_of(t), *y = y_of(t);

	for (int i = 0; x && y && i < t->n; i++)
		blas_put(y, t->b.type, blas_at(t->n, i, t->ldb), x_at(t, x, i));
}

static void swap_run(struct blas_task *t)
{
	void *x = x_of(t), *y = y_of(t);

	for (int i = 0; x && y && i < t->n; i++) {
		double complex a = x_at(t, x, i), b = y_at(t, y, i);

		blas_put(x, t->a.type, blas_at(t->n, i, t->lda), b);
		blas_put(y, t->b.type, blas_at(t->n, i, t->ldb), a);
	}
}

static void dot_run(struct blas_task *t)
{
	void *x = x_of(t), *y = y_of(t);
	double complex sum = 0;

	for (int i = 0; x && y && i < t->n; i++)
		sum += (t->conj ? conj(x_at(t, x, i)) : x_at(t, x, i)) * y_at(t, y, i);
	blas_put(t->value, t->c.type, 0, sum);
}

static void nrm2_run(struct blas_task *t)
{
	void *x = t->lda > 0 ? x_of(t) : NULL;
	double sum = 0;

	for (int i = 0; x && i < t->n; i++)
		sum = hypot(sum, cabs(x_at(t, x, i)));
	blas_put(t->value, t->c.type, 0, sum);
}

static void asum_run(struct blas_task *t)
{
	void *x = t->lda > 0 ? x_of(t) : NULL;
	double sum = 0;

	for (int i = 0; x && i < t->n; i++) {
		double complex v = x_at(t, x, i);

		sum += fabs(creal(v)) + fabs(cimag(v));
	}
	blas_put(t->value, t->c.type, 0, sum);
}

/* The first of the largest, or smallest (conj), counted from 1; 0: none. */
static void extreme_run(struct blas_task *t)
{
	void *x = t->lda > 0 ? x_of(t) : NULL;
	double found = 0;
	int at = 0;

	for (int i = 0; x && i < t->n; i++) {
		double complex v = x_at(t, x, i);
		double size = fabs(creal(v)) + fabs(cimag(v));

		if (!at || (t->conj ? size < found : size > found)) {
			found = size;
			at = i + 1;
		}
	}
	*(int *)(void *)t->value = at;
}

/* Of a reduction of complex numbers the real type. */
static enum blas_type real_of(enum blas_type type)
{
	return type == BLAS_C32 ? BLAS_F32 : type == BLAS_C64 ? BLAS_F64 : type;
}

/* What 16-bit floats are computed in. */
static enum blas_type wide_of(enum blas_type type)
{
	return type == BLAS_F16 || type == BLAS_BF16 ? BLAS_F32 : type;
}

static bool is_float(enum blas_type type)
{
	return blas_size(type) && type != BLAS_I8 && type != BLAS_I32;
}

struct ex {
	void *handle;
	void (*run)(struct blas_task *task);
	int n;
	const void *alpha;
	int alpha_type;
	const void *x;
	int x_type, incx;
	const void *y;
	int y_type, incy;
	void *result;
	int result_type;
	int execution;
	bool conj;
};

static int ex(const struct ex *e)
{
	enum blas_type x = (enum blas_type)e->x_type, alpha = (enum blas_type)e->alpha_type;
	struct blas_task *t;
	int status;

	if (!e->handle)
		return BLAS_NOT_INITIALIZED;
	if (!is_float(x) || (e->y && e->y_type != e->x_type) ||
		(e->alpha && alpha != x && alpha != wide_of(x)) ||
		(e->execution >= 0 && e->execution != (int)wide_of(x) &&
			e->execution != (int)real_of(x)))
		return BLAS_NOT_SUPPORTED;
	if (e->n <= 0 && !e->result)
		return BLAS_SUCCESS;
	t = blas_new(
		e->handle, e->run, wide_of(x), e->alpha ? alpha : x, e->alpha, NULL, &status);
	if (!t)
		return status;
	t->n = e->n;
	t->conj = e->conj;
	t->a.at = e->x;
	t->a.type = t->b.type = x;
	t->lda = e->incx;
	t->b.at = e->y;
	t->ldb = e->incy;
	t->c.type = (enum blas_type)e->result_type;
	return blas_submit(t, e->result, e->result ? blas_size(t->c.type) : 0);
}

#define X .x = x, .x_type = xt, .incx = incx
#define Y .y = y, .y_type = yt, .incy = incy
BLAS_FUNCTION(cublasAxpyEx, void *h, int n, const void *alpha, int at, const void *x, int xt,
	int incx, void *y, int yt, int incy, int execution)
{
	if (!alpha)
		return BLAS_INVALID_VALUE;
	return ex(&(struct ex){h, axpy_run, n, alpha, at, X, Y, .execution = execution});
}

BLAS_FUNCTION(cublasScalEx, void *h, int n, const void *alpha, int at, void *x, int xt,
	int incx, int execution)
{
	if (!alpha)
		return BLAS_INVALID_VALUE;
	if (incx <= 0)
		n = 0;
	return ex(&(struct ex){h, scal_run, n, alpha, at, X, .execution = execution});
}

BLAS_FUNCTION(cublasCopyEx, void *h, int n, const void *x, int xt, int incx, void *y, int yt,
	int incy)
{
	return ex(&(struct ex){h, copy_run, n, X, Y, .execution = -1});
}

BLAS_FUNCTION(
	cublasSwapEx, void *h, int n, void *x, int xt, int incx, void *y, int yt, int incy)
{
	return ex(&(struct ex){h, swap_run, n, X, Y, .execution = -1});
}

/* A result that has another type than TYPE is not served. */
static int reduced(const struct ex *e, enum blas_type type)
{
	if (!e->result)
		return BLAS_INVALID_VALUE;
	return e->result_type == (int)type ? ex(e) : BLAS_NOT_SUPPORTED;
}

#define RESULT .result = result, .result_type = rt
#define DOT(NAME, CONJ)                                                                        \
	BLAS_FUNCTION(NAME, void *h, int n, const void *x, int xt, int incx, const void *y,    \
		int yt, int incy, void *result, int rt, int execution)                         \
	{                                                                                      \
		return reduced(&(struct ex){h, dot_run, n, X, Y, RESULT,                       \
				       .execution = execution, .conj = CONJ},                  \
			(enum blas_type)xt);                                                   \
	}
DOT(cublasDotEx, false)
DOT(cublasDotcEx, true)

#define REDUCE(NAME, RUN)                                                                      \
	BLAS_FUNCTION(NAME, void *h, int n, const void *x, int xt, int incx, void *result,     \
		int rt, int execution)                                                         \
	{                                                                                      \
		return reduced(&(struct ex){h, RUN, n, X, RESULT, .execution = execution},     \
			real_of((enum blas_type)xt));                                          \
	}
REDUCE(cublasNrm2Ex, nrm2_run)
REDUCE(cublasAsumEx, asum_run)

#define EXTREME(NAME, SMALLEST)                                                                \
	BLAS_FUNCTION(NAME, void *h, int n, const void *x, int xt, int incx, int *result)      \
	{                                                                                      \
		return reduced(                                                                \
			&(struct ex){h, extreme_run, n, X, .result = result,                   \
				.result_type = BLAS_I32, .execution = -1, .conj = SMALLEST},   \
			BLAS_I32);                                                             \
	}
EXTREME(cublasIamaxEx, false)
EXTREME(cublasIaminEx, true)
