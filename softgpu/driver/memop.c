/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for and writing values in memory, in stream order.  A wait is looked at from time to
 * time by the queue's watcher thread: whatever may write the value (a kernel, a copy, the host)
 * tells nobody.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

#define BATCH_MAX 256

/* Operations that follow one another; a single one is a batch of one. */
struct batch_op {
	struct op op;
	unsigned count, at; /* how many; the next one to do */
	unsigned flags;
	CUstreamBatchMemOpParams ops[];
};

static bool is_wait(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
	       p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_wide(const CUstreamBatchMemOpParams *p)
{
	return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

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

/* One operation; false: what it waits for is not there yet. */
static bool value_run(const CUstreamBatchMemOpParams *p, struct CUctx_st *context)
{
	bool wide = is_wide(p), done = true, mapped;
	uint64_t now;
	void *at;

	if (p->operation == CU_STREAM_MEM_OP_BARRIER)
		return true; /* operations are in order anyway */
	/* Address and value lie at the same place in waits and writes. */
	at = (void *)(uintptr_t)p->waitValue.address;
	pthread_rwlock_rdlock(&memory_lock);
	mapped = memory_mapped_locked(p->waitValue.address, wide ? 8 : 4) &&
		 (is_wait(p) || memory_writable_locked(p->waitValue.address, wide ? 8 : 4));
	if (mapped && is_wait(p)) {
		now = wide ? __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE)
			   : __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
		done = satisfied(now, wide ? p->waitValue.value64 : p->waitValue.value,
			p->waitValue.flags, wide);
	} else if (mapped && wide) {
		__atomic_store_n((uint64_t *)at, p->writeValue.value64, __ATOMIC_RELEASE);
	} else if (mapped) {
		__atomic_store_n((uint32_t *)at, p->writeValue.value, __ATOMIC_RELEASE);
	}
	pthread_rwlock_unlock(&memory_lock);
	if (!mapped)
		context_fault(context, CUDA_ERROR_ILLEGAL_ADDRESS);
	return done;
}

static bool batch_poll(struct op *base)
{
	struct batch_op *op = (struct batch_op *)base;

	while (op->at < op->count && value_run(&op->ops[op->at], base->context))
		op->at++;
	return op->at == op->count;
}

static void batch_run(struct op *base)
{
	batch_poll(base);
}

static void batch_drop(struct op *op)
{
	free(op);
}

static CUresult value_check(const CUstreamBatchMemOpParams *p, bool node)
{
	size_t size = is_wide(p) ? 8 : 4;
	unsigned allowed = 1;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64: allowed = 3u | CU_STREAM_WAIT_VALUE_FLUSH; break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64: break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (p->waitValue.address % size ||
		(!node && !memory_mapped(p->waitValue.address, size)) ||
		p->waitValue.flags & ~allowed)
		return CUDA_ERROR_INVALID_VALUE;
	return is_wait(p) && p->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_SUCCESS;
}

CUresult memop_batch_new(
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, bool node, struct op **out)
{
	struct batch_op *op;
	bool waits = false;
	CUresult ret = CUDA_SUCCESS;

	if (!params || !params->paramArray || params->flags || params->count > BATCH_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	op = calloc(1, sizeof(*op) + params->count * sizeof(*op->ops));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->count = params->count;
	for (unsigned i = 0; i < op->count && !ret; i++) {
		op->ops[i] = params->paramArray[i];
		ret = value_check(&op->ops[i], node);
		waits |= is_wait(&op->ops[i]);
	}
	if (ret) {
		free(op);
		return ret;
	}
	op->op.kind = waits ? OP_WATCH : OP_WORK;
	op->op.run = batch_run;
	op->op.poll = batch_poll;
	op->op.drop = batch_drop;
	op->op.light = !waits;
	op->op.bytes = (uint32_t)(sizeof(*op) + op->count * sizeof(*op->ops));
	op->op.node = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	*out = &op->op;
	return CUDA_SUCCESS;
}

bool memop_batch_like(const struct op *a, const struct op *b)
{
	const struct batch_op *one = (const struct batch_op *)a;
	const struct batch_op *two = (const struct batch_op *)b;

	if (one->count != two->count)
		return false;
	for (unsigned i = 0; i < one->count; i++)
		if (one->ops[i].operation != two->ops[i].operation ||
			(one->ops[i].operation == CU_STREAM_MEM_OP_BARRIER &&
				one->ops[i].memoryBarrier.flags !=
					two->ops[i].memoryBarrier.flags))
			return false;
	return true;
}

void memop_batch_read(struct op *base, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct batch_op *op = (struct batch_op *)base;

	*params = (CUDA_BATCH_MEM_OP_NODE_PARAMS){
		.count = op->count, .paramArray = op->ops, .flags = op->flags};
	cuCtxGetCurrent(&params->ctx);
}

static CUresult batch_submit(CUstream handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct CUstream_st *stream;
	struct op *op;
	CUresult ret = stream_use(handle, &stream);

	if (ret)
		return ret;
	ret = memop_batch_new(params, false, &op);
	if (!ret && !queue_submit(stream, op, false))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	stream_done(stream);
	return ret;
}

static CUresult value_submit(CUstream handle, CUdeviceptr address, uint64_t value,
	unsigned flags, bool wide, bool wait)
{
	CUstreamBatchMemOpParams op = {0};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.count = 1, .paramArray = &op};

	if (wait)
		op.operation =
			wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
	else
		op.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64
				    : CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.waitValue.address = address;
	op.waitValue.value64 = value;
	op.waitValue.flags = flags;
	return batch_submit(handle, &params);
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

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
		.count = count, .paramArray = paramArray, .flags = flags};

	return batch_submit(stream, &params);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count,
	CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	return cuStreamBatchMemOp_v2(stream, count, paramArray, flags);
}
