/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of libraries: names that are good in every context, and the function that one is in
 * the context at hand.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/module/function.h"
#include "shim/driver/module/kernel_settings.h"
#include "shim/driver/module/library_core.h"
#include "shim/driver/module/module.h"
#include "shim/driver/module/module_state.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/thread.h"

static struct kernel *kernel_of(CUkernel kernel)
{
	return shim_object_of((uint64_t)(uintptr_t)kernel, KIND_CUkernel);
}

CUresult library_function(uint64_t handle, struct function **out)
{
	struct kernel *kernel = shim_object_of(handle, KIND_CUkernel);
	struct module *module;
	CUresult status;

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	status = library_module(kernel->library, &module);
	if (!status)
		status = module_function(module, kernel->name, out);
	return status ? status : kernel_follow(kernel, *out);
}

static CUresult kernel_make(struct library *library, const char *name, CUkernel *out)
{
	struct kernel *kernel;
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&library->lock);
	for (kernel = library->kernels; kernel; kernel = kernel->next)
		if (!strcmp(kernel->name, name))
			break;
	if (!kernel) {
		kernel = calloc(1, sizeof(*kernel));
		if (kernel) {
			kernel->library = library;
			kernel->name = strdup(name);
			kernel->handle = kernel->name ? shim_mint(KIND_CUkernel, kernel) : 0;
		}
		if (!kernel || !kernel->handle) {
			if (kernel)
				free(kernel->name);
			free(kernel);
			kernel = NULL;
			status = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			kernel->next = library->kernels;
			library->kernels = kernel;
		}
	}
	pthread_mutex_unlock(&library->lock);
	if (!status)
		*out = (CUkernel)(uintptr_t)kernel->handle;
	return status;
}

CUkernel library_kernel(const struct function *function)
{
	struct library *library = function->module->library;
	CUkernel kernel;

	return library && !kernel_make(library, function->name, &kernel) ? kernel : NULL;
}

/* CUDA answers NOT_FOUND for a name that the image lacks. Where a context is current, ask;
 * where none is, the name is looked at when the kernel is first used. */
CUresult hand_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	struct library *from = library_of(library);
	struct function *function;
	struct module *module;
	CUresult status;

	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!from)
		return CUDA_ERROR_INVALID_HANDLE;
	if (context_current()) {
		status = library_module(from, &module);
		if (!status)
			status = module_function(module, name, &function);
		/* Of a module's function without a name the driver says INVALID_VALUE. */
		if (status == CUDA_ERROR_INVALID_VALUE && !*name)
			status = CUDA_ERROR_NOT_FOUND;
		if (status)
			return status;
	}
	return kernel_make(from, name, pKernel);
}

/* The library's module, for who counts its kernels: code that cannot be loaded has none, which
 * is no error (*OUT is NULL then). */
static CUresult counted_module(struct library *library, CUmodule *out)
{
	struct module *module;
	CUresult status = library_module_anywhere(library, &module);

	*out = status ? NULL : (CUmodule)(uintptr_t)module_handle(module);
	switch (status) {
	case CUDA_ERROR_INVALID_IMAGE:
	case CUDA_ERROR_NO_BINARY_FOR_GPU:
	case CUDA_ERROR_INVALID_PTX:
	case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
	case CUDA_ERROR_INVALID_SOURCE: return CUDA_SUCCESS;
	default: return status;
	}
}

CUresult hand_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct library *library = library_of(lib);
	CUmodule module;
	CUresult status;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	status = counted_module(library, &module);
	if (!status && module)
		return hand_cuModuleGetFunctionCount(count, module);
	if (!status)
		*count = 0;
	return status;
}

CUresult hand_cuLibraryEnumerateKernels(
	CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct library *library = library_of(lib);
	CUmodule module;
	CUfunction *functions;
	unsigned count = 0;
	CUresult status;

	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!numKernels)
		return CUDA_SUCCESS;
	status = counted_module(library, &module);
	if (!status && module)
		status = hand_cuModuleGetFunctionCount(&count, module);
	if (status)
		return status;
	if (!count)
		return CUDA_SUCCESS;
	functions = calloc(count, sizeof(CUfunction));
	if (!functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = hand_cuModuleEnumerateFunctions(functions, count, module);
	/* NVIDIA's driver tells a library's kernels from the last of its module to the first.
	 */
	for (unsigned i = 0; !status && i < numKernels && i < count; i++) {
		const char *name;

		status = hand_cuFuncGetName(&name, functions[count - 1 - i]);
		if (!status)
			status = kernel_make(library, name, &kernels[i]);
	}
	free(functions);
	return status;
}

CUresult hand_cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct function *function;
	CUresult status;

	if (!pFunc)
		return CUDA_ERROR_INVALID_VALUE;
	status = library_function((uint64_t)(uintptr_t)kernel, &function);
	if (!status)
		*pFunc = (CUfunction)(uintptr_t)function->handle;
	return status;
}

CUresult hand_cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	struct kernel *found = kernel_of(kernel);

	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
	*pLib = (CUlibrary)(uintptr_t)found->library->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuKernelGetName(const char **name, CUkernel hfunc)
{
	struct kernel *kernel = kernel_of(hfunc);

	if (!name || !hfunc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel->name;
	return CUDA_SUCCESS;
}

/* The kernel's function on a device: in the current context if that is there, else in the
 * device's primary context. */
static CUresult kernel_on(CUkernel kernel, CUdevice dev, struct function **out)
{
	struct context *before = thread_self.current;
	struct device *device = device_of(dev);
	CUresult status;

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (context_current() && before->device == dev)
		return library_function((uint64_t)(uintptr_t)kernel, out);
	if (!device->primary.handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread_set(&device->primary);
	status = library_function((uint64_t)(uintptr_t)kernel, out);
	thread_set(before);
	return status;
}

CUresult hand_cuKernelGetAttribute(
	int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	struct function *function;
	CUresult status;

	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	status = kernel_on(kernel, dev, &function);
	return status ? status
		      : kernel_attribute(kernel_of(kernel), function, dev, (int)attrib, pi);
}

CUresult hand_cuKernelSetAttribute(
	CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	struct function *function;
	CUresult status = kernel_on(kernel, dev, &function);

	return status ? status
		      : kernel_set_attribute(
				kernel_of(kernel), function, dev, (int)attrib, val);
}

CUresult hand_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	struct function *function;
	CUresult status = kernel_on(kernel, dev, &function);

	return status ? status : kernel_set_cache(kernel_of(kernel), dev, config);
}

CUresult hand_cuKernelGetParamCount(CUkernel kernel, size_t *paramCount)
{
	struct function *function;
	CUresult status = library_function((uint64_t)(uintptr_t)kernel, &function);

	return status ? status : function_param_count(function, paramCount);
}

CUresult hand_cuKernelGetParamInfo(
	CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct function *function;
	CUresult status = kernel && paramOffset
				  ? library_function((uint64_t)(uintptr_t)kernel, &function)
				  : CUDA_ERROR_INVALID_VALUE;

	return status ? status : function_param(function, paramIndex, paramOffset, paramSize);
}
