/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces.  Their objects are the driver's own values, which come back inside
 * kernel arguments unseen; the session's names for them serve to destroy them.  What one is
 * made of is checked here: the driver believes the memory and the enums that it is given.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/handle.h"

struct worker_texture {
	unsigned long long object;
	uint16_t context;
	bool surface;
};

/* NaN is no number of a level either. */
static bool texture_level(float level)
{
	return level >= -1024.0f && level <= 1024.0f;
}

static bool texture_sampler(const struct texture_desc *from, CUDA_TEXTURE_DESC *to)
{
	memset(to, 0, sizeof(*to));
	for (int i = 0; i < 3; i++) {
		if (from->address[i] > CU_TR_ADDRESS_MODE_BORDER)
			return false;
		to->addressMode[i] = (CUaddress_mode)from->address[i];
	}
	if (from->filter > CU_TR_FILTER_MODE_LINEAR ||
		from->level_filter > CU_TR_FILTER_MODE_LINEAR || from->flags & ~0xffu ||
		!texture_level(from->level_bias) || !texture_level(from->level_least) ||
		!texture_level(from->level_most))
		return false;
	to->filterMode = (CUfilter_mode)from->filter;
	to->flags = from->flags;
	to->maxAnisotropy = from->anisotropy;
	to->mipmapFilterMode = (CUfilter_mode)from->level_filter;
	to->mipmapLevelBias = from->level_bias;
	to->minMipmapLevelClamp = from->level_least;
	to->maxMipmapLevelClamp = from->level_most;
	memcpy(to->borderColor, from->border, sizeof(to->borderColor));
	return true;
}

static bool texture_view(const struct texture_desc *from, CUDA_RESOURCE_VIEW_DESC *to)
{
	memset(to, 0, sizeof(*to));
	if (from->view_format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7 ||
		from->view_width > ARRAY_SIDE || from->view_height > ARRAY_SIDE ||
		from->view_depth > ARRAY_SIDE)
		return false;
	to->format = (CUresourceViewFormat)from->view_format;
	to->width = from->view_width;
	to->height = from->view_height;
	to->depth = from->view_depth;
	to->firstMipmapLevel = from->view_levels[0];
	to->lastMipmapLevel = from->view_levels[1];
	to->firstLayer = from->view_layers[0];
	to->lastLayer = from->view_layers[1];
	return true;
}

/* Linear memory: it begins in the session's, and is of a format that it can have. Behind its
 * end there is nothing but the session's own, as for every kernel. */
static void texture_memory(struct worker *w, struct request *r, const struct texture_desc *d,
	CUDA_RESOURCE_DESC *to)
{
	uint64_t element = array_element(d->format, d->channels), row, bytes = d->bytes;

	if (!element || d->format > CU_AD_FORMAT_FLOAT || !bytes) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	if (d->kind == CU_RESOURCE_TYPE_PITCH2D) {
		row = d->width * element;
		if (!d->width || d->width > ARRAY_SIDE || !d->height ||
			d->height > ARRAY_SIDE || row > d->pitch ||
			__builtin_mul_overflow(d->pitch, d->height - 1, &bytes) ||
			__builtin_add_overflow(bytes, row, &bytes)) {
			worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
			return;
		}
		to->res.pitch2D.devPtr = d->place;
		to->res.pitch2D.format = (CUarray_format)d->format;
		to->res.pitch2D.numChannels = d->channels;
		to->res.pitch2D.width = d->width;
		to->res.pitch2D.height = d->height;
		to->res.pitch2D.pitchInBytes = d->pitch;
	} else {
		to->res.linear.devPtr = d->place;
		to->res.linear.format = (CUarray_format)d->format;
		to->res.linear.numChannels = d->channels;
		to->res.linear.sizeInBytes = d->bytes;
	}
	worker_range(w, r, d->place, element);
}

static void texture_resource(struct worker *w, struct request *r, const struct texture_desc *d,
	CUDA_RESOURCE_DESC *to)
{
	struct worker_array *array;

	memset(to, 0, sizeof(*to));
	to->resType = (CUresourcetype)d->kind;
	switch (d->kind) {
	case CU_RESOURCE_TYPE_ARRAY:
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		array = worker_handle(w, r, d->place, KIND_CUarray);
		if (!array)
			return;
		if ((array->mipmap != NULL) != (d->kind == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY))
			worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
		else if (array->mipmap)
			to->res.mipmap.hMipmappedArray = array->mipmap;
		else
			to->res.array.hArray = array->array;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
	case CU_RESOURCE_TYPE_PITCH2D: texture_memory(w, r, d, to); break;
	default: worker_refuse(r, CUDA_ERROR_INVALID_VALUE); break;
	}
}

static CUresult texture_make(struct worker *w, struct request *r, const struct texture_desc *d,
	struct worker_texture *texture)
{
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	CUDA_RESOURCE_VIEW_DESC view;

	texture_resource(w, r, d, &resource);
	if (worker_refused(r))
		return r->refused;
	if (texture->surface) {
		if (d->kind != CU_RESOURCE_TYPE_ARRAY)
			return CUDA_ERROR_INVALID_VALUE;
		return w->cuda.cuSurfObjectCreate
			       ? w->cuda.cuSurfObjectCreate(&texture->object, &resource)
			       : CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!texture_sampler(d, &sampler) || (d->viewed && !texture_view(d, &view)) ||
		(d->viewed && d->kind != CU_RESOURCE_TYPE_ARRAY &&
			d->kind != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY))
		return CUDA_ERROR_INVALID_VALUE;
	return w->cuda.cuTexObjectCreate
		       ? w->cuda.cuTexObjectCreate(&texture->object, &resource, &sampler,
				 d->viewed ? &view : NULL)
		       : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult texture_close(struct worker *w, void *object)
{
	struct worker_texture *texture = object;
	CUresult status = worker_use(w, texture->context);

	if (!status)
		status = texture->surface ? w->cuda.cuSurfObjectDestroy(texture->object)
					  : w->cuda.cuTexObjectDestroy(texture->object);
	free(texture);
	return status;
}

CUresult serve_vcudaTextureCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaTextureCreate *req = (const void *)r->body;
	const struct texture_desc *desc = worker_in(r, &req->desc, sizeof(*desc));
	struct wire_vcudaTextureCreate_reply *answer = (void *)r->answer;
	struct worker_texture *texture;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	texture = calloc(1, sizeof(*texture));
	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	texture->surface = req->surface != 0;
	texture->context = r->header.context;
	status = texture_make(w, r, desc, texture);
	if (status) {
		free(texture);
		return status;
	}
	worker_bind(w, r, req->texture, KIND_CUtexObject, texture);
	answer->object = texture->object;
	if (r->refused)
		texture_close(w, texture);
	return r->refused;
}

CUresult serve_vcudaTextureDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaTextureDestroy *req = (const void *)r->body;
	struct worker_texture *texture = worker_handle(w, r, req->texture, KIND_CUtexObject);

	if (!texture)
		return r->refused;
	worker_unbind(w, r, req->texture, KIND_CUtexObject);
	/* Kernels that were given it may be running: the driver may wait for them. */
	return closing_do(w, texture_close, texture);
}

void texture_forget(struct worker *w, struct worker_texture *texture)
{
	texture_close(w, texture);
}
