/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries: an image that belongs to no context, with a module of it in each context that
 * asks. The names of its kernels are read from the first such module, or from the image's own
 * where there is no context yet.
 */
#include "softgpu/driver/softgpu.h"

#include "softgpu/driver/module/placed.h"

#include <stdlib.h>
#include <string.h>

/* Under context_lock. */
struct CUkern_st {
	struct CUlib_st *library;
	char *name;
};
struct CUlib_st {
	struct image image;
	struct CUkern_st *kernels;
	size_t kernel_count;
	bool listed;		      /* the kernels are known */
	const struct CUmod_st *first; /* which has the managed variables of all; NULL: none */
	pthread_mutex_t lock;	      /* one load at a time; taken before context_lock */
};

void library_forget(struct CUmod_st *module)
{
	if (module->library && module->library->first == module)
		module->library->first = NULL;
	module->library = NULL;
}

/* The library's module in CONTEXT, or NULL; context_lock held. */
static struct CUmod_st *instance_find(struct CUlib_st *library, struct CUctx_st *context)
{
	struct CUmod_st *module = context->modules;

	while (module && module->library != library)
		module = module->next;
	return module;
}

static bool list_kernels(struct CUlib_st *library, const struct CUmod_st *module)
{
	struct CUkern_st *kernels;

	if (library->listed)
		return true;
	kernels = calloc(module->function_count ? module->function_count : 1, sizeof(*kernels));
	if (!kernels)
		return false;
	for (size_t i = 0; i < module->function_count; i++) {
		kernels[i].library = library;
		kernels[i].name = strdup(module->functions[i].name);
		if (!kernels[i].name || !object_add(&kernels[i], OBJECT_KERNEL)) {
			for (size_t k = 0; k <= i; k++) {
				object_remove(&kernels[k]);
				free(kernels[k].name);
			}
			free(kernels);
			return false;
		}
	}
	library->kernels = kernels;
	library->kernel_count = module->function_count;
	library->listed = true;
	return true;
}

/* The library's text with where its managed variables are, malloc'ed, if a module has them
 * already; else NULL. They are one for all devices. */
static CUresult instance_text(struct CUlib_st *library, char **text)
{
	enum { MANAGED = 1024 };
	const char *names[MANAGED];
	uint64_t addresses[MANAGED];
	struct placed placed = {.names = names, .addresses = (void *const *)addresses};
	CUresult ret = CUDA_SUCCESS;
	uint32_t at = 0;

	*text = NULL;
	pthread_mutex_lock(&context_lock);
	while (library->first && placed.count < MANAGED &&
		(names[placed.count] = ptx_module_managed_at(
			 library->first->ptx, &at, &addresses[placed.count])))
		placed.count++;
	if (placed.count)
		ret = placed_text(&placed, library->image.text, text);
	pthread_mutex_unlock(&context_lock);
	return ret;
}

static CUresult instance_from_text(struct CUlib_st *library, struct CUctx_st *context,
	struct jit_log *log, struct CUmod_st **out)
{
	char *text;
	CUresult ret = instance_text(library, &text);

	if (ret)
		return ret;
	ret = text ? module_from_text(context, text, strlen(text), log, out)
		   : module_from_text(
			     context, library->image.text, library->image.text_size, log, out);
	free(text);
	return ret;
}

static CUresult instance(struct CUlib_st *library, struct CUctx_st *context,
	struct jit_log *log, struct CUmod_st **out)
{
	struct CUmod_st *module;
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&library->lock);
	pthread_mutex_lock(&context_lock);
	module = instance_find(library, context);
	pthread_mutex_unlock(&context_lock);
	if (!module) {
		if (library->image.text)
			ret = instance_from_text(library, context, log, &module);
		else
			ret = module_from_names(context, library->image.names,
				library->image.names_size, &module);
		if (!ret) {
			pthread_mutex_lock(&context_lock);
			module->library = library;
			if (module->ptx && !library->first)
				library->first = module;
			pthread_mutex_unlock(&context_lock);
		}
	}
	if (!ret && !list_kernels(library, module))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&library->lock);
	if (!ret)
		*out = module;
	return ret;
}

/* The calling thread's context, or some device's primary one for a moment: what to read the
 * kernels' names with. */
static CUresult learn(struct CUlib_st *library, struct jit_log *log)
{
	struct CUctx_st *context;
	struct CUmod_st *module;
	CUresult ret = soft_context_current(&context);
	bool borrowed = ret == CUDA_ERROR_INVALID_CONTEXT;

	if (library->listed)
		return CUDA_SUCCESS;
	if (borrowed)
		ret = cuDevicePrimaryCtxRetain(&context, 0);
	if (ret)
		return ret;
	ret = instance(library, context, log, &module);
	if (borrowed)
		cuDevicePrimaryCtxRelease_v2(0);
	return ret;
}

static void library_delete(struct CUlib_st *library)
{
	for (size_t i = 0; i < library->kernel_count; i++) {
		object_remove(&library->kernels[i]);
		free(library->kernels[i].name);
	}
	object_remove(library);
	free(library->kernels);
	image_free(&library->image);
	pthread_mutex_destroy(&library->lock);
	free(library);
}

static CUresult load(CUlibrary *out, const void *data, size_t size, CUjit_option *options,
	void **values, unsigned count)
{
	struct CUlib_st *library;
	struct jit_log log;
	CUresult ret;

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!out || !data || (count && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	library = calloc(1, sizeof(*library));
	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&library->lock, NULL);
	image_log_init(&log, count, options, values);
	ret = soft_image_read(data, size, &library->image, &log);
	if (!ret)
		ret = learn(library, &log);
	if (!ret && !object_add(library, OBJECT_LIBRARY))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	if (ret)
		library_delete(library);
	else
		*out = library;
	return ret;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
	void **jitOptionsValues, unsigned int numJitOptions, CUlibraryOption *libraryOptions,
	void **libraryOptionValues, unsigned int numLibraryOptions)
{
	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	return load(library, code, SIZE_MAX, jitOptions, jitOptionsValues, numJitOptions);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *fileName,
	CUjit_option *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	CUlibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	size_t size;
	void *data;
	CUresult ret = image_read_file(fileName, &data, &size);

	(void)libraryOptions, (void)libraryOptionValues, (void)numLibraryOptions;
	if (ret)
		return ret;
	ret = load(library, data, size, jitOptions, jitOptionsValues, numJitOptions);
	free(data);
	return ret;
}

static CUresult library_check(CUlibrary library)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	return object_is(library, OBJECT_LIBRARY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Its modules go with it, once their contexts' work is done. */
CUresult cuLibraryUnload(CUlibrary library)
{
	CUresult ret = library_check(library);

	if (ret)
		return ret;
	object_remove(library);
	for (;;) {
		struct CUctx_st *context = context_with_library(library);
		struct CUmod_st *module;

		if (!context)
			break;
		queue_drain(context, 0);
		pthread_mutex_lock(&context_lock);
		module = instance_find(library, context);
		if (module)
			module_free(module);
		pthread_mutex_unlock(&context_lock);
		context_unref(context);
	}
	library_delete(library);
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *pMod, CUlibrary library)
{
	struct CUctx_st *context;
	CUresult ret = library_check(library);

	if (!ret)
		ret = soft_context_current(&context);
	if (ret)
		return ret;
	return pMod ? instance(library, context, NULL, pMod) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryGetGlobal(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct CUctx_st *context;
	struct CUmod_st *module;
	CUresult ret = library_check(library);

	if (!ret)
		ret = soft_context_current(&context);
	if (ret)
		return ret;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	ret = instance(library, context, NULL, &module);
	return ret ? ret : soft_module_global(module, name, dptr, bytes);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary lib)
{
	CUresult ret = library_check(lib);

	if (ret)
		return ret;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned)lib->kernel_count;
	return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	CUresult ret = library_check(lib);

	if (ret)
		return ret;
	if (!kernels)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numKernels && i < lib->kernel_count; i++)
		kernels[i] = &lib->kernels[i];
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
	CUresult ret = library_check(library);

	if (ret)
		return ret;
	if (!pKernel || !name)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < library->kernel_count; i++)
		if (!strcmp(library->kernels[i].name, name)) {
			*pKernel = &library->kernels[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult soft_library_function(
	CUkernel kernel, struct CUctx_st *context, struct CUfunc_st **function)
{
	struct CUmod_st *module;
	CUresult ret = instance(kernel->library, context, NULL, &module);

	if (ret)
		return ret;
	return module_kernel(module, kernel->name, function);
}

static CUresult kernel_check(CUkernel kernel)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	return object_is(kernel, OBJECT_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct CUctx_st *context;
	CUresult ret = kernel_check(kernel);

	if (!ret)
		ret = soft_context_current(&context);
	if (ret)
		return ret;
	return pFunc ? soft_library_function(kernel, context, pFunc) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	CUresult ret = kernel_check(kernel);

	if (ret)
		return ret;
	if (!pLib)
		return CUDA_ERROR_INVALID_VALUE;
	*pLib = kernel->library;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	CUresult ret = kernel_check(hfunc);

	if (ret)
		return ret;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = hfunc->name;
	return CUDA_SUCCESS;
}

/* A kernel's function on a device: in the current context if that is the device's, else in its
 * primary one. */
static CUresult function_on(CUkernel kernel, CUdevice dev, struct CUfunc_st **function)
{
	struct CUctx_st *context;
	unsigned flags;
	int active;
	CUresult ret = kernel_check(kernel);

	if (ret)
		return ret;
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	ret = soft_context_current(&context);
	if (!ret && context->device->ordinal == dev)
		return soft_library_function(kernel, context, function);
	/* What is set is kept in the context's module, so one that is made for it stays. */
	ret = cuDevicePrimaryCtxGetState(dev, &flags, &active);
	if (!ret)
		ret = cuDevicePrimaryCtxRetain(&context, dev);
	if (ret)
		return ret;
	ret = soft_library_function(kernel, context, function);
	if (active)
		cuDevicePrimaryCtxRelease_v2(dev);
	return ret;
}

CUresult cuKernelGetAttribute(
	int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	struct CUfunc_st *function;
	CUresult ret = function_on(kernel, dev, &function);

	if (ret)
		return ret;
	return pi ? soft_function_attribute(function, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuKernelSetAttribute(
	CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	struct CUfunc_st *function;
	CUresult ret = function_on(kernel, dev, &function);

	return ret ? ret : function_set_attribute(function, attrib, val);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	struct CUfunc_st *function;
	CUresult ret = function_on(kernel, dev, &function);

	if (ret)
		return ret;
	if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	function->cache_config = config;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(
	CUkernel kernel, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct CUfunc_st *function;
	struct CUctx_st *context;
	CUresult ret = kernel_check(kernel);

	if (!ret)
		ret = soft_context_current(&context);
	if (!ret)
		ret = soft_library_function(kernel, context, &function);
	return ret ? ret : cuFuncGetParamInfo(function, paramIndex, paramOffset, paramSize);
}

/* Neither managed variables nor unified functions exist here. */
CUresult cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	CUresult ret = library_check(library);

	(void)dptr, (void)bytes, (void)name;
	return ret ? ret : CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetUnifiedFunction(void **fptr, CUlibrary library, const char *symbol)
{
	CUresult ret = library_check(library);

	(void)fptr, (void)symbol;
	return ret ? ret : CUDA_ERROR_NOT_FOUND;
}
