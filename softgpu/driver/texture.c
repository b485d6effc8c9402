/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces: what one is made of becomes one description for the interpreter, whose
 * number for it is the object's value.
 */
#include "softgpu/driver/array.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/texture.h"

/* Elements of a texture over linear memory. */
#define LINEAR_MOST ((size_t)1 << 28)
#define LINEAR_BYTES ((size_t)1 << 32)
#define LINEAR_ELEMENTS ((size_t)1 << 30)

struct texture {
	struct texture *next;
	struct CUctx_st *context;
	uint64_t object;
	bool surface, viewed;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
};

static pthread_mutex_t texture_lock = PTHREAD_MUTEX_INITIALIZER;
static struct texture *textures;

/* ---- what is read ---- */

static CUresult set_format(struct ptx_texture *t, CUarray_format format, unsigned channels)
{
	unsigned fixed;

	t->channels = channels;
	if (array_packed(format, channels)) {
		soft_log_problem("a texture or surface of packed YUV: not supported");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!array_element(format, channels))
		return CUDA_ERROR_INVALID_VALUE;
	switch (array_whole(format, &fixed)) {
	case CU_AD_FORMAT_UNSIGNED_INT8: t->texel = PTX_TEXEL_U8; break;
	case CU_AD_FORMAT_SIGNED_INT8: t->texel = PTX_TEXEL_S8; break;
	case CU_AD_FORMAT_UNSIGNED_INT16: t->texel = PTX_TEXEL_U16; break;
	case CU_AD_FORMAT_SIGNED_INT16: t->texel = PTX_TEXEL_S16; break;
	case CU_AD_FORMAT_UNSIGNED_INT32: t->texel = PTX_TEXEL_U32; break;
	case CU_AD_FORMAT_SIGNED_INT32: t->texel = PTX_TEXEL_S32; break;
	case CU_AD_FORMAT_HALF: t->texel = PTX_TEXEL_F16; break;
	case CU_AD_FORMAT_UNORM_INT_101010_2: t->texel = PTX_TEXEL_10_10_10_2; break;
	default: t->texel = PTX_TEXEL_F32; break;
	}
	return CUDA_SUCCESS;
}

static void set_level(struct ptx_texture *t, const struct CUarray_st *array)
{
	t->levels[t->nlevels++] = (struct ptx_texture_level){.address = array->address,
		.pitch = array->row,
		.slice = array->row * array->rows,
		.tiles = array->tiles,
		.width = (uint32_t)array->desc.Width,
		.height = array->desc.Height ? (uint32_t)array->desc.Height : 1,
		.depth = (uint32_t)array->depth};
}

static CUresult set_array(struct ptx_texture *t, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	unsigned channels;

	if (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))
		t->layers = (uint32_t)desc->Depth;
	t->blocks = array_blocks(desc->Format, &channels);
	if (!t->blocks)
		return set_format(t, desc->Format, desc->NumChannels);
	t->channels = channels;
	t->srgb = desc->Format == CU_AD_FORMAT_BC1_UNORM_SRGB ||
		  desc->Format == CU_AD_FORMAT_BC2_UNORM_SRGB ||
		  desc->Format == CU_AD_FORMAT_BC3_UNORM_SRGB ||
		  desc->Format == CU_AD_FORMAT_BC7_UNORM_SRGB;
	return CUDA_SUCCESS;
}

static CUresult set_memory(struct ptx_texture *t, const CUDA_RESOURCE_DESC *r)
{
	bool flat = r->resType == CU_RESOURCE_TYPE_LINEAR;
	struct ptx_texture_level *level = &t->levels[0];
	CUresult ret = flat ? set_format(t, r->res.linear.format, r->res.linear.numChannels)
			    : set_format(t, r->res.pitch2D.format, r->res.pitch2D.numChannels);
	size_t element = ptx_texel_bytes(t->texel) * t->channels,
	       bytes = r->res.linear.sizeInBytes;

	if (ret)
		return ret;
	t->nlevels = 1;
	level->height = level->depth = 1;
	if (flat) {
		if (bytes < element || bytes / element > LINEAR_MOST)
			return CUDA_ERROR_INVALID_VALUE;
		t->memory = true;
		level->address = r->res.linear.devPtr;
		level->width = (uint32_t)(bytes / element);
	} else {
		if (!r->res.pitch2D.width || r->res.pitch2D.width > 131072 ||
			!r->res.pitch2D.height || r->res.pitch2D.height > 65000 ||
			r->res.pitch2D.pitchInBytes > 2097120 ||
			r->res.pitch2D.pitchInBytes % 32 ||
			r->res.pitch2D.pitchInBytes < r->res.pitch2D.width * element)
			return CUDA_ERROR_INVALID_VALUE;
		level->address = r->res.pitch2D.devPtr;
		level->width = (uint32_t)r->res.pitch2D.width;
		level->height = (uint32_t)r->res.pitch2D.height;
		level->pitch = r->res.pitch2D.pitchInBytes;
	}
	/* Each fetch checks its address. */
	if (level->address % (flat ? 16 : 512) || !memory_mapped(level->address, element))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult set_resource(struct ptx_texture *t, const CUDA_RESOURCE_DESC *r)
{
	const struct CUmipmappedArray_st *mipmapped;

	if (r->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		if (!object_is(r->res.array.hArray, OBJECT_ARRAY))
			return CUDA_ERROR_INVALID_HANDLE;
		set_level(t, r->res.array.hArray);
		t->sparse = r->res.array.hArray->sparse;
		return set_array(t, &r->res.array.hArray->desc);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		mipmapped = r->res.mipmap.hMipmappedArray;
		if (!object_is(mipmapped, OBJECT_MIPMAPPED))
			return CUDA_ERROR_INVALID_HANDLE;
		for (unsigned i = 0; i < mipmapped->count; i++)
			set_level(t, &mipmapped->levels[i]);
		t->sparse = mipmapped->sparse.bytes;
		return set_array(t, &mipmapped->desc);
	case CU_RESOURCE_TYPE_LINEAR:
	case CU_RESOURCE_TYPE_PITCH2D: return set_memory(t, r);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* A view of elements of 8 or 16 bytes, of whole numbers, as blocks of texels: it is four times
 * as large either way. */
static CUresult set_view_blocks(struct ptx_texture *t, const CUDA_RESOURCE_VIEW_DESC *v)
{
	static const struct {
		enum ptx_blocks blocks;
		uint32_t channels;
	} formats[] = {{PTX_BC1, 4}, {PTX_BC2, 4}, {PTX_BC3, 4}, {PTX_BC4, 1},
		{PTX_BC4_SIGNED, 1}, {PTX_BC5, 2}, {PTX_BC5_SIGNED, 2}, {PTX_BC6H, 3},
		{PTX_BC6H_SIGNED, 3}, {PTX_BC7, 4}};
	const uint32_t at = (unsigned)v->format - CU_RES_VIEW_FORMAT_UNSIGNED_BC1;

	if (v->format < CU_RES_VIEW_FORMAT_UNSIGNED_BC1)
		return CUDA_SUCCESS;
	if (at >= sizeof(formats) / sizeof(formats[0]) || t->blocks ||
		t->texel != PTX_TEXEL_U32 ||
		t->channels * 4 != ptx_block_bytes(formats[at].blocks) ||
		v->width != PTX_BLOCK_SIDE * (size_t)t->levels[0].width ||
		v->height != PTX_BLOCK_SIDE * (size_t)t->levels[0].height)
		return CUDA_ERROR_INVALID_VALUE;
	t->block_view = true;
	t->blocks = formats[at].blocks;
	t->channels = formats[at].channels;
	t->texel = PTX_TEXEL_U8;
	for (uint32_t i = 0; i < t->nlevels; i++) {
		t->levels[i].width *= PTX_BLOCK_SIDE;
		t->levels[i].height *= PTX_BLOCK_SIDE;
	}
	return CUDA_SUCCESS;
}

/* ---- how ---- */

static CUresult set_sampler(struct ptx_texture *t, const CUDA_TEXTURE_DESC *d)
{
	for (int i = 0; i < 3; i++) {
		if ((unsigned)d->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		t->address[i] = (enum ptx_address_mode)d->addressMode[i];
		t->border[i] = d->borderColor[i];
	}
	t->border[3] = d->borderColor[3];
	if ((unsigned)d->filterMode > CU_TR_FILTER_MODE_LINEAR ||
		(unsigned)d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	t->linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
	t->level_linear = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	t->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
	t->integers = d->flags & CU_TRSF_READ_AS_INTEGER && !t->blocks;
	t->srgb |= (d->flags & CU_TRSF_SRGB) != 0;
	t->bias = d->mipmapLevelBias;
	t->least = d->minMipmapLevelClamp;
	t->most = d->maxMipmapLevelClamp;
	if (t->linear && (t->texel == PTX_TEXEL_U32 || t->texel == PTX_TEXEL_S32))
		return CUDA_ERROR_INVALID_VALUE;
	/* What is read as a whole number is not blended, and the driver takes it all the same:
	 * it is the runtime that refuses it. */
	if (t->integers && t->texel < PTX_TEXEL_F16)
		t->linear = false;
	/* A level is a share of the whole texture only where coordinates are. */
	if (t->nlevels > 1 && !t->normalized)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Of views there are those that take levels or layers; formats stay what they are. */
static CUresult set_view(struct ptx_texture *t, const CUDA_RESOURCE_VIEW_DESC *v)
{
	static const struct {
		enum ptx_texel texel;
	} formats[] = {{PTX_TEXEL_U8}, {PTX_TEXEL_S8}, {PTX_TEXEL_U16}, {PTX_TEXEL_S16},
		{PTX_TEXEL_U32}, {PTX_TEXEL_S32}, {PTX_TEXEL_F16}, {PTX_TEXEL_F32}};
	uint32_t first = v->firstMipmapLevel, last = v->lastMipmapLevel, format;

	if (first > last || last >= t->nlevels)
		return CUDA_ERROR_INVALID_VALUE;
	if (v->format != CU_RES_VIEW_FORMAT_NONE && !t->blocks) {
		format = (unsigned)v->format - 1;
		if (format >= 24 ||
			ptx_texel_bytes(formats[format / 3].texel) !=
				ptx_texel_bytes(t->texel) ||
			1u << format % 3 != t->channels)
			return CUDA_ERROR_NOT_SUPPORTED;
		t->texel = formats[format / 3].texel;
	}
	memmove(t->levels, t->levels + first, (last - first + 1) * sizeof(t->levels[0]));
	t->nlevels = last - first + 1;
	if (t->layers && (v->firstLayer || v->lastLayer)) {
		if (v->firstLayer > v->lastLayer || v->lastLayer >= t->layers)
			return CUDA_ERROR_INVALID_VALUE;
		t->layers = v->lastLayer - v->firstLayer + 1;
		for (uint32_t i = 0; i < t->nlevels; i++) {
			t->levels[i].address += v->firstLayer * t->levels[i].slice;
			t->levels[i].depth = t->layers;
		}
	}
	return CUDA_SUCCESS;
}

/* ---- objects ---- */

static CUresult create(
	const struct ptx_texture *t, const struct texture *from, unsigned long long *object)
{
	struct texture *texture = malloc(sizeof(*texture));

	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*texture = *from;
	texture->object = ptx_texture_add(t);
	if (!texture->object) {
		free(texture);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&texture_lock);
	texture->next = textures;
	textures = texture;
	pthread_mutex_unlock(&texture_lock);
	*object = texture->object;
	return CUDA_SUCCESS;
}

CUresult texture_describe(struct ptx_texture *t, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUresult ret = set_resource(t, resource);

	if (!ret && view)
		ret = set_view_blocks(t, view);
	if (!ret && texture)
		return set_sampler(t, texture);
	if (!ret && (resource->resType != CU_RESOURCE_TYPE_ARRAY || t->blocks))
		return CUDA_ERROR_INVALID_VALUE;
	t->surface = true;
	return ret;
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
	const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	struct ptx_texture t = {0};
	struct texture texture = {0};
	CUresult ret;

	if (!pTexObject || !pResDesc || !pTexDesc)
		return CUDA_ERROR_INVALID_VALUE;
	ret = soft_context_current(&texture.context);
	if (!ret)
		ret = texture_describe(&t, pResDesc, pTexDesc, pResViewDesc);
	if (!ret && pResViewDesc)
		ret = set_view(&t, pResViewDesc);
	if (ret)
		return ret;
	texture.resource = *pResDesc;
	texture.texture = *pTexDesc;
	texture.viewed = pResViewDesc != NULL;
	if (pResViewDesc)
		texture.view = *pResViewDesc;
	return create(&t, &texture, pTexObject);
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	struct ptx_texture t = {0};
	struct texture texture = {.surface = true};
	CUresult ret;

	if (!pSurfObject || !pResDesc)
		return CUDA_ERROR_INVALID_VALUE;
	ret = soft_context_current(&texture.context);
	if (!ret)
		ret = texture_describe(&t, pResDesc, NULL, NULL);
	if (ret)
		return ret;
	texture.resource = *pResDesc;
	return create(&t, &texture, pSurfObject);
}

/* texture_lock held. */
static struct texture **texture_at(uint64_t object, bool surface)
{
	struct texture **at = &textures;

	while (*at && ((*at)->object != object || (*at)->surface != surface))
		at = &(*at)->next;
	return at;
}

static CUresult destroy(uint64_t object, bool surface)
{
	struct texture **at, *texture;

	pthread_mutex_lock(&texture_lock);
	at = texture_at(object, surface);
	texture = *at;
	if (texture)
		*at = texture->next;
	pthread_mutex_unlock(&texture_lock);
	if (!texture)
		return CUDA_SUCCESS;
	/* Kernels that were given it may still run. */
	queue_drain(texture->context, 0);
	ptx_texture_remove(object);
	free(texture);
	return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject)
{
	return destroy(texObject, false);
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return destroy(surfObject, true);
}

void texture_release_context(const struct CUctx_st *context)
{
	pthread_mutex_lock(&texture_lock);
	for (struct texture **at = &textures, *texture; (texture = *at);) {
		if (texture->context != context) {
			at = &texture->next;
			continue;
		}
		*at = texture->next;
		ptx_texture_remove(texture->object);
		free(texture);
	}
	pthread_mutex_unlock(&texture_lock);
}

/* ---- questions ---- */

static CUresult ask(uint64_t object, bool surface, CUDA_RESOURCE_DESC *resource,
	CUDA_TEXTURE_DESC *texture, CUDA_RESOURCE_VIEW_DESC *view)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	const struct texture *t;

	if (!resource && !texture && !view)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&texture_lock);
	t = *texture_at(object, surface);
	if (t && (!view || t->viewed)) {
		if (resource)
			*resource = t->resource;
		if (texture)
			*texture = t->texture;
		if (view)
			*view = t->view;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&texture_lock);
	return ret;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	return ask(texObject, false, pResDesc, NULL, NULL);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	return ask(texObject, false, NULL, pTexDesc, NULL);
}

CUresult cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	return ask(texObject, false, NULL, NULL, pResViewDesc);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	return ask(surfObject, true, pResDesc, NULL, NULL);
}

/* As many elements, or blocks, as linear memory of a texture may have. */
CUresult cuDeviceGetTexture1DLinearMaxWidth(
	size_t *maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev)
{
	unsigned channels;
	const enum ptx_blocks blocks = array_blocks(format, &channels);
	const size_t element = blocks ? channels == numChannels ? ptx_block_bytes(blocks) : 0
			       : array_packed(format, numChannels)
				       ? 0
				       : array_element(format, numChannels);

	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!maxWidthInElements || !element)
		return CUDA_ERROR_INVALID_VALUE;
	*maxWidthInElements = LINEAR_BYTES / element;
	if (*maxWidthInElements > LINEAR_ELEMENTS)
		*maxWidthInElements = LINEAR_ELEMENTS;
	return CUDA_SUCCESS;
}
