/* SPDX-License-Identifier: Apache-2.0
 *
 * The copy calls: each turns its arguments into a struct copy.  The functions without a stream
 * in their names take one here, so that the per-thread forms (per_thread.c) are the same code.
 */
#include "softgpu/driver/array.h"
#include "softgpu/driver/copy_calls.h"

static uint64_t address(const void *host)
{
	return (uintptr_t)host;
}

CUresult copy_htod(CUdeviceptr dst, const void *src, size_t size, CUstream stream, bool sync)
{
	return copy_linear(dst, COPY_DEVICE, address(src), COPY_HOST, size, stream, sync);
}

CUresult copy_dtoh(void *dst, CUdeviceptr src, size_t size, CUstream stream, bool sync)
{
	return copy_linear(address(dst), COPY_HOST, src, COPY_DEVICE, size, stream, sync);
}

CUresult copy_dtod(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream, bool sync)
{
	return copy_linear(dst, COPY_DEVICE, src, COPY_DEVICE, size, stream, sync);
}

CUresult copy_unified(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream, bool sync)
{
	return copy_linear(
		dst, soft_copy_side_of(dst), src, soft_copy_side_of(src), size, stream, sync);
}

/* Where a side of a 2-D or 3-D copy begins. */
static CUresult side(CUmemorytype type, const void *host, CUdeviceptr device, uint64_t *base,
	enum copy_side *which)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*base = address(host);
		*which = COPY_HOST;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*base = device;
		*which = COPY_DEVICE;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		*base = device;
		*which = soft_copy_side_of(device);
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Moves BASE to (x, y, z) within rows of PITCH bytes, ROWS of them a slice. */
static CUresult shift(
	uint64_t *base, size_t x, size_t y, size_t z, size_t pitch, size_t rows, size_t width)
{
	uint64_t row, offset;

	if (!*base || (pitch && (width > pitch || x > pitch - width)))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(z, rows, &row) || __builtin_add_overflow(row, y, &row) ||
		__builtin_mul_overflow(row, pitch, &offset) ||
		__builtin_add_overflow(offset, x, &offset) ||
		__builtin_add_overflow(*base, offset, base))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult soft_copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool sync)
{
	CUDA_MEMCPY3D whole;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	whole = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = 1,
	};
	return soft_copy_3d(&whole, stream, sync);
}

/* A side that is an array: its place, in the memory that it has. */
static CUresult side_array(const struct CUarray_st *array, size_t x, size_t y, size_t z,
	const struct copy *copy, uint64_t *base, size_t *pitch, size_t *rows,
	struct copy_sparse *sparse)
{
	if (!object_is(array, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (x > array->row || copy->width > array->row - x || y > array->rows ||
		copy->height > array->rows - y || z > array->depth ||
		copy->depth > array->depth - z)
		return CUDA_ERROR_INVALID_VALUE;
	*base = array->address + (z * array->rows + y) * array->row + x;
	*pitch = array->row;
	*rows = array->rows;
	if (array->sparse)
		*sparse = (struct copy_sparse){
			array->tiles, array->address, array->row, array->rows};
	return CUDA_SUCCESS;
}

/* A pitch of 0 means rows that follow one another. */
CUresult copy_read_3d(const CUDA_MEMCPY3D *p, struct copy *out)
{
	struct copy copy;
	bool some;
	CUresult ret;

	if (!p || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	copy = (struct copy){
		.src_pitch = p->srcPitch ? p->srcPitch : p->WidthInBytes + p->srcXInBytes,
		.dst_pitch = p->dstPitch ? p->dstPitch : p->WidthInBytes + p->dstXInBytes,
		.src_height = p->srcHeight ? p->srcHeight : p->Height,
		.dst_height = p->dstHeight ? p->dstHeight : p->Height,
		.src_side = COPY_DEVICE,
		.dst_side = COPY_DEVICE,
		.width = p->WidthInBytes,
		.height = p->Height,
		.depth = p->Depth,
	};
	some = copy.width && copy.height && copy.depth;
	if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY) {
		copy.src_array = p->srcArray;
		ret = side_array(p->srcArray, p->srcXInBytes, p->srcY, p->srcZ, &copy,
			&copy.src, &copy.src_pitch, &copy.src_height, &copy.src_sparse);
	} else {
		ret = side(
			p->srcMemoryType, p->srcHost, p->srcDevice, &copy.src, &copy.src_side);
		if (!ret && some)
			ret = shift(&copy.src, p->srcXInBytes, p->srcY, p->srcZ, copy.src_pitch,
				copy.src_height, copy.width);
	}
	if (!ret && p->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
		copy.dst_array = p->dstArray;
		ret = side_array(p->dstArray, p->dstXInBytes, p->dstY, p->dstZ, &copy,
			&copy.dst, &copy.dst_pitch, &copy.dst_height, &copy.dst_sparse);
	} else if (!ret) {
		ret = side(
			p->dstMemoryType, p->dstHost, p->dstDevice, &copy.dst, &copy.dst_side);
		if (!ret && some)
			ret = shift(&copy.dst, p->dstXInBytes, p->dstY, p->dstZ, copy.dst_pitch,
				copy.dst_height, copy.width);
	}
	*out = copy;
	return ret;
}

CUresult soft_copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool sync)
{
	struct copy copy;
	CUresult ret = copy_read_3d(p, &copy);

	return ret ? ret : copy_submit(&copy, stream, sync);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool sync)
{
	CUDA_MEMCPY3D whole;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	whole = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcLOD = p->srcLOD,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth,
	};
	return soft_copy_3d(&whole, stream, sync);
}

/* The calls without Async are in order with all that is queued in both contexts: it is waited
 * for before, and the copy after. */
static CUresult peers_drain(CUcontext dst, CUcontext src)
{
	if (!object_is(dst, OBJECT_CONTEXT) || !object_is(src, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	context_ref(dst);
	context_ref(src);
	queue_drain(dst, 0);
	queue_drain(src, 0);
	context_unref(dst);
	context_unref(src);
	return CUDA_SUCCESS;
}

CUresult copy_peer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
	CUcontext src_context, size_t size, CUstream stream)
{
	CUresult ret = peers_drain(dst_context, src_context);

	if (!ret)
		ret = copy_dtod(dst, src, size, stream, true);
	return ret ? ret : cuStreamSynchronize(stream);
}

CUresult copy_3d_peer_sync(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	CUresult ret;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	ret = peers_drain(p->dstContext, p->srcContext);
	if (!ret)
		ret = copy_3d_peer(p, stream, true);
	return ret ? ret : cuStreamSynchronize(stream);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy_unified(dst, src, ByteCount, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy_unified(dst, src, ByteCount, hStream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_htod(dstDevice, srcHost, ByteCount, NULL, true);
}

CUresult cuMemcpyHtoDAsync_v2(
	CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return copy_htod(dstDevice, srcHost, ByteCount, hStream, false);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_dtoh(dstHost, srcDevice, ByteCount, NULL, true);
}

CUresult cuMemcpyDtoHAsync_v2(
	void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_dtoh(dstHost, srcDevice, ByteCount, hStream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_dtod(dstDevice, srcDevice, ByteCount, NULL, true);
}

CUresult cuMemcpyDtoDAsync_v2(
	CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_dtod(dstDevice, srcDevice, ByteCount, hStream, false);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount)
{
	return copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, NULL);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	if (!object_is(dstContext, OBJECT_CONTEXT) || !object_is(srcContext, OBJECT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy_dtod(dstDevice, srcDevice, ByteCount, hStream, false);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	return soft_copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
	return soft_copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return soft_copy_2d(pCopy, hStream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return soft_copy_3d(pCopy, NULL, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return soft_copy_3d(pCopy, hStream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return copy_3d_peer_sync(pCopy, NULL);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return copy_3d_peer(pCopy, hStream, false);
}

/* A batch is its copies one after another; the attributes are hints about access order. */
static CUresult batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	const CUmemcpyAttributes *attrs, const size_t *attrsIdxs, size_t numAttrs,
	size_t *failed, CUstream stream)
{
	CUresult ret = CUDA_SUCCESS;

	if (failed)
		*failed = SIZE_MAX;
	if (!dsts || !srcs || !sizes || !count || !attrs || !attrsIdxs || !numAttrs ||
		numAttrs > count || attrsIdxs[0] != 0 || stream == NULL ||
		stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	work_call_begin();
	for (size_t i = 0; i < count && !ret; i++) {
		ret = copy_unified(dsts[i], srcs[i], sizes[i], stream, false);
		if (ret && failed)
			*failed = i;
	}
	work_call_end();
	return ret;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
	CUstream hStream)
{
	return batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes,
	size_t count, CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
	CUstream hStream)
{
	return batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, hStream);
}

/* One side of a batched 3-D copy: row length and height are in bytes and rows, 0 for tight. */
static CUresult operand(const CUmemcpy3DOperand *from, const CUextent3D *extent, uint64_t *base,
	enum copy_side *which, size_t *pitch, size_t *rows)
{
	if (from->type != CU_MEMCPY_OPERAND_TYPE_POINTER)
		return from->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? CUDA_ERROR_NOT_SUPPORTED
								  : CUDA_ERROR_INVALID_VALUE;
	*base = from->op.ptr.ptr;
	*which = soft_copy_side_of(*base);
	*pitch = from->op.ptr.rowLength ? from->op.ptr.rowLength : extent->width;
	*rows = from->op.ptr.layerHeight ? from->op.ptr.layerHeight : extent->height;
	return CUDA_SUCCESS;
}

static CUresult batch_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
	unsigned long long flags, CUstream stream)
{
	CUresult ret = CUDA_SUCCESS;

	if (failed)
		*failed = SIZE_MAX;
	if (!count || !ops || flags || stream == NULL || stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	work_call_begin();
	for (size_t i = 0; i < count && !ret; i++) {
		const CUDA_MEMCPY3D_BATCH_OP *op = &ops[i];
		struct copy copy = {.width = op->extent.width,
			.height = op->extent.height,
			.depth = op->extent.depth};

		ret = operand(&op->src, &op->extent, &copy.src, &copy.src_side, &copy.src_pitch,
			&copy.src_height);
		if (!ret)
			ret = operand(&op->dst, &op->extent, &copy.dst, &copy.dst_side,
				&copy.dst_pitch, &copy.dst_height);
		if (!ret)
			ret = copy_submit(&copy, stream, false);
		if (ret && failed)
			*failed = i;
	}
	work_call_end();
	return ret;
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
	unsigned long long flags, CUstream hStream)
{
	return batch_3d(numOps, opList, failIdx, flags, hStream);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList,
	unsigned long long flags, CUstream hStream)
{
	return batch_3d(numOps, opList, NULL, flags, hStream);
}
