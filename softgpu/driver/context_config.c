/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be set on a context and asked of it: limits, preferences.
 */
#include "softgpu/driver/softgpu.h"

/* What NVIDIA's driver makes of smaller and larger ones. */
#define FIFO_LEAST (512 * KIB)
#define HEAP_LEAST (4 * MIB)
#define LAUNCHES_LEAST 32
#define STACK_UNIT 16
#define FETCH_MOST 128

/* A heap that kernels have memory of keeps its size. */
static bool heap_used(struct CUctx_st *context)
{
	bool used = false;

	pthread_mutex_lock(&context_lock);
	for (const struct CUmod_st *m = context->modules; m && !used; m = m->next)
		used = m->ptx && ptx_module_heap_used(m->ptx);
	pthread_mutex_unlock(&context_lock);
	return used;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (limit < 0 || limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	switch (limit) {
	case CU_LIMIT_PRINTF_FIFO_SIZE: value = value > FIFO_LEAST ? value : FIFO_LEAST; break;
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		if (heap_used(context))
			return CUDA_ERROR_INVALID_VALUE;
		value = value > HEAP_LEAST ? value : HEAP_LEAST;
		break;
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		value = value > LAUNCHES_LEAST ? value : LAUNCHES_LEAST;
		break;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		if (value > FETCH_MOST)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_LIMIT_STACK_SIZE:
		if (value > 512 * KIB)
			return CUDA_ERROR_INVALID_VALUE;
		/* As on a GPU, whose kernels have their stacks in memory that this moves. */
		context_ref(context);
		queue_drain(context, 0);
		context_unref(context);
		value = (value + STACK_UNIT - 1) / STACK_UNIT * STACK_UNIT;
		break;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		value = value < L2_MOST ? (value + L2_UNIT - 1) / L2_UNIT * L2_UNIT : L2_MOST;
		break;
	case CU_LIMIT_SHMEM_SIZE:
	case CU_LIMIT_CIG_ENABLED: return CUDA_ERROR_NOT_PERMITTED;
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
	case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: return CUDA_ERROR_UNSUPPORTED_LIMIT;
	default: break;
	}
	context->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit < 0 || limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH ||
		limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*pvalue = context->limits[limit];
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pconfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pconfig = context->cache_config;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	context->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pConfig)
		return CUDA_ERROR_INVALID_VALUE;
	*pConfig = context->shared_config;
	return CUDA_SUCCESS;
}

/* A hint that no part since sm_50 heeds. */
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (config < 0 || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	struct CUctx_st *context;

	return soft_context_current(&context);
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pExecAffinity || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	pExecAffinity->type = type;
	pExecAffinity->param.smCount.val = device_sm_count();
	return CUDA_SUCCESS;
}
