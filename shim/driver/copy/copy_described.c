/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies by descriptor: each side is read into a place, a distance between rows and one between
 * slices; from there on it is a copy like any other.
 */
#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/array/array.h"
#include "shim/driver/copy/copy.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/memory.h"

/* Whether a row may begin so far in that it ends in the next: in a pool's memory, of which
 * NVIDIA's driver knows no rows (an H200, driver 580). */
static bool rows_wrap(CUmemorytype type, CUdeviceptr device)
{
	struct memory_range range;

	return type != CU_MEMORYTYPE_HOST && memory_find(device, &range) && range.async;
}

/* One side of a descriptor: where its first byte is, and how rows and slices follow. */
static CUresult side_read(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
	size_t rows, size_t x, size_t y, size_t z, const struct shape *s,
	struct copy_place *place)
{
	size_t need, offset;

	if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE &&
		type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(x, s->width, &need))
		return CUDA_ERROR_INVALID_VALUE;
	if (!pitch)
		pitch = need;
	if (pitch < s->width || (pitch < need && !rows_wrap(type, device)))
		return CUDA_ERROR_INVALID_VALUE;
	if (rows < y + s->height) {
		if (rows && s->depth > 1)
			return CUDA_ERROR_INVALID_VALUE;
		rows = y + s->height;
	}
	if (__builtin_mul_overflow(pitch, rows, &place->slice) ||
		__builtin_mul_overflow(place->slice, z, &offset))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(pitch, y, &need) ||
		__builtin_add_overflow(offset, need, &offset) ||
		__builtin_add_overflow(offset, x, &offset))
		return CUDA_ERROR_INVALID_VALUE;
	place->pitch = pitch;
	place->at = type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
	if (!place->at)
		return s->width && s->height && s->depth ? CUDA_ERROR_INVALID_VALUE
							 : CUDA_SUCCESS;
	place->side = type == CU_MEMORYTYPE_HOST     ? SIDE_HOST
		      : type == CU_MEMORYTYPE_DEVICE ? SIDE_DEVICE
						     : copy_side_of(place->at);
	place->at += offset;
	place->before = offset;
	return CUDA_SUCCESS;
}

/* The same of an array: a place in it. */
static CUresult side_array(
	CUarray handle, size_t x, size_t y, size_t z, struct copy_place *place)
{
	*place = (struct copy_place){.side = SIDE_ARRAY,
		.array = array_find((uint64_t)(uintptr_t)handle, false),
		.at = x,
		.pitch = y,
		.slice = z};
	if (place->array)
		return CUDA_SUCCESS;
	return handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

/* HEIGHT rows from Y on, in a plane of so many; 0: nothing is said of its rows. */
static bool plane_holds(size_t plane, size_t y, size_t height)
{
	return !plane || (y <= plane && height <= plane - y);
}

static CUresult shape_3d(const CUDA_MEMCPY3D *p, struct shape *s)
{
	CUresult status;

	if (!p || p->srcLOD || p->dstLOD ||
		(p->srcMemoryType != CU_MEMORYTYPE_ARRAY &&
			!plane_holds(p->srcHeight, p->srcY, p->Height)) ||
		(p->dstMemoryType != CU_MEMORYTYPE_ARRAY &&
			!plane_holds(p->dstHeight, p->dstY, p->Height)))
		return CUDA_ERROR_INVALID_VALUE;
	*s = (struct shape){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
	if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		status = side_array(p->srcArray, p->srcXInBytes, p->srcY, p->srcZ, &s->src);
	else
		status = side_read(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch,
			p->srcHeight, p->srcXInBytes, p->srcY, p->srcZ, s, &s->src);
	if (status)
		return status;
	if (p->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		return side_array(p->dstArray, p->dstXInBytes, p->dstY, p->dstZ, &s->dst);
	return side_read(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch, p->dstHeight,
		p->dstXInBytes, p->dstY, p->dstZ, s, &s->dst);
}

CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async)
{
	CUDA_MEMCPY3D c;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	c = (CUDA_MEMCPY3D){.srcXInBytes = p->srcXInBytes,
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
		.Depth = 1};
	return copy_3d(&c, stream, async);
}

CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
	struct shape s;
	CUresult status = shape_3d(p, &s);

	/* A copy of nothing is never wrong. */
	if (status && p && !(p->WidthInBytes && p->Height && p->Depth))
		return CUDA_SUCCESS;
	if (status)
		return status;
	return copy_shape(&s, stream, async);
}

CUresult copy_node(const CUDA_MEMCPY3D *copy, bool stands, enum copy_way *way,
	struct graph_copy *inside, struct part_copy *app)
{
	struct shape s;
	CUresult status = shape_3d(copy, &s);

	if (status)
		return status;
	if (!s.width || !s.height || !s.depth || (!s.src.at && !s.src.array) ||
		(!s.dst.at && !s.dst.array))
		return CUDA_ERROR_INVALID_VALUE;
	if (stands)
		copy_tidy(&s);
	else
		(void)copy_mirrored(&s);
	if ((s.dst.side == SIDE_DEVICE && !copy_place_ok(&s, &s.dst)) ||
		(s.src.side == SIDE_DEVICE && !copy_place_ok(&s, &s.src)) ||
		!copy_arrays_ok(&s))
		return CUDA_ERROR_INVALID_VALUE;
	if (s.src.side == SIDE_HOST || s.dst.side == SIDE_HOST) {
		*way = s.dst.side != SIDE_HOST	 ? COPY_WAY_IN
		       : s.src.side != SIDE_HOST ? COPY_WAY_OUT
						 : COPY_WAY_WITHIN;
		*app = copy_app(&s);
		return CUDA_SUCCESS;
	}
	*way = COPY_WAY_INSIDE;
	*inside = copy_inside(&s);
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
		.Depth = p->Depth};
	return copy_3d(&c, stream, async);
}
