/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of events.  No device registers its events here (nvmlDeviceRegisterEvents is
 * NOT_SUPPORTED, which leaves a set usable), so a set is one in which nothing happens.
 */
#include <limits.h>
#include <poll.h>
#include <stdlib.h>

#include "shim/nvml/nvml.h"

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	/* A byte, for an address that no other set has. */
	*set = malloc(1);
	return *set ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	free(set);
	return NVML_SUCCESS;
}

/* A signal ends the wait early, as NVIDIA's header says. */
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!set || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	poll(NULL, 0, timeoutms < INT_MAX ? (int)timeoutms : INT_MAX);
	return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeoutms)
{
	return nvmlEventSetWait_v2(set, data, timeoutms);
}
