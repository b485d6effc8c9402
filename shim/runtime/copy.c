/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of every shape between pointers.  The kind says which of the driver's functions moves
 * the bytes; cudaMemcpyDefault leaves that to the driver (unified addresses).  A copy that
 * waits takes the default stream it belongs to as null_stream: the legacy one or the thread's
 * own.
 */
#include "shim/runtime/array.h"
#include "shim/runtime/forms.h"
#include "shim/generated/cuda_calls.h"
#include "shim/runtime/copy.h"

#include <string.h>

/* The per-thread forms; cuda.h names them by macro only. */
CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *copy);

cudaError_t runtime_copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
	cudaStream_t null_stream)
{
	bool own = null_stream == cudaStreamPerThread;
	CUdeviceptr to = (CUdeviceptr)dst, from = (CUdeviceptr)src;
	CUresult status;
	cudaError_t error = runtime_enter();

	if (unlikely(error))
		return error;
	if (!count)
		return cudaSuccess;
	if (unlikely((unsigned)kind > cudaMemcpyDefault))
		return cudaErrorInvalidMemcpyDirection;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		status = own ? cuMemcpyHtoD_v2_ptds(to, src, count)
			     : cuMemcpyHtoD(to, src, count);
		break;
	case cudaMemcpyDeviceToHost:
		status = own ? cuMemcpyDtoH_v2_ptds(dst, from, count)
			     : cuMemcpyDtoH(dst, from, count);
		break;
	case cudaMemcpyDeviceToDevice:
		status = own ? cuMemcpyDtoD_v2_ptds(to, from, count)
			     : cuMemcpyDtoD(to, from, count);
		break;
	default:
		status = own ? cuMemcpy_ptds(to, from, count) : cuMemcpy(to, from, count);
		break;
	}
	return runtime_status(status);
}

cudaError_t runtime_copy_async(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUdeviceptr to = (CUdeviceptr)dst, from = (CUdeviceptr)src;
	CUstream in = (CUstream)stream;
	CUresult status;
	cudaError_t error = runtime_enter();

	if (unlikely(error))
		return error;
	if (!count)
		return cudaSuccess;
	if (unlikely((unsigned)kind > cudaMemcpyDefault))
		return cudaErrorInvalidMemcpyDirection;
	switch (kind) {
	case cudaMemcpyHostToDevice: status = cuMemcpyHtoDAsync(to, src, count, in); break;
	case cudaMemcpyDeviceToHost: status = cuMemcpyDtoHAsync(dst, from, count, in); break;
	case cudaMemcpyDeviceToDevice: status = cuMemcpyDtoDAsync(to, from, count, in); break;
	default: status = cuMemcpyAsync(to, from, count, in); break;
	}
	return runtime_status(status);
}

#if CUDART_VERSION >= 13000
cudaError_t runtime_copy_with_attributes(void *dst, const void *src, size_t size,
	struct cudaMemcpyAttributes *attr, cudaStream_t stream)
{
	size_t first = 0;

	return RUNTIME_DRIVER(cuMemcpyBatchAsync_v2((CUdeviceptr *)&dst, (CUdeviceptr *)&src,
		&size, 1, (CUmemcpyAttributes *)attr, &first, 1, (CUstream)stream));
}

cudaError_t runtime_copy_3d_with_attributes(
	struct cudaMemcpy3DBatchOp *op, unsigned long long flags, cudaStream_t stream)
{
	return RUNTIME_DRIVER(cuMemcpy3DBatchAsync_v2(
		1, (CUDA_MEMCPY3D_BATCH_OP *)op, flags, (CUstream)stream));
}
#endif

/* ---- Between devices ---- */

static cudaError_t peers(int dstDevice, int srcDevice, CUcontext *dst, CUcontext *src)
{
	cudaError_t error = runtime_enter();

	if (!error)
		error = runtime_primary(dstDevice, dst);
	return error ? error : runtime_primary(srcDevice, src);
}

cudaError_t hand_cudaMemcpyPeer(
	void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
	CUcontext to, from;
	cudaError_t error = count ? peers(dstDevice, srcDevice, &to, &from) : runtime_enter();

	if (error || !count)
		return error;
	return runtime_status(
		cuMemcpyPeer((CUdeviceptr)dst, to, (CUdeviceptr)src, from, count));
}

cudaError_t hand_cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice,
	size_t count, cudaStream_t stream)
{
	CUcontext to, from;
	cudaError_t error = count ? peers(dstDevice, srcDevice, &to, &from) : runtime_enter();

	if (error || !count)
		return error;
	return runtime_status(cuMemcpyPeerAsync(
		(CUdeviceptr)dst, to, (CUdeviceptr)src, from, count, (CUstream)stream));
}

/* ---- Two dimensions ---- */

/* cudaSuccess with copy->Height 0: nothing to do. */
static cudaError_t shape_2d(CUDA_MEMCPY2D *copy, void *dst, size_t dpitch, const void *src,
	size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	cudaError_t error = runtime_enter();

	memset(copy, 0, sizeof(*copy));
	if (error)
		return error;
	if (!width || !height)
		return cudaSuccess;
	/* Of a single row nobody asks how far the next one is. */
	if (height > 1 && (width > dpitch || width > spitch))
		return cudaErrorInvalidPitchValue;
	if ((unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;

	copy->srcMemoryType = copy_source_type(kind);
	copy->srcHost = src;
	copy->srcDevice = (CUdeviceptr)src;
	copy->srcPitch = spitch;
	copy->dstMemoryType = copy_target_type(kind);
	copy->dstHost = dst;
	copy->dstDevice = (CUdeviceptr)dst;
	copy->dstPitch = dpitch;
	copy->WidthInBytes = width;
	copy->Height = height;
	return cudaSuccess;
}

cudaError_t hand_cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	CUDA_MEMCPY2D copy;
	cudaError_t error = shape_2d(&copy, dst, dpitch, src, spitch, width, height, kind);

	if (error || !copy.Height)
		return error;
	return runtime_status(null_stream == cudaStreamPerThread
				      ? cuMemcpy2DUnaligned_v2_ptds(&copy)
				      : cuMemcpy2DUnaligned(&copy));
}

cudaError_t hand_cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch,
	size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	CUDA_MEMCPY2D copy;
	cudaError_t error = shape_2d(&copy, dst, dpitch, src, spitch, width, height, kind);

	if (error || !copy.Height)
		return error;
	return runtime_status(cuMemcpy2DAsync(&copy, (CUstream)stream));
}

/* ---- Three dimensions ---- */

/* One end must fit in its height, where there are several planes. */
static bool plane_fits(const struct cudaPitchedPtr *end, const struct cudaPos *at,
	const struct cudaExtent *extent)
{
	size_t y;

	return !__builtin_add_overflow(at->y, extent->height, &y) &&
	       (extent->depth <= 1 || y <= end->ysize);
}

/* The height of a plane, which a box in a single one need not fit into. */
static size_t rows_told(const struct cudaPitchedPtr *end, const struct cudaPos *at,
	const struct cudaExtent *extent)
{
	return extent->depth > 1 || at->y + extent->height <= end->ysize ? end->ysize : 0;
}

/* cudaSuccess with copy->Depth 0: nothing to do. */
static cudaError_t shape_3d(CUDA_MEMCPY3D *copy, const struct cudaPitchedPtr *dst,
	const struct cudaPos *dstPos, const struct cudaPitchedPtr *src,
	const struct cudaPos *srcPos, const struct cudaExtent *extent, enum cudaMemcpyKind kind)
{
	const struct cudaPos begin = {0};

	memset(copy, 0, sizeof(*copy));
	if ((unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!extent->width || !extent->height || !extent->depth)
		return cudaSuccess;
	if (!copy_row_fits(dst, &begin, extent) || !copy_row_fits(src, &begin, extent))
		return cudaErrorInvalidPitchValue;
	if (!dst->ptr || !src->ptr || !copy_row_fits(dst, dstPos, extent) ||
		!copy_row_fits(src, srcPos, extent))
		return cudaErrorInvalidValue;
	if (!plane_fits(dst, dstPos, extent) || !plane_fits(src, srcPos, extent))
		return cudaErrorInvalidPitchValue;

	copy_from_end(copy, copy_source_type(kind), src, srcPos);
	copy_to_end(copy, copy_target_type(kind), dst, dstPos);
	copy->srcHeight = rows_told(src, srcPos, extent);
	copy->dstHeight = rows_told(dst, dstPos, extent);
	copy->WidthInBytes = extent->width;
	copy->Height = extent->height;
	copy->Depth = extent->depth;
	return cudaSuccess;
}

cudaError_t copy_parms(CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DParms *p)
{
	cudaError_t error = runtime_enter();

	if (error)
		return error;
	if (!p)
		return cudaErrorInvalidValue;
	if (p->srcArray || p->dstArray)
		return array_parms(copy, p);
	return shape_3d(
		copy, &p->dstPtr, &p->dstPos, &p->srcPtr, &p->srcPos, &p->extent, p->kind);
}

cudaError_t copy_row(
	CUDA_MEMCPY3D *copy, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms p = {
		.srcPtr = {.ptr = (void *)(uintptr_t)src},
		.dstPtr = {.ptr = dst},
		.extent = {.width = count, .height = 1, .depth = 1},
		.kind = kind,
	};

	if (count && (unsigned)kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (dst && src && count)
		return copy_parms(copy, &p);
	return runtime_enter() ?: cudaErrorInvalidValue;
}

/* Addresses are unified: the driver finds the devices. */
static cudaError_t shape_peer(CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DPeerParms *p)
{
	CUcontext to, from;
	cudaError_t error;

	if (!p)
		return cudaErrorInvalidValue;
	error = peers(p->dstDevice, p->srcDevice, &to, &from);
	if (error)
		return error;
	if (p->srcArray || p->dstArray)
		return array_parms(copy, &(struct cudaMemcpy3DParms){.srcArray = p->srcArray,
						 .srcPos = p->srcPos,
						 .srcPtr = p->srcPtr,
						 .dstArray = p->dstArray,
						 .dstPos = p->dstPos,
						 .dstPtr = p->dstPtr,
						 .extent = p->extent,
						 .kind = cudaMemcpyDefault});
	return shape_3d(copy, &p->dstPtr, &p->dstPos, &p->srcPtr, &p->srcPos, &p->extent,
		cudaMemcpyDefault);
}

/* A copy of nothing asks its stream all the same. */
static cudaError_t box_parms(
	CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	if (!error && p && !(p->extent.width && p->extent.height && p->extent.depth))
		error = copy_captured(stream);
	return error ? error : copy_parms(copy, p);
}

static cudaError_t copy_3d(const CUDA_MEMCPY3D *copy, cudaStream_t null_stream)
{
	if (!copy->Depth)
		return cudaSuccess;
	return runtime_status(null_stream == cudaStreamPerThread ? cuMemcpy3D_v2_ptds(copy)
								 : cuMemcpy3D(copy));
}

cudaError_t hand_cudaMemcpy3D(const struct cudaMemcpy3DParms *p, cudaStream_t null_stream)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = box_parms(&copy, p, null_stream);

	return error ? error : copy_3d(&copy, null_stream);
}

cudaError_t hand_cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = box_parms(&copy, p, stream);

	if (error || !copy.Depth)
		return error;
	return runtime_status(cuMemcpy3DAsync(&copy, (CUstream)stream));
}

cudaError_t hand_cudaMemcpy3DPeer(
	const struct cudaMemcpy3DPeerParms *p, cudaStream_t null_stream)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = shape_peer(&copy, p);

	if (error || copy.Depth)
		return error ? error : copy_3d(&copy, null_stream);
	return copy_captured(null_stream);
}

cudaError_t hand_cudaMemcpy3DPeerAsync(
	const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	CUDA_MEMCPY3D copy;
	CUDA_MEMCPY3D_PEER peer; /* its contexts lie where the other has nothing */
	cudaError_t error = shape_peer(&copy, p);

	_Static_assert(sizeof(peer) == sizeof(copy), "layout of a copy between devices");
	if (error)
		return error;
	memcpy(&peer, &copy, sizeof(peer));
	return runtime_status(cuMemcpy3DPeerAsync(&peer, (CUstream)stream));
}
