/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 1: plane rotations, given and made, in all types.  What is read and written beside the
 * vectors lies on the host or on the device, as the pointer mode says.
 */
#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/element.h"

enum { NUMBERS = 5 }; /* of a call, each a value or a list */

struct rotation {
	struct blas_task base; /* first: it is freed as one */
	void (*turn)(struct rotation *r);
	struct number {
		void *at; /* where it lies: of the program, or `value` */
		enum blas_type type;
		int count;
		_Alignas(16) unsigned char value[NUMBERS * 8];
	} number[NUMBERS];
	int numbers;
};

static double complex get(const struct rotation *r, int which, int i)
{
	return blas_get(r->number[which].at, r->number[which].type, (uint64_t)i);
}

static void put(struct rotation *r, int which, int i, double complex value)
{
	blas_put(r->number[which].at, r->number[which].type, (uint64_t)i, value);
}

static void rotation_run(struct blas_task *base)
{
	struct rotation *r = (struct rotation *)base;

	for (int i = 0; i < r->numbers; i++) {
		struct number *n = &r->number[i];
		uint32_t size = blas_size(n->type);

		if (n->at != n->value &&
			!blas_reaches(n->at, size * (uint32_t)n->count, size)) {
			base->handle->failed = true;
			return;
		}
	}
	r->turn(r);
}

/* Numbers that the program gave, of which a pointer is NULL or a type has no size: invalid. */
static int rotation_new(void *handle, void (*turn)(struct rotation *), int numbers,
	const struct number *given, struct rotation **to)
{
	struct blas_handle *h = handle;
	struct rotation *r;

	if (!h)
		return BLAS_NOT_INITIALIZED;
	for (int i = 0; i < numbers; i++)
		if (!given[i].at)
			return BLAS_INVALID_VALUE;
		else if (!blas_size(given[i].type))
			return BLAS_NOT_SUPPORTED;
	if (h->failed)
		return BLAS_EXECUTION_FAILED;
	r = aligned_alloc(16, (sizeof(*r) + 15) & ~(size_t)15);
	if (!r)
		return BLAS_ALLOC_FAILED;
	memset(r, 0, sizeof(*r));
	blas_begin(&r->base, h, rotation_run);
	r->turn = turn;
	r->numbers = numbers;
	memcpy(r->number, given, (size_t)numbers * sizeof(*given));
	*to = r;
	return BLAS_SUCCESS;
}

/* ---- rotations that are given ---- */

/* x' = c x + s y, y' = c y - conj(s) x */
static void rot(struct rotation *r)
{
	struct blas_task *t = &r->base;
	void *x = blas_member(t, &t->a, 0, blas_vector(t->n, t->lda));
	void *y = blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
	double complex c = get(r, 0, 0), s = get(r, 1, 0);

	for (int i = 0; x && y && i < t->n; i++) {
		uint64_t ix = blas_at(t->n, i, t->lda), iy = blas_at(t->n, i, t->ldb);
		double complex a = blas_get(x, t->a.type, ix), b = blas_get(y, t->b.type, iy);

		blas_put(x, t->a.type, ix, c * a + s * b);
		blas_put(y, t->b.type, iy, c * b - conj(s) * a);
	}
}

/* param: which elements of H it holds, then H by columns. */
static void rotm(struct rotation *r)
{
	struct blas_task *t = &r->base;
	void *x = blas_member(t, &t->a, 0, blas_vector(t->n, t->lda));
	void *y = blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
	int flag = (int)creal(get(r, 0, 0));
	double h11 = creal(get(r, 0, 1)), h21 = creal(get(r, 0, 2));
	double h12 = creal(get(r, 0, 3)), h22 = creal(get(r, 0, 4));

	if (flag == -2)
		return;
	if (flag == 0)
		h11 = h22 = 1;
	if (flag == 1) {
		h12 = 1;
		h21 = -1;
	}
	for (int i = 0; x && y && i < t->n; i++) {
		uint64_t ix = blas_at(t->n, i, t->lda), iy = blas_at(t->n, i, t->ldb);
		double complex a = blas_get(x, t->a.type, ix), b = blas_get(y, t->b.type, iy);

		blas_put(x, t->a.type, ix, h11 * a + h12 * b);
		blas_put(y, t->b.type, iy, h21 * a + h22 * b);
	}
}

struct turned {
	void *handle, *x, *y;
	int n, incx, incy, x_type, y_type;
};

static int turn(const struct turned *v, void (*how)(struct rotation *), int numbers,
	const struct number *given)
{
	struct blas_handle *h = v->handle;
	struct rotation *r;
	int status = rotation_new(h, how, numbers, given, &r);

	if (status)
		return status;
	if (v->n <= 0 || v->x_type != v->y_type || !blas_size((enum blas_type)v->x_type)) {
		blas_drop(&r->base);
		return v->n <= 0 ? BLAS_SUCCESS : BLAS_NOT_SUPPORTED;
	}
	r->base.n = v->n;
	r->base.a = (struct blas_place){v->x, 0, (enum blas_type)v->x_type, false};
	r->base.b = (struct blas_place){v->y, 0, (enum blas_type)v->y_type, false};
	r->base.lda = v->incx;
	r->base.ldb = v->incy;
	for (int i = 0; !h->pointer_mode && i < numbers; i++) {
		struct number *n = &r->number[i];

		memcpy(n->value, n->at, (size_t)blas_size(n->type) * (size_t)n->count);
		n->at = n->value;
	}
	return blas_submit(&r->base, NULL, 0);
}

#define NUMBER(AT, TYPE, COUNT)                                                                \
	{.at = (void *)(uintptr_t)(AT), .type = (enum blas_type)(TYPE), .count = COUNT}
#define PAIR void *x, int incx, void *y, int incy
#define PAIR_EX void *x, int xt, int incx, void *y, int yt, int incy
#define ROT(NAME, TYPE, C, S)                                                                  \
	BLAS_FUNCTION(NAME, void *h, int n, PAIR, const void *c, const void *s)                \
	{                                                                                      \
		return turn(&(struct turned){h, x, y, n, incx, incy, TYPE, TYPE}, rot, 2,      \
			(struct number[]){NUMBER(c, C, 1), NUMBER(s, S, 1)});                  \
	}
ROT(cublasSrot_v2, BLAS_F32, BLAS_F32, BLAS_F32)
ROT(cublasDrot_v2, BLAS_F64, BLAS_F64, BLAS_F64)
ROT(cublasCrot_v2, BLAS_C32, BLAS_F32, BLAS_C32)
ROT(cublasZrot_v2, BLAS_C64, BLAS_F64, BLAS_C64)
ROT(cublasCsrot_v2, BLAS_C32, BLAS_F32, BLAS_F32)
ROT(cublasZdrot_v2, BLAS_C64, BLAS_F64, BLAS_F64)

BLAS_FUNCTION(cublasRotEx, void *h, int n, PAIR_EX, const void *c, const void *s, int type,
	int execution)
{
	(void)execution;
	return turn(&(struct turned){h, x, y, n, incx, incy, xt, yt}, rot, 2,
		(struct number[]){NUMBER(c, type, 1), NUMBER(s, type, 1)});
}

#define ROTM(NAME, TYPE)                                                                       \
	BLAS_FUNCTION(NAME, void *h, int n, PAIR, const void *param)                           \
	{                                                                                      \
		return turn(&(struct turned){h, x, y, n, incx, incy, TYPE, TYPE}, rotm, 1,     \
			(struct number[]){NUMBER(param, TYPE, NUMBERS)});                      \
	}
ROTM(cublasSrotm_v2, BLAS_F32)
ROTM(cublasDrotm_v2, BLAS_F64)

BLAS_FUNCTION(cublasRotmEx, void *h, int n, PAIR_EX, const void *param, int type, int execution)
{
	(void)execution;
	return turn(&(struct turned){h, x, y, n, incx, incy, xt, yt}, rotm, 1,
		(struct number[]){NUMBER(param, type, NUMBERS)});
}

/* ---- rotations that are made ---- */

/* a, b, c, s: (c s; -conj(s) c) makes (r; 0) of (a; b).  a becomes r, and of real numbers b
 * what c and s can be had from. */
static void rotg(struct rotation *r)
{
	double complex a = get(r, 0, 0), b = get(r, 1, 0), s = 0, root = a;
	double size = hypot(cabs(a), cabs(b)), c = 1, z = 0;
	bool real = !blas_is_complex(r->number[0].type);

	if (size > 0 && real) {
		root = copysign(size, cabs(a) > cabs(b) ? creal(a) : creal(b));
		c = creal(a) / creal(root);
		s = b / root;
		z = cabs(a) > cabs(b) ? creal(s) : c != 0 ? 1 / c : 1;
	} else if (size > 0 && a == 0) {
		c = 0;
		s = 1;
		root = b;
	} else if (size > 0) {
		c = cabs(a) / size;
		s = a / cabs(a) * conj(b) / size;
		root = a / cabs(a) * size;
	}
	put(r, 0, 0, root);
	if (real)
		put(r, 1, 0, z);
	put(r, 2, 0, c);
	put(r, 3, 0, s);
}

/* d1, d2, x1, y1, param */
static void rotmg(struct rotation *r)
{
	double d1 = creal(get(r, 0, 0)), d2 = creal(get(r, 1, 0)), x1 = creal(get(r, 2, 0));
	double param[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		param[i] = creal(get(r, 4, i));
	cblas_drotmg(&d1, &d2, &x1, creal(get(r, 3, 0)), param);
	put(r, 0, 0, d1);
	put(r, 1, 0, d2);
	put(r, 2, 0, x1);
	for (int i = 0; i < NUMBERS; i++)
		put(r, 4, i, param[i]);
}

/* On the host it is made at once: no stream has a part in it. */
static int make(
	void *handle, void (*how)(struct rotation *), int numbers, const struct number *given)
{
	struct blas_handle *h = handle;
	struct rotation *r;
	int status = rotation_new(h, how, numbers, given, &r);

	if (status)
		return status;
	if (h->pointer_mode)
		return blas_submit(&r->base, NULL, 0);
	how(r);
	blas_drop(&r->base);
	return BLAS_SUCCESS;
}

#define ROTG(NAME, TYPE, C)                                                                    \
	BLAS_FUNCTION(NAME, void *h, void *a, void *b, void *c, void *s)                       \
	{                                                                                      \
		return make(h, rotg, 4,                                                        \
			(struct number[]){NUMBER(a, TYPE, 1), NUMBER(b, TYPE, 1),              \
				NUMBER(c, C, 1), NUMBER(s, TYPE, 1)});                         \
	}
ROTG(cublasSrotg_v2, BLAS_F32, BLAS_F32)
ROTG(cublasDrotg_v2, BLAS_F64, BLAS_F64)
ROTG(cublasCrotg_v2, BLAS_C32, BLAS_F32)
ROTG(cublasZrotg_v2, BLAS_C64, BLAS_F64)

BLAS_FUNCTION(cublasRotgEx, void *h, void *a, void *b, int type, void *c, void *s, int cs_type,
	int execution)
{
	(void)execution;
	return make(h, rotg, 4,
		(struct number[]){NUMBER(a, type, 1), NUMBER(b, type, 1), NUMBER(c, cs_type, 1),
			NUMBER(s, cs_type, 1)});
}

#define ROTMG(NAME, TYPE)                                                                      \
	BLAS_FUNCTION(                                                                         \
		NAME, void *h, void *d1, void *d2, void *x1, const void *y1, void *param)      \
	{                                                                                      \
		return make(h, rotmg, NUMBERS,                                                 \
			(struct number[]){NUMBER(d1, TYPE, 1), NUMBER(d2, TYPE, 1),            \
				NUMBER(x1, TYPE, 1), NUMBER(y1, TYPE, 1),                      \
				NUMBER(param, TYPE, NUMBERS)});                                \
	}
ROTMG(cublasSrotmg_v2, BLAS_F32)
ROTMG(cublasDrotmg_v2, BLAS_F64)

BLAS_FUNCTION(cublasRotmgEx, void *h, void *d1, int d1t, void *d2, int d2t, void *x1, int x1t,
	const void *y1, int y1t, void *param, int pt, int execution)
{
	(void)execution;
	return make(h, rotmg, NUMBERS,
		(struct number[]){NUMBER(d1, d1t, 1), NUMBER(d2, d2t, 1), NUMBER(x1, x1t, 1),
			NUMBER(y1, y1t, 1), NUMBER(param, pt, NUMBERS)});
}
