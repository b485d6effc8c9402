/* SPDX-License-Identifier: Apache-2.0
 *
 * What the shapes of copies share: each end as the driver is told of it, and what a stream says
 * of a copy.
 */
#include "shim/runtime/copy.h"

CUmemorytype copy_source_type(enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToHost:
	case cudaMemcpyHostToDevice: return CU_MEMORYTYPE_HOST;
	case cudaMemcpyDeviceToHost:
	case cudaMemcpyDeviceToDevice: return CU_MEMORYTYPE_DEVICE;
	default: return CU_MEMORYTYPE_UNIFIED;
	}
}

CUmemorytype copy_target_type(enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToHost:
	case cudaMemcpyDeviceToHost: return CU_MEMORYTYPE_HOST;
	case cudaMemcpyHostToDevice:
	case cudaMemcpyDeviceToDevice: return CU_MEMORYTYPE_DEVICE;
	default: return CU_MEMORYTYPE_UNIFIED;
	}
}

/* Nothing follows a row that is alone. */
bool copy_row_fits(const struct cudaPitchedPtr *end, const struct cudaPos *at,
	const struct cudaExtent *extent)
{
	size_t x;

	return !end->ptr || (extent->height <= 1 && extent->depth <= 1) ||
	       (!__builtin_add_overflow(at->x, extent->width, &x) && x <= end->pitch);
}

cudaError_t copy_captured(cudaStream_t stream)
{
	const CUDA_MEMCPY2D nothing = {0};
	CUresult status = cuMemcpy2DAsync(&nothing, (CUstream)stream);

	switch (status) {
	case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
	case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
	case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: return runtime_status(status);
	default: return cudaSuccess;
	}
}

void copy_from_end(CUDA_MEMCPY3D *copy, CUmemorytype type, const struct cudaPitchedPtr *end,
	const struct cudaPos *at)
{
	copy->srcMemoryType = type;
	if (type == CU_MEMORYTYPE_HOST)
		copy->srcHost = end->ptr;
	else
		copy->srcDevice = (CUdeviceptr)end->ptr;
	copy->srcPitch = end->pitch;
	copy->srcHeight = end->ysize;
	copy->srcXInBytes = at->x;
	copy->srcY = at->y;
	copy->srcZ = at->z;
}

void copy_to_end(CUDA_MEMCPY3D *copy, CUmemorytype type, const struct cudaPitchedPtr *end,
	const struct cudaPos *at)
{
	copy->dstMemoryType = type;
	if (type == CU_MEMORYTYPE_HOST)
		copy->dstHost = end->ptr;
	else
		copy->dstDevice = (CUdeviceptr)end->ptr;
	copy->dstPitch = end->pitch;
	copy->dstHeight = end->ysize;
	copy->dstXInBytes = at->x;
	copy->dstY = at->y;
	copy->dstZ = at->z;
}
