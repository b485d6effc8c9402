/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles of cuDNN: the stream is local and travels with each call; making one opens the
 * agent's library.
 */
#include <stdio.h>
#include <stdlib.h>

#include "shim/generated/cudnn_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/handle.h"
#include "shim/libraries/cudnn/cudnn.h"

static int logged_once; /* that the agent lacks the library */

cudnnStatus_t hand_cudnnCreate(cudnnHandle_t *handle)
{
	struct wire_vcudaCudnnOpen body = {.major = VCUDA_ABI};
	struct wire_vcudaCudnnOpen_reply reply = {0};
	struct cudnn_handle *h;
	CUresult status;

	if (!handle)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "handle is NULL");
	status = vcuda_front_context();
	if (status)
		return cudnn_status(status);
	h = calloc(1, sizeof(*h));
	if (!h)
		return CUDNN_STATUS_ALLOC_FAILED;
	h->number = vcuda_front_mint(KIND_cudnnHandle, h);
	body.handle = h->number;
	status = h->number ? front_ask(OP_vcudaCudnnOpen, &body, sizeof(body), &reply,
				     sizeof(reply))
			   : CUDA_ERROR_OUT_OF_MEMORY;
	if (status || reply.status) {
		char text[96];

		vcuda_front_release(h->number);
		free(h);
		if (status)
			return cudnn_status(status);
		snprintf(text, sizeof(text),
			"cudnnCreate: the agent has no usable libcudnn.so.%d (its log says "
			"more)",
			VCUDA_ABI);
		if (reply.status == CUDNN_STATUS_NOT_INITIALIZED)
			vcuda_front_missing("cudnnCreate",
				VCUDA_ABI == 8 ? "libcudnn.so.8" : "libcudnn.so.9",
				&logged_once);
		else
			snprintf(text, sizeof(text),
				"cudnnCreate: status %u of the agent's cuDNN", reply.status);
		return cudnn_fault((cudnnStatus_t)reply.status, text);
	}
	*handle = (cudnnHandle_t)(uintptr_t)h->number;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnDestroy(cudnnHandle_t handle)
{
	struct cudnn_handle *h = cudnn_find(handle);
	struct wire_vcudaCudnnClose body = {.handle = (uint64_t)(uintptr_t)handle};

	if (!handle)
		return CUDNN_STATUS_SUCCESS;
	if (!h || !vcuda_front_release(h->number))
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no handle of cuDNN");
	free(h);
	return cudnn_status(front_post(OP_vcudaCudnnClose, &body, sizeof(body)));
}

cudnnStatus_t hand_cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId)
{
	struct cudnn_handle *h = cudnn_find(handle);

	if (!h)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no handle of cuDNN");
	h->stream = streamId;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetStream(cudnnHandle_t handle, cudaStream_t *streamId)
{
	struct cudnn_handle *h = cudnn_find(handle);

	if (!h || !streamId)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "no handle of cuDNN, or no stream");
	*streamId = h->stream;
	return CUDNN_STATUS_SUCCESS;
}

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
