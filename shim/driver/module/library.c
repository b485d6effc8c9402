/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries: modules that belong to no context.  The image is kept, and loaded into a context
 * when one of its kernels or variables is first used there.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/engine/engine.h"
#include "shim/driver/module/kernel_settings.h"
#include "shim/driver/module/library_core.h"
#include "shim/engine/handle.h"
#include "shim/driver/module/module.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

struct library *library_of(CUlibrary library)
{
	return shim_object_of((uint64_t)(uintptr_t)library, KIND_CUlibrary);
}

/* The JIT's text goes to where the app wants it, and only now: what it gave to be written to
 * may be gone later. That there is no code is told later, as natively. */
static void library_tell(struct library *library)
{
	struct jit *jit = &library->jit;
	struct module *module;

	if (jit->info || jit->error)
		(void)library_module_anywhere(library, &module);
	jit->info = jit->error = NULL;
	jit->info_used = jit->error_used = jit->wall = NULL;
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
		else if ((unsigned)libraryOptions[i] >= CU_LIBRARY_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	made = calloc(1, sizeof(*made));
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&made->lock, NULL);
	lock_order_rank(&made->lock, LOCK_LIBRARY, "library->lock");
	status = image_jit_read(&made->jit, numJitOptions, jitOptions, jitOptionsValues);
	for (unsigned i = 0; !status && i < numJitOptions; i++)
		if ((unsigned)jitOptions[i] >= CU_JIT_NUM_OPTIONS)
			status = CUDA_ERROR_INVALID_VALUE;
	if (!status && !preserved)
		status = image_whole(code, &made->image);
	made->given = preserved ? code : made->image;
	if (!status) {
		made->handle = shim_mint(KIND_CUlibrary, made);
		if (!made->handle)
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status) {
		image_jit_free(&made->jit);
		free(made->image);
		free(made);
		return status;
	}
	library_tell(made);
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

	if (!library || !fileName)
		return CUDA_ERROR_INVALID_VALUE;
	status = image_read(fileName, &image, NULL);
	if (status)
		return status;
	/* What is read from a file is not the program's to preserve. */
	for (unsigned i = 0; libraryOptions && i < numLibraryOptions; i++)
		if (libraryOptions[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = hand_cuLibraryLoadData(library, image, jitOptions, jitOptionsValues,
			numJitOptions, libraryOptions, libraryOptionValues, numLibraryOptions);
	free(image);
	return status;
}

CUresult library_module(struct library *library, struct module **out)
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
		if (library->shares && jit.count < sizeof(jit.options) / sizeof(jit.options[0]))
			jit.options[jit.count++] = (struct image_option){
				.option = IMAGE_OPTION_LIBRARY, .value = library->handle};
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

CUresult library_module_anywhere(struct library *library, struct module **out)
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
		kernel_settings_free(kernel);
		free(kernel->name);
		free(kernel);
	}
	pthread_mutex_destroy(&gone->lock);
	image_jit_free(&gone->jit);
	free(gone->image);
	free(gone);
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

/* Modules of it that are there already keep variables of their own. */
static void library_share(struct library *library)
{
	pthread_mutex_lock(&library->lock);
	if (devices.count > 1 && !library->loaded && !library->jit.symbols)
		library->shares = true;
	pthread_mutex_unlock(&library->lock);
}

CUresult hand_cuLibraryGetManaged(
	CUdeviceptr *dptr, size_t *bytes, CUlibrary library, const char *name)
{
	struct library *from = library_of(library);
	CUdeviceptr address = 0;
	struct module *module;
	size_t size = 0;
	CUresult status;
	bool managed;

	if (!name || !*name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!from)
		return CUDA_ERROR_INVALID_HANDLE;
	library_share(from);
	status = library_module(from, &module);
	if (!status)
		status = module_global(module, name, &address, &size);
	if (status == CUDA_ERROR_INVALID_VALUE)
		status = CUDA_ERROR_NOT_FOUND;
	if (!status)
		status = module_global_managed(module, name, &managed);
	if (!status && !managed)
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
