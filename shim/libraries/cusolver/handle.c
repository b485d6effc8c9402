/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked without a handle: versions. (NVIDIA's
 * libraries do not export the functions of the log that their header declares.)
 */
#include "shim/generated/cusolver_hand.h"

/* VCUDA_ABI: 11 or 12, whichever this front stands for. It is asked before there is an agent.
 */
#define CUSOLVER_MINOR (VCUDA_ABI == 11 ? 7 : 4)
#define CUSOLVER_PATCH (VCUDA_ABI == 11 ? 5 : 1)

cusolverStatus_t hand_cusolverGetVersion(int *version)
{
	if (!version)
		return CUSOLVER_STATUS_INVALID_VALUE;
	*version = VCUDA_ABI * 1000 + CUSOLVER_MINOR * 100 + CUSOLVER_PATCH;
	return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t hand_cusolverGetProperty(libraryPropertyType type, int *value)
{
	static const int parts[] = {VCUDA_ABI, CUSOLVER_MINOR, CUSOLVER_PATCH};

	if ((unsigned)type > PATCH_LEVEL || !value)
		return CUSOLVER_STATUS_INVALID_VALUE;
	*value = parts[type];
	return CUSOLVER_STATUS_SUCCESS;
}
