/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of kernels and occupancy.  A kernel may be named by its stub, by a cudaKernel_t or
 * by a cudaFunction_t; its attributes are those on the thread's device.
 */
#include "shim/runtime/kernel_name.h"
#include "shim/runtime/register.h"

#include <limits.h>
#include <string.h>

_Static_assert((int)cudaFuncAttributeMaxDynamicSharedMemorySize ==
			       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
		       (int)cudaFuncAttributeClusterSchedulingPolicyPreference ==
			       CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
	"function attribute numbers");

/* What something is set on, and whose attributes are told. CUDA 13's runtime: the kernel on the
 * current device, where there is one (launches go by the kernel), so for all contexts of the
 * device, and over a reset. CUDA 12's: the function in the current context. */
struct settable {
	CUkernel kernel; /* NULL: the function */
	CUdevice device;
	CUfunction function;
};

static cudaError_t find_settable(const void *func, struct settable *found)
{
	found->kernel = NULL;
#if CUDART_VERSION >= 13000
	cudaError_t error = runtime_enter();

	if (!error)
		error = register_kernel(func, &found->kernel);
	if (error == cudaErrorInvalidDeviceFunction)
		return register_function(func, &found->function);
	return error ? error : runtime_status(cuCtxGetDevice(&found->device));
#else
	return runtime_function(func, &found->function);
#endif
}

cudaError_t hand_cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	static const struct {
		CUfunction_attribute attribute;
		uint16_t offset;
		bool wide; /* the field is a size_t */
	} fields[] = {
		{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
			offsetof(struct cudaFuncAttributes, sharedSizeBytes), true},
		{CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
			offsetof(struct cudaFuncAttributes, constSizeBytes), true},
		{CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
			offsetof(struct cudaFuncAttributes, localSizeBytes), true},
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
			offsetof(struct cudaFuncAttributes, maxThreadsPerBlock), false},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, offsetof(struct cudaFuncAttributes, numRegs),
			false},
		{CU_FUNC_ATTRIBUTE_PTX_VERSION, offsetof(struct cudaFuncAttributes, ptxVersion),
			false},
		{CU_FUNC_ATTRIBUTE_BINARY_VERSION,
			offsetof(struct cudaFuncAttributes, binaryVersion), false},
		{CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
			offsetof(struct cudaFuncAttributes, cacheModeCA), false},
		{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			offsetof(struct cudaFuncAttributes, maxDynamicSharedSizeBytes), false},
		{CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			offsetof(struct cudaFuncAttributes, preferredShmemCarveout), false},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET,
			offsetof(struct cudaFuncAttributes, clusterDimMustBeSet), false},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
			offsetof(struct cudaFuncAttributes, requiredClusterWidth), false},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
			offsetof(struct cudaFuncAttributes, requiredClusterHeight), false},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
			offsetof(struct cudaFuncAttributes, requiredClusterDepth), false},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
			offsetof(struct cudaFuncAttributes, clusterSchedulingPolicyPreference),
			false},
		{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
			offsetof(struct cudaFuncAttributes, nonPortableClusterSizeAllowed),
			false},
	};
	struct settable of;
	cudaError_t error;

	if (!attr)
		return cudaErrorInvalidValue;
	error = find_settable(func, &of);
	if (error)
		return error;

	memset(attr, 0, sizeof(*attr));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const CUfunction_attribute attribute = fields[i].attribute;
		int value;
		size_t wide;
		CUresult status =
			of.kernel
				? cuKernelGetAttribute(&value, attribute, of.kernel, of.device)
				: cuFuncGetAttribute(&value, attribute, of.function);

		/* An attribute that is newer than the driver stays 0. */
		if (status == CUDA_ERROR_INVALID_VALUE)
			continue;
		if (status)
			return runtime_status(status);
		wide = (size_t)value;
		if (fields[i].wide)
			memcpy((char *)attr + fields[i].offset, &wide, sizeof(wide));
		else
			memcpy((char *)attr + fields[i].offset, &value, sizeof(value));
	}
	return cudaSuccess;
}

static cudaError_t set_attribute(const void *func, CUfunction_attribute attribute, int value)
{
	struct settable on;
	cudaError_t error = find_settable(func, &on);

	if (error)
		return error;
	return runtime_status(
		on.kernel ? cuKernelSetAttribute(attribute, value, on.kernel, on.device)
			  : cuFuncSetAttribute(on.function, attribute, value));
}

cudaError_t hand_cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
	const CUfunc_cache config = (CUfunc_cache)cacheConfig;
	struct settable on;
	cudaError_t error = find_settable(func, &on);

	if (error)
		return error;
	return runtime_status(on.kernel ? cuKernelSetCacheConfig(on.kernel, config, on.device)
					: cuFuncSetCacheConfig(on.function, config));
}

/* As in NVIDIA's runtime its success clears the last error.  The exported stub ends in a jump
 * here, so the caller is the program. */
cudaError_t hand_cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
	cudaError_t error;

	/* The rest are read only. */
	if ((int)attr < cudaFuncAttributeMaxDynamicSharedMemorySize ||
		(int)attr >= cudaFuncAttributeMax)
		error = cudaErrorInvalidValue;
	else
		error = set_attribute(func, (CUfunction_attribute)attr, value);
	runtime_remember(error, __builtin_return_address(0));
	return error;
}

cudaError_t hand_cudaKernelSetAttributeForDevice(
	cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device)
{
	CUcontext primary;
	cudaError_t error = runtime_init();

	if (error)
		return error;
	if ((unsigned)attr >= cudaFuncAttributeMax)
		return cudaErrorInvalidValue;
	/* The device's context, which does not become current.  A kernel that there is not
	 * comes before a device that there is not: the driver says. */
	if (kernel && runtime_primary(device, &primary) == cudaErrorMemoryAllocation)
		return cudaErrorMemoryAllocation;
	return runtime_status(cuKernelSetAttribute(
		(CUfunction_attribute)attr, value, (CUkernel)kernel, (CUdevice)device));
}

/* Has had no effect on any GPU since Maxwell; the function is checked all the same. */
cudaError_t hand_cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	CUfunction function;

	if ((int)config < (int)cudaSharedMemBankSizeDefault ||
		(int)config > (int)cudaSharedMemBankSizeEightByte)
		return cudaErrorInvalidValue;
	return runtime_function(func, &function);
}

cudaError_t hand_cudaFuncGetName(const char **name, const void *func)
{
	CUfunction function;
	cudaError_t error;

	if (!name)
		return cudaErrorInvalidValue;
	error = runtime_function(func, &function);
	return error ? error : runtime_status(cuFuncGetName(name, function));
}

const char *runtime_kernel_name(const void *kernel, bool handle)
{
	const struct symbol *symbol = handle ? kernel : table_find(&register_table, kernel);

	return symbol ? symbol->name : NULL;
}
