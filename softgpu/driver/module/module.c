/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: PTX handed to the interpreter, its globals laid out in device memory, a function
 * object a kernel.  A fat binary that holds machine code only loads too, with the names that it
 * has, so that a program that never launches from it runs: its kernels are refused when they
 * are asked for, which a launch does.
 */
#include "softgpu/driver/array.h"
#include "softgpu/driver/launch_core.h"
#include "softgpu/driver/module/placed.h"
#include "softgpu/driver/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whose the variables of a module are to be. */
struct home {
	struct CUctx_st *context;
	bool everywhere; /* some are managed, which all devices reach */
};

static uint64_t allocate_globals(void *arg, size_t size, size_t align)
{
	const struct home *home = arg;
	struct CUctx_st *context = home->context;
	uint64_t address = 0;

	if (home->everywhere ? memory_allocate_open(context, size, align, &address)
			     : memory_allocate(context, context->device, size, align,
				       BLOCK_DEVICE, NULL, &address))
		return 0;
	return address;
}

static CUresult result_of(enum ptx_status status)
{
	switch (status) {
	case PTX_NO_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
	case PTX_NOT_SUPPORTED: return CUDA_ERROR_NOT_SUPPORTED;
	case PTX_VERSION: return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	default: return CUDA_ERROR_INVALID_PTX;
	}
}

/* Both loads end here: functions for COUNT names, and the module's place in its context. */
static CUresult module_finish(struct CUmod_st *module, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!module->functions[i].name ||
			!object_add(&module->functions[i], OBJECT_FUNCTION))
			return CUDA_ERROR_OUT_OF_MEMORY;
	if (!object_add(module, OBJECT_MODULE))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&context_lock);
	module->next = module->context->modules;
	module->context->modules = module;
	pthread_mutex_unlock(&context_lock);
	return CUDA_SUCCESS;
}

static struct CUmod_st *module_new(struct CUctx_st *context, size_t count)
{
	struct CUmod_st *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	module->functions = calloc(count ? count : 1, sizeof(*module->functions));
	if (!module->functions) {
		free(module);
		return NULL;
	}
	atomic_init(&module->refs, 1);
	module->function_count = count;
	module->context = context;
	context_ref(context);
	for (size_t i = 0; i < count; i++) {
		module->functions[i].module = module;
		module->functions[i].carveout = -1;
	}
	return module;
}

void module_get(struct CUmod_st *module)
{
	atomic_fetch_add(&module->refs, 1);
}

void module_put(struct CUmod_st *module)
{
	if (atomic_fetch_sub(&module->refs, 1) > 1)
		return;
	for (size_t i = 0; i < module->function_count; i++)
		free(module->functions[i].name);
	if (module->ptx)
		ptx_module_free(module->ptx);
	context_unref(module->context);
	free(module->functions);
	free(module);
}

/* Its names and variables; it is in no list any more. */
static void module_delete(struct CUmod_st *module)
{
	uint64_t block = 0;
	size_t size = 0;

	object_remove(module);
	reference_release_module(module);
	for (size_t i = 0; i < module->function_count; i++)
		object_remove(&module->functions[i]);
	if (module->ptx)
		block = ptx_module_block(module->ptx, &size);
	if (block)
		memory_release(block, BLOCK_DEVICE);
	module_put(module);
}

void module_free(struct CUmod_st *module)
{
	struct CUmod_st **at = &module->context->modules;

	while (*at && *at != module)
		at = &(*at)->next;
	if (*at)
		*at = module->next;
	library_forget(module);
	module_delete(module);
}

/* What NVIDIA's compiler tells of a kernel, as far as there is such a thing here. */
static void tell_kernel(struct jit_log *log, const struct ptx_kernel_info *info)
{
	char line[320];

	snprintf(line, sizeof(line), "Function properties for '%.200s':", info->name);
	image_log_info(log, line);
	snprintf(line, sizeof(line), "used %u registers, %zu bytes smem, %zu bytes lmem",
		(unsigned)info->registers, (size_t)info->static_shared,
		(size_t)info->local_bytes);
	image_log_info(log, line);
}

CUresult module_from_text(struct CUctx_st *context, const char *text, size_t n,
	struct jit_log *log, struct CUmod_st **out)
{
	struct home home = {context, memmem(text, n, ".managed", 8)};
	struct ptx_error error = {0};
	struct ptx_module *ptx;
	struct CUmod_st *module;
	CUresult ret;

	ptx = ptx_module_load(text, n, allocate_globals, &home,
		context->limits[CU_LIMIT_MALLOC_HEAP_SIZE], &error);
	if (!ptx) {
		char line[320];

		if (error.line)
			snprintf(line, sizeof(line), "PTX line %d: %s", error.line, error.text);
		else
			snprintf(line, sizeof(line), "PTX: %s", error.text);
		image_log_error(log, line);
		return result_of(error.status);
	}
	module = module_new(context, ptx_module_kernel_count(ptx));
	if (!module) {
		ptx_module_free(ptx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->ptx = ptx;
	for (size_t i = 0; i < module->function_count; i++) {
		struct CUfunc_st *function = &module->functions[i];

		function->kernel = ptx_module_kernel_at(ptx, i);
		ptx_kernel_info(function->kernel, &function->info);
		function->name = strdup(function->info.name);
		function_limits(function);
		if (log && log->max_registers && function->info.registers > log->max_registers)
			function->info.registers = log->max_registers;
		tell_kernel(log, &function->info);
	}
	ret = module_finish(module, module->function_count);
	if (ret)
		module_delete(module);
	else
		*out = module;
	return ret;
}

CUresult module_from_names(
	struct CUctx_st *context, const char *names, size_t size, struct CUmod_st **out)
{
	struct CUmod_st *module;
	size_t count = 0, i = 0;
	CUresult ret;

	for (size_t at = 0; at < size; at += strlen(names + at) + 1)
		count++;
	module = module_new(context, count);
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t at = 0; at < size; at += strlen(names + at) + 1) {
		module->functions[i].name = strdup(names + at);
		module->functions[i].info.max_threads = THREADS_PER_BLOCK;
		module->functions[i++].info.registers = 32;
	}
	ret = module_finish(module, count);
	if (ret)
		module_delete(module);
	else
		*out = module;
	return ret;
}

struct CUfunc_st *soft_module_function(struct CUmod_st *module, const char *name)
{
	for (size_t i = 0; i < module->function_count; i++)
		if (!strcmp(module->functions[i].name, name))
			return &module->functions[i];
	return NULL;
}

CUresult module_kernel(struct CUmod_st *module, const char *name, struct CUfunc_st **function)
{
	*function = soft_module_function(module, name);
	if (!*function)
		return CUDA_ERROR_NOT_FOUND;
	if ((*function)->kernel)
		return CUDA_SUCCESS;
	soft_log_problem("kernel %s: machine code only: the software GPU runs PTX", name);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult soft_module_global(
	struct CUmod_st *module, const char *name, CUdeviceptr *address, size_t *size)
{
	uint64_t at = 0;
	size_t bytes = 0;

	if (!module->ptx || !ptx_module_global(module->ptx, name, &at, &bytes))
		return CUDA_ERROR_NOT_FOUND;
	if (address)
		*address = at;
	if (size)
		*size = bytes;
	return CUDA_SUCCESS;
}

bool module_managed(const struct CUctx_st *context, uint64_t address)
{
	bool managed = false;

	pthread_mutex_lock(&context_lock);
	for (const struct CUmod_st *m = context->modules; m && !managed; m = m->next)
		managed = m->ptx && ptx_module_managed(m->ptx, address);
	pthread_mutex_unlock(&context_lock);
	return managed;
}

/* ---- the calls ---- */

/* The text says where variables are, before anything else. */
static CUresult image_placed(const struct placed *placed, struct image *image)
{
	char *text;
	CUresult ret = placed_text(placed, image->text, &text);

	if (ret)
		return ret;
	free(image->text);
	image->text = text;
	image->text_size = strlen(text);
	return CUDA_SUCCESS;
}

/* As on a GPU, loading waits for what the context was given before, host functions too. */
static CUresult load(CUmodule *module, const void *data, size_t size, unsigned count,
	CUjit_option *options, void **values)
{
	struct CUctx_st *context;
	struct jit_log log;
	struct placed placed;
	struct image image;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!module || !data || (count && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	ret = placed_read(&placed, count, options, values);
	if (ret)
		return ret;
	context_ref(context);
	queue_drain(context, 0);
	image_log_init(&log, count, options, values);
	ret = soft_image_read(data, size, &image, &log);
	if (!ret && image.text && placed.count)
		ret = image_placed(&placed, &image);
	if (!ret && image.text)
		ret = module_from_text(context, image.text, image.text_size, &log, module);
	else if (!ret)
		ret = module_from_names(context, image.names, image.names_size, module);
	image_free(&image);
	context_unref(context);
	return ret;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	return load(module, image, SIZE_MAX, numOptions, options, optionValues);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(module, image, SIZE_MAX, 0, NULL, NULL);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return load(module, fatCubin, SIZE_MAX, 0, NULL, NULL);
}

CUresult cuModuleLoad(CUmodule *module, const char *fname)
{
	size_t size;
	void *data;
	CUresult ret = image_read_file(fname, &data, &size);

	if (ret)
		return ret;
	ret = load(module, data, size, 0, NULL, NULL);
	free(data);
	return ret;
}

/* A launch that is queued still needs the module's kernels. */
CUresult cuModuleUnload(CUmodule hmod)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	pthread_mutex_lock(&context_lock);
	if (!object_is(hmod, OBJECT_MODULE) || hmod->library) {
		pthread_mutex_unlock(&context_lock);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	object_remove(hmod);
	context = hmod->context;
	context_ref(context);
	pthread_mutex_unlock(&context_lock);
	queue_drain(context, 0);
	pthread_mutex_lock(&context_lock);
	module_free(hmod);
	pthread_mutex_unlock(&context_lock);
	context_unref(context);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

static CUresult module_check(CUmodule module)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	return object_is(module, OBJECT_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	CUresult ret = module_check(hmod);
	struct CUfunc_st *function;

	if (ret)
		return ret;
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	ret = module_kernel(hmod, name, &function);
	if (!ret)
		*hfunc = function;
	return ret;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	CUresult ret = module_check(hmod);

	if (ret)
		return ret;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return soft_module_global(hmod, name, dptr, bytes);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	CUresult ret = module_check(mod);

	if (ret)
		return ret;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (unsigned)mod->function_count;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	CUresult ret = module_check(mod);

	if (ret)
		return ret;
	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numFunctions && i < mod->function_count; i++)
		functions[i] = &mod->functions[i];
	return CUDA_SUCCESS;
}
