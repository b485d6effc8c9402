/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls for systems and least squares with refinement: one for each pair of precisions, and
 * those whose precisions, and much else, are in an object of parameters.
 */
#include <stdlib.h>

#include "softgpu/solver/refine.h"

#define HEAD struct solver_handle *h
#define SIDES void *a, int lda, void *b, int ldb, void *x, int ldx
#define SIDES_PIVOTS void *a, int lda, int *pivots, void *b, int ldb, void *x, int ldx
#define OUT void *work, size_t bytes, int *turns, int *info
/* P is the type, LOW the letter of what it is factored in. */
#define PAIR(P, LOW, LOWER)                                                                    \
	CALL(cusolverDn##P##LOW##gesv_bufferSize, HEAD, int n, int nrhs, SIDES_PIVOTS,         \
		void *work, size_t *bytes)                                                     \
	{                                                                                      \
		(void)work;                                                                    \
		return refine_tell(h,                                                          \
			&(struct refine){SOLVER_##P, LOWER, false, n, n, nrhs, a, lda, pivots, \
				b, ldb, x, ldx, NULL, 0, NULL, NULL},                          \
			bytes);                                                                \
	}                                                                                      \
	CALL(cusolverDn##P##LOW##gesv, HEAD, int n, int nrhs, SIDES_PIVOTS, OUT)               \
	{                                                                                      \
		return refine_run(                                                             \
			h, &(struct refine){SOLVER_##P, LOWER, false, n, n, nrhs, a, lda,      \
				   pivots, b, ldb, x, ldx, work, bytes, turns, info});         \
	}                                                                                      \
	CALL(cusolverDn##P##LOW##gels_bufferSize, HEAD, int m, int n, int nrhs, SIDES,         \
		void *work, size_t *bytes)                                                     \
	{                                                                                      \
		(void)work;                                                                    \
		return refine_tell(h,                                                          \
			&(struct refine){SOLVER_##P, LOWER, true, m, n, nrhs, a, lda, NULL, b, \
				ldb, x, ldx, NULL, 0, NULL, NULL},                             \
			bytes);                                                                \
	}                                                                                      \
	CALL(cusolverDn##P##LOW##gels, HEAD, int m, int n, int nrhs, SIDES, OUT)               \
	{                                                                                      \
		return refine_run(                                                             \
			h, &(struct refine){SOLVER_##P, LOWER, true, m, n, nrhs, a, lda, NULL, \
				   b, ldb, x, ldx, work, bytes, turns, info});                 \
	}
PAIR(Z, Z, false)
PAIR(Z, C, true)
PAIR(Z, K, true)
PAIR(Z, E, true)
PAIR(Z, Y, true)
PAIR(C, C, false)
PAIR(C, K, true)
PAIR(C, E, true)
PAIR(C, Y, true)
PAIR(D, D, false)
PAIR(D, S, true)
PAIR(D, H, true)
PAIR(D, B, true)
PAIR(D, X, true)
PAIR(S, S, false)
PAIR(S, H, true)
PAIR(S, B, true)
PAIR(S, X, true)

/* ---- parameters, and what a call tells ---- */

/* cusolverPrecType_t, and the first and last of cusolverIRSRefinement_t that say something */
enum { R_64F = 1203, R_32F = 1204, R_TF32 = 1207, C_64F = 1213, C_32F = 1214, C_TF32 = 1217 };
enum { REFINE_NOT_SET = 1100, REFINE_NONE = 1101, REFINE_GMRES = 1104, REFINE_LAST = 1106 };

struct params {
	int refine, main, lowest;
	double tolerance, tolerance_inner;
	int max_turns, max_turns_inner;
	bool fallback;
};

struct infos {
	int turns, max_turns;
	bool residual;
};

CALL(cusolverDnIRSParamsCreate, struct params **params)
{
	if (!params)
		return SOLVER_INVALID_VALUE;
	*params = calloc(1, sizeof(**params));
	if (!*params)
		return SOLVER_ALLOC_FAILED;
	**params = (struct params){.refine = REFINE_NOT_SET,
		.max_turns = 50,
		.max_turns_inner = 50,
		.fallback = true};
	return SOLVER_SUCCESS;
}

CALL(cusolverDnIRSParamsDestroy, struct params *params)
{
	if (!params)
		return SOLVER_IRS_PARAMS_NOT_INITIALIZED;
	free(params);
	return SOLVER_SUCCESS;
}

#define PARAMS(NAME, VALUE, ...)                                                               \
	CALL(cusolverDnIRSParams##NAME, struct params *params VALUE)                           \
	{                                                                                      \
		if (!params)                                                                   \
			return SOLVER_IRS_PARAMS_NOT_INITIALIZED;                              \
		__VA_ARGS__;                                                                   \
		return SOLVER_SUCCESS;                                                         \
	}
#define ONE(TYPE) , TYPE value
#define TWO , int value, int lowest
PARAMS(SetRefinementSolver, ONE(int), params->refine = value)
PARAMS(SetSolverMainPrecision, ONE(int), params->main = value)
PARAMS(SetSolverLowestPrecision, ONE(int), params->lowest = value)
PARAMS(SetSolverPrecisions, TWO, params->main = value, params->lowest = lowest)
PARAMS(SetTol, ONE(double), params->tolerance = value)
PARAMS(SetTolInner, ONE(double), params->tolerance_inner = value)
PARAMS(SetMaxIters, ONE(int), params->max_turns = value)
PARAMS(SetMaxItersInner, ONE(int), params->max_turns_inner = value)
PARAMS(GetMaxIters, ONE(int *), *value = params->max_turns)
PARAMS(EnableFallback, , params->fallback = true)
PARAMS(DisableFallback, , params->fallback = false)

CALL(cusolverDnIRSInfosCreate, struct infos **infos)
{
	if (!infos)
		return SOLVER_INVALID_VALUE;
	*infos = calloc(1, sizeof(**infos));
	return *infos ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;
}

CALL(cusolverDnIRSInfosDestroy, struct infos *infos)
{
	if (!infos)
		return SOLVER_IRS_INFOS_NOT_INITIALIZED;
	free(infos);
	return SOLVER_SUCCESS;
}

#define INFOS(NAME, FIELD)                                                                     \
	CALL(cusolverDnIRSInfos##NAME, struct infos *infos, int *value)                        \
	{                                                                                      \
		if (!infos)                                                                    \
			return SOLVER_IRS_INFOS_NOT_INITIALIZED;                               \
		if (!value)                                                                    \
			return SOLVER_INVALID_VALUE;                                           \
		*value = infos->FIELD;                                                         \
		return SOLVER_SUCCESS;                                                         \
	}
INFOS(GetNiters, turns)
INFOS(GetOuterNiters, turns)
INFOS(GetMaxIters, max_turns)

CALL(cusolverDnIRSInfosRequestResidual, struct infos *infos)
{
	if (!infos)
		return SOLVER_IRS_INFOS_NOT_INITIALIZED;
	infos->residual = true;
	return SOLVER_SUCCESS;
}

/* LAPACK does not tell how its refinement went. */
CALL(cusolverDnIRSInfosGetResidualHistory, struct infos *infos, void **history)
{
	if (!infos)
		return SOLVER_IRS_INFOS_NOT_INITIALIZED;
	return infos->residual && history ? SOLVER_IRS_NOT_SUPPORTED : SOLVER_INVALID_VALUE;
}

/* ---- the calls with parameters ---- */

static enum solver_type type_of(const struct params *params)
{
	switch (params->main) {
	case R_32F: return SOLVER_S;
	case R_64F: return SOLVER_D;
	case C_32F: return SOLVER_C;
	case C_64F: return SOLVER_Z;
	default: return SOLVER_NO_TYPE;
	}
}

/* Numbers rise as precisions fall, and complex ones follow real ones. */
static int params_check(const struct params *params)
{
	if (!params)
		return SOLVER_IRS_PARAMS_NOT_INITIALIZED;
	if (type_of(params) == SOLVER_NO_TYPE || params->lowest < params->main ||
		params->lowest > (params->main >= C_64F ? C_TF32 : R_TF32))
		return SOLVER_IRS_PARAMS_INVALID_PREC;
	if (params->refine < REFINE_NONE || params->refine > REFINE_LAST)
		return SOLVER_IRS_PARAMS_INVALID_REFINE;
	return params->max_turns < 0 ? SOLVER_IRS_PARAMS_INVALID_MAXITER : SOLVER_SUCCESS;
}

static struct refine with_params(
	const struct params *params, bool least, int m, int n, int nrhs)
{
	return (struct refine){.type = type_of(params),
		.lower = params->lowest != params->main,
		.least = least,
		.m = m,
		.n = n,
		.nrhs = nrhs,
		.lda = (int)solver_max(m, 1),
		.ldb = (int)solver_max(m, 1),
		.ldx = (int)solver_max(n, 1)};
}

static int tell(
	HEAD, const struct params *params, bool least, int m, int n, int nrhs, size_t *bytes)
{
	int status = !h ? SOLVER_NOT_INITIALIZED : params_check(params);
	struct refine c;

	if (status)
		return status;
	c = with_params(params, least, m, n, nrhs);
	return refine_tell(h, &c, bytes);
}

static int solve(HEAD, const struct params *params, struct infos *infos, bool least, int m,
	int n, int nrhs, SIDES, OUT)
{
	int status = !h ? SOLVER_NOT_INITIALIZED : params_check(params);
	struct refine c;

	if (status)
		return status;
	if (!infos)
		return SOLVER_IRS_INFOS_NOT_INITIALIZED;
	if (least && params->refine == REFINE_GMRES) /* H200, 2026-11-23 */
		return SOLVER_IRS_NOT_SUPPORTED;
	c = with_params(params, least, m, n, nrhs);
	c.a = a;
	c.lda = lda;
	c.b = b;
	c.ldb = ldb;
	c.x = x;
	c.ldx = ldx;
	c.work = work;
	c.bytes = bytes;
	c.turns = turns;
	c.info = info;
	status = refine_run(h, &c);
	if (!status) {
		infos->turns = *turns;
		infos->max_turns = params->max_turns;
	}
	return status;
}

CALL(cusolverDnIRSXgesv_bufferSize, HEAD, struct params *params, int n, int nrhs, size_t *bytes)
{
	return tell(h, params, false, n, n, nrhs, bytes);
}

CALL(cusolverDnIRSXgesv, HEAD, struct params *params, struct infos *infos, int n, int nrhs,
	SIDES, OUT)
{
	return solve(h, params, infos, false, n, n, nrhs, a, lda, b, ldb, x, ldx, work, bytes,
		turns, info);
}

CALL(cusolverDnIRSXgels_bufferSize, HEAD, struct params *params, int m, int n, int nrhs,
	size_t *bytes)
{
	return tell(h, params, true, m, n, nrhs, bytes);
}

CALL(cusolverDnIRSXgels, HEAD, struct params *params, struct infos *infos, int m, int n,
	int nrhs, SIDES, OUT)
{
	return solve(h, params, infos, true, m, n, nrhs, a, lda, b, ldb, x, ldx, work, bytes,
		turns, info);
}
