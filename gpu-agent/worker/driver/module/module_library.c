/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of one library in several contexts, which have one set of managed variables: the
 * driver sees to that where it loads them as a library.  A module of the program's is the
 * library's in its context, and the library goes with the last of them.
 */
#include "gpu-agent/worker/driver/module/module.h"

#include <stdlib.h>

#include "gpu-agent/worker/loop/beside_call.h"

#define LIBRARY_MODULES 64u /* one in each context */

struct module_library {
	struct module_library *next;
	uint64_t number;
	CUlibrary library;
	uint32_t users; /* modules, and loads that are under way */
	uint32_t count;
	CUmodule modules[LIBRARY_MODULES];
};

uint64_t module_library_number(const struct image_option *jit, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes / sizeof(*jit); i++)
		if (jit[i].option == IMAGE_OPTION_LIBRARY)
			return jit[i].value;
	return 0;
}

static struct module_library *library_find(struct worker *w, uint64_t number)
{
	struct module_library *l = w->libraries;

	while (l && l->number != number)
		l = l->next;
	return l;
}

static struct module_library *library_new(struct worker *w, uint64_t number)
{
	struct module_library *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->number = number;
	l->next = w->libraries;
	w->libraries = l;
	return l;
}

/* One user less. */
static CUresult library_put(struct worker *w, struct module_library *l)
{
	struct module_library **at = &w->libraries;
	CUresult status = CUDA_SUCCESS;

	if (--l->users)
		return CUDA_SUCCESS;
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	if (l->library)
		status = w->cuda.cuLibraryUnload(l->library);
	free(l);
	return status;
}

CUresult module_library_load(struct worker *w, const struct request *r,
	const struct module_source *source, uint64_t number, CUmodule *module)
{
	struct module_library *l = library_find(w, number);
	CUlibrary library = NULL;
	CUresult status = CUDA_SUCCESS;

	if (!w->cuda.cuLibraryLoadData || !w->cuda.cuLibraryGetModule ||
		!w->cuda.cuLibraryUnload)
		return worker_lacks(w, "cuLibraryLoadData");
	if (!l)
		l = library_new(w, number);
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	l->users++;
	library = l->library;
	beside_leave(r);
	if (!library)
		status = w->cuda.cuLibraryLoadData(&library, source->image, source->options,
			source->values, source->count, NULL, NULL, 0);
	if (!status)
		status = w->cuda.cuLibraryGetModule(module, library);
	beside_enter(r);
	if (!l->library) {
		l->library = library;
	} else if (library && library != l->library) {
		/* Two loads at once, which no shim asks for. */
		w->cuda.cuLibraryUnload(library);
		status = CUDA_ERROR_INVALID_VALUE;
	}
	if (!status && l->count == LIBRARY_MODULES)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status)
		(void)library_put(w, l);
	else
		l->modules[l->count++] = *module;
	return status;
}

CUresult worker_module_unload(struct worker *w, CUmodule module)
{
	for (struct module_library *l = w->libraries; l; l = l->next)
		for (uint32_t i = 0; i < l->count; i++)
			if (l->modules[i] == module) {
				l->modules[i] = l->modules[--l->count];
				return library_put(w, l);
			}
	return w->cuda.cuModuleUnload(module);
}
