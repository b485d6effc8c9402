/* SPDX-License-Identifier: Apache-2.0
 *
 * The block size that fills the device: tries block sizes downwards with the (cached) occupancy
 * call, as CUDA's own does, since the amount of shared memory may depend on the size.
 */
#include "shim/generated/cuda_hand.h"
#include "shim/driver/context.h"
#include "shim/driver/module/module.h"

CUresult hand_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
	int blockSizeLimit, unsigned int flags)
{
	struct context *context = context_current();
	const int *device;
	struct function *function;
	int warp, limit, best = 0, best_threads = 0;
	CUresult status;

	if (!minGridSize || !blockSize)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	status = function_find(func, &function);
	if (status)
		return status;
	device = devices.at[context->device].open.attributes;
	warp = device[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
	limit = device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
	if (function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] < limit)
		limit = function->info.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK];
	if (blockSizeLimit > 0 && blockSizeLimit < limit)
		limit = blockSizeLimit;
	if (warp <= 0 || limit <= 0)
		return CUDA_ERROR_UNKNOWN;
	for (int size = (limit + warp - 1) / warp * warp; size > 0; size -= warp) {
		int threads = size < limit ? size : limit;
		size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(threads)
							   : dynamicSMemSize;
		int blocks;

		status = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			&blocks, func, threads, shared, flags);
		if (status)
			return status;
		if (blocks * threads > best_threads) {
			best_threads = blocks * threads;
			best = threads;
			*minGridSize =
				blocks * device[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
		}
		/* More cannot be resident. */
		if (best_threads == device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR])
			break;
	}
	if (!best)
		return CUDA_ERROR_INVALID_VALUE;
	*blockSize = best;
	return CUDA_SUCCESS;
}
