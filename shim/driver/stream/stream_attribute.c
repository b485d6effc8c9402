/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of streams: kept by the agent's driver, checked here as far as a post cannot tell.
 */
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/launch.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/handle.h"
#include "shim/engine/engine.h"

/* Of what streams have. */
static bool attribute_known(CUstreamAttrID attr)
{
	return attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
	       attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
	       attr == CU_LAUNCH_ATTRIBUTE_PRIORITY ||
	       attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ||
	       attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

CUresult hand_cuStreamGetAttribute(
	CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	const struct wire_cuStreamGetAttribute_reply *reply;
	struct wire_cuStreamGetAttribute *body;
	struct shim_call call;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_cuStreamGetAttribute, sizeof(*body));
	body->hStream = shim_stream(&call, hStream);
	body->attr = (uint32_t)attr;
	if (!call.status && !attribute_known(attr))
		call.status = CUDA_ERROR_INVALID_VALUE;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		memcpy(value, reply->value, launch_attribute_bytes(attr));
	return shim_end(&call);
}

CUresult hand_cuStreamSetAttribute(
	CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param)
{
	struct wire_cuStreamSetAttribute *body;
	struct shim_call call;
	uint64_t number;
	CUresult status;

	if (!param)
		return CUDA_ERROR_INVALID_VALUE;
	/* As natively: the context that a default stream is in, the attribute, and then the
	 * stream. */
	status = (uintptr_t)hStream <= (uintptr_t)CU_STREAM_PER_THREAD ? context_missing()
								       : CUDA_SUCCESS;
	if (!status)
		status = capture_node(hStream);
	if (status)
		return status;
	if (!attribute_known(attr) ||
		(attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN &&
			(unsigned)param->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE))
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_cuStreamSetAttribute, sizeof(*body));
	body->hStream = shim_stream(&call, hStream);
	body->attr = (uint32_t)attr;
	memcpy(body->param, param, sizeof(body->param));
	number = body->hStream;
	status = shim_learned(&call);
	if (!status && attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		stream_prioritise(number, param->priority);
	return status;
}

/* The priority goes with them, and is answered here. */
CUresult hand_cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
	struct wire_cuStreamCopyAttributes *body;
	const struct stream *from, *into;
	struct shim_call call;
	uint64_t to, source;
	CUresult status;

	body = shim_begin(&call, OP_cuStreamCopyAttributes, sizeof(*body));
	body->dstStream = to = shim_stream(&call, dstStream);
	body->srcStream = source = shim_stream(&call, srcStream);
	from = stream_find(source);
	into = stream_find(to);
	if (!call.status && from && into && from->context != into->context)
		call.status = CUDA_ERROR_INVALID_VALUE;
	status = shim_post(&call);
	if (!status && from)
		stream_prioritise(to, from->priority);
	return status;
}
