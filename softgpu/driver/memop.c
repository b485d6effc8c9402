/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for and writing values in memory, in stream order.  A wait is looked at from time to
 * time by the queue's watcher thread: whatever may write the value (a kernel, a copy, the host)
 * tells nobody.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

struct value_op {
	struct op op;
	uint64_t address, value;
	unsigned flags;
	bool wide;
};

static bool satisfied(uint64_t now, uint64_t value, unsigned flags, bool wide)
{
	switch (flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return wide ? (int64_t)(now - value) >= 0
			    : (int32_t)((uint32_t)now - (uint32_t)value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ: return now == value;
	case CU_STREAM_WAIT_VALUE_AND: return (now & value) != 0;
	default: return (wide ? ~(now | value) : (uint32_t)~(now | value)) != 0;
	}
}

static bool wait_poll(struct op *base)
{
	const struct value_op *op = (struct value_op *)base;
	const void *at = (void *)(uintptr_t)op->address;
	uint64_t now = 0;
	bool mapped;

	pthread_rwlock_rdlock(&memory_lock);
	mapped = memory_mapped_locked(op->address, op->wide ? 8 : 4);
	if (mapped)
		now = op->wide ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
			       : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
	pthread_rwlock_unlock(&memory_lock);
	if (!mapped) {
		context_fault(base->context, CUDA_ERROR_ILLEGAL_ADDRESS);
		return true;
	}
	return satisfied(now, op->value, op->flags, op->wide);
}

static void write_run(struct op *base)
{
	const struct value_op *op = (struct value_op *)base;
	void *at = (void *)(uintptr_t)op->address;
	bool mapped;

	pthread_rwlock_rdlock(&memory_lock);
	mapped = memory_mapped_locked(op->address, op->wide ? 8 : 4);
	if (mapped && op->wide)
		__atomic_store_n((uint64_t *)at, op->value, __ATOMIC_RELEASE);
	else if (mapped)
		__atomic_store_n((uint32_t *)at, (uint32_t)op->value, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&memory_lock);
	if (!mapped)
		context_fault(base->context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void value_drop(struct op *op)
{
	free(op);
}

static CUresult value_submit(CUstream handle, CUdeviceptr address, uint64_t value,
	unsigned flags, bool wide, bool wait)
{
	struct CUstream_st *stream;
	struct value_op *op;
	CUresult ret = stream_use(handle, &stream);

	if (ret)
		return ret;
	if (address % (wide ? 8 : 4) || !memory_mapped(address, wide ? 8 : 4) ||
		flags & ~(wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH : 1u))
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (wait && flags & CU_STREAM_WAIT_VALUE_FLUSH)
		ret = CUDA_ERROR_NOT_SUPPORTED;
	op = ret ? NULL : calloc(1, sizeof(*op));
	if (op) {
		op->op.kind = wait ? OP_WATCH : OP_WORK;
		op->op.run = write_run;
		op->op.poll = wait_poll;
		op->op.drop = value_drop;
		op->op.light = !wait;
		op->address = address;
		op->value = wide ? value : (uint32_t)value;
		op->flags = flags;
		op->wide = wide;
	}
	if (!ret && (!op || !queue_submit(stream, &op->op, false)))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	stream_done(stream);
	return ret;
}

CUresult cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return value_submit(stream, addr, value, flags, false, true);
}

CUresult cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return value_submit(stream, addr, value, flags, true, true);
}

CUresult cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return value_submit(stream, addr, value, flags, false, false);
}

CUresult cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return value_submit(stream, addr, value, flags, true, false);
}

CUresult cuStreamWaitValue32(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWaitValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWaitValue64(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWaitValue64_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue32(
	CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return cuStreamWriteValue32_v2(stream, addr, value, flags);
}

CUresult cuStreamWriteValue64(
	CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return cuStreamWriteValue64_v2(stream, addr, value, flags);
}

#define BATCH_MAX 256

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	CUresult ret = CUDA_SUCCESS;

	if (!paramArray || flags || count > BATCH_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !ret; i++) {
		const CUstreamBatchMemOpParams *p = &paramArray[i];

		switch (p->operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			ret = value_submit(stream, p->waitValue.address, p->waitValue.value64,
				p->waitValue.flags,
				p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64, true);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			ret = value_submit(stream, p->writeValue.address, p->writeValue.value64,
				p->writeValue.flags,
				p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64, false);
			break;
		case CU_STREAM_MEM_OP_BARRIER: break; /* operations are in order anyway */
		case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
		default: return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return ret;
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
