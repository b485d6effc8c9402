/* SPDX-License-Identifier: Apache-2.0
 *
 * Memsets of one, two and three dimensions.  The runtime's are of bytes only; all become one of
 * the driver's two, and three dimensions one call per plane where planes have gaps between
 * them.
 */
#include "shim/runtime/copy.h"
#include "shim/runtime/forms.h"
#include "shim/runtime/runtime.h"

cudaError_t runtime_fill(void *devPtr, int value, size_t count, bool wait, cudaStream_t stream)
{
	CUdeviceptr at = (CUdeviceptr)devPtr;
	cudaError_t error = runtime_enter();

	if (unlikely(error) || !count)
		return error;
	return runtime_status(
		wait ? cuMemsetD8(at, (unsigned char)value, count)
		     : cuMemsetD8Async(at, (unsigned char)value, count, (CUstream)stream));
}

static cudaError_t fill_2d(CUdeviceptr at, size_t pitch, int value, size_t width, size_t height,
	bool wait, cudaStream_t stream)
{
	return runtime_status(
		wait ? cuMemsetD2D8(at, pitch, (unsigned char)value, width, height)
		     : cuMemsetD2D8Async(at, pitch, (unsigned char)value, width, height,
			       (CUstream)stream));
}

cudaError_t runtime_fill_2d(void *devPtr, size_t pitch, int value, size_t width, size_t height,
	bool wait, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	if (error || !width || !height)
		return error;
	if (width > pitch && height > 1)
		return copy_captured(stream) ?: cudaErrorInvalidValue;
	if (pitch < width)
		pitch = width;
	return fill_2d((CUdeviceptr)devPtr, pitch, value, width, height, wait, stream);
}

cudaError_t runtime_fill_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
	bool wait, cudaStream_t stream)
{
	CUdeviceptr at = (CUdeviceptr)to.ptr;
	size_t rows, plane, all;
	cudaError_t error = runtime_enter();

	if (error || !extent.width || !extent.height || !extent.depth)
		return error;
	if (extent.width > to.pitch || (extent.depth > 1 && extent.height > to.ysize) ||
		__builtin_mul_overflow(to.pitch, to.ysize, &plane) ||
		__builtin_mul_overflow(plane, extent.depth, &all) ||
		__builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudaErrorInvalidValue;

	if (extent.height == to.ysize || extent.depth == 1)
		return fill_2d(at, to.pitch, value, extent.width, rows, wait, stream);
	for (size_t z = 0; z < extent.depth && !error; z++)
		error = fill_2d(at + z * plane, to.pitch, value, extent.width, extent.height,
			wait, stream);
	return error;
}
