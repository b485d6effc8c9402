/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of a handle of cuDNN beside its stream. Handles are generated
 * (shim/generated/cudnn_stubs.c over shim/libraries/common/plain.h).
 */
#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

/* Numerical overflows are told by kernels only in modes that nobody switches on. */
cudnnStatus_t hand_cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t *rstatus,
	cudnnErrQueryMode_t mode, cudnnRuntimeTag_t *tag)
{
	(void)tag;
	if (!cudnn_find(handle) || !rstatus || mode < CUDNN_ERRQUERY_RAWCODE ||
		mode > CUDNN_ERRQUERY_BLOCKING)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no handle of cuDNN, or no status");
	*rstatus = CUDNN_STATUS_SUCCESS;
	return CUDNN_STATUS_SUCCESS;
}
