/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in memory.  A wrong argument is told by the call, as natively: of a post that failed
 * at the agent some later call would have to tell.
 */
#include "shim/driver/stream/memop.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/driver/forms.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/driver/stream/function_order.h"
#include "shim/engine/engine.h"

#define WRITE_FLAGS 0u /* these versions have none */
#define WAIT_FLAGS (unsigned)CU_STREAM_WAIT_VALUE_NOR

/* As natively, not in memory from a pool, nor in managed memory. */
static bool address_ok(CUdeviceptr address, size_t bytes)
{
	struct managed_range managed;
	struct memory_range range;

	return address % bytes == 0 && mirror_reaches(address, bytes) &&
	       !(memory_find(address, &range) && range.async) &&
	       !managed_find(address, &managed);
}

/* No device says that it can flush what others wrote to it. */
static bool flushes(const CUstreamBatchMemOpParams *op)
{
	if (op->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
		return true;
	return (op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
		       op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) &&
	       op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH;
}

/* How many bytes the operation waits for or writes; 0: it is another. */
static size_t memop_bytes(const CUstreamBatchMemOpParams *op)
{
	switch ((int)op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32: return 4;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64: return 8;
	default: return 0;
	}
}

/* But for where it is. */
static bool memop_ok(const CUstreamBatchMemOpParams *op)
{
	switch ((int)op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return !(op->waitValue.flags & ~WAIT_FLAGS) &&
		       op->waitValue.address % memop_bytes(op) == 0;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return !(op->writeValue.flags & ~WRITE_FLAGS) &&
		       op->writeValue.address % memop_bytes(op) == 0;
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
	default: return false;
	}
}

_Static_assert(offsetof(CUstreamBatchMemOpParams, waitValue.address) ==
		       offsetof(CUstreamBatchMemOpParams, writeValue.address),
	"where an operation is");

bool memop_reached(const CUstreamBatchMemOpParams *op)
{
	size_t bytes = memop_bytes(op);

	return !bytes || address_ok(op->waitValue.address, bytes);
}

static CUresult check(const CUstreamBatchMemOpParams *ops, size_t n, bool anywhere)
{
	CUresult status = pinned_before(ops, n * sizeof(*ops));

	function_order_unknown();
	for (size_t i = 0; i < n && !status; i++)
		if (flushes(&ops[i]))
			status = CUDA_ERROR_NOT_SUPPORTED;
		else if (!memop_ok(&ops[i]) || (!anywhere && !memop_reached(&ops[i])))
			status = CUDA_ERROR_INVALID_VALUE;
	return status;
}

CUresult memop_check(const CUstreamBatchMemOpParams *ops, size_t n)
{
	return check(ops, n, false);
}

CUresult memop_check_node(const CUstreamBatchMemOpParams *ops, size_t n)
{
	return check(ops, n, true);
}

CUresult memop_old(CUstream stream)
{
	uint64_t number;
	CUresult status = stream_plain(stream, &number);

	return status ? status : CUDA_ERROR_NOT_SUPPORTED;
}

static _Atomic bool gates;

bool memop_gates(void)
{
	return atomic_load_explicit(&gates, memory_order_relaxed);
}

/* A stream waits for a value at ADDRESS. */
static void gate(CUdeviceptr address)
{
	struct host_range range;

	if (!memop_gates() && host_find((const void *)(uintptr_t)address, &range))
		atomic_store(&gates, true);
}

/* *ADDRESS becomes what the agent knows it by. UNKNOWN: flags that there are not. */
static CUresult value_begin(
	CUstream stream, unsigned unknown, CUdeviceptr *address, size_t bytes, bool wait)
{
	uint64_t number;
	CUresult status = stream_plain(stream, &number);

	function_order_unknown();
	if (!status && unknown)
		status = unknown & CU_STREAM_WAIT_VALUE_FLUSH && wait
				 ? CUDA_ERROR_NOT_SUPPORTED
				 : CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = pinned_before(address, sizeof(*address));
	if (!status && !address_ok(*address, bytes))
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status && wait)
		gate(*address);
	*address = mirror_address(*address);
	return status;
}

_Static_assert(sizeof(struct wire_cuStreamWriteValue32_v2) ==
			       sizeof(struct wire_cuStreamWaitValue32_v2) &&
		       offsetof(struct wire_cuStreamWriteValue32_v2, flags) ==
			       offsetof(struct wire_cuStreamWaitValue32_v2, flags),
	"a wait travels as a write");
_Static_assert(sizeof(struct wire_cuStreamWriteValue64_v2) ==
			       sizeof(struct wire_cuStreamWaitValue64_v2) &&
		       offsetof(struct wire_cuStreamWriteValue64_v2, flags) ==
			       offsetof(struct wire_cuStreamWaitValue64_v2, flags),
	"a wait travels as a write");

static CUresult value_32(uint16_t op, CUstream stream, CUdeviceptr addr, cuuint32_t value,
	unsigned flags, unsigned known)
{
	CUresult status = value_begin(
		stream, flags & ~known, &addr, sizeof(value), op == OP_cuStreamWaitValue32_v2);
	struct wire_cuStreamWriteValue32_v2 *body;
	struct shim_call call;

	if (status)
		return status;
	body = shim_begin(&call, op, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->addr = addr;
	body->value = value;
	body->flags = flags;
	return shim_post(&call);
}

static CUresult value_64(uint16_t op, CUstream stream, CUdeviceptr addr, cuuint64_t value,
	unsigned flags, unsigned known)
{
	CUresult status = value_begin(
		stream, flags & ~known, &addr, sizeof(value), op == OP_cuStreamWaitValue64_v2);
	struct wire_cuStreamWriteValue64_v2 *body;
	struct shim_call call;

	if (status)
		return status;
	body = shim_begin(&call, op, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->addr = addr;
	body->value = value;
	body->flags = flags;
	return shim_post(&call);
}

CUresult hand_cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	return value_32(OP_cuStreamWriteValue32_v2, stream, addr, value, flags, WRITE_FLAGS);
}

CUresult hand_cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned flags)
{
	return value_32(OP_cuStreamWaitValue32_v2, stream, addr, value, flags, WAIT_FLAGS);
}

CUresult hand_cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	return value_64(OP_cuStreamWriteValue64_v2, stream, addr, value, flags, WRITE_FLAGS);
}

CUresult hand_cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned flags)
{
	return value_64(OP_cuStreamWaitValue64_v2, stream, addr, value, flags, WAIT_FLAGS);
}

/* Only addresses: a value may look like one. */
static void memop_addresses(CUstreamBatchMemOpParams *ops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		switch ((int)ops[i].operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			gate(ops[i].waitValue.address);
			ops[i].waitValue.address = mirror_address(ops[i].waitValue.address);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			ops[i].writeValue.address = mirror_address(ops[i].writeValue.address);
			break;
		default: break;
		}
	}
}

/* NVIDIA's driver leaves its own word of each in the app's array. */
static void memop_aliases(CUstreamBatchMemOpParams *ops, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		switch ((int)ops[i].operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			ops[i].waitValue.alias = ops[i].waitValue.address;
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			ops[i].writeValue.alias = ops[i].writeValue.address;
			break;
		default: break;
		}
	}
}

CUresult hand_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	enum { BATCH = 256 }; /* CUDA takes no more at once */
	CUstreamBatchMemOpParams ops[BATCH];
	struct wire_cuStreamBatchMemOp_v2 *body;
	struct shim_call call;
	CUresult status;

	if (!paramArray || count > BATCH || flags)
		return CUDA_ERROR_INVALID_VALUE;
	status = memop_check(paramArray, count);
	if (status)
		return status;
	memcpy(ops, paramArray, count * sizeof(*ops));
	memop_addresses(ops, count);
	body = shim_begin(&call, OP_cuStreamBatchMemOp_v2, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->count = count;
	shim_put(&call, &body->paramArray, ops, count * sizeof(*ops));
	body->flags = flags;
	status = shim_post(&call);
	if (!status)
		memop_aliases(paramArray, count);
	return status;
}
