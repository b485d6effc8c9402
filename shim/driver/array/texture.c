/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces as objects.  Their value is the device's own, since programs hand it to
 * kernels inside their arguments: so making one is a call.  What it was made of is kept here,
 * under that value, and answers every question.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/array/array.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

#define TEXTURE_BUCKETS 1024u

struct texture {
	struct texture *next;
	uint64_t handle; /* between shim and worker */
	uint64_t object; /* the app's */
	struct context *context;
	bool surface, viewed;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_VIEW_DESC view;
};

static struct {
	pthread_mutex_t lock;
	struct texture *buckets[TEXTURE_BUCKETS];
} textures = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(textures, textures.lock, LOCK_TEXTURE);

static struct texture **texture_bucket(uint64_t object)
{
	return &textures.buckets[object * 0x9e3779b97f4a7c15u >> 54 & (TEXTURE_BUCKETS - 1)];
}

/* The object of the current context, with the lock held; NULL: there is none. */
static struct texture **texture_at(uint64_t object, bool surface)
{
	struct context *context = context_current();
	struct texture **at = texture_bucket(object);

	while (*at && ((*at)->object != object || (*at)->surface != surface ||
			      (*at)->context != context))
		at = &(*at)->next;
	return at;
}

/* ---- what is read ---- */

static CUresult texture_array(struct texture_desc *desc, uint64_t handle, bool mipmapped)
{
	if (!array_find(handle, mipmapped))
		return handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	desc->place = handle;
	return CUDA_SUCCESS;
}

/* Linear memory has the formats of whole numbers and floats only. It may end behind the memory
 * that it begins in, as natively: what is fetched there is another allocation's, or a fault. */
static CUresult texture_memory(struct texture_desc *desc, CUdeviceptr at, CUarray_format format,
	unsigned channels, uint64_t bytes)
{
	uint32_t element = array_element((uint32_t)format, channels);

	host_named(&at, sizeof(at));
	if (!element || (unsigned)format > CU_AD_FORMAT_FLOAT || !bytes ||
		!mirror_reaches(at, element))
		return CUDA_ERROR_INVALID_VALUE;
	desc->place = mirror_address(at);
	desc->format = (uint32_t)format;
	desc->channels = channels;
	desc->bytes = bytes;
	return CUDA_SUCCESS;
}

static CUresult texture_resource(struct texture_desc *desc, const CUDA_RESOURCE_DESC *r)
{
	uint64_t bytes, row;

	desc->kind = (uint32_t)r->resType;
	if (r->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return texture_array(desc, (uint64_t)(uintptr_t)r->res.array.hArray, false);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return texture_array(
			desc, (uint64_t)(uintptr_t)r->res.mipmap.hMipmappedArray, true);
	case CU_RESOURCE_TYPE_LINEAR:
		return texture_memory(desc, r->res.linear.devPtr, r->res.linear.format,
			r->res.linear.numChannels, r->res.linear.sizeInBytes);
	case CU_RESOURCE_TYPE_PITCH2D:
		row = r->res.pitch2D.width * array_element((uint32_t)r->res.pitch2D.format,
						     r->res.pitch2D.numChannels);
		if (!r->res.pitch2D.height || r->res.pitch2D.width > ARRAY_SIDE ||
			row > r->res.pitch2D.pitchInBytes ||
			__builtin_mul_overflow(r->res.pitch2D.pitchInBytes,
				r->res.pitch2D.height - 1, &bytes) ||
			__builtin_add_overflow(bytes, row, &bytes))
			return CUDA_ERROR_INVALID_VALUE;
		desc->width = r->res.pitch2D.width;
		desc->height = r->res.pitch2D.height;
		desc->pitch = r->res.pitch2D.pitchInBytes;
		return texture_memory(desc, r->res.pitch2D.devPtr, r->res.pitch2D.format,
			r->res.pitch2D.numChannels, bytes);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static void texture_sampler(struct texture_desc *desc, const CUDA_TEXTURE_DESC *t)
{
	for (int i = 0; i < 3; i++)
		desc->address[i] = (uint32_t)t->addressMode[i];
	desc->filter = (uint32_t)t->filterMode;
	desc->flags = t->flags;
	desc->anisotropy = t->maxAnisotropy;
	desc->level_filter = (uint32_t)t->mipmapFilterMode;
	desc->level_bias = t->mipmapLevelBias;
	desc->level_least = t->minMipmapLevelClamp;
	desc->level_most = t->maxMipmapLevelClamp;
	memcpy(desc->border, t->borderColor, sizeof(desc->border));
}

static void texture_view(struct texture_desc *desc, const CUDA_RESOURCE_VIEW_DESC *v)
{
	desc->viewed = 1;
	desc->view_format = (uint32_t)v->format;
	desc->view_width = v->width;
	desc->view_height = v->height;
	desc->view_depth = v->depth;
	desc->view_levels[0] = v->firstMipmapLevel;
	desc->view_levels[1] = v->lastMipmapLevel;
	desc->view_layers[0] = v->firstLayer;
	desc->view_layers[1] = v->lastLayer;
}

/* ---- objects ---- */

static CUresult texture_call_create(struct texture *texture, const struct texture_desc *desc)
{
	return send_vcudaTextureCreate(
		texture->handle, texture->surface, desc, &texture->object);
}

/* Takes TEXTURE over. */
static CUresult texture_create(
	struct texture *texture, const struct texture_desc *desc, unsigned long long *object)
{
	struct texture **bucket;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;

	texture->context = context_current();
	texture->handle = shim_mint(KIND_CUtexObject, texture);
	if (texture->handle) {
		status = texture_call_create(texture, desc);
		if (status)
			shim_unmint(texture->handle);
	}
	if (status) {
		free(texture);
		return status;
	}
	*object = texture->object;
	pthread_mutex_lock(&textures.lock);
	bucket = texture_bucket(texture->object);
	texture->next = *bucket;
	*bucket = texture;
	pthread_mutex_unlock(&textures.lock);
	return CUDA_SUCCESS;
}

/* There is such a format, with that many channels. */
static bool linear_format(uint32_t format, unsigned channels)
{
	static const uint8_t blocks[] = {4, 4, 4, 4, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4};

	if (array_planes(format).count)
		return channels == 3;
	if (array_blocks(format))
		return channels == blocks[format - CU_AD_FORMAT_BC1_UNORM];
	return array_element(format, channels) != 0;
}

CUresult hand_cuDeviceGetTexture1DLinearMaxWidth(
	size_t *maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev)
{
	const struct wire_cuDeviceGetTexture1DLinearMaxWidth_reply *reply;
	struct wire_cuDeviceGetTexture1DLinearMaxWidth *body;
	struct session_visit visit;
	struct shim_call call;
	CUresult status;

	if (!maxWidthInElements || !linear_format((uint32_t)format, numChannels))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	visit = device_visit(dev);
	body = shim_begin(&call, OP_cuDeviceGetTexture1DLinearMaxWidth, sizeof(*body));
	body->format = (uint32_t)format;
	body->numChannels = numChannels;
	body->dev = device_wire(dev);
	/* What is kept is kept by context, and a visit has none. */
	reply = session_count == 1 ? shim_wait_cached(&call, sizeof(*reply))
				   : shim_wait(&call, sizeof(*reply));
	if (reply)
		*maxWidthInElements = reply->maxWidthInElements;
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

CUresult hand_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
	const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	struct texture_desc desc = {0};
	struct texture *texture;
	CUresult status;

	if (!pTexObject || !pResDesc || !pTexDesc)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	/* Views are of arrays. */
	if (pResViewDesc && pResDesc->resType != CU_RESOURCE_TYPE_ARRAY &&
		pResDesc->resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_resource(&desc, pResDesc);
	if (status)
		return status;
	if (pResViewDesc && !pResViewDesc->width)
		return CUDA_ERROR_INVALID_VALUE;
	texture_sampler(&desc, pTexDesc);
	texture = calloc(1, sizeof(*texture));
	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	texture->resource = *pResDesc;
	texture->texture = *pTexDesc;
	if (pResViewDesc) {
		texture_view(&desc, pResViewDesc);
		texture->viewed = true;
		texture->view = *pResViewDesc;
	}
	return texture_create(texture, &desc, pTexObject);
}

CUresult hand_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	struct texture_desc desc = {0};
	struct texture *texture;
	CUresult status;

	if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	status = texture_resource(&desc, pResDesc);
	if (status)
		return status;
	texture = calloc(1, sizeof(*texture));
	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	texture->surface = true;
	texture->resource = *pResDesc;
	return texture_create(texture, &desc, pSurfObject);
}

/* As NVIDIA's driver: what is no object, or no longer one, is passed over. COLMAP destroys some
 * twice. */
static CUresult texture_destroy(uint64_t object, bool surface)
{
	struct texture **at, *texture;
	uint64_t handle;

	pthread_mutex_lock(&textures.lock);
	at = texture_at(object, surface);
	texture = *at;
	if (texture)
		*at = texture->next;
	pthread_mutex_unlock(&textures.lock);
	if (!texture)
		return CUDA_SUCCESS;
	handle = texture->handle;
	shim_unmint(handle);
	free(texture);
	return send_vcudaTextureDestroy(handle);
}

CUresult hand_cuTexObjectDestroy(CUtexObject texObject)
{
	return texture_destroy(texObject, false);
}

CUresult hand_cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return texture_destroy(surfObject, true);
}

void texture_reset(struct context *context)
{
	pthread_mutex_lock(&textures.lock);
	for (unsigned i = 0; i < TEXTURE_BUCKETS; i++) {
		struct texture **at = &textures.buckets[i], *texture;

		while ((texture = *at)) {
			if (texture->context != context) {
				at = &texture->next;
				continue;
			}
			*at = texture->next;
			shim_unmint(texture->handle);
			free(texture);
		}
	}
	pthread_mutex_unlock(&textures.lock);
}

/* ---- questions ---- */

static CUresult texture_ask(uint64_t object, bool surface, CUDA_RESOURCE_DESC *resource,
	CUDA_TEXTURE_DESC *texture, CUDA_RESOURCE_VIEW_DESC *view)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	const struct texture *t;

	if (!resource && !texture && !view)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&textures.lock);
	t = *texture_at(object, surface);
	if (t && (!view || t->viewed)) {
		if (resource)
			*resource = t->resource;
		if (texture)
			*texture = t->texture;
		if (view)
			*view = t->view;
		status = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&textures.lock);
	return status;
}

CUresult hand_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	return texture_ask(texObject, false, pResDesc, NULL, NULL);
}

CUresult hand_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	return texture_ask(texObject, false, NULL, pTexDesc, NULL);
}

CUresult hand_cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	return texture_ask(texObject, false, NULL, NULL, pResViewDesc);
}

CUresult hand_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	return texture_ask(surfObject, true, pResDesc, NULL, NULL);
}
