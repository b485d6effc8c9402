/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies by descriptor: each side is read into a place, a distance between rows and one between
 * slices; from there on it is a copy like any other.
 */
#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/copy.h"

/* One side of a descriptor: where its first byte is, and how rows and slices follow. */
static CUresult side_read(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
	size_t rows, size_t x, size_t y, size_t z, const struct shape *s, enum side *side,
	uint64_t *at, size_t *pitch_out, size_t *slice_out)
{
	size_t need, offset;

	if (type == CU_MEMORYTYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE &&
		type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(x, s->width, &need))
		return CUDA_ERROR_INVALID_VALUE;
	if (!pitch)
		pitch = need;
	if (pitch < need && (s->height > 1 || s->depth > 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (rows < y + s->height) {
		if (rows && s->depth > 1)
			return CUDA_ERROR_INVALID_VALUE;
		rows = y + s->height;
	}
	if (__builtin_mul_overflow(pitch, rows, slice_out) ||
		__builtin_mul_overflow(*slice_out, z, &offset))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(pitch, y, &need) ||
		__builtin_add_overflow(offset, need, &offset) ||
		__builtin_add_overflow(offset, x, &offset))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch_out = pitch;
	*at = type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
	if (!*at)
		return s->width && s->height && s->depth ? CUDA_ERROR_INVALID_VALUE
							 : CUDA_SUCCESS;
	*side = type == CU_MEMORYTYPE_HOST     ? SIDE_HOST
		: type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE
					       : copy_side_of(*at);
	*at += offset;
	return CUDA_SUCCESS;
}

CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
	struct shape s = {.depth = 1};
	CUresult status;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	s.width = p->WidthInBytes;
	s.height = p->Height;
	status = side_read(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch, 0,
		p->srcXInBytes, p->srcY, 0, &s, &s.src_side, &s.src, &s.src_pitch,
		&s.src_slice);
	if (!status)
		status = side_read(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch, 0,
			p->dstXInBytes, p->dstY, 0, &s, &s.dst_side, &s.dst, &s.dst_pitch,
			&s.dst_slice);
	return status ? status : copy_shape(&s, stream, async);
}

static CUresult shape_3d(const CUDA_MEMCPY3D *p, struct shape *s)
{
	CUresult status;

	if (!p || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	*s = (struct shape){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
	status = side_read(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch,
		p->srcHeight, p->srcXInBytes, p->srcY, p->srcZ, s, &s->src_side, &s->src,
		&s->src_pitch, &s->src_slice);
	if (!status)
		status = side_read(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch,
			p->dstHeight, p->dstXInBytes, p->dstY, p->dstZ, s, &s->dst_side,
			&s->dst, &s->dst_pitch, &s->dst_slice);
	return status;
}

CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
	struct shape s;
	CUresult status = shape_3d(p, &s);

	return status ? status : copy_shape(&s, stream, async);
}

CUresult copy_node(const CUDA_MEMCPY3D *copy, enum copy_way *way, struct graph_copy *inside,
	struct part_copy *app)
{
	struct shape s;
	CUresult status = shape_3d(copy, &s);

	if (status)
		return status;
	if (!s.width || !s.height || !s.depth || !s.src || !s.dst)
		return CUDA_ERROR_INVALID_VALUE;
	copy_tidy(&s);
	if ((s.dst_side == SIDE_DEVICE && !copy_side_ok(&s, s.dst, s.dst_pitch, s.dst_slice)) ||
		(s.src_side == SIDE_DEVICE &&
			!copy_side_ok(&s, s.src, s.src_pitch, s.src_slice)))
		return CUDA_ERROR_INVALID_VALUE;
	if (s.src_side == SIDE_HOST || s.dst_side == SIDE_HOST) {
		*way = s.dst_side == SIDE_DEVICE   ? COPY_WAY_IN
		       : s.src_side == SIDE_DEVICE ? COPY_WAY_OUT
						   : COPY_WAY_WITHIN;
		*app = copy_app(&s);
		return CUDA_SUCCESS;
	}
	*way = COPY_WAY_INSIDE;
	*inside = (struct graph_copy){.dst = s.dst,
		.dst_pitch = s.dst_pitch,
		.dst_slice = s.dst_slice,
		.src = s.src,
		.src_pitch = s.src_pitch,
		.src_slice = s.src_slice,
		.width = s.width,
		.height = s.height,
		.depth = s.depth};
	return CUDA_SUCCESS;
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async)
{
	CUDA_MEMCPY3D c;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	c = (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcLOD = p->srcLOD,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstLOD = p->dstLOD,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth};
	return copy_3d(&c, stream, async);
}
