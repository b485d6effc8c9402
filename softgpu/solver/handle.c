/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, what they are set to, the library's version, and the parameters of the
 * 64-bit calls.
 */
#include <stdlib.h>

#include "softgpu/solver/solver.h"

#define SOLVER_MAJOR 12
#define SOLVER_MINOR 4
#define SOLVER_PATCH 1

CALL(cusolverGetVersion, int *version)
{
	if (!version)
		return SOLVER_INVALID_VALUE;
	*version = SOLVER_MAJOR * 1000 + SOLVER_MINOR * 100 + SOLVER_PATCH;
	return SOLVER_SUCCESS;
}

CALL(cusolverGetProperty, int type, int *value)
{
	static const int parts[] = {SOLVER_MAJOR, SOLVER_MINOR, SOLVER_PATCH};

	if (type < 0 || type > 2 || !value)
		return SOLVER_INVALID_VALUE;
	*value = parts[type];
	return SOLVER_SUCCESS;
}

CALL(cusolverDnCreate, struct solver_handle **handle)
{
	struct solver_handle *h;

	if (!handle)
		return SOLVER_INVALID_VALUE;
	h = calloc(1, sizeof(*h));
	if (!h)
		return SOLVER_ALLOC_FAILED;
	h->refs = 1;
	h->deterministic = 1;
	h->math = 1;
	*handle = h;
	return SOLVER_SUCCESS;
}

CALL(cusolverDnDestroy, struct solver_handle *handle)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	cuCtxSynchronize(); /* as NVIDIA's does; tasks that remain keep the handle */
	solver_handle_drop(handle);
	return SOLVER_SUCCESS;
}

CALL(cusolverDnSetStream, struct solver_handle *handle, CUstream stream)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	handle->stream = stream;
	return SOLVER_SUCCESS;
}

CALL(cusolverDnGetStream, struct solver_handle *handle, CUstream *stream)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!stream)
		return SOLVER_INVALID_VALUE;
	*stream = handle->stream;
	return SOLVER_SUCCESS;
}

/* Each is kept: results are the same in every mode, and nothing is emulated. */
#define SETTING(NAME, FIELD, VALID)                                                            \
	CALL(cusolverDnSet##NAME, struct solver_handle *handle, int value)                     \
	{                                                                                      \
		if (!handle)                                                                   \
			return SOLVER_NOT_INITIALIZED;                                         \
		if (!(VALID))                                                                  \
			return SOLVER_INVALID_VALUE;                                           \
		handle->FIELD = value;                                                         \
		return SOLVER_SUCCESS;                                                         \
	}                                                                                      \
	CALL(cusolverDnGet##NAME, struct solver_handle *handle, int *value)                    \
	{                                                                                      \
		if (!handle)                                                                   \
			return SOLVER_NOT_INITIALIZED;                                         \
		if (!value)                                                                    \
			return SOLVER_INVALID_VALUE;                                           \
		*value = handle->FIELD;                                                        \
		return SOLVER_SUCCESS;                                                         \
	}
SETTING(DeterministicMode, deterministic, value == 1 || value == 2)
SETTING(MathMode, math, value >= 1 && value <= 7)
SETTING(EmulationStrategy, strategy, true)
SETTING(EmulationSpecialValuesSupport, special_values, true)
SETTING(FixedPointEmulationMantissaControl, mantissa_control, true)
SETTING(FixedPointEmulationMaxMantissaBitCount, max_bits, true)
SETTING(FixedPointEmulationMantissaBitOffset, bit_offset, true)

/* ---- parameters of the 64-bit calls ---- */

#define FUNCTIONS 7 /* of cusolverDnFunction_t */

/* Each function has one algorithm here, so there is nothing to keep. */
CALL(cusolverDnCreateParams, void **params)
{
	if (!params)
		return SOLVER_INVALID_VALUE;
	*params = malloc(1);
	return *params ? SOLVER_SUCCESS : SOLVER_ALLOC_FAILED;
}

CALL(cusolverDnDestroyParams, void *params)
{
	free(params);
	return SOLVER_SUCCESS;
}

CALL(cusolverDnSetAdvOptions, void *params, int function, int algorithm)
{
	if (!params || function < 0 || function >= FUNCTIONS || algorithm < 0 || algorithm > 2)
		return SOLVER_INVALID_VALUE;
	return SOLVER_SUCCESS;
}
