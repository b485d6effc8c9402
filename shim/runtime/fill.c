/* SPDX-License-Identifier: Apache-2.0
 *
 * Memsets of one, two and three dimensions.  The runtime's are of bytes only; all become one of
 * the driver's two, and three dimensions one call per plane where planes have gaps between
 * them.
 */
#include "shim/runtime/runtime.h"

static cudaError_t fill_1d(
	void *devPtr, int value, size_t count, bool wait, cudaStream_t stream)
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

static cudaError_t fill_rows(void *devPtr, size_t pitch, int value, size_t width, size_t height,
	bool wait, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	if (error || !width || !height)
		return error;
	if (width > pitch && height > 1)
		return cudaErrorInvalidValue;
	if (pitch < width)
		pitch = width;
	return fill_2d((CUdeviceptr)devPtr, pitch, value, width, height, wait, stream);
}

static cudaError_t fill_3d(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
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

/* The waiting forms take the driver's waiting forms, except in the thread's own stream: those
 * exist only under other names and a memset of device memory does not wait anyway. */
static bool waits(cudaStream_t null_stream)
{
	return null_stream != cudaStreamPerThread;
}

cudaError_t hand_cudaMemset(void *devPtr, int value, size_t count, cudaStream_t null_stream)
{
	return fill_1d(devPtr, value, count, waits(null_stream), null_stream);
}

cudaError_t hand_cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
	return fill_1d(devPtr, value, count, false, stream);
}

cudaError_t hand_cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width,
	size_t height, cudaStream_t null_stream)
{
	return fill_rows(devPtr, pitch, value, width, height, waits(null_stream), null_stream);
}

cudaError_t hand_cudaMemset2DAsync(
	void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
	return fill_rows(devPtr, pitch, value, width, height, false, stream);
}

cudaError_t hand_cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
	struct cudaExtent extent, cudaStream_t null_stream)
{
	return fill_3d(pitchedDevPtr, value, extent, waits(null_stream), null_stream);
}

cudaError_t hand_cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
	struct cudaExtent extent, cudaStream_t stream)
{
	return fill_3d(pitchedDevPtr, value, extent, false, stream);
}
