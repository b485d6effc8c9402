/* SPDX-License-Identifier: Apache-2.0
 *
 * Systems and least squares that are factored in fewer bits and refined: each pair of
 * precisions.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static int *info;

/* A system with X, or least squares whose right-hand side is A X. */
struct problem {
	enum type t;
	int m, n, nrhs, ld;
	number *a, *x, *b;
	void *at, *right, *to, *pivots;
};

static void prepare(struct problem *p, enum type t, int m, int n)
{
	*p = (struct problem){.t = t, .m = m, .n = n, .nrhs = 1, .ld = m + 1};
	p->a = some(t, m, n);
	for (int i = 0; i < n; i++)
		p->a[i + i * m] += 2 * n;
	p->x = some(t, n, p->nrhs);
	p->b = product('N', p->a, 'N', p->x, m, p->nrhs, n);
	p->at = put(t, p->a, m, n, p->ld);
	p->right = put(t, p->b, m, p->nrhs, p->ld);
	p->to = device((size_t)p->ld * (size_t)p->nrhs * size_of(t));
	p->pivots = device((size_t)n * sizeof(int));
}

static void check(struct problem *p, int turns, const char *what)
{
	number *got = get(p->t, p->to, p->n, p->nrhs, p->ld);

	CUDA(cuCtxSynchronize());
	CHECK(!int_of(info), "%s: info %d", what, int_of(info));
	CHECK(turns >= -100 && turns <= 100, "%s: %d turns", what, turns);
	CLOSE(p->t, got, p->x, p->n * p->nrhs, 10 * p->n, what);
	RELEASE(p->at, p->right, p->to, p->pivots);
	FREE(p->a, p->x, p->b, got);
}

#define PAIR(P, LOW)                                                                           \
	static void P##LOW(int n)                                                              \
	{                                                                                      \
		struct problem p;                                                              \
		size_t bytes;                                                                  \
		void *work;                                                                    \
		int turns = 1000;                                                              \
                                                                                               \
		prepare(&p, P, n, n);                                                          \
		SOLVER(cusolverDn##P##LOW##gesv_bufferSize(handle, n, p.nrhs, p.at, p.ld,      \
			p.pivots, p.right, p.ld, p.to, p.ld, NULL, &bytes));                   \
		work = device(bytes);                                                          \
		SOLVER(cusolverDn##P##LOW##gesv(handle, n, p.nrhs, p.at, p.ld, p.pivots,       \
			p.right, p.ld, p.to, p.ld, work, bytes, &turns, info));                \
		check(&p, turns, #P #LOW "gesv");                                              \
		release(work);                                                                 \
		turns = 1000;                                                                  \
		prepare(&p, P, n + 11, n);                                                     \
		SOLVER(cusolverDn##P##LOW##gels_bufferSize(handle, p.m, n, p.nrhs, p.at, p.ld, \
			p.right, p.ld, p.to, p.ld, NULL, &bytes));                             \
		work = device(bytes);                                                          \
		SOLVER(cusolverDn##P##LOW##gels(handle, p.m, n, p.nrhs, p.at, p.ld, p.right,   \
			p.ld, p.to, p.ld, work, bytes, &turns, info));                         \
		check(&p, turns, #P #LOW "gels");                                              \
		release(work);                                                                 \
	}
PAIR(Z, Z)
PAIR(Z, C)
PAIR(Z, K)
PAIR(Z, E)
PAIR(Z, Y)
PAIR(C, C)
PAIR(C, K)
PAIR(C, E)
PAIR(C, Y)
PAIR(D, D)
PAIR(D, S)
PAIR(D, H)
PAIR(D, B)
PAIR(D, X)
PAIR(S, S)
PAIR(S, H)
PAIR(S, B)
PAIR(S, X)
static void (*const pairs[])(int n) = {
	ZZ, ZC, ZK, ZE, ZY, CC, CK, CE, CY, DD, DS, DH, DB, DX, SS, SH, SB, SX};

int main(void)
{
	begin();
	SOLVER(cusolverDnCreate(&handle));
	info = device(sizeof(*info));
	EACH_SIZE(n)
	{
		if (!n)
			continue;
		for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
			pairs[i](n);
	}
	release(info);
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
