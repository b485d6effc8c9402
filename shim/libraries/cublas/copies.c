/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors and matrices between host and device: strided copies, done by the driver front.
 */
#include "shim/libraries/cublas/forms.h"
#include "shim/generated/cublas_hand.h"
#include "shim/libraries/common/driver_front.h"

/* `count` pieces of `bytes`, so many bytes apart on either side. */
static cublasStatus_t copy(enum cublas_direction direction, uint64_t bytes, int64_t count,
	const void *from, uint64_t from_pitch, void *to, uint64_t to_pitch, bool async,
	CUstream stream)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType =
			direction == TO_DEVICE ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = direction == TO_DEVICE ? from : NULL,
		.srcDevice = direction == TO_DEVICE ? 0 : (CUdeviceptr)(uintptr_t)from,
		.srcPitch = from_pitch,
		.dstMemoryType =
			direction == TO_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.dstHost = direction == TO_DEVICE ? NULL : to,
		.dstDevice = direction == TO_DEVICE ? (CUdeviceptr)(uintptr_t)to : 0,
		.dstPitch = to_pitch,
		.WidthInBytes = bytes,
		.Height = (size_t)count,
	};
	CUresult status = vcuda_front_context();

	if (!status)
		status = async ? cuMemcpy2DAsync(&c, stream) : cuMemcpy2DUnaligned(&c);
	return status ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublas_copy_vector(enum cublas_direction direction, int64_t n, int64_t size,
	const void *from, int64_t from_step, void *to, int64_t to_step, bool async,
	CUstream stream)
{
	uint64_t bytes, from_pitch, to_pitch;

	if (size <= 0 || from_step <= 0 || to_step <= 0 || n < 0 ||
		__builtin_mul_overflow((uint64_t)from_step, (uint64_t)size, &from_pitch) ||
		__builtin_mul_overflow((uint64_t)to_step, (uint64_t)size, &to_pitch) ||
		__builtin_mul_overflow((uint64_t)n, (uint64_t)size, &bytes))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!n)
		return CUBLAS_STATUS_SUCCESS;
	if (from_step == 1 && to_step == 1)
		return copy(direction, bytes, 1, from, bytes, to, bytes, async, stream);
	return copy(
		direction, (uint64_t)size, n, from, from_pitch, to, to_pitch, async, stream);
}

cublasStatus_t cublas_copy_matrix(enum cublas_direction direction, int64_t rows, int64_t cols,
	int64_t size, const void *from, int64_t from_step, void *to, int64_t to_step,
	bool async, CUstream stream)
{
	uint64_t bytes, from_pitch, to_pitch;

	if (rows < 0 || cols < 0 || size <= 0 || from_step < rows || to_step < rows ||
		from_step <= 0 || to_step <= 0 ||
		__builtin_mul_overflow((uint64_t)from_step, (uint64_t)size, &from_pitch) ||
		__builtin_mul_overflow((uint64_t)to_step, (uint64_t)size, &to_pitch) ||
		__builtin_mul_overflow((uint64_t)rows, (uint64_t)size, &bytes))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!rows || !cols)
		return CUBLAS_STATUS_SUCCESS;
	return copy(direction, bytes, cols, from, from_pitch, to, to_pitch, async, stream);
}
