/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of a launch before it is sent: that its grid, blocks, clusters and attributes
 * are such as the function and the device can have, where the agent's driver would only say so
 * later.
 */
#include <limits.h>
#include <string.h>

#include "shim/driver/context/context.h"
#include "shim/driver/launch/launch_config.h"
#include "shim/driver/module/function.h"
#include "shim/driver/module/module.h"

/* A grid is whole clusters. More than PORTABLE blocks of one need the function's leave. */
enum { CLUSTER_PORTABLE = 8, CLUSTER_LARGEST = 16 };

static CUresult cluster_fits(
	const struct function_info *info, const unsigned cluster[3], const unsigned grid[3])
{
	const int leave = info->attributes[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED];
	uint64_t left = leave ? CLUSTER_LARGEST : CLUSTER_PORTABLE;

	for (int i = 0; i < 3; i++) {
		if (!cluster[i] || grid[i] % cluster[i] || cluster[i] > left)
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
		left /= cluster[i];
	}
	return CUDA_SUCCESS;
}

/* The cluster that the function was compiled for, or was set to. False: none. */
static bool cluster_required(const struct function_info *info, unsigned cluster[3])
{
	const int *at = &info->attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];

	if (__builtin_expect(at[0] <= 0 && at[1] <= 0 && at[2] <= 0, 1))
		return false;
	for (int i = 0; i < 3; i++)
		cluster[i] = at[i] > 0 ? (unsigned)at[i] : 1;
	return true;
}

static CUresult cluster_required_fits(const struct function_info *info, const unsigned grid[3])
{
	unsigned cluster[3];

	return cluster_required(info, cluster) ? cluster_fits(info, cluster, grid)
					       : CUDA_SUCCESS;
}

/* The cluster that the launch asks for. Not another one than the function was compiled for. */
static CUresult cluster_asked_fits(const struct launch *l, const unsigned cluster[3])
{
	const struct function_info *info = &l->function->info;
	unsigned required[3];

	if (function_compiled_for_cluster(l->function) && cluster_required(info, required) &&
		memcmp(cluster, required, sizeof(required)) != 0)
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return cluster_fits(info, cluster, l->grid);
}

/* A larger one, where there is room for it: of whole CLUSTERs, or of whole ones that the
 * function was compiled for, and a grid is whole ones of it. Without either it has no effect.
 */
static CUresult cluster_preferred_fits(
	const struct launch *l, const unsigned *cluster, const unsigned preferred[3])
{
	unsigned required[3];

	if (!cluster && cluster_required(&l->function->info, required))
		cluster = required;
	for (int i = 0; cluster && i < 3; i++)
		if (!preferred[i] || !cluster[i] || preferred[i] % cluster[i] ||
			l->grid[i] % preferred[i])
			return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return CUDA_SUCCESS;
}

/* What NVIDIA's driver says of an attribute's value before anything is launched. */
static CUresult attribute_fits(const CUlaunchAttribute *attribute)
{
	const CUlaunchAttributeValue *value = &attribute->value;
	bool fits = true;

	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		fits = value->accessPolicyWindow.hitRatio >= 0 &&
		       value->accessPolicyWindow.hitRatio <= 1;
		break;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: fits = false; break; /* a stream's */
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		fits = value->memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT ||
		       value->memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
		break;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		fits = value->sharedMemCarveout <= 100;
		break;
	default: break;
	}
	return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult launch_attributes_fit(const struct launch *l)
{
	const unsigned *cluster = NULL, *preferred = NULL;
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = 0; !status && i < l->attribute_count; i++) {
		const CUlaunchAttribute *attribute = &l->attributes[i];

		if (attribute->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && !cluster)
			cluster = &attribute->value.clusterDim.x;
		if (attribute->id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
			preferred = &attribute->value.preferredClusterDim.x;
		status = attribute_fits(attribute);
	}
	if (!status && cluster)
		status = cluster_asked_fits(l, cluster);
	if (!status && preferred)
		status = cluster_preferred_fits(l, cluster, preferred);
	return status;
}

/* More threads than the function can have: too few registers for them, or the program has said
 * that there are never so many (__launch_bounds__), which NVIDIA's driver tells apart. */
static CUresult threads_beyond(
	const struct function_info *info, const int *limits, uint64_t threads)
{
	const uint64_t regs =
		(uint64_t)(info->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] + 7) / 8 * 8;
	const uint64_t warps = (threads + 127) / 128 * 4; /* they get them by four */

	return regs * 32 * warps > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK]
		       ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult blocks_fit(const struct function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared, bool cooperative)
{
	const struct function_info *info = &f->info;
	const int *limits = devices.at[module_context(f->module)->device].open.attributes;
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

	for (int i = 0; i < 3; i++)
		if (!grid[i] || !block[i] ||
			grid[i] > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i] ||
			block[i] > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i])
			return CUDA_ERROR_INVALID_VALUE;
	if (threads > (unsigned)limits[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return CUDA_ERROR_INVALID_VALUE;
	if (info->attribute_known >> CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK & 1 &&
		threads > (unsigned)info->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK])
		return threads_beyond(info, limits, threads);
	if (info->attribute_known >> CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES & 1 &&
		shared > (unsigned)info
				 ->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
		return cooperative ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
				   : CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

void launch_limits(struct function *f)
{
	const struct function_info *info = &f->info;
	const int *device = devices.at[f->context->device].open.attributes;
	const int threads = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
	const int dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	struct function_limits limits = {
		.threads = (unsigned)device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
		.shared = UINT_MAX};
	unsigned cluster[3];

	for (int i = 0; i < 3; i++) {
		limits.grid[i] = (unsigned)device[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i];
		limits.block[i] = (unsigned)device[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i];
	}
	if (info->attribute_known >> threads & 1 &&
		(unsigned)info->attributes[threads] < limits.threads)
		limits.threads = (unsigned)info->attributes[threads];
	if (info->attribute_known >> dynamic & 1)
		limits.shared = (unsigned)info->attributes[dynamic];
	if (cluster_required(info, cluster))
		limits.threads = 0;
	f->limits = limits;
}

CUresult launch_fits(const struct function *f, const unsigned grid[3], const unsigned block[3],
	unsigned shared, bool cooperative)
{
	return blocks_fit(f, grid, block, shared, cooperative)
		       ?: cluster_required_fits(&f->info, grid);
}

CUresult launch_fits_node(const struct function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared)
{
	CUresult status = blocks_fit(f, grid, block, shared, false);

	if (status || f->info.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] <= 0)
		return status;
	return cluster_required_fits(&f->info, grid);
}

/* All blocks of a cooperative launch must be resident at once. The occupancy is a cached call.
 */
CUresult launch_cooperative_fits(const struct launch *l)
{
	const int *limits =
		devices.at[module_context(l->function->module)->device].open.attributes;
	uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	int resident;
	CUresult status;

	status = cuOccupancyMaxActiveBlocksPerMultiprocessor(
		&resident, (CUfunction)(uintptr_t)l->function->handle, (int)threads, l->shared);
	if (status)
		return status;
	return blocks > (uint64_t)resident *
				       (uint64_t)
					       limits[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]
		       ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
		       : CUDA_SUCCESS;
}
