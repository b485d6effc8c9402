/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions: what is known about a kernel, and what may be set.
 */
#include "softgpu/driver/launch_core.h"

#include <string.h>

/* The interpreter counts the PTX's registers, of which there are more than a compiler would
 * use; what may be launched must fit. */
void function_limits(struct CUfunc_st *function)
{
	if (function->info.registers > REGISTERS_PER_SM / THREADS_PER_BLOCK)
		function->info.registers = REGISTERS_PER_SM / THREADS_PER_BLOCK;
	if (function->info.static_shared < SHARED_PER_BLOCK)
		function->max_dynamic_shared =
			(int)(SHARED_PER_BLOCK - function->info.static_shared);
}

CUresult function_use(CUfunction handle, struct CUctx_st *context, struct CUfunc_st **function)
{
	switch (object_kind(handle)) {
	case OBJECT_FUNCTION: *function = handle; return CUDA_SUCCESS;
	case OBJECT_KERNEL: return soft_library_function((CUkernel)handle, context, function);
	default: return CUDA_ERROR_INVALID_HANDLE;
	}
}

CUresult soft_function_attribute(
	const struct CUfunc_st *function, CUfunction_attribute attribute, int *value)
{
	const struct ptx_kernel_info *info = &function->info;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)info->max_threads; break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)info->static_shared; break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)info->const_bytes; break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)info->local_bytes; break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)info->registers; break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = info->target; break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 80; break;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = function->max_dynamic_shared;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = function->carveout;
		break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = 0; break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
		*value = info->cluster[0] ? (int)info->cluster[0] : function->cluster[0];
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
		*value = info->cluster[1] ? (int)info->cluster[1] : function->cluster[1];
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*value = info->cluster[2] ? (int)info->cluster[2] : function->cluster[2];
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*value = function->non_portable;
		break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*value = function->cluster_policy;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

unsigned function_cluster_most(const struct CUfunc_st *function)
{
	return function->non_portable ? CLUSTER_LARGEST : CLUSTER_MAX;
}

CUresult function_set_attribute(
	struct CUfunc_st *function, CUfunction_attribute attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 ||
			(size_t)value + function->info.static_shared > SHARED_PER_BLOCK_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		function->max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		function->carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		function->non_portable = value; /* NVIDIA's driver takes any */
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		if (value < 0 || value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)
			return CUDA_ERROR_INVALID_VALUE;
		function->cluster_policy = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		/* One that is too large is refused at the launch. */
		if (value < 0 || function->info.cluster[0])
			return CUDA_ERROR_INVALID_VALUE;
		function->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult use(CUfunction handle, struct CUfunc_st **function)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	return ret ? ret : function_use(handle, context, function);
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct CUfunc_st *function;
	CUresult ret = use(hfunc, &function);

	if (ret)
		return ret;
	return pi ? soft_function_attribute(function, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct CUfunc_st *function;
	CUresult ret = use(hfunc, &function);

	return ret ? ret : function_set_attribute(function, attrib, value);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct CUfunc_st *function;
	CUresult ret = use(hfunc, &function);

	if (ret)
		return ret;
	if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	function->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	struct CUfunc_st *function;
	CUresult ret = use(hfunc, &function);

	if (ret)
		return ret;
	return config < 0 || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct CUfunc_st *function;
	CUresult ret = use(hfunc, &function);

	if (ret)
		return ret;
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	*hmod = function->module;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	struct CUfunc_st *function;
	CUresult ret = use(hfunc, &function);

	if (ret)
		return ret;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = function->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(
	CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct CUfunc_st *function;
	CUresult ret = use(func, &function);

	if (ret)
		return ret;
	if (!paramOffset || paramIndex >= function->info.param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*paramOffset = function->info.params[paramIndex].offset;
	if (paramSize)
		*paramSize = function->info.params[paramIndex].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct CUfunc_st *found;
	CUresult ret = use(function, &found);

	if (ret)
		return ret;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct CUfunc_st *found;

	return use(function, &found);
}
