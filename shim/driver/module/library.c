/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries: modules that belong to no context.  The image is kept, and loaded into a context
 * when one of its kernels or variables is first used there.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed.h"
#include "shim/engine/engine.h"
#include "shim/driver/module/function.h"
#include "shim/engine/handle.h"
#include "shim/driver/module/module.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

struct kernel {
	uint64_t handle;
	struct library *library;
	struct kernel *next;
	char *name;
};

struct loaded {
	struct loaded *next;
	uint16_t number;     /* of the context … */
	uint64_t context_id; /* … and which one of that number */
	uint64_t module;
};

struct library {
	uint64_t handle;
	unsigned char *image; /* a copy of what the app gave us … */
	const void *given;    /* … or its own, if it said that it stays */
	struct jit jit;
	pthread_mutex_t lock;
	struct kernel *kernels;
	struct loaded *loaded;
};

static struct library *library_of(CUlibrary library)
{
	return shim_object_of((uint64_t)(uintptr_t)library, KIND_CUlibrary);
}

CUresult hand_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	struct library *made;
	bool preserved = false;
	CUresult status;

	if (!library || !code || (numLibraryOptions && !libraryOptions))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numLibraryOptions; i++)
		if (libraryOptions[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			preserved = !libraryOptionValues || libraryOptionValues[i];
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&made->lock, NULL);
	lock_order_rank(&made->lock, LOCK_LIBRARY, "library->lock");
	status = jit_read(&made->jit, numJitOptions, jitOptions, jitOptionsValues);
	/* What the app gave to be written to may be gone when the image is loaded. */
	made->jit.info = made->jit.error = NULL;
	made->jit.info_used = made->jit.error_used = made->jit.wall = NULL;
	if (!status && !preserved)
		status = image_whole(code, &made->image);
	made->given = preserved ? code : made->image;
	if (!status) {
		made->handle = shim_mint(KIND_CUlibrary, made);
		if (!made->handle)
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status) {
		jit_free(&made->jit);
		free(made->image);
		free(made);
		return status;
	}
	*library = (CUlibrary)(uintptr_t)made->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	void *image;
	CUresult status;

	(void)libraryOptions;
	(void)libraryOptionValues;
	(void)numLibraryOptions;
	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	status = image_read(fileName, &image, NULL);
	if (status)
		return status;
	status = hand_cuLibraryLoadData(
		library, image, jitOptions, jitOptionsValues, numJitOptions, NULL, NULL, 0);
	free(image);
	return status;
}

/* The library's module in the current context, loaded on first use. */
static CUresult library_module(struct library *library, struct module **out)
{
	struct context *context = context_current();
	struct loaded *loaded;
	struct image image;
	struct jit jit = library->jit;
	CUresult status = CUDA_SUCCESS;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	context = context->home;
	pthread_mutex_lock(&library->lock);
	for (loaded = library->loaded; loaded; loaded = loaded->next)
		if (loaded->number == context->number && loaded->context_id == context->id)
			break;
	*out = loaded ? shim_object_of(loaded->module, KIND_CUmodule) : NULL;
	if (!*out) {
		loaded = calloc(1, sizeof(*loaded));
		status = loaded ? image_extract(library->given, context->device, &image)
				: CUDA_ERROR_OUT_OF_MEMORY;
		if (!status) {
			status = module_load(&image, &jit, library, out);
			free(image.bytes);
		}
		if (status) {
			free(loaded);
		} else {
			loaded->number = context->number;
			loaded->context_id = context->id;
			loaded->module = module_handle(*out);
			loaded->next = library->loaded;
			library->loaded = loaded;
		}
	}
	pthread_mutex_unlock(&library->lock);
	return status;
}

/* The same for what is asked of the library alone: a thread without a context is answered by
 * the first device's primary one, where there is one. */
static CUresult library_module_anywhere(struct library *library, struct module **out)
{
	struct context *before = thread_self.current, *primary = &devices.at[0].primary;
	CUresult status;

	if (context_current() || !atomic_load(&primary->live))
		return library_module(library, out);
	thread_set(primary);
	status = library_module(library, out);
	thread_set(before);
	return status;
}

CUresult library_function(uint64_t handle, struct function **out)
{
	struct kernel *kernel = shim_object_of(handle, KIND_CUkernel);
	struct module *module;
	CUresult status;

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	status = library_module(kernel->library, &module);
	return status ? status : module_function(module, kernel->name, out);
}

CUresult hand_cuLibraryUnload(CUlibrary library)
{
	struct library *gone = library_of(library);
	CUresult status = gone ? capture_unsafe() : CUDA_ERROR_INVALID_HANDLE;

	if (status)
		return status;
	if (!handle_release(gone->handle))
		return CUDA_ERROR_INVALID_HANDLE;
	while (gone->loaded) {
		struct loaded *loaded = gone->loaded;
		struct module *module = shim_object_of(loaded->module, KIND_CUmodule);
		struct context *before = thread_self.current;

		gone->loaded = loaded->next;
		free(loaded);
		if (!module)
			continue; /* went with its context */
		thread_set(module_context(module));
		if (!status)
			status = module_unload(module);
		else
			module_unload(module);
		thread_set(before);
	}
	while (gone->kernels) {
		struct kernel *kernel = gone->kernels;

		gone->kernels = kernel->next;
		shim_unmint(kernel->handle);
		free(kernel->name);
		free(kernel);
	}
	pthread_mutex_destroy(&gone->lock);
	jit_free(&gone->jit);
	free(gone->image);
	free(gone);
	return status;
}

/* ---- kernels ---- */

static struct kernel *kernel_of(CUkernel kernel)
{
	return shim_object_of((uint64_t)(uintptr_t)kernel, KIND_CUkernel);
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

CUresult hand_cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	struct library *library = library_of(lib);
	struct module *module;
	CUresult status;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	status = library_module_anywhere(library, &module);
	if (status)
		return status;
	return hand_cuModuleGetFunctionCount(count, (CUmodule)(uintptr_t)module_handle(module));
}

CUresult hand_cuLibraryEnumerateKernels(
	CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct library *library = library_of(lib);
	struct module *module;
	CUfunction *functions;
	unsigned count = 0;
	CUresult status;

	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!numKernels)
		return CUDA_SUCCESS;
	status = library_module_anywhere(library, &module);
	if (!status)
		status = hand_cuModuleGetFunctionCount(
			&count, (CUmodule)(uintptr_t)module_handle(module));
	if (status)
		return status;
	if (!count)
		return CUDA_SUCCESS;
	functions = calloc(count, sizeof(CUfunction));
	if (!functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = hand_cuModuleEnumerateFunctions(
		functions, count, (CUmodule)(uintptr_t)module_handle(module));
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

CUresult hand_cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct library *from = library_of(library);
	struct module *module;
	CUresult status;

	if (!pMod)
		return CUDA_ERROR_INVALID_VALUE;
	if (!from)
		return CUDA_ERROR_INVALID_HANDLE;
	status = library_module(from, &module);
	if (!status)
		*pMod = (CUmodule)(uintptr_t)module_handle(module);
	return status;
}

/* As on every machine whose GPUs lack UNIFIED_FUNCTION_POINTERS. */
CUresult hand_cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	(void)symbol;
	return library_of(library) || !fptr ? CUDA_ERROR_INVALID_VALUE
					    : CUDA_ERROR_INVALID_HANDLE;
}

CUresult hand_cuLibraryGetGlobal(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct library *from = library_of(library);
	struct module *module;
	CUresult status;

	if (!name || !*name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!from)
		return CUDA_ERROR_INVALID_HANDLE;
	status = library_module(from, &module);
	return status ? status : module_global(module, name, dptr, bytes);
}

CUresult hand_cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct library *from = library_of(library);
	CUdeviceptr address = 0;
	struct module *module;
	size_t size = 0;
	CUresult status;

	if (!name || !*name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!from)
		return CUDA_ERROR_INVALID_HANDLE;
	status = library_module(from, &module);
	if (!status)
		status = module_global(module, name, &address, &size);
	if (status == CUDA_ERROR_INVALID_VALUE)
		status = CUDA_ERROR_NOT_FOUND;
	if (!status)
		status = managed_variable(
			module_context(module), address, size, module_handle(module));
	if (status)
		return status;
	if (dptr)
		*dptr = address;
	if (bytes)
		*bytes = size;
	return CUDA_SUCCESS;
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
	return status ? status : function_attribute(function, (int)attrib, pi);
}

CUresult hand_cuKernelSetAttribute(
	CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	struct function *function;
	CUresult status = kernel_on(kernel, dev, &function);

	return status ? status : function_set(function, (int)attrib, val);
}

CUresult hand_cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	struct function *function;
	CUresult status = kernel_on(kernel, dev, &function);

	return status ? status : function_cache_config(function, config);
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
