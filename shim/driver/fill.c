/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills: all of them are posts, also those that CUDA calls synchronous, since they are
 * asynchronous to the host there too.
 */
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/memory.h"

/* HEIGHT rows of WIDTH elements, PITCH bytes apart. */
static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, CUstream stream)
{
	struct shim_call call;
	struct wire_vcudaFill *body;
	size_t row, extent;

	if (!width || !height)
		return CUDA_SUCCESS;
	if (height == 1)
		pitch = 0;
	if (dst % element || pitch % element || __builtin_mul_overflow(width, element, &row) ||
		(height > 1 && pitch < row) ||
		__builtin_mul_overflow(height - 1, pitch, &extent) ||
		__builtin_add_overflow(extent, row, &extent) || !memory_inside(dst, extent))
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_vcudaFill, sizeof(*body));
	body->dst = dst;
	body->pitch = pitch;
	body->value = value;
	body->element = element;
	body->width = width;
	body->height = height;
	body->stream = shim_stream(&call, stream);
	return shim_post(&call);
}

CUresult hand_cuMemsetD8_v2(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream null_stream)
{
	return fill(dstDevice, 0, uc, 1, N, 1, null_stream);
}

CUresult hand_cuMemsetD16_v2(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream null_stream)
{
	return fill(dstDevice, 0, us, 2, N, 1, null_stream);
}

CUresult hand_cuMemsetD32_v2(
	CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream null_stream)
{
	return fill(dstDevice, 0, ui, 4, N, 1, null_stream);
}

CUresult hand_cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream null_stream)
{
	return fill(dstDevice, dstPitch, uc, 1, Width, Height, null_stream);
}

CUresult hand_cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height, CUstream null_stream)
{
	return fill(dstDevice, dstPitch, us, 2, Width, Height, null_stream);
}

CUresult hand_cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream null_stream)
{
	return fill(dstDevice, dstPitch, ui, 4, Width, Height, null_stream);
}

CUresult hand_cuMemsetD8Async(
	CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
	return fill(dstDevice, 0, uc, 1, N, 1, hStream);
}

CUresult hand_cuMemsetD16Async(
	CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
	return fill(dstDevice, 0, us, 2, N, 1, hStream);
}

CUresult hand_cuMemsetD32Async(
	CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
	return fill(dstDevice, 0, ui, 4, N, 1, hStream);
}

CUresult hand_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
	size_t Width, size_t Height, CUstream hStream)
{
	return fill(dstDevice, dstPitch, uc, 1, Width, Height, hStream);
}

CUresult hand_cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
	size_t Width, size_t Height, CUstream hStream)
{
	return fill(dstDevice, dstPitch, us, 2, Width, Height, hStream);
}

CUresult hand_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
	size_t Width, size_t Height, CUstream hStream)
{
	return fill(dstDevice, dstPitch, ui, 4, Width, Height, hStream);
}
