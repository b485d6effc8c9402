/* SPDX-License-Identifier: Apache-2.0
 *
 * See status.h.
 */
#include "shim/engine/status.h"

CUresult status_of(enum status_cause cause)
{
	switch (cause) {
	case CAUSE_NOT_CONFIGURED: return CUDA_ERROR_NO_DEVICE;
	case CAUSE_UNREACHABLE: return CUDA_ERROR_SYSTEM_NOT_READY;
	case CAUSE_FOREIGN: return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	case CAUSE_LOST: return CUDA_ERROR_EXTERNAL_DEVICE;
	case CAUSE_VIOLATION: return CUDA_ERROR_EXTERNAL_DEVICE;
	}
	return CUDA_ERROR_UNKNOWN;
}

CUresult status_wire(uint32_t status)
{
	return status > CUDA_ERROR_UNKNOWN ? CUDA_ERROR_UNKNOWN : (CUresult)status;
}
