/* SPDX-License-Identifier: Apache-2.0
 *
 * Level 3 beside the products, symm, syrk and the triangles: updates of rank k and 2k,
 * Hermitian products, packed triangles.
 */
#include "softgpu/blas/element.h"

/* How an update is made of op(A) and op(B). */
enum {
	RANK_ONE = 0,	    /* A B' */
	RANK_BOTH = 1,	    /* and its mirror, B A' */
	RANK_HERMITIAN = 2, /* B' is conjugated, the diagonal real */
};

struct rank {
	void *handle;
	int uplo, op, n, k;
	const void *alpha, *a;
	int lda;
	const void *b; /* NULL: A */
	int ldb;
	const void *beta;
	void *c;
	int ldc, how;
	enum blas_type type, alpha_type, beta_type;
};

/* fold: how it is made. */
static void rank_run(struct blas_task *t)
{
	bool hermitian = t->fold & RANK_HERMITIAN;
	bool two = t->b.at;
	double complex alpha = blas_get(t->alpha, t->type, 0);
	double complex beta = blas_get(t->beta, t->type, 0);
	struct blas_view a = {.type = t->a.type, .ld = t->lda}, b = {.type = t->b.type};
	uint64_t ea =
		t->op_a ? blas_extent(t->k, t->n, t->lda) : blas_extent(t->n, t->k, t->lda);
	uint64_t eb =
		t->op_a ? blas_extent(t->k, t->n, t->ldb) : blas_extent(t->n, t->k, t->ldb);
	void *c = blas_member(t, &t->c, 0, blas_extent(t->n, t->n, t->ldc));

	a.at = blas_member(t, &t->a, 0, ea);
	b.at = two ? blas_member(t, &t->b, 0, eb) : a.at;
	b.ld = two ? t->ldb : t->lda;
	if ((ea && (!a.at || !b.at)) || !c)
		return;
	for (int j = 0; j < t->n; j++)
		for (int i = t->uplo == BLAS_LOWER ? j : 0;
			i < (t->uplo == BLAS_LOWER ? t->n : j + 1); i++) {
			uint64_t to = (uint64_t)j * (uint64_t)t->ldc + (uint64_t)i;
			double complex sum = 0;

			for (int l = 0; l < t->k; l++) {
				double complex ai = blas_view_op(&a, t->op_a, i, l);
				double complex bj = blas_view_op(&b, t->op_a, j, l);

				sum += alpha * ai * (hermitian ? conj(bj) : bj);
				if (!(t->fold & RANK_BOTH))
					continue;
				ai = blas_view_op(&a, t->op_a, j, l);
				bj = blas_view_op(&b, t->op_a, i, l);
				sum += hermitian ? conj(alpha) * bj * conj(ai)
						 : alpha * bj * ai;
			}
			if (beta != 0)
				sum += beta * blas_get(c, t->c.type, to);
			if (hermitian && i == j)
				sum = creal(sum);
			blas_put(c, t->c.type, to, sum);
		}
}

static int rank_new(const struct rank *r)
{
	bool hermitian = r->how & RANK_HERMITIAN;
	int rows = r->op ? r->k : r->n, status;
	struct blas_task *t;

	if (!r->handle)
		return BLAS_NOT_INITIALIZED;
	if (r->n < 0 || r->k < 0 || r->uplo < 0 || r->uplo > 1 || r->op < 0 ||
		r->op > BLAS_OP_C || (hermitian && r->op == BLAS_OP_T) ||
		(!hermitian && blas_is_complex(r->type) && r->op == BLAS_OP_C) || !r->alpha ||
		!r->beta || r->lda < blas_max(1, rows) || r->ldc < blas_max(1, r->n) ||
		(r->b && r->ldb < blas_max(1, rows)))
		return BLAS_INVALID_VALUE;
	if (!r->n)
		return BLAS_SUCCESS;
	t = blas_new(r->handle, rank_run, r->type, r->alpha_type, r->alpha, NULL, &status);
	if (!t)
		return status;
	blas_beta(t, r->beta_type, r->beta);
	t->fold = r->how;
	t->uplo = r->uplo;
	t->op_a = r->op;
	t->n = r->n;
	t->k = r->k;
	t->a.at = r->a;
	t->b.at = r->b;
	t->c.at = r->c;
	t->lda = r->lda;
	t->ldb = r->ldb;
	t->ldc = r->ldc;
	return blas_submit(t, NULL, 0);
}

#define RANK_HEAD                                                                              \
	void *h, int uplo, int op, int n, int k, const void *alpha, const void *a, int lda
#define RANK_K(NAME, TYPE, SCALAR, HOW)                                                        \
	BLAS_FUNCTION(NAME, RANK_HEAD, const void *beta, void *c, int ldc)                     \
	{                                                                                      \
		return rank_new(&(struct rank){h, uplo, op, n, k, alpha, a, lda, NULL, 1,      \
			beta, c, ldc, HOW, TYPE, SCALAR, SCALAR});                             \
	}
/* Twice: with both operands. BETA: the type of beta. */
#define RANK_2K(NAME, TYPE, BETA, HOW)                                                         \
	BLAS_FUNCTION(                                                                         \
		NAME, RANK_HEAD, const void *b, int ldb, const void *beta, void *c, int ldc)   \
	{                                                                                      \
		return rank_new(&(struct rank){h, uplo, op, n, k, alpha, a, lda, b, ldb, beta, \
			c, ldc, HOW, TYPE, TYPE, BETA});                                       \
	}
#define RANK_EX(NAME, SCALAR, HOW)                                                             \
	BLAS_FUNCTION(NAME, void *h, int uplo, int op, int n, int k, const void *alpha,        \
		const void *a, int at, int lda, const void *beta, void *c, int ct, int ldc)    \
	{                                                                                      \
		if (at != BLAS_C32 || ct != BLAS_C32)                                          \
			return BLAS_NOT_SUPPORTED;                                             \
		return rank_new(&(struct rank){h, uplo, op, n, k, alpha, a, lda, NULL, 1,      \
			beta, c, ldc, HOW, BLAS_C32, SCALAR, SCALAR});                         \
	}
RANK_K(cublasCherk_v2, BLAS_C32, BLAS_F32, RANK_HERMITIAN)
RANK_K(cublasZherk_v2, BLAS_C64, BLAS_F64, RANK_HERMITIAN)
RANK_EX(cublasCsyrkEx, BLAS_C32, RANK_ONE)
RANK_EX(cublasCsyrk3mEx, BLAS_C32, RANK_ONE)
RANK_EX(cublasCherkEx, BLAS_F32, RANK_HERMITIAN)
RANK_EX(cublasCherk3mEx, BLAS_F32, RANK_HERMITIAN)
RANK_2K(cublasSsyr2k_v2, BLAS_F32, BLAS_F32, RANK_BOTH)
RANK_2K(cublasDsyr2k_v2, BLAS_F64, BLAS_F64, RANK_BOTH)
RANK_2K(cublasCsyr2k_v2, BLAS_C32, BLAS_C32, RANK_BOTH)
RANK_2K(cublasZsyr2k_v2, BLAS_C64, BLAS_C64, RANK_BOTH)
RANK_2K(cublasCher2k_v2, BLAS_C32, BLAS_F32, RANK_BOTH | RANK_HERMITIAN)
RANK_2K(cublasZher2k_v2, BLAS_C64, BLAS_F64, RANK_BOTH | RANK_HERMITIAN)
RANK_2K(cublasSsyrkx, BLAS_F32, BLAS_F32, RANK_ONE)
RANK_2K(cublasDsyrkx, BLAS_F64, BLAS_F64, RANK_ONE)
RANK_2K(cublasCsyrkx, BLAS_C32, BLAS_C32, RANK_ONE)
RANK_2K(cublasZsyrkx, BLAS_C64, BLAS_C64, RANK_ONE)
RANK_2K(cublasCherkx, BLAS_C32, BLAS_F32, RANK_HERMITIAN)
RANK_2K(cublasZherkx, BLAS_C64, BLAS_F64, RANK_HERMITIAN)

/* ---- Hermitian products ---- */

static void hemm_run(struct blas_task *t)
{
	int order = t->side == BLAS_LEFT ? t->m : t->n;
	double complex alpha = blas_get(t->alpha, t->type, 0);
	double complex beta = blas_get(t->beta, t->type, 0);
	struct blas_view a = {
		.type = t->type, .fold = BLAS_HERMITIAN, .uplo = t->uplo, .ld = t->lda};
	struct blas_view b = {.type = t->type, .ld = t->ldb};
	void *c = blas_member(t, &t->c, 0, blas_extent(t->m, t->n, t->ldc));

	a.at = blas_member(t, &t->a, 0, blas_extent(order, order, t->lda));
	b.at = blas_member(t, &t->b, 0, blas_extent(t->m, t->n, t->ldb));
	if (!a.at || !b.at || !c)
		return;
	for (int j = 0; j < t->n; j++)
		for (int i = 0; i < t->m; i++) {
			uint64_t to = (uint64_t)j * (uint64_t)t->ldc + (uint64_t)i;
			double complex sum = 0;

			for (int l = 0; l < order; l++)
				sum += t->side == BLAS_LEFT ? blas_view_get(&a, i, l) *
								      blas_view_get(&b, l, j)
							    : blas_view_get(&b, i, l) *
								      blas_view_get(&a, l, j);
			sum *= alpha;
			if (beta != 0)
				sum += beta * blas_get(c, t->type, to);
			blas_put(c, t->type, to, sum);
		}
}

static int hemm(void *h, enum blas_type type, int side, int uplo, int m, int n,
	const void *alpha, const void *a, int lda, const void *b, int ldb, const void *beta,
	void *c, int ldc)
{
	struct blas_task *t;
	int status;

	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || side < 0 || side > 1 || uplo < 0 || uplo > 1 || !alpha || !beta ||
		lda < blas_max(1, side == BLAS_LEFT ? m : n) || ldb < blas_max(1, m) ||
		ldc < blas_max(1, m))
		return BLAS_INVALID_VALUE;
	if (!m || !n)
		return BLAS_SUCCESS;
	t = blas_new(h, hemm_run, type, type, alpha, beta, &status);
	if (!t)
		return status;
	t->side = side;
	t->uplo = uplo;
	t->m = m;
	t->n = n;
	t->a.at = a;
	t->lda = lda;
	t->b.at = b;
	t->ldb = ldb;
	t->c.at = c;
	t->ldc = ldc;
	return blas_submit(t, NULL, 0);
}

#define HEMM(NAME, TYPE)                                                                       \
	BLAS_FUNCTION(NAME, void *h, int side, int uplo, int m, int n, const void *alpha,      \
		const void *a, int lda, const void *b, int ldb, const void *beta, void *c,     \
		int ldc)                                                                       \
	{                                                                                      \
		return hemm(h, TYPE, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);   \
	}
HEMM(cublasChemm_v2, BLAS_C32)
HEMM(cublasZhemm_v2, BLAS_C64)

/* ---- packed triangles ---- */

/* op_a: whether it packs. */
static void pack_run(struct blas_task *t)
{
	struct blas_view packed = {
		.type = t->type, .layout = BLAS_PACKED, .uplo = t->uplo, .order = t->n};
	struct blas_view whole = {.type = t->type, .ld = t->lda};

	packed.at = blas_member(t, &t->b, 0, blas_view_extent(&packed, t->n, t->n));
	whole.at = blas_member(t, &t->a, 0, blas_extent(t->n, t->n, t->lda));
	if (!packed.at || !whole.at)
		return;
	for (int j = 0; j < t->n; j++)
		for (int i = t->uplo == BLAS_LOWER ? j : 0;
			i < (t->uplo == BLAS_LOWER ? t->n : j + 1); i++) {
			uint64_t in = blas_view_at(&packed, i, j),
				 out = blas_view_at(&whole, i, j);

			if (t->op_a)
				blas_put(packed.at, t->type, in,
					blas_get(whole.at, t->type, out));
			else
				blas_put(whole.at, t->type, out,
					blas_get(packed.at, t->type, in));
		}
}

static int pack(void *h, enum blas_type type, bool packs, int uplo, int n, const void *a,
	int lda, const void *packed)
{
	struct blas_task *t;
	int status;

	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (n < 0 || uplo < 0 || uplo > 1 || lda < blas_max(1, n))
		return BLAS_INVALID_VALUE;
	if (!n)
		return BLAS_SUCCESS;
	t = blas_new(h, pack_run, type, type, NULL, NULL, &status);
	if (!t)
		return status;
	t->op_a = packs;
	t->uplo = uplo;
	t->n = n;
	t->a.at = a;
	t->lda = lda;
	t->b.at = packed;
	return blas_submit(t, NULL, 0);
}

#define PACKS(L, TYPE)                                                                         \
	BLAS_FUNCTION(                                                                         \
		cublas##L##tpttr, void *h, int uplo, int n, const void *ap, void *a, int lda)  \
	{                                                                                      \
		return pack(h, TYPE, false, uplo, n, a, lda, ap);                              \
	}                                                                                      \
	BLAS_FUNCTION(                                                                         \
		cublas##L##trttp, void *h, int uplo, int n, const void *a, int lda, void *ap)  \
	{                                                                                      \
		return pack(h, TYPE, true, uplo, n, a, lda, ap);                               \
	}
PACKS(S, BLAS_F32)
PACKS(D, BLAS_F64)
PACKS(C, BLAS_C32)
PACKS(Z, BLAS_C64)
