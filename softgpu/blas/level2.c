/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 2 beside gemv and ger: matrices that are symmetric, Hermitian or triangular, in full,
 * in bands or packed, in all types; and gemv in batches.
 */
#include <stdlib.h>

#include "softgpu/blas/element.h"

struct level2 {
	void *handle;
	void (*run)(struct blas_task *task);
	enum blas_type type, scalar; /* of A; of alpha */
	enum blas_layout layout;
	enum blas_fold fold;
	int uplo, op, diag, m, n, kl, ku;
	const void *alpha, *a;
	int lda;
	const void *x;
	int incx;
	const void *beta, *y;
	int incy;
};

static bool level2_right(const struct level2 *l)
{
	bool scaled = l->fold != BLAS_TRIANGLE;
	int64_t rows = l->layout == BLAS_BAND ? (int64_t)l->kl + l->ku + 1 : l->m;

	return l->m >= 0 && l->n >= 0 && l->kl >= 0 && l->ku >= 0 && l->incx &&
	       (!l->y || l->incy) && (!scaled || l->alpha) && l->uplo >= 0 && l->uplo <= 1 &&
	       l->op >= 0 && l->op <= BLAS_OP_C && l->diag >= 0 && l->diag <= 1 &&
	       (l->layout == BLAS_PACKED || l->lda >= (rows > 1 ? rows : 1));
}

static int level2(const struct level2 *l)
{
	struct blas_task *t;
	int status;

	if (!l->handle)
		return BLAS_NOT_INITIALIZED;
	if (!level2_right(l))
		return BLAS_INVALID_VALUE;
	if (!l->m || !l->n)
		return BLAS_SUCCESS;
	t = blas_new(l->handle, l->run, l->type, l->scalar, l->alpha, l->beta, &status);
	if (!t)
		return status;
	t->layout = (int)l->layout;
	t->fold = (int)l->fold;
	t->uplo = l->uplo;
	t->op_a = l->op;
	t->diag = l->diag;
	t->m = l->m;
	t->n = l->n;
	t->kl = l->kl;
	t->ku = l->ku;
	t->a.at = l->a;
	t->lda = l->lda;
	t->b.at = l->x;
	t->ldb = l->incx;
	t->c.at = l->y;
	t->ldc = l->incy;
	return blas_submit(t, NULL, 0);
}

static struct blas_view view_of(struct blas_task *t, int member)
{
	struct blas_view v = {
		.type = t->a.type,
		.layout = (enum blas_layout)t->layout,
		.fold = (enum blas_fold)t->fold,
		.uplo = t->uplo,
		.order = t->n,
		.ld = t->lda,
		.kl = t->kl,
		.ku = t->ku,
		.unit = t->diag == BLAS_UNIT,
	};

	v.at = blas_member(t, &t->a, member, blas_view_extent(&v, t->m, t->n));
	return v;
}

/* y = alpha op(A) x + beta y */
static void mv_run(struct blas_task *t)
{
	int xn = t->op_a ? t->m : t->n, yn = t->op_a ? t->n : t->m;
	double complex alpha = blas_get(t->alpha, t->type, 0);
	double complex beta = blas_get(t->beta, t->type, 0);

	for (int b = 0; b < t->batch; b++) {
		struct blas_view a = view_of(t, b);
		void *x = blas_member(t, &t->b, b, blas_vector(xn, t->ldb));
		void *y = blas_member(t, &t->c, b, blas_vector(yn, t->ldc));

		if (!a.at || !x || !y)
			return;
		for (int i = 0; i < yn; i++) {
			uint64_t to = blas_at(yn, i, t->ldc);
			double complex sum = 0;

			for (int j = 0; j < xn && alpha != 0; j++)
				sum += blas_view_op(&a, t->op_a, i, j) *
				       blas_get(x, t->b.type, blas_at(xn, j, t->ldb));
			sum *= alpha;
			if (beta != 0)
				sum += beta * blas_get(y, t->c.type, to);
			blas_put(y, t->c.type, to, sum);
		}
	}
}

/* x = op(A) x, or what gives x */
static void triangle_run(struct blas_task *t, bool solve)
{
	struct blas_view a = view_of(t, 0);
	void *x = blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
	bool lower = (t->uplo == BLAS_LOWER) == (t->op_a == BLAS_OP_N);
	double complex *v;

	if (!a.at || !x)
		return;
	v = calloc((size_t)t->n, sizeof(*v));
	if (!v) {
		t->handle->failed = true;
		return;
	}
	for (int s = 0; s < t->n; s++) {
		int i = lower == solve ? s : t->n - 1 - s;
		double complex sum = blas_get(x, t->type, blas_at(t->n, i, t->ldb));
		int from = lower ? 0 : i + 1, to = lower ? i : t->n;

		if (!solve)
			sum *= blas_view_op(&a, t->op_a, i, i);
		for (int j = from; j < to; j++) {
			double complex value = blas_view_op(&a, t->op_a, i, j);

			sum += solve ? -value * v[j]
				     : value * blas_get(x, t->type, blas_at(t->n, j, t->ldb));
		}
		v[i] = solve ? sum / blas_view_op(&a, t->op_a, i, i) : sum;
	}
	for (int i = 0; i < t->n; i++)
		blas_put(x, t->type, blas_at(t->n, i, t->ldb), v[i]);
	free(v);
}

static void trmv_run(struct blas_task *t)
{
	triangle_run(t, false);
}

static void trsv_run(struct blas_task *t)
{
	triangle_run(t, true);
}

/* A += alpha x x', or alpha x y' + its mirror, in the half that is stored */
static void rank_run(struct blas_task *t)
{
	bool hermitian = t->fold == BLAS_HERMITIAN;
	double complex alpha = blas_get(t->alpha, t->type, 0);
	struct blas_view a = view_of(t, 0);
	void *x = blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
	void *y = t->c.at ? blas_member(t, &t->c, 0, blas_vector(t->n, t->ldc)) : x;
	int step = t->c.at ? t->ldc : t->ldb;

	if (!a.at || !x || !y)
		return;
	for (int j = 0; j < t->n; j++)
		for (int i = t->uplo == BLAS_LOWER ? j : 0;
			i < (t->uplo == BLAS_LOWER ? t->n : j + 1); i++) {
			uint64_t to = blas_view_at(&a, i, j);
			double complex xi = blas_get(x, t->type, blas_at(t->n, i, t->ldb));
			double complex xj = blas_get(x, t->type, blas_at(t->n, j, t->ldb));
			double complex yi = blas_get(y, t->type, blas_at(t->n, i, step));
			double complex yj = blas_get(y, t->type, blas_at(t->n, j, step));
			double complex sum = blas_get(a.at, t->type, to);

			sum += alpha * xi * (hermitian ? conj(yj) : yj);
			if (t->c.at)
				sum += hermitian ? conj(alpha) * yi * conj(xj)
						 : alpha * yi * xj;
			if (hermitian && i == j)
				sum = creal(sum);
			blas_put(a.at, t->type, to, sum);
		}
}

/* ---- products ---- */

#define REST(A, LDA)                                                                           \
	.a = A, .lda = LDA, .x = x, .incx = incx, .beta = beta, .y = y, .incy = incy
#define VECTORS const void *x, int incx, const void *beta, void *y, int incy
#define GBMV(L, TYPE)                                                                          \
	BLAS_FUNCTION(cublas##L##gbmv_v2, void *h, int op, int m, int n, int kl, int ku,       \
		const void *alpha, const void *a, int lda, VECTORS)                            \
	{                                                                                      \
		return level2(&(struct level2){h, mv_run, TYPE, TYPE, BLAS_BAND, BLAS_NO_FOLD, \
			.op = op, .m = m, .n = n, .kl = kl, .ku = ku, .alpha = alpha,          \
			REST(a, lda)});                                                        \
	}
GBMV(S, BLAS_F32)
GBMV(D, BLAS_F64)
GBMV(C, BLAS_C32)
GBMV(Z, BLAS_C64)

#define MV_FULL(NAME, TYPE, FOLD)                                                              \
	BLAS_FUNCTION(NAME, void *h, int uplo, int n, const void *alpha, const void *a,        \
		int lda, VECTORS)                                                              \
	{                                                                                      \
		return level2(&(struct level2){h, mv_run, TYPE, TYPE, BLAS_FULL, FOLD, uplo,   \
			.m = n, .n = n, .alpha = alpha, REST(a, lda)});                        \
	}
#define MV_BAND(NAME, TYPE, FOLD)                                                              \
	BLAS_FUNCTION(NAME, void *h, int uplo, int n, int k, const void *alpha, const void *a, \
		int lda, VECTORS)                                                              \
	{                                                                                      \
		return level2(&(struct level2){h, mv_run, TYPE, TYPE, BLAS_BAND, FOLD, uplo,   \
			.m = n, .n = n, .kl = uplo || k < 0 ? 0 : k, .ku = uplo ? k : 0,       \
			.alpha = alpha, REST(a, lda)});                                        \
	}
#define MV_PACKED(NAME, TYPE, FOLD)                                                            \
	BLAS_FUNCTION(                                                                         \
		NAME, void *h, int uplo, int n, const void *alpha, const void *a, VECTORS)     \
	{                                                                                      \
		return level2(&(struct level2){h, mv_run, TYPE, TYPE, BLAS_PACKED, FOLD, uplo, \
			.m = n, .n = n, .alpha = alpha, REST(a, 1)});                          \
	}
MV_FULL(cublasSsymv_v2, BLAS_F32, BLAS_SYMMETRIC)
MV_FULL(cublasDsymv_v2, BLAS_F64, BLAS_SYMMETRIC)
MV_FULL(cublasCsymv_v2, BLAS_C32, BLAS_SYMMETRIC)
MV_FULL(cublasZsymv_v2, BLAS_C64, BLAS_SYMMETRIC)
MV_FULL(cublasChemv_v2, BLAS_C32, BLAS_HERMITIAN)
MV_FULL(cublasZhemv_v2, BLAS_C64, BLAS_HERMITIAN)
MV_BAND(cublasSsbmv_v2, BLAS_F32, BLAS_SYMMETRIC)
MV_BAND(cublasDsbmv_v2, BLAS_F64, BLAS_SYMMETRIC)
MV_BAND(cublasChbmv_v2, BLAS_C32, BLAS_HERMITIAN)
MV_BAND(cublasZhbmv_v2, BLAS_C64, BLAS_HERMITIAN)
MV_PACKED(cublasSspmv_v2, BLAS_F32, BLAS_SYMMETRIC)
MV_PACKED(cublasDspmv_v2, BLAS_F64, BLAS_SYMMETRIC)
MV_PACKED(cublasChpmv_v2, BLAS_C32, BLAS_HERMITIAN)
MV_PACKED(cublasZhpmv_v2, BLAS_C64, BLAS_HERMITIAN)

/* ---- triangles ---- */

#define TRIANGLE(RUN, TYPE, LAYOUT)                                                            \
	h, RUN, TYPE, TYPE, LAYOUT, BLAS_TRIANGLE, uplo, op, diag, .m = n, .n = n, .x = x,     \
		.incx = incx, .a = a
#define TRIANGLE_HEAD void *h, int uplo, int op, int diag, int n
#define TRIANGLES(L, TYPE, WHAT)                                                               \
	BLAS_FUNCTION(cublas##L##tr##WHAT##_v2, TRIANGLE_HEAD, const void *a, int lda,         \
		void *x, int incx)                                                             \
	{                                                                                      \
		return level2(&(struct level2){                                                \
			TRIANGLE(tr##WHAT##_run, TYPE, BLAS_FULL), .lda = lda});               \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##tb##WHAT##_v2, TRIANGLE_HEAD, int k, const void *a, int lda,  \
		void *x, int incx)                                                             \
	{                                                                                      \
		return level2(&(struct level2){TRIANGLE(tr##WHAT##_run, TYPE, BLAS_BAND),      \
			.kl = uplo ? 0 : k, .ku = uplo ? k : 0, .lda = lda});                  \
	}                                                                                      \
	BLAS_FUNCTION(                                                                         \
		cublas##L##tp##WHAT##_v2, TRIANGLE_HEAD, const void *a, void *x, int incx)     \
	{                                                                                      \
		return level2(&(struct level2){TRIANGLE(tr##WHAT##_run, TYPE, BLAS_PACKED)});  \
	}
TRIANGLES(S, BLAS_F32, mv)
TRIANGLES(D, BLAS_F64, mv)
TRIANGLES(C, BLAS_C32, mv)
TRIANGLES(Z, BLAS_C64, mv)
TRIANGLES(S, BLAS_F32, sv)
TRIANGLES(D, BLAS_F64, sv)
TRIANGLES(C, BLAS_C32, sv)
TRIANGLES(Z, BLAS_C64, sv)

/* ---- updates ---- */

#define RANK(LAYOUT, FOLD, TYPE, SCALAR)                                                       \
	h, rank_run, TYPE, SCALAR, LAYOUT, FOLD, uplo, .m = n, .n = n, .alpha = alpha, .x = x, \
		.incx = incx, .a = a
#define RANK_HEAD void *h, int uplo, int n, const void *alpha, const void *x, int incx
#define RANK1(NAME, TYPE, SCALAR, FOLD)                                                        \
	BLAS_FUNCTION(NAME, RANK_HEAD, void *a, int lda)                                       \
	{                                                                                      \
		return level2(                                                                 \
			&(struct level2){RANK(BLAS_FULL, FOLD, TYPE, SCALAR), .lda = lda});    \
	}
#define RANK1_PACKED(NAME, TYPE, SCALAR, FOLD)                                                 \
	BLAS_FUNCTION(NAME, RANK_HEAD, void *a)                                                \
	{                                                                                      \
		return level2(&(struct level2){RANK(BLAS_PACKED, FOLD, TYPE, SCALAR)});        \
	}
#define RANK2(NAME, TYPE, FOLD)                                                                \
	BLAS_FUNCTION(NAME, RANK_HEAD, const void *y, int incy, void *a, int lda)              \
	{                                                                                      \
		return level2(&(struct level2){                                                \
			RANK(BLAS_FULL, FOLD, TYPE, TYPE), .lda = lda, .y = y, .incy = incy}); \
	}
#define RANK2_PACKED(NAME, TYPE, FOLD)                                                         \
	BLAS_FUNCTION(NAME, RANK_HEAD, const void *y, int incy, void *a)                       \
	{                                                                                      \
		return level2(&(struct level2){                                                \
			RANK(BLAS_PACKED, FOLD, TYPE, TYPE), .y = y, .incy = incy});           \
	}
RANK1(cublasSsyr_v2, BLAS_F32, BLAS_F32, BLAS_SYMMETRIC)
RANK1(cublasDsyr_v2, BLAS_F64, BLAS_F64, BLAS_SYMMETRIC)
RANK1(cublasCsyr_v2, BLAS_C32, BLAS_C32, BLAS_SYMMETRIC)
RANK1(cublasZsyr_v2, BLAS_C64, BLAS_C64, BLAS_SYMMETRIC)
RANK1(cublasCher_v2, BLAS_C32, BLAS_F32, BLAS_HERMITIAN)
RANK1(cublasZher_v2, BLAS_C64, BLAS_F64, BLAS_HERMITIAN)
RANK1_PACKED(cublasSspr_v2, BLAS_F32, BLAS_F32, BLAS_SYMMETRIC)
RANK1_PACKED(cublasDspr_v2, BLAS_F64, BLAS_F64, BLAS_SYMMETRIC)
RANK1_PACKED(cublasChpr_v2, BLAS_C32, BLAS_F32, BLAS_HERMITIAN)
RANK1_PACKED(cublasZhpr_v2, BLAS_C64, BLAS_F64, BLAS_HERMITIAN)
RANK2(cublasSsyr2_v2, BLAS_F32, BLAS_SYMMETRIC)
RANK2(cublasDsyr2_v2, BLAS_F64, BLAS_SYMMETRIC)
RANK2(cublasCsyr2_v2, BLAS_C32, BLAS_SYMMETRIC)
RANK2(cublasZsyr2_v2, BLAS_C64, BLAS_SYMMETRIC)
RANK2(cublasCher2_v2, BLAS_C32, BLAS_HERMITIAN)
RANK2(cublasZher2_v2, BLAS_C64, BLAS_HERMITIAN)
RANK2_PACKED(cublasSspr2_v2, BLAS_F32, BLAS_SYMMETRIC)
RANK2_PACKED(cublasDspr2_v2, BLAS_F64, BLAS_SYMMETRIC)
RANK2_PACKED(cublasChpr2_v2, BLAS_C32, BLAS_HERMITIAN)
RANK2_PACKED(cublasZhpr2_v2, BLAS_C64, BLAS_HERMITIAN)

/* ---- gemv in batches ---- */

struct gemvs {
	void *handle;
	int op, m, n;
	const void *alpha, *beta;
	struct blas_place a, x, y;
	int lda, incx, incy, batch;
	enum blas_type type;
};

static int gemvs(const struct gemvs *g)
{
	struct blas_task *t;
	int status;

	if (!g->handle)
		return BLAS_NOT_INITIALIZED;
	if (g->m < 0 || g->n < 0 || g->batch < 0 || !g->incx || !g->incy || !g->alpha ||
		!g->beta || g->op < 0 || g->op > BLAS_OP_C || g->lda < blas_max(1, g->m))
		return BLAS_INVALID_VALUE;
	if (!g->m || !g->n || !g->batch)
		return BLAS_SUCCESS;
	t = blas_new(g->handle, mv_run, g->type, g->type, g->alpha, g->beta, &status);
	if (!t)
		return status;
	t->op_a = g->op;
	t->m = g->m;
	t->n = g->n;
	t->batch = g->batch;
	t->a = g->a;
	t->b = g->x;
	t->c = g->y;
	t->lda = g->lda;
	t->ldb = g->incx;
	t->ldc = g->incy;
	return blas_submit(t, NULL, 0);
}

#define GEMV_HEAD void *h, int op, int m, int n, const void *alpha, const void *a, int lda
#define GEMVS(L, TYPE, IN, OUT)                                                                \
	BLAS_FUNCTION(cublas##L##gemvBatched, GEMV_HEAD, const void *x, int incx,              \
		const void *beta, void *y, int incy, int batch)                                \
	{                                                                                      \
		return gemvs(&(struct gemvs){h, op, m, n, alpha, beta, {a, 0, IN, true},       \
			{x, 0, IN, true}, {y, 0, OUT, true}, lda, incx, incy, batch, TYPE});   \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##gemvStridedBatched, GEMV_HEAD, long long sa, const void *x,   \
		int incx, long long sx, const void *beta, void *y, int incy, long long sy,     \
		int batch)                                                                     \
	{                                                                                      \
		return gemvs(&(struct gemvs){h, op, m, n, alpha, beta, {a, sa, IN, false},     \
			{x, sx, IN, false}, {y, sy, OUT, false}, lda, incx, incy, batch,       \
			TYPE});                                                                \
	}
GEMVS(S, BLAS_F32, BLAS_F32, BLAS_F32)
GEMVS(D, BLAS_F64, BLAS_F64, BLAS_F64)
GEMVS(C, BLAS_C32, BLAS_C32, BLAS_C32)
GEMVS(Z, BLAS_C64, BLAS_C64, BLAS_C64)
GEMVS(HSH, BLAS_F32, BLAS_F16, BLAS_F16)
GEMVS(HSS, BLAS_F32, BLAS_F16, BLAS_F32)
GEMVS(TST, BLAS_F32, BLAS_BF16, BLAS_BF16)
GEMVS(TSS, BLAS_F32, BLAS_BF16, BLAS_F32)
