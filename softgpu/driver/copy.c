/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies: one description (rows of slices on two sides) for every shape, one place
 * that checks it, one that does it.  Device memory is read and written under the memory lock, a
 * few MiB at a time, so that what is copied cannot be unmapped meanwhile.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/array.h"
#include "softgpu/driver/copy_calls.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/work/work.h"

/* Pageable memory up to this size is taken at the call, so that the call need not wait. */
#define STAGED_MAX (1 * MIB)

struct copy_op {
	struct op op;
	struct copy copy;
	void *staging;
};

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/* From the first byte to behind the last of one side; false on overflow. */
static bool extent(size_t pitch, size_t rows, const struct copy *copy, uint64_t *size)
{
	uint64_t slice, last;

	if (__builtin_mul_overflow(pitch, rows, &slice) ||
		__builtin_mul_overflow(slice, copy->depth - 1, &slice) ||
		__builtin_mul_overflow(pitch, copy->height - 1, &last) ||
		__builtin_add_overflow(slice, last, size) ||
		__builtin_add_overflow(*size, copy->width, size))
		return false;
	return true;
}

static bool sides_reached_locked(const struct copy *copy)
{
	uint64_t src = 0, dst = 0;

	extent(copy->src_pitch, copy->src_height, copy, &src);
	extent(copy->dst_pitch, copy->dst_height, copy, &dst);
	return (copy->src_sparse.row || !memory_in_window(copy->src) ||
		       memory_mapped_locked(copy->src, src)) &&
	       (copy->dst_sparse.row || !memory_in_window(copy->dst) ||
		       (memory_mapped_locked(copy->dst, dst) &&
			       memory_writable_locked(copy->dst, dst)));
}

static uint64_t place(uint64_t base, size_t pitch, size_t rows, size_t slice, size_t row)
{
	return base + (slice * rows + row) * pitch;
}

/* The place of a byte of one side, of which *N follow; fewer may in a row there. */
static uint64_t piece(const struct copy_sparse *sparse, uint64_t at, size_t *n)
{
	const struct ptx_tiles *tiles = &sparse->tiles;
	uint64_t offset, x;
	size_t left;

	if (!sparse->row)
		return at;
	if (tiles->across) {
		offset = at - sparse->base;
		x = offset % sparse->row;
		offset /= sparse->row;
		at = sparse->base +
		     ptx_tiles_offset(tiles, x, offset % sparse->rows, offset / sparse->rows);
		left = ((size_t)1 << tiles->x) - x % (1u << tiles->x);
	} else {
		left = GRANULE - at % GRANULE;
	}
	if (*n > left)
		*n = left;
	return at;
}

/* Copies what lies in a row on both sides, *N bytes at most.  What an array has no memory for
 * is 0, and lost.  False: the array went away. */
static bool copy_piece(const struct copy *copy, uint64_t dst, uint64_t src, size_t *n)
{
	enum sparse_state from = SPARSE_MAPPED, to = SPARSE_MAPPED;

	src = piece(&copy->src_sparse, src, n);
	dst = piece(&copy->dst_sparse, dst, n);
	if (copy->src_sparse.row)
		from = array_map_state(src);
	if (copy->dst_sparse.row)
		to = array_map_state(dst);
	if (to == SPARSE_MAPPED && from == SPARSE_MAPPED)
		memmove(pointer(dst), pointer(src), *n);
	else if (to == SPARSE_MAPPED && from == SPARSE_ABSENT)
		memset(pointer(dst), 0, *n);
	return from != SPARSE_NONE && to != SPARSE_NONE;
}

/* The one loop.  False if memory went away under it, or may be read only. */
static bool copy_do(const struct copy *copy)
{
	size_t held = 0;
	bool mapped;

	pthread_rwlock_rdlock(&memory_lock);
	mapped = sides_reached_locked(copy);
	for (size_t z = 0; mapped && z < copy->depth; z++) {
		for (size_t y = 0; mapped && y < copy->height; y++) {
			uint64_t src =
				place(copy->src, copy->src_pitch, copy->src_height, z, y);
			uint64_t dst =
				place(copy->dst, copy->dst_pitch, copy->dst_height, z, y);

			for (size_t at = 0, n; mapped && at < copy->width; at += n) {
				n = copy->width - at;
				if (n > COPY_HOLD_BYTES)
					n = COPY_HOLD_BYTES;
				mapped = copy_piece(copy, dst + at, src + at, &n);
				held += n;
				if (!mapped || held < COPY_HOLD_BYTES)
					continue;
				held = 0;
				pthread_rwlock_unlock(&memory_lock);
				pthread_rwlock_rdlock(&memory_lock);
				mapped = sides_reached_locked(copy);
			}
		}
	}
	pthread_rwlock_unlock(&memory_lock);
	return mapped;
}

static void copy_run(struct op *base)
{
	if (!copy_do(&((struct copy_op *)base)->copy))
		context_fault(base->context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The array itself may be gone. */
static void side_tell(
	uint64_t address, const struct CUarray_st *array, struct softgpu_side *side)
{
	work_side(address, side);
	if (array)
		side->place = SOFTGPU_PLACE_ARRAY;
}

static void copy_tell(const struct op *base, struct softgpu_work *work)
{
	const struct copy_op *op = (const struct copy_op *)base;
	const struct copy *copy = &op->copy;

	work->kind = SOFTGPU_WORK_COPY;
	work->bytes = (uint64_t)copy->width * copy->height * copy->depth;
	work->asynchronous = !base->sync;
	side_tell(copy->src, copy->src_array, &work->source);
	side_tell(copy->dst, copy->dst_array, &work->target);
}

static void copy_drop(struct op *base)
{
	free(((struct copy_op *)base)->staging);
	free(base);
}

enum copy_side soft_copy_side_of(uint64_t address)
{
	const struct range *range;
	enum copy_side side = COPY_DEVICE;

	if (!memory_in_window(address))
		return COPY_HOST;
	/* Pinned memory lies in the window too, and copies with it are waited for. */
	pthread_rwlock_rdlock(&memory_lock);
	range = ranges_find(&memory_blocks, address);
	if (range) {
		enum block_kind kind = ((const struct block *)range->owner)->kind;

		side = kind == BLOCK_HOST ? COPY_HOST : COPY_DEVICE;
	}
	pthread_rwlock_unlock(&memory_lock);
	return side;
}

/* A side of a copy: rows long enough, and there. */
static CUresult side_check(const struct copy *copy, uint64_t base, enum copy_side side,
	size_t pitch, size_t rows, const struct copy_sparse *sparse)
{
	uint64_t size;

	if (!base || ((copy->height > 1 || copy->depth > 1) && pitch < copy->width) ||
		(copy->depth > 1 && rows < copy->height) || !extent(pitch, rows, copy, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (sparse->row) /* inside of its array */
		return CUDA_SUCCESS;
	if (memory_in_window(base)) {
		if (memory_mapped(base, size))
			return CUDA_SUCCESS;
		soft_log_note("copy refused: 0x%llx+0x%llx is not all mapped",
			(unsigned long long)base, (unsigned long long)size);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (side == COPY_DEVICE) /* registered memory is the device's too */
		return memory_mapped(base, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	return size <= UINT64_MAX - base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Between the host and memory that is mapped by cuMemMap, the copy engine of the stream's
 * device has to reach it: seen on an H200, whose cuMemcpyDtoH answers INVALID_VALUE else. */
static CUresult side_reached(const struct copy *copy, const struct device *by)
{
	bool in = copy->src_side == COPY_HOST;
	uint64_t base = in ? copy->dst : copy->src, size = 0;

	if (copy->src_side == copy->dst_side || !memory_in_window(base) ||
		copy->src_sparse.row || copy->dst_sparse.row)
		return CUDA_SUCCESS;
	extent(in ? copy->dst_pitch : copy->src_pitch, in ? copy->dst_height : copy->src_height,
		copy, &size);
	if (memory_reached(base, size, by))
		return CUDA_SUCCESS;
	soft_log_note("copy refused: device %d has no access to 0x%llx+0x%llx", by->ordinal,
		(unsigned long long)base, (unsigned long long)size);
	return CUDA_ERROR_INVALID_VALUE;
}

static bool side_pinned(const struct copy *copy, uint64_t base, size_t pitch, size_t rows)
{
	uint64_t size = 0;

	extent(pitch, rows, copy, &size);
	return memory_pinned(pointer(base), size);
}

/* Copies the pageable source at the call; the operation reads the copy. */
static bool stage(struct copy_op *op)
{
	const struct copy *copy = &op->copy;
	struct copy compact = *copy;

	op->staging = malloc(copy->width * copy->height * copy->depth);
	if (!op->staging)
		return false;
	compact.dst = (uintptr_t)op->staging;
	compact.dst_pitch = copy->width;
	compact.dst_height = copy->height;
	compact.dst_sparse = (struct copy_sparse){0};
	if (!copy_do(&compact))
		return false;
	op->copy.src = compact.dst;
	op->copy.src_pitch = compact.dst_pitch;
	op->copy.src_height = compact.dst_height;
	return true;
}

/* The operation, checked. */
static CUresult copy_op(const struct copy *copy, struct copy_op **out, size_t *bytes)
{
	struct copy_op *op;
	CUresult ret;

	ret = side_check(copy, copy->src, copy->src_side, copy->src_pitch, copy->src_height,
		&copy->src_sparse);
	if (!ret)
		ret = side_check(copy, copy->dst, copy->dst_side, copy->dst_pitch,
			copy->dst_height, &copy->dst_sparse);
	if (ret)
		return ret;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_WORK;
	op->op.run = copy_run;
	op->op.drop = copy_drop;
	op->op.profile.tell = copy_tell;
	op->op.bytes = sizeof(*op);
	op->op.node = CU_GRAPH_NODE_TYPE_MEMCPY;
	op->copy = *copy;
	if (__builtin_mul_overflow(copy->width, copy->height, bytes) ||
		__builtin_mul_overflow(*bytes, copy->depth, bytes))
		*bytes = SIZE_MAX;
	op->op.light = *bytes <= COPY_LIGHT_BYTES;
	*out = op;
	return CUDA_SUCCESS;
}

/* What cannot be left to the device is no part of a graph. */
static CUresult copy_may(struct CUstream_st *stream, bool refused)
{
	CUresult ret;

	if (!refused)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&queue_lock);
	ret = soft_capture_refuse(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult copy_submit(const struct copy *copy, CUstream handle, bool sync)
{
	struct CUstream_st *stream;
	struct copy_op *op = NULL;
	size_t bytes = 0;
	bool wait, pageable;
	CUresult ret = sync ? capture_unsafe() : CUDA_SUCCESS;

	if (!ret)
		ret = stream_use(handle, &stream);
	if (ret)
		return ret;
	if (!copy->width || !copy->height || !copy->depth) {
		stream_done(stream);
		return CUDA_SUCCESS;
	}
	ret = copy_op(copy, &op, &bytes);
	if (!ret) {
		op->op.sync = sync;
		ret = side_reached(copy, stream->context->device);
		if (ret)
			copy_drop(&op->op);
	}
	if (ret) {
		stream_done(stream);
		return ret;
	}

	/* Between device addresses nobody waits, not even the calls without Async. */
	wait = sync && (copy->src_side == COPY_HOST || copy->dst_side == COPY_HOST);
	if (!wait && copy->dst_side == COPY_HOST)
		wait = !side_pinned(copy, copy->dst, copy->dst_pitch, copy->dst_height);
	pageable = !wait && copy->src_side == COPY_HOST &&
		   !side_pinned(copy, copy->src, copy->src_pitch, copy->src_height);
	ret = copy_may(stream, wait || pageable);
	if (ret) {
		copy_drop(&op->op);
		stream_done(stream);
		return ret;
	}
	if (pageable) {
		wait = bytes > STAGED_MAX;
		if (!wait)
			wait = !stage(op);
	}
	if (wait)
		ret = queue_run(stream, &op->op);
	else if (!queue_submit(stream, &op->op, false))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	stream_done(stream);
	return ret;
}

CUresult copy_op_new(const CUDA_MEMCPY3D *params, struct op **out)
{
	struct copy copy;
	struct copy_op *op = NULL;
	size_t bytes;
	CUresult ret = params ? copy_read_3d(params, &copy) : CUDA_ERROR_INVALID_VALUE;

	if (!ret && (!copy.width || !copy.height || !copy.depth))
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret)
		ret = copy_op(&copy, &op, &bytes);
	if (!ret)
		*out = &op->op;
	return ret;
}

/* The place of an address in its array. */
static void read_array(const struct CUarray_st *array, uint64_t at, CUmemorytype *type,
	CUarray *handle, size_t *x, size_t *y, size_t *z)
{
	uint64_t offset = at - array->address;

	*type = CU_MEMORYTYPE_ARRAY;
	*handle = (CUarray)(uintptr_t)array;
	*x = offset % array->row;
	*y = offset / array->row % array->rows;
	*z = offset / array->row / array->rows;
}

void copy_op_read(const struct op *base, CUDA_MEMCPY3D *p)
{
	const struct copy *copy = &((const struct copy_op *)base)->copy;

	*p = (CUDA_MEMCPY3D){.srcMemoryType = copy->src_side == COPY_HOST
						      ? CU_MEMORYTYPE_HOST
						      : CU_MEMORYTYPE_DEVICE,
		.srcPitch = copy->src_pitch,
		.srcHeight = copy->src_height,
		.dstMemoryType =
			copy->dst_side == COPY_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.dstPitch = copy->dst_pitch,
		.dstHeight = copy->dst_height,
		.WidthInBytes = copy->width,
		.Height = copy->height,
		.Depth = copy->depth};
	if (copy->src_array)
		read_array(copy->src_array, copy->src, &p->srcMemoryType, &p->srcArray,
			&p->srcXInBytes, &p->srcY, &p->srcZ);
	else if (copy->src_side == COPY_HOST)
		p->srcHost = pointer(copy->src);
	else
		p->srcDevice = copy->src;
	if (copy->dst_array)
		read_array(copy->dst_array, copy->dst, &p->dstMemoryType, &p->dstArray,
			&p->dstXInBytes, &p->dstY, &p->dstZ);
	else if (copy->dst_side == COPY_HOST)
		p->dstHost = pointer(copy->dst);
	else
		p->dstDevice = copy->dst;
}

CUresult copy_linear(uint64_t dst, enum copy_side dst_side, uint64_t src,
	enum copy_side src_side, size_t size, CUstream stream, bool sync)
{
	struct copy copy = {
		.src = src,
		.dst = dst,
		.src_side = src_side,
		.dst_side = dst_side,
		.src_pitch = size,
		.dst_pitch = size,
		.src_height = 1,
		.dst_height = 1,
		.width = size,
		.height = 1,
		.depth = 1,
	};

	return copy_submit(&copy, stream, sync);
}
