/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks one multiprocessor of the device that the attributes describe can hold: the
 * least of what threads, block slots, registers and shared memory allow.
 */
#include "softgpu/driver/launch_core.h"

/* Registers are given to warps in units of 256, shared memory to blocks in units of 128. */
#define REGISTER_UNIT 256
#define SHARED_UNIT 128
/* What of it is left beside a cache that is preferred: on an H200, 7 blocks with 16 bytes. */
#define SHARED_BESIDE_L1 (8 * KIB)

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static size_t resident(const struct CUfunc_st *function, size_t threads, size_t dynamic_shared)
{
	size_t warps = (threads + WARP - 1) / WARP, blocks, limit;
	size_t registers = round_up((size_t)function->info.registers * WARP, REGISTER_UNIT);
	size_t shared = function->info.static_shared + dynamic_shared;

	if (threads > function->info.max_threads ||
		shared > function->info.static_shared + (size_t)function->max_dynamic_shared)
		return 0;
	blocks = THREADS_PER_SM / (warps * WARP);
	if (blocks > BLOCKS_PER_SM)
		blocks = BLOCKS_PER_SM;
	limit = registers ? REGISTERS_PER_SM / registers / warps : blocks;
	if (limit < blocks)
		blocks = limit;
	limit = function->carveout < 0 && function->cache_config == CU_FUNC_CACHE_PREFER_L1
			? SHARED_BESIDE_L1
			: SHARED_PER_SM;
	limit /= round_up(shared + SHARED_RESERVED, SHARED_UNIT);
	return limit < blocks ? limit : blocks;
}

/* A function as it is before the host sets attributes of it, of which kernels are not told. */
int occupancy_resident(
	const struct ptx_kernel_info *info, unsigned threads, size_t dynamic_shared)
{
	struct CUfunc_st function = {.info = *info, .carveout = -1};

	function_limits(&function);
	return (int)resident(&function, threads, dynamic_shared);
}

static CUresult use(CUfunction handle, struct CUfunc_st **function)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	return ret ? ret : function_use(handle, context, function);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
	int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	struct CUfunc_st *function;
	CUresult ret = use(func, &function);

	if (ret)
		return ret;
	if (!numBlocks || blockSize <= 0 || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	*numBlocks = (int)resident(function, (size_t)blockSize, dynamicSMemSize);
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		numBlocks, func, blockSize, dynamicSMemSize, 0);
}

/* The largest block size among those with the most resident threads. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
	CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
	int blockSizeLimit, unsigned int flags)
{
	size_t limit, best = 0, best_blocks = 0;
	struct CUfunc_st *function;
	CUresult ret = use(func, &function);

	if (ret)
		return ret;
	if (!minGridSize || !blockSize || blockSizeLimit < 0 || flags & ~1u)
		return CUDA_ERROR_INVALID_VALUE;
	limit = function->info.max_threads;
	if (blockSizeLimit && (size_t)blockSizeLimit < limit)
		limit = (size_t)blockSizeLimit;
	for (size_t size = round_up(limit, WARP); size; size -= WARP) {
		size_t threads = size < limit ? size : limit, blocks;

		if (blockSizeToDynamicSMemSize)
			dynamicSMemSize = blockSizeToDynamicSMemSize((int)threads);
		blocks = resident(function, threads, dynamicSMemSize);
		if (blocks * threads > best_blocks * best) {
			best = threads;
			best_blocks = blocks;
		}
	}
	*blockSize = (int)best;
	*minGridSize = (int)(best_blocks * device_sm_count());
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
	int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
		blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	struct CUfunc_st *function;
	size_t each;
	CUresult ret = use(func, &function);

	if (ret)
		return ret;
	if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0 ||
		(size_t)blockSize > function->info.max_threads || numBlocks > BLOCKS_PER_SM ||
		(size_t)numBlocks * round_up((size_t)blockSize, WARP) > THREADS_PER_SM)
		return CUDA_ERROR_INVALID_VALUE;
	each = SHARED_PER_SM / (size_t)numBlocks / SHARED_UNIT * SHARED_UNIT - SHARED_RESERVED;
	each = each > function->info.static_shared ? each - function->info.static_shared : 0;
	/* What a launch may ask for, unless the function's attribute allows more. */
	if (each > (size_t)function->max_dynamic_shared)
		each = (size_t)function->max_dynamic_shared;
	*dynamicSmemSize = each;
	return CUDA_SUCCESS;
}

/* Does the grid consist of the clusters that the function itself asks for, if it does? */
static bool function_cluster_fits(
	const struct CUfunc_st *function, const CUlaunchConfig *config)
{
	const uint32_t grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
	uint64_t size = 1;

	for (int i = 0; i < 3; i++) {
		uint32_t each = function->info.cluster[i] ? function->info.cluster[i]
							  : (uint32_t)function->cluster[i];

		if (!each)
			continue;
		if (grid[i] % each)
			return false;
		size *= each;
	}
	return size <= function_cluster_most(function);
}

/* Blocks of a cluster of the launch; 0: it has none. */
static CUresult clusters(CUfunction func, const CUlaunchConfig *config,
	struct CUfunc_st **function, unsigned *blocks)
{
	struct CUctx_st *context;
	CUresult ret = use(func, function) ?: soft_context_current(&context);
	uint64_t size = 0;

	if (ret)
		return ret;
	/* Clusters are of the context that they are to run in. */
	if ((*function)->module->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!config || !config->gridDimX || !config->gridDimY || !config->gridDimZ ||
		(config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			size = (uint64_t)config->attrs[i].value.clusterDim.x *
			       config->attrs[i].value.clusterDim.y *
			       config->attrs[i].value.clusterDim.z;
	*blocks = (unsigned)size;
	if (!size && !function_cluster_fits(*function, config))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	if (!config->blockDimX || !config->blockDimY || !config->blockDimZ)
		return CUDA_ERROR_INVALID_VALUE;
	return size <= function_cluster_most(*function) ? CUDA_SUCCESS
							: CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult cuOccupancyMaxActiveClusters(
	int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	struct CUfunc_st *function;
	unsigned blocks;
	CUresult ret = clusters(func, config, &function, &blocks);
	int processors = 0;

	if (!ret && !numClusters)
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret)
		ret = cuDeviceGetAttribute(
			&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
	if (ret)
		return ret;
	/* Where no cluster is asked for none can be active. */
	*numClusters = blocks ? processors *
					(int)resident(function,
						(size_t)config->blockDimX * config->blockDimY *
							config->blockDimZ,
						config->sharedMemBytes) /
					(int)blocks
			      : 0;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(
	int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	struct CUfunc_st *function;
	unsigned blocks;
	CUresult ret = clusters(func, config, &function, &blocks);

	if (!ret && !clusterSize)
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret)
		*clusterSize = resident(function,
				       (size_t)config->blockDimX * config->blockDimY *
					       config->blockDimZ,
				       config->sharedMemBytes)
				       ? (int)function_cluster_most(function)
				       : 0;
	return ret;
}
