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

static void drop(struct problem *p)
{
	RELEASE(p->at, p->right, p->to, p->pivots);
	FREE(p->a, p->x, p->b);
}

static void check(struct problem *p, int turns, const char *what)
{
	number *got = get(p->t, p->to, p->n, p->nrhs, p->ld);

	CUDA(cuCtxSynchronize());
	CHECK(!int_of(info), "%s: info %d", what, int_of(info));
	CHECK(turns >= -100 && turns <= 100, "%s: %d turns", what, turns);
	CLOSE(p->t, got, p->x, p->n * p->nrhs, 10 * p->n, what);
	free(got);
	drop(p);
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

/* Least squares. In doubles and floats they are not refined by GMRES (H200, 2026-11-23). */
static void least_squares(enum type t, cusolverDnIRSParams_t params, cusolverDnIRSInfos_t infos,
	cusolverIRSRefinement_t by)
{
	enum { N = 40 };
	int turns = 1000, status;
	struct problem p;
	size_t bytes;
	void *work;

	SOLVER(cusolverDnIRSParamsSetRefinementSolver(params, by));
	prepare(&p, t, N + 5, N);
	SOLVER(cusolverDnIRSXgels_bufferSize(handle, params, p.m, N, p.nrhs, &bytes));
	work = device(bytes);
	status = (int)cusolverDnIRSXgels(handle, params, infos, p.m, N, p.nrhs, p.at, p.ld,
		p.right, p.ld, p.to, p.ld, work, bytes, &turns, info);
	if (t == D && by == CUSOLVER_IRS_REFINE_GMRES)
		SOLVER_IS(status, CUSOLVER_STATUS_IRS_NOT_SUPPORTED);
	if (status == CUSOLVER_STATUS_IRS_NOT_SUPPORTED) {
		if (by != CUSOLVER_IRS_REFINE_GMRES)
			TELL("IRSXgels by %d, type %d", (int)by, (int)t);
		drop(&p);
	} else {
		SOLVER(status);
		check(&p, turns, "IRSXgels");
	}
	release(work);
}

static void by_parameters(
	enum type t, cusolverPrecType_t main_bits, cusolverPrecType_t low_bits)
{
	enum { N = 40 };
	cusolverDnIRSParams_t params;
	cusolverDnIRSInfos_t infos;
	struct problem p;
	size_t bytes;
	int turns = 1000, told = 1000, most = 0;
	void *work;

	SOLVER(cusolverDnIRSParamsCreate(&params));
	SOLVER(cusolverDnIRSInfosCreate(&infos));
	SOLVER(cusolverDnIRSParamsSetSolverPrecisions(params, main_bits, low_bits));
	SOLVER(cusolverDnIRSParamsSetRefinementSolver(params, CUSOLVER_IRS_REFINE_GMRES));
	SOLVER(cusolverDnIRSParamsSetMaxIters(params, 30));
	SOLVER(cusolverDnIRSParamsGetMaxIters(params, &most));
	CHECK(most == 30, "at most %d turns", most);
	prepare(&p, t, N, N);
	SOLVER(cusolverDnIRSXgesv_bufferSize(handle, params, N, p.nrhs, &bytes));
	work = device(bytes);
	SOLVER(cusolverDnIRSXgesv(handle, params, infos, N, p.nrhs, p.at, p.ld, p.right, p.ld,
		p.to, p.ld, work, bytes, &turns, info));
	SOLVER(cusolverDnIRSInfosGetNiters(infos, &told));
	CHECK(told == turns, "%d turns, and %d", turns, told);
	check(&p, turns, "IRSXgesv");
	release(work);
	least_squares(t, params, infos, CUSOLVER_IRS_REFINE_GMRES);
	least_squares(t, params, infos, CUSOLVER_IRS_REFINE_CLASSICAL);
	SOLVER(cusolverDnIRSInfosDestroy(infos));
	SOLVER(cusolverDnIRSParamsDestroy(params));
}

/* cusolverDnIRSXgesv_bufferSize without parameters reads NULL (H200, 2026-11-24). */
static void without_parameters(void)
{
	cusolverDnIRSParams_t params;
	int turns;

	EXPECTED(
		cusolverDnIRSParamsSetTol(NULL, 1), CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED);
	EXPECTED(cusolverDnIRSInfosGetNiters(NULL, &turns),
		CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED);
	SOLVER(cusolverDnIRSParamsCreate(&params));
	SOLVER(cusolverDnIRSParamsSetSolverPrecisions(params, CUSOLVER_R_64F, CUSOLVER_R_32F));
	SOLVER(cusolverDnIRSParamsSetRefinementSolver(params, CUSOLVER_IRS_REFINE_GMRES));
	EXPECTED(cusolverDnIRSXgesv(handle, params, NULL, 1, 1, NULL, 1, NULL, 1, NULL, 1, NULL,
			 0, &turns, info),
		CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED);
	SOLVER(cusolverDnIRSParamsDestroy(params));
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	info = device(sizeof(*info));
	EACH_SIZE(n)
	{
		if (!n)
			continue;
		for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
			pairs[i](n);
	}
	by_parameters(D, CUSOLVER_R_64F, CUSOLVER_R_32F);
	by_parameters(S, CUSOLVER_R_32F, CUSOLVER_R_32F);
	by_parameters(Z, CUSOLVER_C_64F, CUSOLVER_C_32F);
	by_parameters(C, CUSOLVER_C_32F, CUSOLVER_C_32F);
	without_parameters();
	release(info);
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
