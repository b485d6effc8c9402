/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: as which call they are recorded, and which kernel they name.
 */
#include "shim/libraries/cupti/cupti.h"
#include "shim/runtime/kernel_name.h"

/* What programs of nvcc 13 launch by, CUPTI 13.0 knows by the name that it has in their source;
 * that they ask for a kernel before is not told (both seen on an H200). */
struct callback recorded_as(unsigned call)
{
	switch (call) {
	case CALL___cudaLaunchKernel: return callback_of(CALL_cudaLaunchKernel);
	case CALL___cudaLaunchKernel_ptsz: return callback_of(CALL_cudaLaunchKernel_ptsz);
	case CALL___cudaGetKernel: return (struct callback){CALLBACK_NONE, 0};
	default: return callback_of(call);
	}
}

const char *cupti_kernel_name(unsigned call, const void *first)
{
	const char *name = NULL;

	switch (call) {
	case CALL___cudaLaunchKernel:
	case CALL___cudaLaunchKernel_ptsz: return runtime_kernel_name(first, true);
	case CALL_cudaLaunchKernel:
	case CALL_cudaLaunchKernel_ptsz:
	case CALL_cudaLaunchCooperativeKernel:
	case CALL_cudaLaunchCooperativeKernel_ptsz: return runtime_kernel_name(first, false);
	case CALL_cuLaunchKernel:
	case CALL_cuLaunchKernel_ptsz:
	case CALL_cuLaunchCooperativeKernel:
	case CALL_cuLaunchCooperativeKernel_ptsz:
		cupti_own++;
		if (cuFuncGetName(&name, (CUfunction)(uintptr_t)first))
			name = NULL;
		cupti_own--;
		return name;
	default: return NULL;
	}
}
