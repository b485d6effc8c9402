/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharing between processes: the driver's functions, whose handles have the same bytes.
 */
#include <string.h>

#include "shim/runtime/runtime.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "");

cudaError_t hand_cudaIpcOpenMemHandle(
	void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	cudaError_t error = runtime_enter();
	CUdeviceptr address = 0;
	CUipcMemHandle same;

	if (!devPtr)
		return cudaErrorInvalidValue;
	memcpy(&same, &handle, sizeof(same));
	if (!error)
		error = runtime_status(cuIpcOpenMemHandle(&address, same, flags));
	if (!error)
		*devPtr = (void *)address;
	return error;
}

cudaError_t hand_cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	cudaError_t error = runtime_enter();
	CUipcEventHandle same;

	if (!event)
		return cudaErrorInvalidValue;
	memcpy(&same, &handle, sizeof(same));
	return error ? error : runtime_status(cuIpcOpenEventHandle((CUevent *)event, same));
}
