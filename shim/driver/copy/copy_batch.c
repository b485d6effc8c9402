/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies in batches: each is a copy like any other, one after the other in the stream, which is
 * an order that CUDA allows.  Where the source may only be read during the call, it has been
 * read when the call returns.
 */
#include "shim/driver/forms.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/engine/engine.h"

#define FAILED_NONE SIZE_MAX

static bool order_valid(CUmemcpySrcAccessOrder order)
{
	return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
	       order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
	       order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

static bool flags_valid(unsigned flags)
{
	return !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
}

/* What NVIDIA's driver looks at first: CUDA has no batches in the legacy stream, of which only
 * the explicit one has *FAILED written. A stream that was made is an invalid value where the
 * thread has no current context. */
static CUresult batch_begin(CUstream stream, size_t *failed)
{
	CUresult status = context_missing();

	if (stream && failed)
		*failed = FAILED_NONE;
	if (!stream || stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	if (status == CUDA_ERROR_INVALID_CONTEXT && stream != CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	return status ? status : capture_node(stream);
}

/* A batch is no node; the capture goes on without it. */
static CUresult batch_captured(CUstream stream)
{
	CUstreamCaptureStatus capture;

	if (!capture_any() || hand_cuStreamIsCapturing(stream, &capture) ||
		capture == CU_STREAM_CAPTURE_STATUS_NONE)
		return CUDA_SUCCESS;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* Of the places only a device is looked for. */
static bool place_valid(const CUmemLocation *place)
{
	switch (place->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: return place->id >= 0 && place->id < devices.count;
	case CU_MEM_LOCATION_TYPE_INVALID:
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return true;
	default: return false;
	}
}

static bool attribute_valid(const CUmemcpyAttributes *attr)
{
	return order_valid(attr->srcAccessOrder) && flags_valid(attr->flags) &&
	       place_valid(&attr->srcLocHint) && place_valid(&attr->dstLocHint);
}

/* Attributes k are those of the copies from indices[k] on. */
static bool attributes_valid(
	const CUmemcpyAttributes *attrs, const size_t *indices, size_t n, size_t count)
{
	if (!attrs || !indices || !n || n > count || indices[0])
		return false;
	for (size_t k = 0; k < n; k++)
		if (!attribute_valid(&attrs[k]) || indices[k] >= count ||
			(k && indices[k] <= indices[k - 1]))
			return false;
	return true;
}

/* Must the copy be awaited so that its source is not read after the call? Pageable memory never
 * is, and a capture reads nothing. */
static bool waits(CUmemcpySrcAccessOrder order, uint64_t src, size_t n, CUstream stream)
{
	CUstreamCaptureStatus capture;
	struct frame_bulk pinned;

	if (order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
		(copy_side_of(src) == SIDE_HOST &&
			!shim_pinned((const void *)(uintptr_t)src, n, &pinned)))
		return false;
	return !hand_cuStreamIsCapturing(stream, &capture) &&
	       capture == CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult copy_one(CUdeviceptr dst, CUdeviceptr src, size_t n,
	CUmemcpySrcAccessOrder order, CUstream stream)
{
	enum side from = copy_side_of(src);
	bool wait = waits(order, src, n, stream);
	CUresult status = copy_flat(copy_side_of(dst), dst, from, src, n, stream, !wait);

	/* Bytes of the app are taken by the call itself. */
	if (!status && wait && from == SIDE_DEVICE)
		status = hand_cuStreamSynchronize(stream);
	return status;
}

/* The copies one after the other; *FAILED is the first that cannot be. */
static CUresult copies(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
	size_t count, const CUmemcpyAttributes *attrs, const size_t *indices, size_t n,
	size_t *failed, CUstream stream)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0, k = 0; !status && i < count; i++) {
		if (k + 1 < n && indices[k + 1] == i)
			k++;
		status = sizes[i] ? copy_one(dsts[i], srcs[i], sizes[i],
					    attrs[k].srcAccessOrder, stream)
				  : CUDA_ERROR_INVALID_VALUE;
		if (status && failed)
			*failed = i;
	}
	return status;
}

CUresult copy_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
	size_t count, const CUmemcpyAttributes *attrs, const size_t *indices, size_t n,
	size_t *failed, CUstream stream)
{
	CUresult status = batch_begin(stream, failed);

	if (status)
		return status;
	if (!dsts || !srcs || !sizes || !count || !attributes_valid(attrs, indices, n, count))
		return CUDA_ERROR_INVALID_VALUE;
	status = batch_captured(stream);
	return status ? status
		      : copies(dsts, srcs, sizes, count, attrs, indices, n, failed, stream);
}

CUresult copy_with_attributes(CUdeviceptr dst, CUdeviceptr src, size_t n,
	const CUmemcpyAttributes *attr, CUstream stream)
{
	CUresult status = batch_begin(stream, NULL);
	size_t first = 0;

	if (status)
		return status;
	if (!attributes_valid(attr, &first, 1, 1))
		return CUDA_ERROR_INVALID_VALUE;
	return copies(&dst, &src, &n, 1, attr, &first, 1, NULL, stream);
}

/* ---- in three dimensions ---- */

/* Bytes of one element: of an array's, else 1. */
static CUresult element_bytes(const CUDA_MEMCPY3D_BATCH_OP *op, size_t *bytes)
{
	const CUmemcpy3DOperand *of =
		op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? &op->src : &op->dst;
	CUDA_ARRAY3D_DESCRIPTOR array;
	CUresult status;

	*bytes = 1;
	if (of->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_SUCCESS;
	status = cuArray3DGetDescriptor(&array, of->op.array.array);
	if (status)
		return status;
	switch (array.Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: *bytes = array.NumChannels; break;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: *bytes = 2 * (size_t)array.NumChannels; break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: *bytes = 4 * (size_t)array.NumChannels; break;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
	return CUDA_SUCCESS;
}

/* One side of a copy, as cuMemcpy3D describes it. */
struct place {
	CUmemorytype type;
	CUdeviceptr pointer;
	CUarray array;
	size_t pitch, height, x, y, z;
};

static bool place_read(const CUmemcpy3DOperand *from, const CUextent3D *extent, size_t element,
	struct place *to)
{
	if (from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		*to = (struct place){.type = CU_MEMORYTYPE_ARRAY,
			.array = from->op.array.array,
			.x = from->op.array.offset.x * element,
			.y = from->op.array.offset.y,
			.z = from->op.array.offset.z};
		return true;
	}
	if (from->type != CU_MEMCPY_OPERAND_TYPE_POINTER || !from->op.ptr.ptr ||
		(from->op.ptr.rowLength && from->op.ptr.rowLength < extent->width) ||
		(from->op.ptr.layerHeight && from->op.ptr.layerHeight < extent->height))
		return false;
	*to = (struct place){.type = CU_MEMORYTYPE_UNIFIED,
		.pointer = from->op.ptr.ptr,
		.height = from->op.ptr.layerHeight ? from->op.ptr.layerHeight : extent->height};
	return !__builtin_mul_overflow(
		from->op.ptr.rowLength ? from->op.ptr.rowLength : extent->width, element,
		&to->pitch);
}

static CUresult copy_one_3d(const CUDA_MEMCPY3D_BATCH_OP *op, CUstream stream)
{
	struct place src, dst;
	size_t element, width;
	bool wait;
	CUresult status = element_bytes(op, &element);

	if (status)
		return status;
	if (!place_read(&op->src, &op->extent, element, &src) ||
		!place_read(&op->dst, &op->extent, element, &dst) ||
		__builtin_mul_overflow(op->extent.width, element, &width))
		return CUDA_ERROR_INVALID_VALUE;

	CUDA_MEMCPY3D copy = {.srcMemoryType = src.type,
		.srcDevice = src.pointer,
		.srcArray = src.array,
		.srcPitch = src.pitch,
		.srcHeight = src.height,
		.srcXInBytes = src.x,
		.srcY = src.y,
		.srcZ = src.z,
		.dstMemoryType = dst.type,
		.dstDevice = dst.pointer,
		.dstArray = dst.array,
		.dstPitch = dst.pitch,
		.dstHeight = dst.height,
		.dstXInBytes = dst.x,
		.dstY = dst.y,
		.dstZ = dst.z,
		.WidthInBytes = width,
		.Height = op->extent.height,
		.Depth = op->extent.depth};

	/* The app's rows may be pinned in part: those are captured too. */
	wait = waits(op->srcAccessOrder, src.pointer, 1, stream);
	status = copy_3d(&copy, stream, !wait);
	if (!status && wait &&
		(src.type == CU_MEMORYTYPE_ARRAY || copy_side_of(src.pointer) == SIDE_DEVICE))
		status = hand_cuStreamSynchronize(stream);
	return status;
}

static bool operand_valid(const CUmemcpy3DOperand *operand)
{
	return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER ||
	       operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
}

static bool op_valid(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	return operand_valid(&op->src) && operand_valid(&op->dst) && op->extent.width &&
	       op->extent.height && op->extent.depth && order_valid(op->srcAccessOrder) &&
	       flags_valid(op->flags);
}

/* Whether the copies make sense in themselves; only of one that does not *FAILED tells. */
static CUresult ops_check(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed)
{
	for (size_t i = 0; i < count; i++) {
		if (op_valid(&ops[i]))
			continue;
		if (failed)
			*failed = i;
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult copy_batch_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream)
{
	CUresult status = batch_begin(stream, failed);

	if (status)
		return status;
	if (!count || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;
	status = ops_check(count, ops, failed);
	if (!status)
		status = batch_captured(stream);
	for (size_t i = 0; !status && i < count; i++)
		status = copy_one_3d(&ops[i], stream);
	return status;
}
