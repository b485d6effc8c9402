/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products: plain, batched, strided, every type.  Types that OpenBLAS does not have are
 * widened first: 16-bit floats to f32, 8-bit integers are multiplied in 32 bits.
 */
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/blas.h"

static enum CBLAS_TRANSPOSE trans(int op)
{
	return op == BLAS_OP_N ? CblasNoTrans : op == BLAS_OP_T ? CblasTrans : CblasConjTrans;
}

static float element_in(const void *at, enum blas_type type, uint64_t i)
{
	switch (type) {
	case BLAS_F16: return blas_half_in(((const uint16_t *)at)[i]);
	case BLAS_BF16: return blas_bfloat_in(((const uint16_t *)at)[i]);
	case BLAS_I8: return ((const int8_t *)at)[i];
	default: return ((const float *)at)[i];
	}
}

static void element_out(void *at, enum blas_type type, uint64_t i, float value)
{
	switch (type) {
	case BLAS_F16: ((uint16_t *)at)[i] = blas_half_out(value); break;
	case BLAS_BF16: ((uint16_t *)at)[i] = blas_bfloat_out(value); break;
	default: ((float *)at)[i] = value; break;
	}
}

/* The matrix as f32 with no gaps; NULL: no memory. */
static float *widen(const void *at, enum blas_type type, int rows, int cols, int ld)
{
	float *wide = malloc(sizeof(float) * (size_t)rows * (size_t)cols + 1);

	if (wide)
		for (int j = 0; j < cols; j++)
			for (int i = 0; i < rows; i++)
				wide[(size_t)j * (size_t)rows + (size_t)i] = element_in(
					at, type, (uint64_t)j * (uint64_t)ld + (uint64_t)i);
	return wide;
}

static void product_wide(struct blas_task *t, const void *a, const void *b, void *c)
{
	int ar = t->op_a ? t->k : t->m, ac = t->op_a ? t->m : t->k;
	int br = t->op_b ? t->n : t->k, bc = t->op_b ? t->k : t->n;
	float beta = blas_f32(t->beta);
	float *wa = widen(a, t->a.type, ar, ac, t->lda);
	float *wb = widen(b, t->b.type, br, bc, t->ldb);
	float *wc = calloc((size_t)t->m * (size_t)t->n + 1, sizeof(float));

	if (!wa || !wb || !wc) {
		t->handle->failed = true;
		goto out;
	}
	cblas_sgemm(CblasColMajor, trans(t->op_a), trans(t->op_b), t->m, t->n, t->k,
		blas_f32(t->alpha), wa, blas_max(1, ar), wb, blas_max(1, br), 0, wc,
		blas_max(1, t->m));
	for (int j = 0; j < t->n; j++)
		for (int i = 0; i < t->m; i++) {
			uint64_t at = (uint64_t)j * (uint64_t)t->ldc + (uint64_t)i;
			float sum = wc[(size_t)j * (size_t)t->m + (size_t)i];

			if (beta != 0)
				sum += beta * element_in(c, t->c.type, at);
			element_out(c, t->c.type, at, sum);
		}
out:
	free(wa);
	free(wb);
	free(wc);
}

static void product_whole(struct blas_task *t, const int8_t *a, const int8_t *b, int32_t *c)
{
	int32_t alpha = *(const int32_t *)(const void *)t->alpha;
	int32_t beta = *(const int32_t *)(const void *)t->beta;

	for (int j = 0; j < t->n; j++)
		for (int i = 0; i < t->m; i++) {
			int64_t at = (int64_t)j * t->ldc + i;
			uint32_t sum = 0; /* wraps as the GPU's does */

			for (int l = 0; l < t->k; l++) {
				int x = a[t->op_a ? (int64_t)i * t->lda + l
						  : (int64_t)l * t->lda + i];
				int y = b[t->op_b ? (int64_t)l * t->ldb + j
						  : (int64_t)j * t->ldb + l];

				sum += (uint32_t)(x * y);
			}
			sum *= (uint32_t)alpha;
			if (beta)
				sum += (uint32_t)beta * (uint32_t)c[at];
			c[at] = (int32_t)sum;
		}
}

static void product(struct blas_task *t, const void *a, const void *b, void *c)
{
	enum CBLAS_TRANSPOSE ta = trans(t->op_a), tb = trans(t->op_b);
	bool narrow = t->a.type != BLAS_F32 || t->c.type != BLAS_F32;

	switch (t->type) {
	case BLAS_F32:
		if (narrow)
			product_wide(t, a, b, c);
		else
			cblas_sgemm(CblasColMajor, ta, tb, t->m, t->n, t->k, blas_f32(t->alpha),
				a, t->lda, b, t->ldb, blas_f32(t->beta), c, t->ldc);
		break;
	case BLAS_F64:
		cblas_dgemm(CblasColMajor, ta, tb, t->m, t->n, t->k, blas_f64(t->alpha), a,
			t->lda, b, t->ldb, blas_f64(t->beta), c, t->ldc);
		break;
	case BLAS_C32:
		cblas_cgemm(CblasColMajor, ta, tb, t->m, t->n, t->k, t->alpha, a, t->lda, b,
			t->ldb, t->beta, c, t->ldc);
		break;
	case BLAS_C64:
		cblas_zgemm(CblasColMajor, ta, tb, t->m, t->n, t->k, t->alpha, a, t->lda, b,
			t->ldb, t->beta, c, t->ldc);
		break;
	case BLAS_I32: product_whole(t, a, b, c); break;
	default: t->handle->failed = true;
	}
}

static void gemm_run(struct blas_task *t)
{
	for (int i = 0; i < t->batch; i++) {
		uint64_t ea = t->op_a ? blas_extent(t->k, t->m, t->lda)
				      : blas_extent(t->m, t->k, t->lda);
		uint64_t eb = t->op_b ? blas_extent(t->n, t->k, t->ldb)
				      : blas_extent(t->k, t->n, t->ldb);
		void *a = blas_member(t, &t->a, i, ea);
		void *b = blas_member(t, &t->b, i, eb);
		void *c = blas_member(t, &t->c, i, blas_extent(t->m, t->n, t->ldc));

		if ((ea && !a) || (eb && !b) || !c)
			return;
		product(t, a, b, c);
	}
}

struct gemm {
	void *handle;
	int op_a, op_b, m, n, k;
	const void *alpha;
	struct blas_place a;
	int lda;
	struct blas_place b;
	int ldb;
	const void *beta;
	struct blas_place c;
	int ldc, batch;
	enum blas_type type, scalar;
};

static int gemm(const struct gemm *g)
{
	struct blas_task *t;
	int status;

	if (g->m < 0 || g->n < 0 || g->k < 0 || g->batch < 0 || !g->alpha || !g->beta ||
		g->op_a < 0 || g->op_a > BLAS_OP_C || g->op_b < 0 || g->op_b > BLAS_OP_C ||
		g->lda < blas_max(1, g->op_a ? g->k : g->m) ||
		g->ldb < blas_max(1, g->op_b ? g->n : g->k) || g->ldc < blas_max(1, g->m))
		return BLAS_INVALID_VALUE;
	t = blas_new(g->handle, gemm_run, g->type, g->scalar, g->alpha, g->beta, &status);
	if (!t)
		return status;
	if (!g->m || !g->n || !g->batch) {
		blas_drop(t);
		return BLAS_SUCCESS;
	}
	t->op_a = g->op_a;
	t->op_b = g->op_b;
	t->m = g->m;
	t->n = g->n;
	t->k = g->k;
	t->a = g->a;
	t->b = g->b;
	t->c = g->c;
	t->lda = g->lda;
	t->ldb = g->ldb;
	t->ldc = g->ldc;
	t->batch = g->batch;
	return blas_submit(t, NULL, 0);
}

#define GEMM_HEAD void *h, int ta, int tb, int m, int n, int k, const void *alpha
#define GEMM_PLAIN(LETTER, SUFFIX, TYPE, COMPUTE)                                              \
	BLAS_EXPORT int cublas##LETTER##gemm##SUFFIX(GEMM_HEAD, const void *a, int lda,        \
		const void *b, int ldb, const void *beta, void *c, int ldc);                   \
	BLAS_EXPORT int cublas##LETTER##gemm##SUFFIX(GEMM_HEAD, const void *a, int lda,        \
		const void *b, int ldb, const void *beta, void *c, int ldc)                    \
	{                                                                                      \
		return gemm(&(struct gemm){h, ta, tb, m, n, k, alpha, {a, 0, TYPE, false},     \
			lda, {b, 0, TYPE, false}, ldb, beta, {c, 0, TYPE, false}, ldc, 1,      \
			COMPUTE, TYPE});                                                       \
	}
#define GEMM_BATCHES(LETTER, M, TYPE, COMPUTE)                                                 \
	BLAS_EXPORT int cublas##LETTER##gemm##M##Batched(GEMM_HEAD, const void *a, int lda,    \
		const void *b, int ldb, const void *beta, void *c, int ldc, int batch);        \
	BLAS_EXPORT int cublas##LETTER##gemm##M##Batched(GEMM_HEAD, const void *a, int lda,    \
		const void *b, int ldb, const void *beta, void *c, int ldc, int batch)         \
	{                                                                                      \
		return gemm(&(struct gemm){h, ta, tb, m, n, k, alpha, {a, 0, TYPE, true}, lda, \
			{b, 0, TYPE, true}, ldb, beta, {c, 0, TYPE, true}, ldc, batch,         \
			COMPUTE, TYPE});                                                       \
	}                                                                                      \
	BLAS_EXPORT int cublas##LETTER##gemm##M##StridedBatched(GEMM_HEAD, const void *a,      \
		int lda, long long sa, const void *b, int ldb, long long sb, const void *beta, \
		void *c, int ldc, long long sc, int batch);                                    \
	BLAS_EXPORT int cublas##LETTER##gemm##M##StridedBatched(GEMM_HEAD, const void *a,      \
		int lda, long long sa, const void *b, int ldb, long long sb, const void *beta, \
		void *c, int ldc, long long sc, int batch)                                     \
	{                                                                                      \
		return gemm(&(struct gemm){h, ta, tb, m, n, k, alpha, {a, sa, TYPE, false},    \
			lda, {b, sb, TYPE, false}, ldb, beta, {c, sc, TYPE, false}, ldc,       \
			batch, COMPUTE, TYPE});                                                \
	}
#define GEMM_FORMS(LETTER, SUFFIX, TYPE, COMPUTE)                                              \
	GEMM_PLAIN(LETTER, SUFFIX, TYPE, COMPUTE)                                              \
	GEMM_BATCHES(LETTER, , TYPE, COMPUTE)
GEMM_FORMS(S, _v2, BLAS_F32, BLAS_F32)
GEMM_FORMS(D, _v2, BLAS_F64, BLAS_F64)
GEMM_FORMS(C, _v2, BLAS_C32, BLAS_C32)
GEMM_FORMS(Z, _v2, BLAS_C64, BLAS_C64)
GEMM_FORMS(H, , BLAS_F16, BLAS_F32)
GEMM_PLAIN(C, 3m, BLAS_C32, BLAS_C32)
GEMM_PLAIN(Z, 3m, BLAS_C64, BLAS_C64)
GEMM_BATCHES(C, 3m, BLAS_C32, BLAS_C32)

/* Whether these types can be multiplied by that compute type, and how. */
static bool gemm_types(
	struct gemm *g, enum blas_type a, enum blas_type b, enum blas_type c, int compute)
{
	bool half = a == BLAS_F16 || a == BLAS_BF16;

	if (a != b)
		return false;
	g->a.type = a;
	g->b.type = b;
	g->c.type = c;
	switch (compute) {
	case 64: /* CUBLAS_COMPUTE_16F, and pedantic */
	case 65:
		g->type = BLAS_F32;
		g->scalar = BLAS_F16;
		return a == BLAS_F16 && c == BLAS_F16;
	case 68: /* 32F: default, pedantic, fast in 16F, 16BF, TF32, emulated */
	case 69:
	case 74:
	case 75:
	case 77:
	case 78:
		g->type = g->scalar = a == BLAS_C32 ? BLAS_C32 : BLAS_F32;
		if (a == BLAS_C32)
			return c == BLAS_C32;
		return (half && (c == a || c == BLAS_F32)) ||
		       ((a == BLAS_F32 || a == BLAS_I8) && c == BLAS_F32);
	case 70: /* 64F: default, pedantic, emulated */
	case 71:
	case 79: g->type = g->scalar = a; return (a == BLAS_F64 || a == BLAS_C64) && c == a;
	case 72: /* 32I, and pedantic */
	case 73: g->type = g->scalar = BLAS_I32; return a == BLAS_I8 && c == BLAS_I32;
	default: return false;
	}
}

static int gemm_ex(struct gemm *g, int a, int b, int c, int compute)
{
	if (!gemm_types(g, (enum blas_type)a, (enum blas_type)b, (enum blas_type)c, compute))
		return BLAS_NOT_SUPPORTED;
	return gemm(g);
}

BLAS_EXPORT int cublasGemmEx(GEMM_HEAD, const void *a, int at, int lda, const void *b, int bt,
	int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algo);
BLAS_EXPORT int cublasGemmEx(GEMM_HEAD, const void *a, int at, int lda, const void *b, int bt,
	int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algo)
{
	struct gemm g = {h, ta, tb, m, n, k, alpha, {.at = a}, lda, {.at = b}, ldb, beta,
		{.at = c}, ldc, 1, BLAS_F32, BLAS_F32};

	(void)algo;
	return gemm_ex(&g, at, bt, ct, compute);
}

BLAS_EXPORT int cublasSgemmEx(GEMM_HEAD, const void *a, int at, int lda, const void *b, int bt,
	int ldb, const void *beta, void *c, int ct, int ldc);
BLAS_EXPORT int cublasSgemmEx(GEMM_HEAD, const void *a, int at, int lda, const void *b, int bt,
	int ldb, const void *beta, void *c, int ct, int ldc)
{
	return cublasGemmEx(
		h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, 68, -1);
}

/* Complex products: of those with three multiplications the result is the same. */
#define COMPLEX(NAME)                                                                          \
	BLAS_EXPORT int NAME(GEMM_HEAD, const void *a, int at, int lda, const void *b, int bt, \
		int ldb, const void *beta, void *c, int ct, int ldc);                          \
	BLAS_EXPORT int NAME(GEMM_HEAD, const void *a, int at, int lda, const void *b, int bt, \
		int ldb, const void *beta, void *c, int ct, int ldc)                           \
	{                                                                                      \
		if (at != BLAS_C32)                                                            \
			return BLAS_NOT_SUPPORTED;                                             \
		return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta,   \
			c, ct, ldc, 68, -1);                                                   \
	}
COMPLEX(cublasCgemmEx)
COMPLEX(cublasCgemm3mEx)

BLAS_EXPORT int cublasGemmBatchedEx(GEMM_HEAD, const void *a, int at, int lda, const void *b,
	int bt, int ldb, const void *beta, void *c, int ct, int ldc, int batch, int compute,
	int algo);
BLAS_EXPORT int cublasGemmBatchedEx(GEMM_HEAD, const void *a, int at, int lda, const void *b,
	int bt, int ldb, const void *beta, void *c, int ct, int ldc, int batch, int compute,
	int algo)
{
	struct gemm g = {h, ta, tb, m, n, k, alpha, {.at = a, .array = true}, lda,
		{.at = b, .array = true}, ldb, beta, {.at = c, .array = true}, ldc, batch,
		BLAS_F32, BLAS_F32};

	(void)algo;
	return gemm_ex(&g, at, bt, ct, compute);
}

BLAS_EXPORT int cublasGemmStridedBatchedEx(GEMM_HEAD, const void *a, int at, int lda,
	long long sa, const void *b, int bt, int ldb, long long sb, const void *beta, void *c,
	int ct, int ldc, long long sc, int batch, int compute, int algo);
BLAS_EXPORT int cublasGemmStridedBatchedEx(GEMM_HEAD, const void *a, int at, int lda,
	long long sa, const void *b, int bt, int ldb, long long sb, const void *beta, void *c,
	int ct, int ldc, long long sc, int batch, int compute, int algo)
{
	struct gemm g = {h, ta, tb, m, n, k, alpha, {.at = a, .stride = sa}, lda,
		{.at = b, .stride = sb}, ldb, beta, {.at = c, .stride = sc}, ldc, batch,
		BLAS_F32, BLAS_F32};

	(void)algo;
	return gemm_ex(&g, at, bt, ct, compute);
}

/* ---- groups: each is a batch of its own ---- */

struct grouped {
	const int *ta, *tb, *m, *n, *k, *lda, *ldb, *ldc, *size;
	const char *alpha, *beta;
	uint32_t each; /* bytes of a scalar */
	const void *const *a, *const *b;
	void *const *c;
	int at, bt, ct, compute;
};

static int grouped(void *h, const struct grouped *l, int groups)
{
	int status = BLAS_SUCCESS, products = 0;

	if (groups < 0)
		return BLAS_INVALID_VALUE;
	for (int i = 0; !status && i < groups; i++) {
		struct gemm g = {h, l->ta[i], l->tb[i], l->m[i], l->n[i], l->k[i],
			l->alpha + (size_t)i * l->each, {.at = l->a + products, .array = true},
			l->lda[i], {.at = l->b + products, .array = true}, l->ldb[i],
			l->beta + (size_t)i * l->each, {.at = l->c + products, .array = true},
			l->ldc[i], l->size[i], BLAS_F32, BLAS_F32};

		status = gemm_ex(&g, l->at, l->bt, l->ct, l->compute);
		if (__builtin_add_overflow(products, l->size[i], &products))
			return BLAS_INVALID_VALUE;
	}
	return status;
}

#define GROUPED_LISTS                                                                          \
	void *h, const int *ta, const int *tb, const int *m, const int *n, const int *k,       \
		const void *alpha, const void *const *a
#define GROUPED(NAME, TYPE, BYTES, COMPUTE)                                                    \
	BLAS_EXPORT int NAME(GROUPED_LISTS, const int *lda, const void *const *b,              \
		const int *ldb, const void *beta, void *const *c, const int *ldc, int groups,  \
		const int *size);                                                              \
	BLAS_EXPORT int NAME(GROUPED_LISTS, const int *lda, const void *const *b,              \
		const int *ldb, const void *beta, void *const *c, const int *ldc, int groups,  \
		const int *size)                                                               \
	{                                                                                      \
		return grouped(h,                                                              \
			&(struct grouped){ta, tb, m, n, k, lda, ldb, ldc, size, alpha, beta,   \
				BYTES, a, b, c, TYPE, TYPE, TYPE, COMPUTE},                    \
			groups);                                                               \
	}
GROUPED(cublasSgemmGroupedBatched, BLAS_F32, 4, 68)
GROUPED(cublasDgemmGroupedBatched, BLAS_F64, 8, 70)

BLAS_EXPORT int cublasGemmGroupedBatchedEx(GROUPED_LISTS, int at, const int *lda,
	const void *const *b, int bt, const int *ldb, const void *beta, void *const *c, int ct,
	const int *ldc, int groups, const int *size, int compute);
BLAS_EXPORT int cublasGemmGroupedBatchedEx(GROUPED_LISTS, int at, const int *lda,
	const void *const *b, int bt, const int *ldb, const void *beta, void *const *c, int ct,
	const int *ldc, int groups, const int *size, int compute)
{
	if (compute != 68 && compute != 69 && compute != 70 && compute != 71 && compute != 77)
		return BLAS_NOT_SUPPORTED;
	return grouped(h,
		&(struct grouped){ta, tb, m, n, k, lda, ldb, ldc, size, alpha, beta,
			compute == 70 || compute == 71 ? 8 : 4, a, b, c, at, bt, ct, compute},
		groups);
}
