/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills: rows of elements of one value, under the memory lock as copies are.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/copy_calls.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/work/work.h"

struct fill_op {
	struct op op;
	uint64_t dst;
	size_t pitch, width, height; /* bytes, elements, rows */
	unsigned element, value;
};

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static bool fill_reached_locked(const struct fill_op *op)
{
	const uint64_t size = op->pitch * (op->height - 1) + op->width * op->element;

	return memory_mapped_locked(op->dst, size) && memory_writable_locked(op->dst, size);
}

static void fill_row(uint64_t dst, const struct fill_op *op, size_t at, size_t n)
{
	switch (op->element) {
	case 1: memset((char *)pointer(dst) + at, (int)op->value, n); break;
	case 2: {
		uint16_t *to = (uint16_t *)pointer(dst) + at;

		for (size_t i = 0; i < n; i++)
			to[i] = (uint16_t)op->value;
		break;
	}
	default: {
		uint32_t *to = (uint32_t *)pointer(dst) + at;

		for (size_t i = 0; i < n; i++)
			to[i] = op->value;
		break;
	}
	}
}

static void fill_run(struct op *base)
{
	const struct fill_op *op = (struct fill_op *)base;
	size_t held = 0;
	bool mapped;

	pthread_rwlock_rdlock(&memory_lock);
	mapped = fill_reached_locked(op);
	for (size_t y = 0; mapped && y < op->height; y++)
		for (size_t at = 0, n; mapped && at < op->width; at += n) {
			n = op->width - at;
			if (n > COPY_HOLD_BYTES / 4)
				n = COPY_HOLD_BYTES / 4;
			fill_row(op->dst + y * op->pitch, op, at, n);
			held += n * op->element;
			if (held < COPY_HOLD_BYTES)
				continue;
			held = 0;
			pthread_rwlock_unlock(&memory_lock);
			pthread_rwlock_rdlock(&memory_lock);
			mapped = fill_reached_locked(op);
		}
	pthread_rwlock_unlock(&memory_lock);
	if (!mapped)
		context_fault(base->context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void fill_tell(const struct op *base, struct softgpu_work *work)
{
	const struct fill_op *op = (const struct fill_op *)base;

	work->kind = SOFTGPU_WORK_FILL;
	work->bytes = (uint64_t)op->width * op->element * op->height;
	work->value = op->value;
	work->asynchronous = !base->sync;
	work_side(op->dst, &work->target);
}

static void fill_drop(struct op *op)
{
	free(op);
}

static CUresult fill_op(uint64_t dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, struct fill_op **out)
{
	struct fill_op *op;
	size_t row, size;

	if ((element != 1 && element != 2 && element != 4) ||
		__builtin_mul_overflow(width, (size_t)element, &row) || dst % element ||
		(height > 1 && (pitch < row || pitch % element)) ||
		__builtin_mul_overflow(pitch, height - 1, &size) ||
		__builtin_add_overflow(size, row, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_mapped(dst, size)) {
		soft_log_note("fill refused: 0x%llx+0x%llx is not all mapped",
			(unsigned long long)dst, (unsigned long long)size);
		return CUDA_ERROR_INVALID_VALUE;
	}
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_WORK;
	op->op.run = fill_run;
	op->op.drop = fill_drop;
	op->op.profile.tell = fill_tell;
	op->op.bytes = sizeof(*op);
	op->op.node = CU_GRAPH_NODE_TYPE_MEMSET;
	op->dst = dst;
	op->pitch = pitch;
	op->width = width;
	op->height = height;
	op->element = element;
	op->value = value;
	op->op.light = row <= COPY_LIGHT_BYTES / height;
	*out = op;
	return CUDA_SUCCESS;
}

CUresult fill_submit(uint64_t dst, size_t pitch, unsigned value, unsigned element, size_t width,
	size_t height, CUstream handle, bool sync)
{
	struct CUstream_st *stream;
	struct fill_op *op;
	CUresult ret = stream_use(handle, &stream);

	if (ret)
		return ret;
	if (width && height)
		ret = fill_op(dst, pitch, value, element, width, height, &op);
	if (!ret && width && height) {
		op->op.sync = sync;
		if (!queue_submit(stream, &op->op, false))
			ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream_done(stream);
	return ret;
}

CUresult fill_op_new(const CUDA_MEMSET_NODE_PARAMS *p, struct op **out)
{
	struct fill_op *op;
	CUresult ret;

	if (!p || !p->width || !p->height)
		return CUDA_ERROR_INVALID_VALUE;
	ret = fill_op(p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, &op);
	if (!ret)
		*out = &op->op;
	return ret;
}

void fill_op_read(const struct op *base, CUDA_MEMSET_NODE_PARAMS *p)
{
	const struct fill_op *op = (const struct fill_op *)base;

	*p = (CUDA_MEMSET_NODE_PARAMS){.dst = op->dst,
		.pitch = op->pitch,
		.value = op->value,
		.elementSize = op->element,
		.width = op->width,
		.height = op->height};
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return fill_submit(dstDevice, 0, uc, 1, N, 1, hStream, false);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return fill_submit(dstDevice, 0, us, 2, N, 1, hStream, false);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return fill_submit(dstDevice, 0, ui, 4, N, 1, hStream, false);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	return fill_submit(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height, CUstream hStream)
{
	return fill_submit(dstDevice, dstPitch, us, 2, Width, Height, hStream, false);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream hStream)
{
	return fill_submit(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
	return fill_submit(dstDevice, 0, uc, 1, N, 1, NULL, true);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
	return fill_submit(dstDevice, 0, us, 2, N, 1, NULL, true);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
	return fill_submit(dstDevice, 0, ui, 4, N, 1, NULL, true);
}

CUresult cuMemsetD2D8_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
	return fill_submit(dstDevice, dstPitch, uc, 1, Width, Height, NULL, true);
}

CUresult cuMemsetD2D16_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
	return fill_submit(dstDevice, dstPitch, us, 2, Width, Height, NULL, true);
}

CUresult cuMemsetD2D32_v2(
	CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
	return fill_submit(dstDevice, dstPitch, ui, 4, Width, Height, NULL, true);
}
