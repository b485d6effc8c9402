/* SPDX-License-Identifier: Apache-2.0
 *
 * Levels 2 and 3 beside the products: gemv, ger, triangular solves and products, symmetric
 * products, and cuBLAS's own geam and dgmm.
 */
#include <cblas.h>
#include <stdlib.h>

#include "softgpu/blas/element.h"

static enum CBLAS_TRANSPOSE trans(int op)
{
	return op == BLAS_OP_N ? CblasNoTrans : op == BLAS_OP_T ? CblasTrans : CblasConjTrans;
}
static enum CBLAS_UPLO half(int uplo)
{
	return uplo == BLAS_LOWER ? CblasLower : CblasUpper;
}
static enum CBLAS_SIDE hand(int side)
{
	return side == BLAS_LEFT ? CblasLeft : CblasRight;
}
static enum CBLAS_DIAG unit(int diag)
{
	return diag == BLAS_UNIT ? CblasUnit : CblasNonUnit;
}

static bool op_right(int op)
{
	return op >= 0 && op <= BLAS_OP_C;
}

/* Of side, triangle and diagonal. */
static bool one_of_two(int value)
{
	return !(value & ~1);
}

/* The leading dimension of a matrix of so many rows. */
static bool rows_fit(int ld, int rows)
{
	return ld >= blas_max(1, rows);
}

/* The task for A, B and C; the callers fill in the rest. RIGHT: what they say of it besides. */
static struct blas_task *matrices(void *h, void (*run)(struct blas_task *), enum blas_type type,
	const void *alpha, const void *beta, int m, int n, bool right, int *status)
{
	struct blas_task *t;

	if (!h || m < 0 || n < 0 || !right) {
		*status = h ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
		return NULL;
	}
	t = blas_new(h, run, type, type, alpha, beta, status);
	if (t) {
		t->m = m;
		t->n = n;
	}
	return t;
}

static int submit(struct blas_task *t)
{
	if (!t->m || !t->n) {
		blas_drop(t);
		return BLAS_SUCCESS;
	}
	return blas_submit(t, NULL, 0);
}

/* ---- level 2 ---- */

static void gemv_run(struct blas_task *t)
{
	int xn = t->op_a ? t->m : t->n, yn = t->op_a ? t->n : t->m;
	void *a = blas_member(t, &t->a, 0, blas_extent(t->m, t->n, t->lda));
	void *x = blas_member(t, &t->b, 0, blas_vector(xn, t->ldb));
	void *y = blas_member(t, &t->c, 0, blas_vector(yn, t->ldc));

	if (!a || !x || !y)
		return;
	BY_TYPE(t,
		cblas_sgemv(CblasColMajor, trans(t->op_a), t->m, t->n, blas_f32(t->alpha), a,
			t->lda, x, t->ldb, blas_f32(t->beta), y, t->ldc),
		cblas_dgemv(CblasColMajor, trans(t->op_a), t->m, t->n, blas_f64(t->alpha), a,
			t->lda, x, t->ldb, blas_f64(t->beta), y, t->ldc),
		cblas_cgemv(CblasColMajor, trans(t->op_a), t->m, t->n, t->alpha, a, t->lda, x,
			t->ldb, t->beta, y, t->ldc),
		cblas_zgemv(CblasColMajor, trans(t->op_a), t->m, t->n, t->alpha, a, t->lda, x,
			t->ldb, t->beta, y, t->ldc))
}

static void ger_run(struct blas_task *t)
{
	void *x = blas_member(t, &t->a, 0, blas_vector(t->m, t->lda));
	void *y = blas_member(t, &t->b, 0, blas_vector(t->n, t->ldb));
	void *a = blas_member(t, &t->c, 0, blas_extent(t->m, t->n, t->ldc));

	if (!a || !x || !y)
		return;
	if (t->conj && t->type == BLAS_C32)
		cblas_cgerc(
			CblasColMajor, t->m, t->n, t->alpha, x, t->lda, y, t->ldb, a, t->ldc);
	else if (t->conj)
		cblas_zgerc(
			CblasColMajor, t->m, t->n, t->alpha, x, t->lda, y, t->ldb, a, t->ldc);
	else
		BY_TYPE(t,
			cblas_sger(CblasColMajor, t->m, t->n, blas_f32(t->alpha), x, t->lda, y,
				t->ldb, a, t->ldc),
			cblas_dger(CblasColMajor, t->m, t->n, blas_f64(t->alpha), x, t->lda, y,
				t->ldb, a, t->ldc),
			cblas_cgeru(CblasColMajor, t->m, t->n, t->alpha, x, t->lda, y, t->ldb,
				a, t->ldc),
			cblas_zgeru(CblasColMajor, t->m, t->n, t->alpha, x, t->lda, y, t->ldb,
				a, t->ldc))
}

#define GEMV(NAME, TYPE)                                                                       \
	BLAS_EXPORT int NAME(void *h, int op, int m, int n, const void *alpha, const void *a,  \
		int lda, const void *x, int incx, const void *beta, void *y, int incy);        \
	BLAS_EXPORT int NAME(void *h, int op, int m, int n, const void *alpha, const void *a,  \
		int lda, const void *x, int incx, const void *beta, void *y, int incy)         \
	{                                                                                      \
		int status;                                                                    \
		struct blas_task *t = matrices(h, gemv_run, TYPE, alpha, beta, m, n,           \
			op_right(op) && alpha && beta && incx && incy && rows_fit(lda, m),     \
			&status);                                                              \
                                                                                               \
		if (!t)                                                                        \
			return status;                                                         \
		t->op_a = op;                                                                  \
		t->a.at = a;                                                                   \
		t->lda = lda;                                                                  \
		t->b.at = x;                                                                   \
		t->ldb = incx;                                                                 \
		t->c.at = y;                                                                   \
		t->ldc = incy;                                                                 \
		return submit(t);                                                              \
	}
GEMV(cublasSgemv_v2, BLAS_F32)
GEMV(cublasDgemv_v2, BLAS_F64)
GEMV(cublasCgemv_v2, BLAS_C32)
GEMV(cublasZgemv_v2, BLAS_C64)

#define GER(NAME, TYPE, CONJ)                                                                  \
	BLAS_EXPORT int NAME(void *h, int m, int n, const void *alpha, const void *x,          \
		int incx, const void *y, int incy, void *a, int lda);                          \
	BLAS_EXPORT int NAME(void *h, int m, int n, const void *alpha, const void *x,          \
		int incx, const void *y, int incy, void *a, int lda)                           \
	{                                                                                      \
		int status;                                                                    \
		struct blas_task *t = matrices(h, ger_run, TYPE, alpha, NULL, m, n,            \
			alpha && incx && incy && rows_fit(lda, m), &status);                   \
                                                                                               \
		if (!t)                                                                        \
			return status;                                                         \
		t->conj = CONJ;                                                                \
		t->a.at = x;                                                                   \
		t->lda = incx;                                                                 \
		t->b.at = y;                                                                   \
		t->ldb = incy;                                                                 \
		t->c.at = a;                                                                   \
		t->ldc = lda;                                                                  \
		return submit(t);                                                              \
	}
GER(cublasSger_v2, BLAS_F32, false)
GER(cublasDger_v2, BLAS_F64, false)
GER(cublasCgeru_v2, BLAS_C32, false)
GER(cublasCgerc_v2, BLAS_C32, true)
GER(cublasZgeru_v2, BLAS_C64, false)
GER(cublasZgerc_v2, BLAS_C64, true)

/* ---- triangles ---- */

#define TRIANGLE(T)                                                                            \
	CblasColMajor, hand((T)->side), half((T)->uplo), trans((T)->op_a), unit((T)->diag),    \
		(T)->m, (T)->n
static void trsm_run(struct blas_task *t)
{
	int order = t->side == BLAS_LEFT ? t->m : t->n;

	for (int i = 0; i < t->batch; i++) {
		void *a = blas_member(t, &t->a, i, blas_extent(order, order, t->lda));
		void *b = blas_member(t, &t->c, i, blas_extent(t->m, t->n, t->ldc));

		if (!a || !b)
			return;
		BY_TYPE(t, cblas_strsm(TRIANGLE(t), blas_f32(t->alpha), a, t->lda, b, t->ldc),
			cblas_dtrsm(TRIANGLE(t), blas_f64(t->alpha), a, t->lda, b, t->ldc),
			cblas_ctrsm(TRIANGLE(t), t->alpha, a, t->lda, b, t->ldc),
			cblas_ztrsm(TRIANGLE(t), t->alpha, a, t->lda, b, t->ldc))
	}
}

/* C = alpha op(A) B: cuBLAS's has a C of its own, which may be B. */
static void trmm_run(struct blas_task *t)
{
	int order = t->side == BLAS_LEFT ? t->m : t->n;
	uint32_t size = blas_size(t->type);
	char *a = blas_member(t, &t->a, 0, blas_extent(order, order, t->lda));
	char *b = blas_member(t, &t->b, 0, blas_extent(t->m, t->n, t->ldb));
	char *c = blas_member(t, &t->c, 0, blas_extent(t->m, t->n, t->ldc));

	if (!a || !b || !c)
		return;
	if (b != c)
		for (int j = 0; j < t->n; j++)
			for (size_t i = 0; i < (size_t)t->m * size; i++)
				c[(size_t)j * (size_t)t->ldc * size + i] =
					b[(size_t)j * (size_t)t->ldb * size + i];
	BY_TYPE(t,
		cblas_strmm(
			TRIANGLE(t), blas_f32(t->alpha), (void *)a, t->lda, (void *)c, t->ldc),
		cblas_dtrmm(
			TRIANGLE(t), blas_f64(t->alpha), (void *)a, t->lda, (void *)c, t->ldc),
		cblas_ctrmm(TRIANGLE(t), t->alpha, a, t->lda, c, t->ldc),
		cblas_ztrmm(TRIANGLE(t), t->alpha, a, t->lda, c, t->ldc))
}

static int triangle(void *h, void (*run)(struct blas_task *), enum blas_type type,
	const int how[4], int m, int n, const void *alpha, struct blas_place a, int lda,
	const void *b, int ldb, struct blas_place c, int ldc, int batch)
{
	struct blas_task *t;
	int status;

	t = matrices(h, run, type, alpha, NULL, m, n,
		one_of_two(how[0]) && one_of_two(how[1]) && op_right(how[2]) &&
			one_of_two(how[3]) && alpha && batch >= 0 &&
			rows_fit(lda, how[0] == BLAS_LEFT ? m : n) && rows_fit(ldc, m) &&
			(!b || rows_fit(ldb, m)),
		&status);
	if (!t)
		return status;
	t->side = how[0];
	t->uplo = how[1];
	t->op_a = how[2];
	t->diag = how[3];
	t->a = a;
	t->lda = lda;
	t->b.at = b;
	t->ldb = ldb;
	t->c = c;
	t->ldc = ldc;
	t->batch = batch;
	return submit(t);
}

#define TRIANGLE_HEAD                                                                          \
	void *h, int side, int uplo, int op, int diag, int m, int n, const void *alpha,        \
		const void *a, int lda
#define TRIANGLES(L, TYPE)                                                                     \
	BLAS_EXPORT int cublas##L##trsm_v2(TRIANGLE_HEAD, void *b, int ldb);                   \
	BLAS_EXPORT int cublas##L##trsm_v2(TRIANGLE_HEAD, void *b, int ldb)                    \
	{                                                                                      \
		return triangle(h, trsm_run, TYPE, (int[]){side, uplo, op, diag}, m, n, alpha, \
			(struct blas_place){a, 0, TYPE, false}, lda, NULL, 1,                  \
			(struct blas_place){b, 0, TYPE, false}, ldb, 1);                       \
	}                                                                                      \
	BLAS_EXPORT int cublas##L##trsmBatched(TRIANGLE_HEAD, void *b, int ldb, int batch);    \
	BLAS_EXPORT int cublas##L##trsmBatched(TRIANGLE_HEAD, void *b, int ldb, int batch)     \
	{                                                                                      \
		return triangle(h, trsm_run, TYPE, (int[]){side, uplo, op, diag}, m, n, alpha, \
			(struct blas_place){a, 0, TYPE, true}, lda, NULL, 1,                   \
			(struct blas_place){b, 0, TYPE, true}, ldb, batch);                    \
	}                                                                                      \
	BLAS_EXPORT int cublas##L##trmm_v2(                                                    \
		TRIANGLE_HEAD, const void *b, int ldb, void *c, int ldc);                      \
	BLAS_EXPORT int cublas##L##trmm_v2(                                                    \
		TRIANGLE_HEAD, const void *b, int ldb, void *c, int ldc)                       \
	{                                                                                      \
		return triangle(h, trmm_run, TYPE, (int[]){side, uplo, op, diag}, m, n, alpha, \
			(struct blas_place){a, 0, TYPE, false}, lda, b, ldb,                   \
			(struct blas_place){c, 0, TYPE, false}, ldc, 1);                       \
	}
TRIANGLES(S, BLAS_F32)
TRIANGLES(D, BLAS_F64)
TRIANGLES(C, BLAS_C32)
TRIANGLES(Z, BLAS_C64)

/* ---- symmetric products ---- */

static void symm_run(struct blas_task *t)
{
	int order = t->side == BLAS_LEFT ? t->m : t->n;
	void *a = blas_member(t, &t->a, 0, blas_extent(order, order, t->lda));
	void *b = blas_member(t, &t->b, 0, blas_extent(t->m, t->n, t->ldb));
	void *c = blas_member(t, &t->c, 0, blas_extent(t->m, t->n, t->ldc));

	if (!a || !b || !c)
		return;
	BY_TYPE(t,
		cblas_ssymm(CblasColMajor, hand(t->side), half(t->uplo), t->m, t->n,
			blas_f32(t->alpha), a, t->lda, b, t->ldb, blas_f32(t->beta), c, t->ldc),
		cblas_dsymm(CblasColMajor, hand(t->side), half(t->uplo), t->m, t->n,
			blas_f64(t->alpha), a, t->lda, b, t->ldb, blas_f64(t->beta), c, t->ldc),
		cblas_csymm(CblasColMajor, hand(t->side), half(t->uplo), t->m, t->n, t->alpha,
			a, t->lda, b, t->ldb, t->beta, c, t->ldc),
		cblas_zsymm(CblasColMajor, hand(t->side), half(t->uplo), t->m, t->n, t->alpha,
			a, t->lda, b, t->ldb, t->beta, c, t->ldc))
}

/* n = m = order of C, k = the other side of A. */
static void syrk_run(struct blas_task *t)
{
	uint64_t elements =
		t->op_a ? blas_extent(t->k, t->n, t->lda) : blas_extent(t->n, t->k, t->lda);
	void *a = blas_member(t, &t->a, 0, elements);
	void *c = blas_member(t, &t->c, 0, blas_extent(t->n, t->n, t->ldc));

	if ((elements && !a) || !c)
		return;
	BY_TYPE(t,
		cblas_ssyrk(CblasColMajor, half(t->uplo), trans(t->op_a), t->n, t->k,
			blas_f32(t->alpha), a, t->lda, blas_f32(t->beta), c, t->ldc),
		cblas_dsyrk(CblasColMajor, half(t->uplo), trans(t->op_a), t->n, t->k,
			blas_f64(t->alpha), a, t->lda, blas_f64(t->beta), c, t->ldc),
		cblas_csyrk(CblasColMajor, half(t->uplo), trans(t->op_a), t->n, t->k, t->alpha,
			a, t->lda, t->beta, c, t->ldc),
		cblas_zsyrk(CblasColMajor, half(t->uplo), trans(t->op_a), t->n, t->k, t->alpha,
			a, t->lda, t->beta, c, t->ldc))
}

#define SYMMETRIC(L, TYPE)                                                                     \
	BLAS_EXPORT int cublas##L##symm_v2(void *h, int side, int uplo, int m, int n,          \
		const void *alpha, const void *a, int lda, const void *b, int ldb,             \
		const void *beta, void *c, int ldc);                                           \
	BLAS_EXPORT int cublas##L##symm_v2(void *h, int side, int uplo, int m, int n,          \
		const void *alpha, const void *a, int lda, const void *b, int ldb,             \
		const void *beta, void *c, int ldc)                                            \
	{                                                                                      \
		int status;                                                                    \
		struct blas_task *t = matrices(h, symm_run, TYPE, alpha, beta, m, n,           \
			one_of_two(side) && one_of_two(uplo) && alpha && beta &&               \
				rows_fit(lda, side == BLAS_LEFT ? m : n) &&                    \
				rows_fit(ldb, m) && rows_fit(ldc, m),                          \
			&status);                                                              \
                                                                                               \
		if (!t)                                                                        \
			return status;                                                         \
		t->side = side;                                                                \
		t->uplo = uplo;                                                                \
		t->a.at = a;                                                                   \
		t->lda = lda;                                                                  \
		t->b.at = b;                                                                   \
		t->ldb = ldb;                                                                  \
		t->c.at = c;                                                                   \
		t->ldc = ldc;                                                                  \
		return submit(t);                                                              \
	}                                                                                      \
	BLAS_EXPORT int cublas##L##syrk_v2(void *h, int uplo, int op, int n, int k,            \
		const void *alpha, const void *a, int lda, const void *beta, void *c,          \
		int ldc);                                                                      \
	BLAS_EXPORT int cublas##L##syrk_v2(void *h, int uplo, int op, int n, int k,            \
		const void *alpha, const void *a, int lda, const void *beta, void *c, int ldc) \
	{                                                                                      \
		int status;                                                                    \
		struct blas_task *t = matrices(h, syrk_run, TYPE, alpha, beta, n, n,           \
			k >= 0 && one_of_two(uplo) && op_right(op) && alpha && beta &&         \
				!(op == BLAS_OP_C && blas_is_complex(TYPE)) &&                 \
				rows_fit(lda, op ? k : n) && rows_fit(ldc, n),                 \
			&status);                                                              \
                                                                                               \
		if (!t)                                                                        \
			return status;                                                         \
		t->uplo = uplo;                                                                \
		t->op_a = op;                                                                  \
		t->k = k;                                                                      \
		t->a.at = a;                                                                   \
		t->lda = lda;                                                                  \
		t->c.at = c;                                                                   \
		t->ldc = ldc;                                                                  \
		return submit(t);                                                              \
	}
SYMMETRIC(S, BLAS_F32)
SYMMETRIC(D, BLAS_F64)
SYMMETRIC(C, BLAS_C32)
SYMMETRIC(Z, BLAS_C64)

/* ---- what only cuBLAS has ---- */

static double complex turned(
	const void *at, enum blas_type type, int op, int ld, int row, int column)
{
	uint64_t i = op ? (uint64_t)row * (uint64_t)ld + (uint64_t)column
			: (uint64_t)column * (uint64_t)ld + (uint64_t)row;
	double complex value = blas_get(at, type, i);

	return op == BLAS_OP_C ? conj(value) : value;
}

/* C = alpha op(A) + beta op(B); a factor of 0 leaves its matrix unread. */
static void geam_run(struct blas_task *t)
{
	double complex alpha = blas_get(t->alpha, t->type, 0);
	double complex beta = blas_get(t->beta, t->type, 0);
	void *a = alpha != 0 ? blas_member(t, &t->a, 0,
				       t->op_a ? blas_extent(t->n, t->m, t->lda)
					       : blas_extent(t->m, t->n, t->lda))
			     : NULL;
	void *b = beta != 0 ? blas_member(t, &t->b, 0,
				      t->op_b ? blas_extent(t->n, t->m, t->ldb)
					      : blas_extent(t->m, t->n, t->ldb))
			    : NULL;
	void *c = blas_member(t, &t->c, 0, blas_extent(t->m, t->n, t->ldc));

	if ((alpha != 0 && !a) || (beta != 0 && !b) || !c)
		return;
	for (int j = 0; j < t->n; j++)
		for (int i = 0; i < t->m; i++) {
			double complex sum = 0;

			if (a)
				sum += alpha * turned(a, t->type, t->op_a, t->lda, i, j);
			if (b)
				sum += beta * turned(b, t->type, t->op_b, t->ldb, i, j);
			blas_put(c, t->type, (uint64_t)j * (uint64_t)t->ldc + (uint64_t)i, sum);
		}
}

/* C = A diag(x), or diag(x) A. */
static void dgmm_run(struct blas_task *t)
{
	int order = t->side == BLAS_LEFT ? t->m : t->n;
	void *a = blas_member(t, &t->a, 0, blas_extent(t->m, t->n, t->lda));
	void *x = blas_member(t, &t->b, 0, blas_vector(order, t->ldb));
	void *c = blas_member(t, &t->c, 0, blas_extent(t->m, t->n, t->ldc));

	if (!a || !x || !c)
		return;
	for (int j = 0; j < t->n; j++)
		for (int i = 0; i < t->m; i++) {
			int at = t->side == BLAS_LEFT ? i : j;
			int64_t step = t->ldb;
			int64_t first = step < 0 ? (1 - (int64_t)order) * step : 0;

			blas_put(c, t->type, (uint64_t)j * (uint64_t)t->ldc + (uint64_t)i,
				blas_get(a, t->type,
					(uint64_t)j * (uint64_t)t->lda + (uint64_t)i) *
					blas_get(x, t->type, (uint64_t)(first + at * step)));
		}
}

#define OWN(L, TYPE)                                                                           \
	BLAS_EXPORT int cublas##L##geam(void *h, int op_a, int op_b, int m, int n,             \
		const void *alpha, const void *a, int lda, const void *beta, const void *b,    \
		int ldb, void *c, int ldc);                                                    \
	BLAS_EXPORT int cublas##L##geam(void *h, int op_a, int op_b, int m, int n,             \
		const void *alpha, const void *a, int lda, const void *beta, const void *b,    \
		int ldb, void *c, int ldc)                                                     \
	{                                                                                      \
		int status;                                                                    \
		struct blas_task *t = matrices(h, geam_run, TYPE, alpha, beta, m, n,           \
			op_right(op_a) && op_right(op_b) && alpha && beta &&                   \
				rows_fit(lda, op_a ? n : m) && rows_fit(ldb, op_b ? n : m) &&  \
				rows_fit(ldc, m) && !(a == c && (op_a || lda != ldc)) &&       \
				!(b == c && (op_b || ldb != ldc)),                             \
			&status);                                                              \
                                                                                               \
		if (!t)                                                                        \
			return status;                                                         \
		t->op_a = op_a;                                                                \
		t->op_b = op_b;                                                                \
		t->a.at = a;                                                                   \
		t->lda = lda;                                                                  \
		t->b.at = b;                                                                   \
		t->ldb = ldb;                                                                  \
		t->c.at = c;                                                                   \
		t->ldc = ldc;                                                                  \
		return submit(t);                                                              \
	}                                                                                      \
	BLAS_EXPORT int cublas##L##dgmm(void *h, int side, int m, int n, const void *a,        \
		int lda, const void *x, int incx, void *c, int ldc);                           \
	BLAS_EXPORT int cublas##L##dgmm(void *h, int side, int m, int n, const void *a,        \
		int lda, const void *x, int incx, void *c, int ldc)                            \
	{                                                                                      \
		int status;                                                                    \
		struct blas_task *t = matrices(h, dgmm_run, TYPE, NULL, NULL, m, n,            \
			one_of_two(side) && rows_fit(lda, m) && rows_fit(ldc, m), &status);    \
                                                                                               \
		if (!t)                                                                        \
			return status;                                                         \
		t->side = side;                                                                \
		t->a.at = a;                                                                   \
		t->lda = lda;                                                                  \
		t->b.at = x;                                                                   \
		t->ldb = incx;                                                                 \
		t->c.at = c;                                                                   \
		t->ldc = ldc;                                                                  \
		return submit(t);                                                              \
	}
OWN(S, BLAS_F32)
OWN(D, BLAS_F64)
OWN(C, BLAS_C32)
OWN(Z, BLAS_C64)
