/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that streams write.  A wrong argument is told by the call, as natively: of a post that
 * failed at the agent some later call would have to tell.
 */
#include "shim/driver/forms.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/driver/memory/mirror.h"
#include "shim/driver/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"

/* Pinned memory may be written too; *ADDRESS becomes what the agent knows it by. */
static CUresult value_address(CUdeviceptr *address, size_t bytes, unsigned flags)
{
	CUresult status;

	if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER || *address % bytes)
		return CUDA_ERROR_INVALID_VALUE;
	status = pinned_before(address, sizeof(*address));
	if (!status && !mirror_reaches(*address, bytes))
		status = CUDA_ERROR_INVALID_VALUE;
	*address = mirror_address(*address);
	return status;
}

CUresult memop_old(CUstream stream)
{
	uint64_t number;
	CUresult status = stream_plain(stream, &number);

	return status ? status : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	CUresult status = value_address(&addr, sizeof(value), flags);
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
	CUresult status = value_address(&addr, sizeof(value), flags);
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
