/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks there is room for, asked once for each question; and the block size that
 * fills the device: tries block sizes downwards with the (cached) occupancy call, as CUDA's own
 * does, since the amount of shared memory may depend on the size.
 */
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/module/module.h"
#include "shim/engine/engine.h"

CUresult hand_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks,
	CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	const struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_reply *reply;
	struct wire_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags *body;
	struct shim_call call;

	if (!numBlocks || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(
		&call, OP_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, sizeof(*body));
	body->func = shim_function(&call, func);
	body->blockSize = blockSize;
	body->dynamicSMemSize = dynamicSMemSize;
	body->flags = flags;
	reply = shim_wait_cached(&call, sizeof(*reply));
	if (reply)
		*numBlocks = reply->numBlocks;
	return shim_end(&call);
}

CUresult hand_cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	const struct wire_cuOccupancyAvailableDynamicSMemPerBlock_reply *reply;
	struct wire_cuOccupancyAvailableDynamicSMemPerBlock *body;
	struct shim_call call;

	if (!dynamicSmemSize || numBlocks <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_cuOccupancyAvailableDynamicSMemPerBlock, sizeof(*body));
	body->func = shim_function(&call, func);
	body->numBlocks = numBlocks;
	body->blockSize = blockSize;
	reply = shim_wait_cached(&call, sizeof(*reply));
	if (reply)
		*dynamicSmemSize = reply->dynamicSmemSize;
	return shim_end(&call);
}

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
	if (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
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
		*minGridSize = 0; /* none fits, and natively that is no error */
	*blockSize = best;
	return CUDA_SUCCESS;
}
