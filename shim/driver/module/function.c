/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions by their handles, and what can be asked of one: it all came with it.
 */
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/module/function.h"
#include "shim/driver/module/module.h"

CUresult function_peek(CUfunction function, struct function **out)
{
	uint64_t handle = (uint64_t)(uintptr_t)function;

	*out = shim_object_of(handle, KIND_CUfunction);
	if (*out)
		return CUDA_SUCCESS;
	if (shim_object_of(handle, KIND_CUkernel))
		return library_function(handle, out);
	return CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_find(CUfunction function, struct function **out)
{
	CUresult status = function_peek(function, out);

	if (!status && atomic_load_explicit(&(*out)->unused, memory_order_relaxed))
		atomic_store_explicit(&(*out)->unused, false, memory_order_relaxed);
	return status;
}

CUresult function_attribute(const struct function *function, int attribute, int *value)
{
	if (attribute < 0 || attribute >= FUNCTION_ATTRIBUTES ||
		!(function->info.attribute_known >> attribute & 1))
		return CUDA_ERROR_INVALID_VALUE;
	*value = function->info.attributes[attribute];
	return CUDA_SUCCESS;
}

/* How many blocks run depends on what functions are set to. */
static void occupancy_forget(void)
{
	shim_forget(OP_cuOccupancyMaxActiveBlocksPerMultiprocessor);
	shim_forget(OP_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
	shim_forget(OP_cuOccupancyAvailableDynamicSMemPerBlock);
}

bool function_compiled_for_cluster(const struct function *function)
{
	const int *at = &function->info.attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];

	return !function->cluster_set && (at[0] > 0 || at[1] > 0 || at[2] > 0);
}

CUresult function_settable(const struct function *function, int attribute, int value)
{
	int limit;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		limit = devices.at[module_context(function->module)->device].open.attributes
				[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN];
		limit -= function->info.attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
		return value < 0 || value > limit ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value < -1 || value > 100 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		/* cuda.h says NOT_PERMITTED, and NVIDIA's driver 580 this, but for what it has.
		 */
		return value < 0 || (function_compiled_for_cluster(function) &&
					    value != function->info.attributes[attribute])
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return value < CU_CLUSTER_SCHEDULING_POLICY_DEFAULT ||
				       value > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE; /* the others can only be read */
	}
}

CUresult function_set(struct function *function, int attribute, int value)
{
	struct shim_call call;
	struct wire_cuFuncSetAttribute *body;
	CUresult status = function_settable(function, attribute, value);

	if (status)
		return status;
	if (attribute >= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH &&
		attribute <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH) {
		if (function_compiled_for_cluster(function))
			return CUDA_SUCCESS; /* it has that */
		function->cluster_set = true;
	}
	body = shim_begin(&call, OP_cuFuncSetAttribute, sizeof(*body));
	body->hfunc = function->handle;
	body->attrib = (uint32_t)attribute;
	body->value = value;
	status = shim_post(&call);
	if (!status) {
		function->info.attributes[attribute] = value;
		launch_limits(function);
	}
	occupancy_forget();
	return status;
}

/* To a function and no other: its kernel's functions elsewhere have what they have. */
CUresult hand_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct function *function;
	CUresult status = function_find(hfunc, &function);

	if (!status)
		status = function_cache_config(function, config);
	if (!status)
		atomic_fetch_or(&function->own, FUNCTION_CACHE);
	return status;
}

CUresult function_cache_config(struct function *function, CUfunc_cache config)
{
	struct shim_call call;
	struct wire_cuFuncSetCacheConfig *body;
	CUresult status;

	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_cuFuncSetCacheConfig, sizeof(*body));
	body->hfunc = function->handle;
	body->config = (uint32_t)config;
	status = shim_post(&call);
	if (!status)
		atomic_store(&function->cache, (uint8_t)(config + 1));
	occupancy_forget();
	return status;
}

CUresult function_param(
	const struct function *function, size_t index, size_t *offset, size_t *size)
{
	if (!offset || index >= function->info.param_count)
		return CUDA_ERROR_INVALID_VALUE;
	if (index >= function->layout_count)
		return CUDA_ERROR_NOT_SUPPORTED; /* beyond FUNCTION_PARAMS_MAX */
	*offset = function->layout[index].offset;
	if (size)
		*size = function->layout[index].size;
	return CUDA_SUCCESS;
}

/* cuda.h: those that a function has only once it is loaded. */
static bool attribute_needs_code(int attribute)
{
	return attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
	       attribute == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES ||
	       attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
}

CUresult hand_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct function *function;
	CUresult status;

	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	status = function_peek(hfunc, &function);
	if (!status && atomic_load(&function->unused) && attribute_needs_code((int)attrib))
		return CUDA_ERROR_FUNCTION_NOT_LOADED;
	return status ? status : function_attribute(function, (int)attrib, pi);
}

CUresult hand_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct function *function;
	CUresult status = function_find(hfunc, &function);

	if (!status)
		status = function_set(function, (int)attrib, value);
	if (!status)
		atomic_fetch_or(&function->own, 1u << attrib);
	return status;
}

CUresult hand_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct function *function;
	CUresult status;

	if (!hmod || !hfunc)
		return CUDA_ERROR_INVALID_VALUE;
	status = function_peek(hfunc, &function);
	if (!status)
		*hmod = (CUmodule)(uintptr_t)module_handle(function->module);
	return status;
}

CUresult hand_cuFuncGetName(const char **name, CUfunction hfunc)
{
	struct function *function;
	CUresult status;

	if (!name || !hfunc)
		return CUDA_ERROR_INVALID_VALUE;
	status = function_peek(hfunc, &function);
	if (!status)
		*name = function->name;
	return status;
}

CUresult hand_cuFuncGetParamInfo(
	CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct function *function;
	CUresult status = func ? function_peek(func, &function) : CUDA_ERROR_INVALID_VALUE;

	return status ? status : function_param(function, paramIndex, paramOffset, paramSize);
}

CUresult function_param_count(const struct function *function, size_t *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = function->info.param_count;
	return CUDA_SUCCESS;
}

CUresult hand_cuFuncGetParamCount(CUfunction func, size_t *paramCount)
{
	struct function *function;
	CUresult status = function_peek(func, &function);

	return status ? status : function_param_count(function, paramCount);
}

CUresult hand_cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct function *found;
	CUresult status;

	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	status = function_peek(function, &found);
	if (!status)
		*state = atomic_load(&found->unused) ? CU_FUNCTION_LOADING_STATE_UNLOADED
						     : CU_FUNCTION_LOADING_STATE_LOADED;
	return status;
}

CUresult hand_cuFuncLoad(CUfunction function)
{
	struct function *found;

	return function_find(function, &found);
}
