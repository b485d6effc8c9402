/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies with arrays.  Places in an array are bytes and rows in the two-dimensional forms, and
 * elements in cudaMemcpy3D's; the forms without a height (CUDA's oldest) take bytes that go on
 * from row to row.
 */
#include <string.h>

#include "shim/runtime/array.h"
#include "shim/runtime/copy.h"

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *copy);

/* ---- one side ---- */

/* A side of a copy of bytes: an array, or memory of a type. */
struct end {
	CUarray array;
	CUmemorytype type;
	void *memory;
	size_t x, y; /* in the array: bytes, rows */
	size_t row;  /* bytes of one of its rows */
	size_t rows;
	size_t pitch;
};

static cudaError_t end_array(struct end *end, cudaArray_const_t array, size_t x, size_t y)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	cudaError_t error = runtime_status(cuArray3DGetDescriptor(&desc, array_driver(array)));

	*end = (struct end){
		.array = array_driver(array), .type = CU_MEMORYTYPE_ARRAY, .x = x, .y = y};
	if (error)
		return error;
	end->row = desc.Width * array_element_bytes(desc.Format, desc.NumChannels);
	end->rows = desc.Height ? desc.Height : 1;
	return cudaSuccess;
}

/* KIND: of the copy; FROM: it is the source. */
static cudaError_t end_memory(
	struct end *end, const void *at, size_t pitch, enum cudaMemcpyKind kind, bool from)
{
	*end = (struct end){.memory = (void *)(uintptr_t)at, .pitch = pitch};
	switch (kind) {
	case cudaMemcpyHostToDevice: end->type = CU_MEMORYTYPE_HOST; break;
	case cudaMemcpyDeviceToHost: end->type = CU_MEMORYTYPE_HOST; break;
	case cudaMemcpyDeviceToDevice: end->type = CU_MEMORYTYPE_DEVICE; break;
	case cudaMemcpyDefault: end->type = CU_MEMORYTYPE_UNIFIED; break;
	default: return cudaErrorInvalidMemcpyDirection;
	}
	/* The array is the device's side. */
	if (kind == (from ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice))
		return cudaErrorInvalidMemcpyDirection;
	return cudaSuccess;
}

static cudaError_t end_copy(const struct end *dst, const struct end *src, size_t width,
	size_t height, bool async, cudaStream_t stream)
{
	CUDA_MEMCPY2D copy;

	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = src->type;
	copy.srcArray = src->array;
	copy.srcHost = src->memory;
	copy.srcDevice = (CUdeviceptr)src->memory;
	copy.srcPitch = src->pitch;
	copy.srcXInBytes = src->x;
	copy.srcY = src->y;
	copy.dstMemoryType = dst->type;
	copy.dstArray = dst->array;
	copy.dstHost = dst->memory;
	copy.dstDevice = (CUdeviceptr)dst->memory;
	copy.dstPitch = dst->pitch;
	copy.dstXInBytes = dst->x;
	copy.dstY = dst->y;
	copy.WidthInBytes = width;
	copy.Height = height;
	if (async)
		return runtime_status(cuMemcpy2DAsync(&copy, (CUstream)stream));
	return runtime_status(stream == cudaStreamPerThread ? cuMemcpy2DUnaligned_v2_ptds(&copy)
							    : cuMemcpy2DUnaligned(&copy));
}

/* ---- rectangles ---- */

static cudaError_t rectangle_to(cudaArray_t dst, size_t x, size_t y, const void *src,
	size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind, bool async,
	cudaStream_t stream)
{
	struct end to, from;
	cudaError_t error = runtime_enter();

	if (error || !width || !height)
		return error;
	if (height > 1 && width > spitch)
		return cudaErrorInvalidPitchValue;
	error = end_memory(&from, src, spitch, kind, true);
	if (!error)
		error = end_array(&to, dst, x, y);
	return error ? error : end_copy(&to, &from, width, height, async, stream);
}

static cudaError_t rectangle_from(void *dst, size_t dpitch, cudaArray_const_t src, size_t x,
	size_t y, size_t width, size_t height, enum cudaMemcpyKind kind, bool async,
	cudaStream_t stream)
{
	struct end to, from;
	cudaError_t error = runtime_enter();

	if (error || !width || !height)
		return error;
	if (height > 1 && width > dpitch)
		return cudaErrorInvalidPitchValue;
	error = end_memory(&to, dst, dpitch, kind, false);
	if (!error)
		error = end_array(&from, src, x, y);
	return error ? error : end_copy(&to, &from, width, height, async, stream);
}

cudaError_t hand_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t null_stream)
{
	return rectangle_to(
		dst, wOffset, hOffset, src, spitch, width, height, kind, false, null_stream);
}

cudaError_t hand_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t stream)
{
	return rectangle_to(
		dst, wOffset, hOffset, src, spitch, width, height, kind, true, stream);
}

cudaError_t hand_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
	size_t wOffset, size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t null_stream)
{
	return rectangle_from(
		dst, dpitch, src, wOffset, hOffset, width, height, kind, false, null_stream);
}

cudaError_t hand_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
	size_t wOffset, size_t hOffset, size_t width, size_t height, enum cudaMemcpyKind kind,
	cudaStream_t stream)
{
	return rectangle_from(
		dst, dpitch, src, wOffset, hOffset, width, height, kind, true, stream);
}

/* Both sides of a copy between arrays. */
static cudaError_t both_arrays(struct end *to, cudaArray_t dst, size_t dst_x, size_t dst_y,
	struct end *from, cudaArray_const_t src, size_t src_x, size_t src_y,
	enum cudaMemcpyKind kind)
{
	cudaError_t error;

	if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	error = end_array(from, src, src_x, src_y);
	if (error)
		return error;
	if (dst)
		return end_array(to, dst, dst_x, dst_y);
	/* As natively, only the driver minds that there is no array to copy to. */
	*to = (struct end){.type = CU_MEMORYTYPE_ARRAY, .x = dst_x, .y = dst_y};
	return cudaSuccess;
}

cudaError_t hand_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t width,
	size_t height, enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	struct end to, from;
	cudaError_t error = runtime_enter();

	if (error || !width || !height)
		return error;
	error = both_arrays(
		&to, dst, wOffsetDst, hOffsetDst, &from, src, wOffsetSrc, hOffsetSrc, kind);
	return error ? error : end_copy(&to, &from, width, height, false, null_stream);
}

/* ---- bytes that go on from row to row ---- */

/* How many of COUNT bytes lie in the row that the end is in. */
static size_t end_rest(const struct end *end, size_t count)
{
	size_t rest = end->array ? end->row - end->x % end->row : count;

	return count < rest ? count : rest;
}

static void end_move(struct end *end, size_t bytes)
{
	if (end->array) {
		end->y += (end->x + bytes) / end->row;
		end->x = (end->x + bytes) % end->row;
	} else {
		end->memory = (char *)end->memory + bytes;
	}
}

static cudaError_t bytes_copy(
	struct end *dst, struct end *src, size_t count, bool async, cudaStream_t stream)
{
	cudaError_t error = cudaSuccess;

	while (count && !error) {
		size_t width = end_rest(dst, count), other = end_rest(src, count), height = 1;

		width = width < other ? width : other;
		if ((!dst->array || dst->row == width) && (!src->array || src->row == width))
			height = count / width;
		if (!dst->array)
			dst->pitch = width;
		if (!src->array)
			src->pitch = width;
		error = end_copy(dst, src, width, height, async, stream);
		end_move(dst, width * height);
		end_move(src, width * height);
		count -= width * height;
	}
	return error;
}

/* ERROR: what is wrong with the two ends. */
static cudaError_t bytes_checked(cudaError_t error, struct end *dst, struct end *src,
	size_t count, bool async, cudaStream_t stream)
{
	if (error)
		return error;
	if ((dst->array && dst->x > dst->row) || (src->array && src->x > src->row))
		return copy_captured(stream) ?: cudaErrorInvalidValue;
	/* An offset at the end of its row is in the next one. */
	end_move(dst, 0);
	end_move(src, 0);
	return bytes_copy(dst, src, count, async, stream);
}

static cudaError_t bytes_to(cudaArray_t dst, size_t x, size_t y, const void *src, size_t count,
	enum cudaMemcpyKind kind, bool async, cudaStream_t stream)
{
	struct end to, from;
	cudaError_t error = runtime_enter();

	/* A direction that there is not moves nothing, and nobody minds. */
	if (error || !count || (unsigned)kind > cudaMemcpyDefault)
		return error;
	error = end_memory(&from, src, 0, kind, true);
	if (!error)
		error = end_array(&to, dst, x, y);
	return bytes_checked(error, &to, &from, count, async, stream);
}

static cudaError_t bytes_from(void *dst, cudaArray_const_t src, size_t x, size_t y,
	size_t count, enum cudaMemcpyKind kind, bool async, cudaStream_t stream)
{
	struct end to, from;
	cudaError_t error = runtime_enter();

	/* A direction that there is not moves nothing, and nobody minds. */
	if (error || !count || (unsigned)kind > cudaMemcpyDefault)
		return error;
	error = end_memory(&to, dst, 0, kind, false);
	if (!error)
		error = end_array(&from, src, x, y);
	return bytes_checked(error, &to, &from, count, async, stream);
}

cudaError_t hand_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	return bytes_to(dst, wOffset, hOffset, src, count, kind, false, null_stream);
}

cudaError_t hand_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
	const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return bytes_to(dst, wOffset, hOffset, src, count, kind, true, stream);
}

cudaError_t hand_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset,
	size_t hOffset, size_t count, enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	return bytes_from(dst, src, wOffset, hOffset, count, kind, false, null_stream);
}

cudaError_t hand_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset,
	size_t hOffset, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return bytes_from(dst, src, wOffset, hOffset, count, kind, true, stream);
}

/* Has the array that many bytes from its end on? */
static bool end_holds(const struct end *end, size_t count)
{
	size_t bytes, from, to;

	return !__builtin_mul_overflow(end->row, end->rows, &bytes) &&
	       !__builtin_mul_overflow(end->row, end->y, &from) &&
	       !__builtin_add_overflow(from, end->x, &from) &&
	       !__builtin_add_overflow(from, count, &to) && to <= bytes;
}

cudaError_t hand_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
	cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc, size_t count,
	enum cudaMemcpyKind kind, cudaStream_t null_stream)
{
	struct end to, from;
	cudaError_t error = runtime_enter();

	if (error || !count)
		return error;
	if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	error = end_array(&from, src, wOffsetSrc, hOffsetSrc);
	/* No node can be made of it: what a capture forbids comes before the places, as
	 * natively. Freeing nothing asks whether unsafe calls are forbidden. */
	if (!error)
		error = runtime_status(cuMemFree(0)) ?: copy_captured(null_stream);
	/* As natively, before it is seen whether there is an array to copy to. */
	if (!error && !end_holds(&from, count))
		error = cudaErrorInvalidValue;
	if (!error)
		error = end_array(&to, dst, wOffsetDst, hOffsetDst);
	return bytes_checked(error, &to, &from, count, false, null_stream);
}

/* ---- boxes ---- */

static cudaError_t array_unit(cudaArray_t array, size_t *bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	cudaError_t error = runtime_status(cuArray3DGetDescriptor(&desc, array_driver(array)));

	if (!error)
		*bytes = array_element_bytes(desc.Format, desc.NumChannels);
	return error || *bytes ? error : cudaErrorInvalidValue;
}

/* Memory of the box: its type by the kind, its place in bytes. */
/* As NVIDIA's runtime: a pitch is held against elements. The driver looks at the bytes. */
static cudaError_t box_memory(const struct cudaPitchedPtr *memory, const struct cudaPos *at,
	const struct cudaExtent *extent)
{
	if (!copy_row_fits(memory, at, extent))
		return cudaErrorInvalidPitchValue;
	return memory->ptr ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t array_parms(CUDA_MEMCPY3D *copy, const struct cudaMemcpy3DParms *p)
{
	size_t unit = 1, from = 1, to = 1;
	cudaError_t error = cudaSuccess;

	memset(copy, 0, sizeof(*copy));
	if ((p->srcArray && p->srcPtr.ptr) || (p->dstArray && p->dstPtr.ptr))
		return cudaErrorInvalidValue;
	if ((unsigned)p->kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	/* NVIDIA's runtime holds the direction against a source alone. */
	if (p->extent.width && p->extent.height && p->extent.depth && p->srcArray &&
		copy_source_type(p->kind) == CU_MEMORYTYPE_HOST)
		return cudaErrorInvalidValue;
	if (p->srcArray)
		error = array_unit(p->srcArray, &from);
	if (!error && p->dstArray)
		error = array_unit(p->dstArray, &to);
	if (error)
		return error;
	/* Nothing is copied between whatever arrays, from and to anywhere. */
	if (!p->extent.width || !p->extent.height || !p->extent.depth)
		return cudaSuccess;
	/* The box counts elements of the array. */
	unit = p->srcArray ? from : to;
	if (p->srcArray && p->dstArray && from != to)
		return cudaErrorInvalidValue;
	if (__builtin_mul_overflow(p->extent.width, unit, &copy->WidthInBytes) ||
		p->srcPos.x > SIZE_MAX / from || p->dstPos.x > SIZE_MAX / to)
		return cudaErrorInvalidValue;
	if (!p->srcArray)
		error = box_memory(&p->srcPtr, &p->srcPos, &p->extent);
	if (!error && !p->dstArray)
		error = box_memory(&p->dstPtr, &p->dstPos, &p->extent);
	if (error)
		return error;
	copy_from_end(copy, p->srcArray ? CU_MEMORYTYPE_ARRAY : copy_source_type(p->kind),
		&p->srcPtr, &p->srcPos);
	copy_to_end(copy, p->dstArray ? CU_MEMORYTYPE_ARRAY : copy_target_type(p->kind),
		&p->dstPtr, &p->dstPos);
	copy->srcArray = array_driver(p->srcArray);
	copy->dstArray = array_driver(p->dstArray);
	copy->srcXInBytes *= from;
	copy->dstXInBytes *= to;
	copy->Height = p->extent.height;
	copy->Depth = p->extent.width && p->extent.height ? p->extent.depth : 0;
	return cudaSuccess;
}

cudaError_t array_parms_back(struct cudaMemcpy3DParms *p, const CUDA_MEMCPY3D *copy)
{
	cudaError_t error = cudaSuccess;
	size_t unit = 1;

	if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY) {
		p->srcArray = (cudaArray_t)(uintptr_t)copy->srcArray;
		p->srcPtr = (struct cudaPitchedPtr){0};
		error = array_unit(p->srcArray, &unit);
		p->srcPos.x /= error ? 1 : unit;
	}
	if (!error && copy->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
		p->dstArray = (cudaArray_t)(uintptr_t)copy->dstArray;
		p->dstPtr = (struct cudaPitchedPtr){0};
		error = array_unit(p->dstArray, &unit);
		p->dstPos.x /= error ? 1 : unit;
	}
	p->extent.width /= error ? 1 : unit;
	return error;
}
