/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that streams write.  A wrong argument is told by the call, as natively: of a post that
 * failed at the agent some later call would have to tell.
 */
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/stream.h"
#include "shim/engine/engine.h"

static CUresult value_check(CUdeviceptr address, size_t bytes, unsigned flags)
{
	bool right = !(flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) &&
		     address % bytes == 0 && memory_inside(address, bytes);

	return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult hand_cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	CUresult status = value_check(addr, sizeof(value), flags);
	struct wire_cuStreamWriteValue32_v2 *body;
	struct shim_call call;

	if (status)
		return status;
	body = shim_begin(&call, OP_cuStreamWriteValue32_v2, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->addr = addr;
	body->value = value;
	body->flags = flags;
	return shim_post(&call);
}

CUresult hand_cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	CUresult status = value_check(addr, sizeof(value), flags);
	struct wire_cuStreamWriteValue64_v2 *body;
	struct shim_call call;

	if (status)
		return status;
	body = shim_begin(&call, OP_cuStreamWriteValue64_v2, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->addr = addr;
	body->value = value;
	body->flags = flags;
	return shim_post(&call);
}
