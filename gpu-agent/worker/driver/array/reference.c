/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures and surfaces.  A module's go with it; the driver knows what they are
 * set to.  It believes the memory and the enums that it is given, so these are checked here.
 */
#include <string.h>

#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/handle.h"
#include "protocol/wire/reference.h"

/* They are deprecated, and drivers have them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* ---- names ---- */

CUresult serve_vcudaTextureReference(struct worker *w, struct request *r)
{
	const struct wire_vcudaTextureReference *req = (const void *)r->body;
	CUmodule module = req->module ? worker_handle(w, r, req->module, KIND_CUmodule) : NULL;
	const char *name = worker_string(r, &req->name);
	CUtexref reference = NULL;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuModuleGetTexRef || !w->cuda.cuTexRefCreate || !w->cuda.cuTexRefDestroy)
		return worker_lacks(w, "cuModuleGetTexRef");
	status = module ? w->cuda.cuModuleGetTexRef(&reference, module, name)
			: w->cuda.cuTexRefCreate(&reference);
	if (status)
		return status;
	worker_bind(w, r, req->reference, KIND_CUtexref, reference);
	if (!worker_refused(r))
		handles_own(w, req->reference, req->module);
	else if (!module)
		w->cuda.cuTexRefDestroy(reference);
	return r->refused;
}

CUresult serve_vcudaSurfaceReference(struct worker *w, struct request *r)
{
	const struct wire_vcudaSurfaceReference *req = (const void *)r->body;
	CUmodule module = worker_handle(w, r, req->module, KIND_CUmodule);
	const char *name = worker_string(r, &req->name);
	CUsurfref reference = NULL;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuModuleGetSurfRef)
		return worker_lacks(w, "cuModuleGetSurfRef");
	status = w->cuda.cuModuleGetSurfRef(&reference, module, name);
	if (status)
		return status;
	worker_bind(w, r, req->reference, KIND_CUsurfref, reference);
	if (!worker_refused(r))
		handles_own(w, req->reference, req->module);
	return r->refused;
}

CUresult serve_vcudaReferenceDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaReferenceDestroy *req = (const void *)r->body;
	struct name *name = handles_find(w, req->reference, KIND_CUtexref);
	CUtexref reference = name ? name->object : NULL;

	/* A module's goes with the module. */
	if (!name || name->owner)
		return CUDA_ERROR_INVALID_VALUE;
	handles_forget(w, name);
	return w->cuda.cuTexRefDestroy(reference);
}

/* ---- what is set ---- */

static CUresult set_array(struct worker *w, struct request *r, void *reference,
	enum reference_what what, const struct reference_setting *s)
{
	const struct worker_array *array = worker_handle(w, r, s->place, KIND_CUarray);

	if (!array)
		return r->refused;
	if ((what == REFERENCE_MIPMAPPED) != (array->mipmap != NULL))
		return CUDA_ERROR_INVALID_VALUE;
	if (what == REFERENCE_MIPMAPPED)
		return w->cuda.cuTexRefSetMipmappedArray(reference, array->mipmap, s->flags);
	return what == REFERENCE_ARRAY
		       ? w->cuda.cuTexRefSetArray(reference, array->array, s->flags)
		       : w->cuda.cuSurfRefSetArray(reference, array->array, s->flags);
}

static CUresult set_memory(struct worker *w, struct request *r, CUtexref reference,
	const struct reference_setting *s, uint64_t *offset)
{
	size_t told = 0;
	CUresult status;

	worker_range(w, r, s->place, s->bytes);
	if (worker_refused(r))
		return r->refused;
	status = w->cuda.cuTexRefSetAddress_v2(&told, reference, s->place, s->bytes);
	*offset = told;
	return status;
}

static CUresult set_pitched(struct worker *w, struct request *r, CUtexref reference,
	const struct reference_setting *s)
{
	const uint64_t element = array_element(s->format, s->channels);
	CUDA_ARRAY_DESCRIPTOR desc;
	uint64_t bytes;

	if (!element || s->format > CU_AD_FORMAT_FLOAT || !s->width || s->width > ARRAY_SIDE ||
		!s->height || s->height > ARRAY_SIDE || s->width * element > s->bytes ||
		__builtin_mul_overflow(s->bytes, s->height - 1, &bytes) ||
		__builtin_add_overflow(bytes, s->width * element, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	worker_range(w, r, s->place, bytes);
	if (worker_refused(r))
		return r->refused;
	memset(&desc, 0, sizeof(desc));
	desc.Width = s->width;
	desc.Height = s->height;
	desc.Format = (CUarray_format)s->format;
	desc.NumChannels = s->channels;
	return w->cuda.cuTexRefSetAddress2D_v3(reference, &desc, s->place, s->bytes);
}

/* NaN is no number of a level either. */
static bool level_right(float level)
{
	return level >= -1024.0f && level <= 1024.0f;
}

static CUresult set_sampler(struct worker *w, CUtexref reference, enum reference_what what,
	const struct reference_setting *s)
{
	const struct cuda_driver *cuda = &w->cuda;
	float border[4];

	switch (what) {
	case REFERENCE_FORMAT:
		if (!array_element(s->format, s->channels))
			return CUDA_ERROR_INVALID_VALUE;
		return cuda->cuTexRefSetFormat(
			reference, (CUarray_format)s->format, (int)s->channels);
	case REFERENCE_ADDRESS_MODE:
		if (s->dimension < 0 || s->dimension > 2 || s->mode > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		return cuda->cuTexRefSetAddressMode(
			reference, s->dimension, (CUaddress_mode)s->mode);
	case REFERENCE_FILTER:
	case REFERENCE_LEVEL_FILTER:
		if (s->mode > CU_TR_FILTER_MODE_LINEAR)
			return CUDA_ERROR_INVALID_VALUE;
		return what == REFERENCE_FILTER
			       ? cuda->cuTexRefSetFilterMode(reference, (CUfilter_mode)s->mode)
			       : cuda->cuTexRefSetMipmapFilterMode(
					 reference, (CUfilter_mode)s->mode);
	case REFERENCE_LEVEL_BIAS:
		return level_right(s->number[0])
			       ? cuda->cuTexRefSetMipmapLevelBias(reference, s->number[0])
			       : CUDA_ERROR_INVALID_VALUE;
	case REFERENCE_LEVEL_CLAMP:
		return level_right(s->number[0]) && level_right(s->number[1])
			       ? cuda->cuTexRefSetMipmapLevelClamp(
					 reference, s->number[0], s->number[1])
			       : CUDA_ERROR_INVALID_VALUE;
	case REFERENCE_ANISOTROPY: return cuda->cuTexRefSetMaxAnisotropy(reference, s->mode);
	case REFERENCE_BORDER:
		memcpy(border, s->number, sizeof(border));
		return cuda->cuTexRefSetBorderColor(reference, border);
	case REFERENCE_FLAGS:
		return s->flags & ~0xffu ? CUDA_ERROR_INVALID_VALUE
					 : cuda->cuTexRefSetFlags(reference, s->flags);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static enum handle_kind reference_kind(uint32_t what)
{
	return what == REFERENCE_SURFACE ? KIND_CUsurfref : KIND_CUtexref;
}

CUresult serve_vcudaReferenceSet(struct worker *w, struct request *r)
{
	const struct wire_vcudaReferenceSet *req = (const void *)r->body;
	struct wire_vcudaReferenceSet_reply *answer = (void *)r->answer;
	const struct reference_setting *s = worker_in(r, &req->setting, sizeof(*s));
	void *reference = worker_handle(w, r, req->reference, reference_kind(req->what));
	CUfunction function;

	if (worker_refused(r))
		return r->refused;
	switch (req->what) {
	case REFERENCE_ARRAY:
	case REFERENCE_MIPMAPPED:
	case REFERENCE_SURFACE:
		return set_array(w, r, reference, (enum reference_what)req->what, s);
	case REFERENCE_MEMORY: return set_memory(w, r, reference, s, &answer->offset);
	case REFERENCE_PITCHED: return set_pitched(w, r, reference, s);
	case REFERENCE_PARAMETER:
		function = worker_handle(w, r, s->place, KIND_CUfunction);
		return worker_refused(r)
			       ? r->refused
			       : w->cuda.cuParamSetTexRef(function, s->dimension, reference);
	default: return set_sampler(w, reference, (enum reference_what)req->what, s);
	}
}

/* ---- what is asked for ---- */

static CUresult ask_array(
	struct worker *w, void *reference, uint32_t what, struct reference_setting *s)
{
	CUarray array = NULL;
	CUmipmappedArray mipmapped = NULL;
	CUresult status;

	if (what == REFERENCE_MIPMAPPED)
		status = w->cuda.cuTexRefGetMipmappedArray(&mipmapped, reference);
	else if (what == REFERENCE_ARRAY)
		status = w->cuda.cuTexRefGetArray(&array, reference);
	else
		status = w->cuda.cuSurfRefGetArray(&array, reference);
	if (!status)
		s->place = mipmapped ? array_mipmapped_name(w, mipmapped)
			   : array   ? array_name(w, array)
				     : 0;
	return status;
}

static CUresult ask_sampler(const struct cuda_driver *cuda, CUtexref reference, uint32_t what,
	struct reference_setting *s)
{
	CUarray_format format;
	CUfilter_mode filter;
	CUaddress_mode mode;
	CUresult status;
	int number;

	switch (what) {
	case REFERENCE_FORMAT:
		status = cuda->cuTexRefGetFormat(&format, &number, reference);
		if (!status) {
			s->format = (uint32_t)format;
			s->channels = (uint32_t)number;
		}
		return status;
	case REFERENCE_ADDRESS_MODE:
		if (s->dimension < 0 || s->dimension > 2)
			return CUDA_ERROR_INVALID_VALUE;
		status = cuda->cuTexRefGetAddressMode(&mode, reference, s->dimension);
		if (!status)
			s->mode = (uint32_t)mode;
		return status;
	case REFERENCE_FILTER:
	case REFERENCE_LEVEL_FILTER:
		status = what == REFERENCE_FILTER
				 ? cuda->cuTexRefGetFilterMode(&filter, reference)
				 : cuda->cuTexRefGetMipmapFilterMode(&filter, reference);
		if (!status)
			s->mode = (uint32_t)filter;
		return status;
	case REFERENCE_LEVEL_BIAS:
		return cuda->cuTexRefGetMipmapLevelBias(&s->number[0], reference);
	case REFERENCE_LEVEL_CLAMP:
		return cuda->cuTexRefGetMipmapLevelClamp(
			&s->number[0], &s->number[1], reference);
	case REFERENCE_ANISOTROPY:
		status = cuda->cuTexRefGetMaxAnisotropy(&number, reference);
		if (!status)
			s->mode = (uint32_t)number;
		return status;
	case REFERENCE_BORDER: return cuda->cuTexRefGetBorderColor(s->number, reference);
	case REFERENCE_FLAGS: return cuda->cuTexRefGetFlags(&s->flags, reference);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult serve_vcudaReferenceAsk(struct worker *w, struct request *r)
{
	const struct wire_vcudaReferenceAsk *req = (const void *)r->body;
	struct wire_vcudaReferenceAsk_reply *answer = (void *)r->answer;
	void *reference = worker_handle(w, r, req->reference, reference_kind(req->what));
	struct reference_setting s = {.dimension = req->dimension};
	CUdeviceptr address;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	switch (req->what) {
	case REFERENCE_ARRAY:
	case REFERENCE_MIPMAPPED:
	case REFERENCE_SURFACE: status = ask_array(w, reference, req->what, &s); break;
	case REFERENCE_MEMORY:
		status = w->cuda.cuTexRefGetAddress_v2(&address, reference);
		if (!status)
			s.place = address;
		break;
	default: status = ask_sampler(&w->cuda, reference, req->what, &s); break;
	}
	if (!status)
		memcpy(worker_out(r, &answer->setting, sizeof(s)), &s, sizeof(s));
	return status;
}
