/* SPDX-License-Identifier: Apache-2.0
 *
 * Factorisations and solutions in batches, by LAPACK: what is done in complex doubles serves
 * every type, since real numbers stay real.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/element.h"

typedef double complex number;

/* LAPACK, as Fortran calls it. */
void zgetrf_(const int *m, const int *n, number *a, const int *lda, int *pivots, int *info);
void zgetri_(const int *n, number *a, const int *lda, const int *pivots, number *work,
	const int *size, int *info);
void zgetrs_(const char *trans, const int *n, const int *nrhs, const number *a, const int *lda,
	const int *pivots, number *b, const int *ldb, int *info, size_t length);
void zgeqrf_(const int *m, const int *n, number *a, const int *lda, number *tau, number *work,
	const int *size, int *info);
void zgels_(const char *trans, const int *m, const int *n, const int *nrhs, number *a,
	const int *lda, number *b, const int *ldb, number *work, const int *size, int *info,
	size_t length);

/* Of a member: A, B (or the inverse, or tau) in complex doubles, without gaps. */
struct member {
	number *a, *b, *work;
	int *pivots, info;
};

/* No pivots: the program gave no place for them. */
static int lu_plain(number *a, int n)
{
	int info = 0;

	for (int k = 0; k < n; k++) {
		number *column = a + (size_t)k * (size_t)n;

		if (column[k] == 0) {
			info = info ? info : k + 1;
			continue;
		}
		for (int i = k + 1; i < n; i++)
			column[i] /= column[k];
		for (int j = k + 1; j < n; j++) {
			number *to = a + (size_t)j * (size_t)n;

			for (int i = k + 1; i < n; i++)
				to[i] -= column[i] * to[k];
		}
	}
	return info;
}

static void getrf(struct blas_task *t, struct member *m)
{
	if (t->pivots)
		zgetrf_(&t->n, &t->n, m->a, &t->n, m->pivots, &m->info);
	else
		m->info = lu_plain(m->a, t->n);
}

/* B = what A, factorised, is the inverse of; A stays. */
static void getri(struct blas_task *t, struct member *m)
{
	int size = t->n * t->n;

	memcpy(m->b, m->a, (size_t)size * sizeof(*m->b));
	zgetri_(&t->n, m->b, &t->n, m->pivots, m->work, &size, &m->info);
}

static void getrs(struct blas_task *t, struct member *m)
{
	zgetrs_(t->op_a == BLAS_OP_N   ? "N"
		: t->op_a == BLAS_OP_T ? "T"
				       : "C",
		&t->n, &t->k, m->a, &t->n, m->pivots, m->b, &t->n, &m->info, 1);
}

/* The inverse of A itself. */
static void matinv(struct blas_task *t, struct member *m)
{
	int size = t->n * t->n;

	memcpy(m->b, m->a, (size_t)size * sizeof(*m->b));
	zgetrf_(&t->n, &t->n, m->b, &t->n, m->pivots, &m->info);
	if (!m->info)
		zgetri_(&t->n, m->b, &t->n, m->pivots, m->work, &size, &m->info);
}

static void geqrf(struct blas_task *t, struct member *m)
{
	int size = blas_max(1, t->n);

	zgeqrf_(&t->m, &t->n, m->a, &t->m, m->b, m->work, &size, &m->info);
}

static void gels(struct blas_task *t, struct member *m)
{
	int size = (t->m + t->n + t->k) * 2;

	zgels_("N", &t->m, &t->n, &t->k, m->a, &t->m, m->b, &t->m, m->work, &size, &m->info, 1);
}

/* The batch; what of it: */
struct batch {
	struct blas_task base; /* first: it is freed as one */
	void (*each)(struct blas_task *t, struct member *m);
	int b_rows, b_cols;	/* of B; 0: none */
	bool reads_b, writes_a; /* A is read always, B always written */
};

static void load(number *to, const void *from, enum blas_type type, int rows, int cols, int ld)
{
	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++)
			to[(size_t)j * (size_t)rows + (size_t)i] =
				blas_get(from, type, (uint64_t)j * (uint64_t)ld + (uint64_t)i);
}

static void store(void *to, const number *from, enum blas_type type, int rows, int cols, int ld)
{
	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++)
			blas_put(to, type, (uint64_t)j * (uint64_t)ld + (uint64_t)i,
				from[(size_t)j * (size_t)rows + (size_t)i]);
}

static void batch_member(struct batch *b, struct member *m, int i)
{
	struct blas_task *t = &b->base;
	void *a = blas_member(t, &t->a, i, blas_extent(t->m, t->n, t->lda));
	void *c = b->b_rows
			  ? blas_member(t, &t->c, i, blas_extent(b->b_rows, b->b_cols, t->ldc))
			  : NULL;
	int *pivots = t->pivots ? t->pivots + (size_t)i * (size_t)t->n : NULL;

	if (!a || (b->b_rows && !c))
		return;
	load(m->a, a, t->type, t->m, t->n, t->lda);
	if (b->reads_b)
		load(m->b, c, t->type, b->b_rows, b->b_cols, t->ldc);
	for (int k = 0; k < t->n; k++)
		m->pivots[k] = pivots && !b->writes_a ? pivots[k] : k + 1;
	/* LAPACK trusts them. */
	for (int k = 0; k < t->n; k++)
		if (m->pivots[k] < 1 || m->pivots[k] > t->n) {
			t->handle->failed = true;
			return;
		}
	m->info = 0;
	b->each(t, m);
	if (b->writes_a)
		store(a, m->a, t->type, t->m, t->n, t->lda);
	if (c)
		store(c, m->b, t->type, b->b_rows, b->b_cols, t->ldc);
	if (pivots && b->writes_a)
		memcpy(pivots, m->pivots, (size_t)t->n * sizeof(*pivots));
	if (t->info)
		t->info[i] = m->info;
}

static void batch_run(struct blas_task *t)
{
	struct batch *b = (struct batch *)t;
	size_t a = (size_t)t->m * (size_t)t->n, other = (size_t)b->b_rows * (size_t)b->b_cols;
	struct member m = {
		.a = calloc(a + 1, sizeof(number)),
		.b = calloc(a + other + 1, sizeof(number)),
		.work = calloc(a + 2 * (size_t)(t->m + t->n + t->k) + 1, sizeof(number)),
		.pivots = calloc((size_t)blas_max(t->m, t->n) + 1, sizeof(int)),
	};
	uint64_t batch = (uint64_t)t->batch, each = sizeof(int);

	if (!m.a || !m.b || !m.work || !m.pivots ||
		(t->info && !blas_reaches(t->info, batch * each, sizeof(int))) ||
		(t->pivots &&
			!blas_reaches(t->pivots, batch * (uint64_t)t->n * each, sizeof(int))))
		t->handle->failed = true;
	for (int i = 0; i < t->batch && !t->handle->failed; i++)
		batch_member(b, &m, i);
	free(m.a);
	free(m.b);
	free(m.work);
	free(m.pivots);
}

struct batched {
	void *handle;
	enum blas_type type;
	void (*each)(struct blas_task *t, struct member *m);
	int op, m, n, k;
	const void *a;
	int lda;
	void *b;
	int ldb, b_rows, b_cols;
	bool reads_b, writes_a;
	const int *pivots;
	int *info, batch;
};

static int batched(const struct batched *w)
{
	struct blas_handle *h = w->handle;
	struct batch *b;

	if (!h)
		return BLAS_NOT_INITIALIZED;
	if (w->m < 0 || w->n < 0 || w->k < 0 || w->batch < 0 || w->lda < blas_max(1, w->m) ||
		(w->b_rows && w->ldb < blas_max(1, w->b_rows)) || w->op < 0 ||
		w->op > BLAS_OP_C)
		return BLAS_INVALID_VALUE;
	if (h->failed)
		return BLAS_EXECUTION_FAILED;
	if (!w->m || !w->n || !w->batch)
		return BLAS_SUCCESS;
	/* What LAPACK counts by. */
	if ((int64_t)w->m * w->n > INT32_MAX || (int64_t)w->m + w->n + w->k > INT32_MAX / 2)
		return BLAS_ALLOC_FAILED;
	b = aligned_alloc(16, (sizeof(*b) + 15) & ~(size_t)15);
	if (!b)
		return BLAS_ALLOC_FAILED;
	memset(b, 0, sizeof(*b));
	blas_begin(&b->base, h, batch_run);
	b->each = w->each;
	b->b_rows = w->b ? w->b_rows : 0;
	b->b_cols = w->b_cols;
	b->reads_b = w->reads_b;
	b->writes_a = w->writes_a;
	b->base.type = w->type;
	b->base.op_a = w->op;
	b->base.m = w->m;
	b->base.n = w->n;
	b->base.k = w->k;
	b->base.a = (struct blas_place){w->a, 0, w->type, true};
	b->base.lda = w->lda;
	b->base.c = (struct blas_place){w->b, 0, w->type, true};
	b->base.ldc = w->ldb;
	b->base.pivots = (int *)(uintptr_t)w->pivots;
	b->base.info = w->info;
	b->base.batch = w->batch;
	return blas_submit(&b->base, NULL, 0);
}

/* A host's info says which parameter is wrong: the one at that place. */
static int checked(const struct batched *w, int *info, int wrong)
{
	if (!info)
		return BLAS_INVALID_VALUE;
	*info = -wrong;
	return wrong ? BLAS_INVALID_VALUE : batched(w);
}

#define FACTORS(L, TYPE)                                                                       \
	BLAS_FUNCTION(cublas##L##getrfBatched, void *h, int n, void *a, int lda, int *pivots,  \
		int *info, int batch)                                                          \
	{                                                                                      \
		return batched(&(struct batched){h, TYPE, getrf, .m = n, .n = n, .a = a,       \
			.lda = lda, .writes_a = true, .pivots = pivots, .info = info,          \
			.batch = batch});                                                      \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##getriBatched, void *h, int n, const void *a, int lda,         \
		const int *pivots, void *c, int ldc, int *info, int batch)                     \
	{                                                                                      \
		return batched(&(struct batched){h, TYPE, getri, .m = n, .n = n, .a = a,       \
			.lda = lda, .b = c, .ldb = ldc, .b_rows = n, .b_cols = n,              \
			.pivots = pivots, .info = info, .batch = batch});                      \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##matinvBatched, void *h, int n, const void *a, int lda,        \
		void *c, int ldc, int *info, int batch)                                        \
	{                                                                                      \
		if (n > 32)                                                                    \
			return BLAS_INVALID_VALUE;                                             \
		return batched(&(struct batched){h, TYPE, matinv, .m = n, .n = n, .a = a,      \
			.lda = lda, .b = c, .ldb = ldc, .b_rows = n, .b_cols = n,              \
			.info = info, .batch = batch});                                        \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##getrsBatched, void *h, int op, int n, int nrhs,               \
		const void *a, int lda, const int *pivots, void *b, int ldb, int *info,        \
		int batch)                                                                     \
	{                                                                                      \
		int wrong = n < 0		   ? 2                                         \
			    : nrhs < 0		   ? 3                                         \
			    : lda < blas_max(1, n) ? 5                                         \
			    : ldb < blas_max(1, n) ? 8                                         \
			    : batch < 0		   ? 10                                        \
						   : 0;                                                   \
                                                                                               \
		return checked(                                                                \
			&(struct batched){h, TYPE, getrs, op, n, n, nrhs, a, lda, b, ldb, n,   \
				nrhs, .reads_b = true, .pivots = pivots, .batch = batch},      \
			info, wrong);                                                          \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##geqrfBatched, void *h, int m, int n, void *a, int lda,        \
		void *tau, int *info, int batch)                                               \
	{                                                                                      \
		int wrong = m < 0		   ? 1                                         \
			    : n < 0		   ? 2                                         \
			    : lda < blas_max(1, m) ? 4                                         \
			    : batch < 0		   ? 7                                         \
						   : 0;                                                   \
		int least = m < n ? m : n;                                                     \
                                                                                               \
		return checked(                                                                \
			&(struct batched){h, TYPE, geqrf, .m = m, .n = n, .a = a, .lda = lda,  \
				.b = tau, .ldb = blas_max(1, least), .b_rows = least,          \
				.b_cols = 1, .writes_a = true, .batch = batch},                \
			info, wrong);                                                          \
	}                                                                                      \
	BLAS_FUNCTION(cublas##L##gelsBatched, void *h, int op, int m, int n, int nrhs,         \
		void *a, int lda, void *c, int ldc, int *info, int *infos, int batch)          \
	{                                                                                      \
		int wrong = m < 0		   ? 2                                         \
			    : n < 0		   ? 3                                         \
			    : nrhs < 0		   ? 4                                         \
			    : lda < blas_max(1, m) ? 6                                         \
			    : ldc < blas_max(1, m) ? 8                                         \
			    : batch < 0		   ? 11                                        \
						   : 0;                                                   \
                                                                                               \
		if (op || m < n)                                                               \
			return BLAS_NOT_SUPPORTED;                                             \
		return checked(&(struct batched){h, TYPE, gels, op, m, n, nrhs, a, lda, c,     \
				       ldc, m, nrhs, .reads_b = true, .writes_a = true,        \
				       .info = infos, .batch = batch},                         \
			info, wrong);                                                          \
	}
FACTORS(S, BLAS_F32)
FACTORS(D, BLAS_F64)
FACTORS(C, BLAS_C32)
FACTORS(Z, BLAS_C64)
