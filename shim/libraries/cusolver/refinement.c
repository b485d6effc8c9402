/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of a refinement (cusolverDnIRSParams_t). They are set as they come: the call that
 * they are given to says what is wrong with them.
 */
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

cusolverStatus_t hand_cusolverDnIRSParamsCreate(cusolverDnIRSParams_t *params)
{
	return cusolver_object_create((void **)params, CUSOLVER_ITEM_REFINEMENT);
}

cusolverStatus_t hand_cusolverDnIRSParamsDestroy(cusolverDnIRSParams_t params)
{
	if (!cusolver_object(params, CUSOLVER_ITEM_REFINEMENT))
		return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
	return cusolver_object_destroy(params, CUSOLVER_ITEM_REFINEMENT);
}

static struct cusolver_refinement *of(cusolverDnIRSParams_t params)
{
	union cusolver_content *content = cusolver_object(params, CUSOLVER_ITEM_REFINEMENT);

	return content ? &content->refinement : NULL;
}

#define SET(NAME, TYPE, FIELD, BIT)                                                            \
	cusolverStatus_t hand_cusolverDnIRSParams##NAME(                                       \
		cusolverDnIRSParams_t params, TYPE value)                                      \
	{                                                                                      \
		struct cusolver_refinement *r = of(params);                                    \
                                                                                               \
		if (!r)                                                                        \
			return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;                     \
		r->FIELD = value;                                                              \
		r->set |= BIT;                                                                 \
		return CUSOLVER_STATUS_SUCCESS;                                                \
	}
SET(SetRefinementSolver, cusolverIRSRefinement_t, solver, CUSOLVER_SET_REFINEMENT_SOLVER)
SET(SetSolverMainPrecision, cusolverPrecType_t, main_precision, CUSOLVER_SET_MAIN_PRECISION)
SET(SetSolverLowestPrecision, cusolverPrecType_t, lowest_precision,
	CUSOLVER_SET_LOWEST_PRECISION)
SET(SetTol, double, tolerance, CUSOLVER_SET_REFINEMENT_TOLERANCE)
SET(SetTolInner, double, tolerance_inner, CUSOLVER_SET_INNER_TOLERANCE)
SET(SetMaxIters, cusolver_int_t, max_turns, CUSOLVER_SET_MAX_TURNS)
SET(SetMaxItersInner, cusolver_int_t, max_turns_inner, CUSOLVER_SET_MAX_INNER_TURNS)

cusolverStatus_t hand_cusolverDnIRSParamsSetSolverPrecisions(cusolverDnIRSParams_t params,
	cusolverPrecType_t main_precision, cusolverPrecType_t lowest_precision)
{
	int status = hand_cusolverDnIRSParamsSetSolverMainPrecision(params, main_precision);

	return status ? status
		      : hand_cusolverDnIRSParamsSetSolverLowestPrecision(
				params, lowest_precision);
}

cusolverStatus_t hand_cusolverDnIRSParamsGetMaxIters(
	cusolverDnIRSParams_t params, cusolver_int_t *maxiters)
{
	const struct cusolver_refinement *r = of(params);

	if (!r)
		return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
	if (!maxiters)
		return CUSOLVER_STATUS_INVALID_VALUE;
	*maxiters = r->set & CUSOLVER_SET_MAX_TURNS ? r->max_turns : CUSOLVER_MAX_TURNS;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t fallback(cusolverDnIRSParams_t params, bool enabled)
{
	struct cusolver_refinement *r = of(params);

	if (!r)
		return CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED;
	r->set = enabled ? r->set & ~(uint32_t)CUSOLVER_SET_NO_FALLBACK
			 : r->set | CUSOLVER_SET_NO_FALLBACK;
	return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t hand_cusolverDnIRSParamsEnableFallback(cusolverDnIRSParams_t params)
{
	return fallback(params, true);
}

cusolverStatus_t hand_cusolverDnIRSParamsDisableFallback(cusolverDnIRSParams_t params)
{
	return fallback(params, false);
}
