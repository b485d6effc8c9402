/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures and surfaces: variables of modules that programs bind to memory before
 * they launch.  What one is set to is the driver's to know, who tells it too; here are their
 * names.  All is awaited: a binding that fails is told by the call that made it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/module/module.h"
#include "shim/driver/array/reference.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/lock.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

static struct {
	pthread_mutex_t lock;
	struct reference *first;
} references = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(references, references.lock, LOCK_REFERENCE);

/* ---- names ---- */

static CUresult reference_call_get(const struct reference *reference)
{
	struct shim_call call;
	struct wire_vcudaTextureReference *texture;
	struct wire_vcudaSurfaceReference *surface;

	if (reference->kind == KIND_CUtexref) {
		texture = shim_begin(&call, OP_vcudaTextureReference, sizeof(*texture));
		texture->reference = reference->handle;
		texture->module = reference->module;
		shim_put_string(&call, &texture->name, reference->name);
	} else {
		surface = shim_begin(&call, OP_vcudaSurfaceReference, sizeof(*surface));
		surface->reference = reference->handle;
		surface->module = reference->module;
		shim_put_string(&call, &surface->name, reference->name);
	}
	/* No variable has a name of that length. */
	if (call.status == CUDA_ERROR_NOT_SUPPORTED)
		call.status = CUDA_ERROR_NOT_FOUND;
	shim_wait(&call, 0);
	return shim_end(&call);
}

/* Lock held. */
static CUresult reference_new(struct context *context, uint64_t module, enum handle_kind kind,
	const char *name, struct reference **out)
{
	struct context *before = thread_self.current;
	struct reference *reference = calloc(1, sizeof(*reference) + strlen(name) + 1);
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	if (!reference)
		return status;
	reference->module = module;
	reference->context = context;
	reference->kind = kind;
	memcpy(reference->name, name, strlen(name) + 1);
	reference->handle = shim_mint(kind, reference);
	if (reference->handle) {
		/* It lives in the module's context, whichever is current. */
		thread_set(context);
		status = reference_call_get(reference);
		thread_set(before);
		if (status)
			shim_unmint(reference->handle);
	}
	if (status) {
		free(reference);
		return status;
	}
	reference->next = references.first;
	references.first = reference;
	*out = reference;
	return CUDA_SUCCESS;
}

static CUresult reference_of_module(
	CUmodule hmod, const char *name, enum handle_kind kind, uint64_t *handle)
{
	struct module *module = shim_object_of((uint64_t)(uintptr_t)hmod, KIND_CUmodule);
	struct reference *reference;
	CUresult status = CUDA_SUCCESS;
	uint64_t of;

	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	of = module_handle(module);
	pthread_mutex_lock(&references.lock);
	for (reference = references.first; reference; reference = reference->next)
		if (reference->module == of && reference->kind == kind &&
			!strcmp(reference->name, name))
			break;
	if (!reference)
		status = reference_new(module_context(module), of, kind, name, &reference);
	if (!status)
		*handle = reference->handle;
	pthread_mutex_unlock(&references.lock);
	return status;
}

/* Those of a module, or of a context, that goes; the worker drops their names with it. */
static void reference_gone(uint64_t module, const struct context *context)
{
	pthread_mutex_lock(&references.lock);
	for (struct reference **at = &references.first, *reference; (reference = *at);) {
		if (module ? reference->module != module : reference->context != context) {
			at = &reference->next;
			continue;
		}
		*at = reference->next;
		handle_retire(reference->handle);
		free(reference);
	}
	pthread_mutex_unlock(&references.lock);
}

void reference_module_gone(uint64_t module)
{
	reference_gone(module, NULL);
}

void reference_reset(const struct context *context)
{
	reference_gone(0, context);
}

CUresult hand_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	uint64_t handle;
	CUresult status;

	if (!pTexRef || !name)
		return CUDA_ERROR_INVALID_VALUE;
	status = reference_of_module(hmod, name, KIND_CUtexref, &handle);
	if (!status)
		*pTexRef = (CUtexref)(uintptr_t)handle;
	return status;
}

CUresult hand_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	uint64_t handle;
	CUresult status;

	if (!pSurfRef || !name)
		return CUDA_ERROR_INVALID_VALUE;
	status = reference_of_module(hmod, name, KIND_CUsurfref, &handle);
	if (!status)
		*pSurfRef = (CUsurfref)(uintptr_t)handle;
	return status;
}

CUresult hand_cuTexRefCreate(CUtexref *pTexRef)
{
	struct context *context = context_current();
	struct reference *reference;
	CUresult status;

	if (!pTexRef)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&references.lock);
	status = reference_new(context->home, 0, KIND_CUtexref, "", &reference);
	if (!status)
		*pTexRef = (CUtexref)(uintptr_t)reference->handle;
	pthread_mutex_unlock(&references.lock);
	return status;
}

const struct reference *reference_find(uint64_t handle, enum handle_kind kind)
{
	return shim_object_of(handle, kind);
}

CUresult hand_cuTexRefDestroy(CUtexref hTexRef)
{
	const uint64_t handle = (uint64_t)(uintptr_t)hTexRef;
	const struct reference *reference = reference_find(handle, KIND_CUtexref);

	/* A module's goes with the module. */
	if (!reference || reference->module)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&references.lock);
	for (struct reference **at = &references.first; *at; at = &(*at)->next)
		if (*at == reference) {
			*at = reference->next;
			break;
		}
	pthread_mutex_unlock(&references.lock);
	if (!handle_release(handle))
		return CUDA_ERROR_INVALID_VALUE;
	free((void *)(uintptr_t)reference);
	return send_vcudaReferenceDestroy(handle);
}
