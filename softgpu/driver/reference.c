/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures and surfaces: variables of a module that hold the number of what they
 * are bound to.  A setting changes that for launches behind it, so it waits for those before.
 */
#include "softgpu/driver/reference.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/texture.h"

static pthread_mutex_t reference_lock = PTHREAD_MUTEX_INITIALIZER;
static struct reference *references;

/* ---- references ---- */

/* The one over a variable that is asked for again is the same. */
static CUresult reference_get(struct CUctx_st *context, const struct CUmod_st *module,
	uint64_t variable, bool surface, struct reference **out)
{
	struct reference *r = NULL;

	pthread_mutex_lock(&reference_lock);
	for (r = module ? references : NULL; r && r->variable != variable;)
		r = r->next;
	if (!r) {
		r = calloc(1, sizeof(*r));
		if (r && !object_add(r, surface ? OBJECT_SURFREF : OBJECT_TEXREF)) {
			free(r);
			r = NULL;
		}
		if (r) {
			r->context = context;
			r->module = module;
			r->variable = variable;
			r->surface = surface;
			r->format = CU_AD_FORMAT_FLOAT;
			r->channels = 1;
			r->next = references;
			references = r;
		}
	}
	pthread_mutex_unlock(&reference_lock);
	*out = r;
	return r ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult reference_of(
	CUmodule module, const char *name, bool surface, struct reference **out)
{
	struct CUctx_st *context;
	uint64_t variable;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!object_is(module, OBJECT_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!module->ptx || !ptx_module_reference(module->ptx, name, surface, &variable))
		return CUDA_ERROR_NOT_FOUND;
	return reference_get(module->context, module, variable, surface, out);
}

CUresult cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	struct reference *r;
	CUresult ret;

	if (!pTexRef || !name)
		return CUDA_ERROR_INVALID_VALUE;
	ret = reference_of(hmod, name, false, &r);
	if (!ret)
		*pTexRef = (CUtexref)r;
	return ret;
}

CUresult cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	struct reference *r;
	CUresult ret;

	if (!pSurfRef || !name)
		return CUDA_ERROR_INVALID_VALUE;
	ret = reference_of(hmod, name, true, &r);
	if (!ret)
		*pSurfRef = (CUsurfref)r;
	return ret;
}

CUresult cuTexRefCreate(CUtexref *pTexRef)
{
	struct CUctx_st *context;
	struct reference *r;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pTexRef)
		return CUDA_ERROR_INVALID_VALUE;
	ret = reference_get(context, NULL, 0, false, &r);
	if (!ret)
		*pTexRef = (CUtexref)r;
	return ret;
}

/* Lock held. */
static void reference_delete(struct reference **at)
{
	struct reference *r = *at;

	*at = r->next;
	object_remove(r);
	if (r->number)
		ptx_texture_remove(r->number);
	free(r);
}

CUresult cuTexRefDestroy(CUtexref hTexRef)
{
	struct reference **at = &references;

	if (!object_is(hTexRef, OBJECT_TEXREF) || ((struct reference *)hTexRef)->module)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&reference_lock);
	while (*at && *at != (struct reference *)hTexRef)
		at = &(*at)->next;
	if (*at)
		reference_delete(at);
	pthread_mutex_unlock(&reference_lock);
	return CUDA_SUCCESS;
}

void reference_release_module(const struct CUmod_st *module)
{
	pthread_mutex_lock(&reference_lock);
	for (struct reference **at = &references; *at;)
		if ((*at)->module == module)
			reference_delete(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&reference_lock);
}

void reference_release_context(const struct CUctx_st *context)
{
	pthread_mutex_lock(&reference_lock);
	for (struct reference **at = &references; *at;)
		if ((*at)->context == context)
			reference_delete(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&reference_lock);
}

/* ---- what they are bound to ---- */

CUresult reference_begin(const void *handle, bool surface, struct reference **r)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!object_is(handle, surface ? OBJECT_SURFREF : OBJECT_TEXREF))
		return CUDA_ERROR_INVALID_VALUE;
	*r = (struct reference *)(uintptr_t)handle;
	queue_drain((*r)->context, 0);
	return CUDA_SUCCESS;
}

/* What cannot be as it is set now may be so by the next setting: a launch would tell. */
CUresult reference_end(struct reference *r)
{
	struct ptx_texture t = {0};

	if (r->resource.resType == CU_RESOURCE_TYPE_LINEAR) {
		r->resource.res.linear.format = r->format;
		r->resource.res.linear.numChannels = (unsigned)r->channels;
	}
	if (r->number)
		ptx_texture_remove(r->number);
	r->number = 0;
	if (r->bound &&
		!texture_describe(&t, &r->resource, r->surface ? NULL : &r->texture, NULL))
		r->number = ptx_texture_add(&t);
	if (r->variable)
		memcpy((void *)(uintptr_t)r->variable, &r->number, sizeof(r->number));
	return CUDA_SUCCESS;
}

static CUresult reference_bind(struct reference *r, const CUDA_RESOURCE_DESC *resource)
{
	r->resource = *resource;
	r->bound = true;
	return reference_end(r);
}

static CUresult bind_array(struct reference *r, CUarray array)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

	if (!object_is(array, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_VALUE;
	r->format = array->desc.Format;
	r->channels = (int)array->desc.NumChannels;
	resource.res.array.hArray = array;
	return reference_bind(r, &resource);
}

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	return Flags == CU_TRSA_OVERRIDE_FORMAT ? bind_array(r, hArray)
						: CUDA_ERROR_INVALID_VALUE;
}

CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
	struct reference *r;
	CUresult ret = reference_begin(hSurfRef, true, &r);

	if (ret)
		return ret;
	if (Flags || !object_is(hArray, OBJECT_ARRAY) ||
		!(hArray->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	return bind_array(r, hArray);
}

CUresult cuTexRefSetMipmappedArray(
	CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if (Flags != CU_TRSA_OVERRIDE_FORMAT || !object_is(hMipmappedArray, OBJECT_MIPMAPPED))
		return CUDA_ERROR_INVALID_VALUE;
	r->format = hMipmappedArray->desc.Format;
	r->channels = (int)hMipmappedArray->desc.NumChannels;
	resource.res.mipmap.hMipmappedArray = hMipmappedArray;
	return reference_bind(r, &resource);
}

CUresult cuTexRefSetAddress_v2(
	size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
	const size_t offset = dptr % TEXTURE_ALIGNMENT;
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if (!memory_mapped(dptr, bytes) || (offset && !ByteOffset))
		return CUDA_ERROR_INVALID_VALUE;
	if (ByteOffset)
		*ByteOffset = offset;
	resource.res.linear.devPtr = dptr - offset;
	resource.res.linear.sizeInBytes = bytes + offset;
	return reference_bind(r, &resource);
}

CUresult cuTexRefSetAddress2D_v3(
	CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
	struct ptx_texture t = {0};
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	resource.res.pitch2D.devPtr = dptr;
	resource.res.pitch2D.format = desc->Format;
	resource.res.pitch2D.numChannels = desc->NumChannels;
	resource.res.pitch2D.width = desc->Width;
	resource.res.pitch2D.height = desc->Height;
	resource.res.pitch2D.pitchInBytes = Pitch;
	ret = texture_describe(&t, &resource, &(CUDA_TEXTURE_DESC){0}, NULL);
	if (ret)
		return ret;
	r->format = desc->Format;
	r->channels = (int)desc->NumChannels;
	return reference_bind(r, &resource);
}

/* ---- questions ---- */

CUresult reference_ask(
	const void *handle, bool surface, const void *out, const struct reference **r)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!out || !object_is(handle, surface ? OBJECT_SURFREF : OBJECT_TEXREF))
		return CUDA_ERROR_INVALID_VALUE;
	*r = handle;
	return CUDA_SUCCESS;
}

static CUresult ask_array(CUarray *array, const void *handle, bool surface)
{
	const struct reference *r;
	CUresult ret = reference_ask(handle, surface, array, &r);

	if (ret)
		return ret;
	if (!r->bound || r->resource.resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	*array = r->resource.res.array.hArray;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
	return ask_array(phArray, hTexRef, false);
}

CUresult cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
	return ask_array(phArray, hSurfRef, true);
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, phMipmappedArray, &r);

	if (ret)
		return ret;
	if (!r->bound || r->resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	*phMipmappedArray = r->resource.res.mipmap.hMipmappedArray;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pdptr, &r);

	if (ret)
		return ret;
	if (r->bound && r->resource.resType == CU_RESOURCE_TYPE_LINEAR)
		*pdptr = r->resource.res.linear.devPtr;
	else if (r->bound && r->resource.resType == CU_RESOURCE_TYPE_PITCH2D)
		*pdptr = r->resource.res.pitch2D.devPtr;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
