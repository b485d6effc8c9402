/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's calls about modules: see module.h.
 */
#include "shim/driver/module/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/array/reference.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/thread.h"

CUresult module_names(struct module *module, uint32_t first, uint32_t *total,
	void (*each)(const char *name, void *argument), void *argument)
{
	CUresult status;
	uint32_t left;

	do {
		struct shim_call call;
		struct wire_vcudaModuleNames *body;
		const struct wire_vcudaModuleNames_reply *reply;
		const char *names;
		size_t n, at = 0;

		left = 0;
		body = shim_begin(&call, OP_vcudaModuleNames, sizeof(*body));
		body->module = module_handle(module);
		body->first = first;
		reply = shim_wait_cached(&call, sizeof(*reply));
		if (reply) {
			uint32_t count = reply->count;

			*total = reply->total;
			names = shim_run(&call, &reply->names, &n);
			for (uint32_t i = 0; each && names && i < count && at < n; i++) {
				size_t length = strnlen(names + at, n - at);
				char name[2048];

				if (at + length == n || length >= sizeof(name))
					break;
				memcpy(name, names + at, length + 1);
				each(name, argument);
				at += length + 1;
			}
			first += count;
			left = each && count && first < *total;
		}
		status = shim_end(&call);
	} while (!status && left);
	return status;
}

CUresult hand_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
	CUjit_option *options, void **optionValues)
{
	struct context *context = context_current();
	struct module *loaded;
	struct image taken;
	struct jit jit;
	CUresult status;

	if (!module || !image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	status = image_jit_read(&jit, numOptions, options, optionValues);
	if (!status)
		status = image_extract(image, context->device, &taken);
	if (!status) {
		status = module_load(&taken, &jit, NULL, &loaded);
		free(taken.bytes);
	}
	image_jit_free(&jit);
	if (!status)
		*module = (CUmodule)(uintptr_t)module_handle(loaded);
	return status;
}

CUresult hand_cuModuleLoad(CUmodule *module, const char *fname)
{
	void *image;
	CUresult status;

	if (!module || !fname)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	status = image_read(fname, &image, NULL);
	if (status)
		return status;
	status = hand_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
	free(image);
	return status;
}

CUresult hand_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

CUresult hand_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct module *module = module_of(hmod);
	struct function *function;
	CUresult status;

	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!hfunc || !name || !*name)
		return CUDA_ERROR_INVALID_VALUE;
	*hfunc = NULL;
	status = module_function(module, name, &function);
	if (!status)
		*hfunc = (CUfunction)(uintptr_t)function->handle;
	return status;
}

CUresult hand_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct module *module = module_of(mod);
	uint32_t total = 0;
	CUresult status;

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	status = module_names(module, 0, &total, NULL, NULL);
	if (!status)
		*count = total;
	return status;
}

struct enumeration {
	struct module *module;
	CUfunction *functions;
	unsigned count, room;
	CUresult status;
};

static void enumerate_one(const char *name, void *argument)
{
	struct enumeration *e = argument;
	struct function *function;

	if (e->status || e->count == e->room)
		return;
	e->status = module_function_told(e->module, name, &function);
	if (!e->status)
		e->functions[e->count++] = (CUfunction)(uintptr_t)function->handle;
}

/* Collected first: asking for a function inside the walk would reuse the scratch that the names
 * lie in. */
struct name_list {
	char **names;
	unsigned count, room;
};

static void name_keep(const char *name, void *argument)
{
	struct name_list *list = argument;

	if (list->count < list->room)
		list->names[list->count++] = strdup(name);
}

CUresult hand_cuModuleEnumerateFunctions(
	CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct enumeration e = {
		.module = module_of(mod), .functions = functions, .room = numFunctions};
	struct name_list list = {.room = numFunctions};
	uint32_t total = 0;
	CUresult status;

	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e.module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!numFunctions)
		return CUDA_SUCCESS;
	list.names = calloc(numFunctions, sizeof(*list.names));
	if (!list.names)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = module_names(e.module, 0, &total, name_keep, &list);
	for (unsigned i = 0; i < list.count; i++) {
		if (!status && list.names[i])
			enumerate_one(list.names[i], &e);
		free(list.names[i]);
	}
	free(list.names);
	return status ? status : e.status;
}

CUresult hand_cuModuleGetGlobal_v2(
	CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct module *module = module_of(hmod);

	if (dptr)
		*dptr = 0;
	if (bytes)
		*bytes = 0;
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !*name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return module_global(module, name, dptr, bytes);
}

CUresult module_global_managed(const struct module *module, const char *name, bool *managed)
{
	const struct wire_vcudaGlobalManaged_reply *reply;
	struct wire_vcudaGlobalManaged *body;
	struct shim_call call;
	CUresult status;

	body = shim_begin(&call, OP_vcudaGlobalManaged, sizeof(*body));
	body->module = module_handle(module);
	shim_put_string(&call, &body->name, name);
	reply = shim_wait_cached(&call, sizeof(*reply));
	*managed = !reply || reply->managed;
	status = shim_end(&call);
	return status == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : status;
}
