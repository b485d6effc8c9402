/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of every shape, with whole numbers, also normalized ones, floats, blocks, and planes;
 * those whose memory is mapped later are array_map.c's.
 */
#include "softgpu/driver/array.h"

#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

/* Sides of what a device of this capability can have. */
#define SIDE_1D 131072
#define SIDE_2D_WIDTH 131072
#define SIDE_2D_HEIGHT 65536
#define SIDE_3D 16384
#define SIDE_CUBE 32768
#define SIDE_LAYERED 32768
#define LAYERS 2048
#define CUBE_LAYERS 2046

#define LATER (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)
#define FLAGS                                                                                  \
	(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |             \
		CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_DEPTH_TEXTURE |                     \
		CUDA_ARRAY3D_COLOR_ATTACHMENT | LATER)

static pthread_mutex_t array_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUarray_st *arrays;
static struct CUmipmappedArray_st *mipmapped;

/* Planes of fewer elements halve those of the array. */
static bool planes_ok(const CUDA_ARRAY3D_DESCRIPTOR *d, const struct array_planes *planes)
{
	return d->NumChannels == 3 && d->Height && !d->Depth &&
	       d->Width % (1u << planes->across) == 0 && d->Height % (1u << planes->down) == 0;
}

/* A shape that there can be. */
static bool shape_ok(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;

	if (!d->Width)
		return false;
	if (cube)
		return d->Width == d->Height && d->Width <= SIDE_CUBE &&
		       (layered ? d->Depth && d->Depth % 6 == 0 && d->Depth <= CUBE_LAYERS
				: d->Depth == 6);
	if (layered)
		return d->Width <= SIDE_LAYERED && d->Height <= SIDE_LAYERED && d->Depth &&
		       d->Depth <= LAYERS;
	if (!d->Height)
		return !d->Depth && d->Width <= SIDE_1D;
	if (!d->Depth)
		return d->Width <= SIDE_2D_WIDTH && d->Height <= SIDE_2D_HEIGHT;
	return d->Width <= SIDE_3D && d->Height <= SIDE_3D && d->Depth <= SIDE_3D;
}

static CUresult desc_check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	unsigned channels;
	const enum ptx_blocks blocks = array_blocks(d->Format, &channels);
	const struct array_planes planes = array_planes(d->Format);

	if (d->Flags & ~(unsigned)FLAGS)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (d->Flags & LATER && !array_map_shape(d))
		return CUDA_ERROR_INVALID_VALUE;
	if (blocks)
		return d->NumChannels == channels && shape_ok(d) ? CUDA_SUCCESS
								 : CUDA_ERROR_INVALID_VALUE;
	if (planes.count)
		return planes_ok(d, &planes) && shape_ok(d) ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_VALUE;
	if (!array_element(d->Format, d->NumChannels) || !shape_ok(d))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static size_t halved(size_t side, unsigned level)
{
	return side >> level ? side >> level : side != 0;
}

/* Lays LEVEL of DESC out at *OFFSET, which moves behind it. */
static void lay_out(struct CUarray_st *array, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned level, uint64_t *offset)
{
	unsigned channels;
	const enum ptx_blocks blocks = array_blocks(desc->Format, &channels);
	const size_t side = blocks ? PTX_BLOCK_SIDE : 1;

	array->desc = *desc;
	array->desc.Width = halved(desc->Width, level);
	array->desc.Height = halved(desc->Height, level);
	if (!(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		array->desc.Depth = halved(desc->Depth, level);
	array->element = blocks ? ptx_block_bytes(blocks)
				: array_element(desc->Format, desc->NumChannels);
	array->row = (array->desc.Width + side - 1) / side * array->element;
	array->rows = array->desc.Height ? (array->desc.Height + side - 1) / side : 1;
	array->depth = array->desc.Depth ? array->desc.Depth : 1;
	array->address = *offset;
	/* So that each level is aligned for its elements, and for atomics. */
	*offset += (array->row * array->rows * array->depth + 255) & ~(uint64_t)255;
}

static CUresult begin(struct CUctx_st **context, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	CUresult ret = capture_unsafe();

	if (!ret)
		ret = soft_context_current(context);
	return ret ? ret : desc_check(desc);
}

/* The array itself is the first plane. Two have the colours in pairs. */
static bool lay_out_planes(struct CUarray_st *array, uint64_t *offset)
{
	const struct array_planes planes = array_planes(array->desc.Format);
	CUDA_ARRAY3D_DESCRIPTOR desc = array->desc;

	array->planes = calloc(planes.count, sizeof(*array->planes));
	if (!array->planes)
		return false;
	array->plane_count = planes.count;
	desc.Format = planes.format;
	desc.NumChannels = 1;
	lay_out(&array->planes[0], &desc, 0, offset);
	desc.NumChannels = planes.count == 2 ? 2 : 1;
	desc.Width >>= planes.across;
	desc.Height >>= planes.down;
	for (unsigned i = 1; i < planes.count; i++)
		lay_out(&array->planes[i], &desc, 0, offset);
	array->element = array->planes[0].element;
	array->row = array->planes[0].row;
	array->rows = array->planes[0].rows;
	array->depth = 1;
	return true;
}

/* They have their place and their names at once. */
static bool place_planes(struct CUarray_st *array)
{
	for (unsigned i = 0; i < array->plane_count; i++) {
		array->planes[i].address += array->address;
		array->planes[i].context = array->context;
		array->planes[i].whole = array;
		if (!object_add(&array->planes[i], OBJECT_ARRAY))
			return false;
	}
	return true;
}

static void array_release_memory(struct CUarray_st *array)
{
	if (array->sparse)
		array_map_release(&array->own);
	else
		memory_release(array->address, BLOCK_DEVICE);
}

/* Its names go, and what it has but its memory. */
static void array_delete(struct CUarray_st *array)
{
	object_remove(array);
	for (unsigned i = 0; i < array->plane_count; i++)
		object_remove(&array->planes[i]);
	free(array->planes);
	free(array);
}

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	struct CUctx_st *context;
	struct CUarray_st *array;
	uint64_t bytes = 0;
	CUresult ret;

	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	ret = begin(&context, pAllocateArray);
	if (ret)
		return ret;
	array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lay_out(array, pAllocateArray, 0, &bytes);
	array->context = context;
	if (array_planes(pAllocateArray->Format).count && !lay_out_planes(array, &bytes))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	if (!ret && array->desc.Flags & LATER)
		ret = array_map_reserve(&array->own, array, 1, bytes);
	else if (!ret)
		ret = memory_allocate(context, context->device, bytes, PAGE, BLOCK_DEVICE, NULL,
			&array->address);
	if (!ret && (!place_planes(array) || !object_add(array, OBJECT_ARRAY))) {
		array_release_memory(array);
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (ret) {
		array_delete(array);
		return ret;
	}
	pthread_mutex_lock(&array_lock);
	array->next = arrays;
	arrays = array;
	pthread_mutex_unlock(&array_lock);
	*pHandle = array;
	return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;

	if (!pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	desc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = pAllocateArray->Width,
		.Height = pAllocateArray->Height,
		.Format = pAllocateArray->Format,
		.NumChannels = pAllocateArray->NumChannels};
	return cuArray3DCreate_v2(pHandle, &desc);
}

static CUresult mipmapped_place(struct CUmipmappedArray_st *array, uint64_t bytes)
{
	struct CUctx_st *context = array->context;
	CUresult ret;

	if (array->desc.Flags & LATER)
		return array_map_reserve(&array->sparse, array->levels, array->count, bytes);
	ret = memory_allocate(
		context, context->device, bytes, PAGE, BLOCK_DEVICE, NULL, &array->address);
	for (unsigned i = 0; !ret && i < array->count; i++)
		array->levels[i].address += array->address;
	return ret;
}

static void mipmapped_release_memory(struct CUmipmappedArray_st *array)
{
	if (array->sparse.bytes)
		array_map_release(&array->sparse);
	else
		memory_release(array->address, BLOCK_DEVICE);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	struct CUmipmappedArray_st *array;
	struct CUctx_st *context;
	uint64_t bytes = 0;
	CUresult ret;

	if (!pHandle || !pMipmappedArrayDesc || !numMipmapLevels ||
		numMipmapLevels > ARRAY_LEVELS)
		return CUDA_ERROR_INVALID_VALUE;
	ret = begin(&context, pMipmappedArrayDesc);
	if (ret)
		return ret;
	if (array_planes(pMipmappedArrayDesc->Format).count)
		return CUDA_ERROR_INVALID_VALUE;
	array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->context = context;
	array->desc = *pMipmappedArrayDesc;
	array->count = numMipmapLevels;
	for (unsigned i = 0; i < array->count; i++)
		lay_out(&array->levels[i], &array->desc, i, &bytes);
	ret = mipmapped_place(array, bytes);
	if (!ret && !object_add(array, OBJECT_MIPMAPPED)) {
		mipmapped_release_memory(array);
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (ret) {
		free(array);
		return ret;
	}
	for (unsigned i = 0; i < array->count; i++) {
		array->levels[i].context = context;
		array->levels[i].of = array;
	}
	pthread_mutex_lock(&array_lock);
	array->next = mipmapped;
	mipmapped = array;
	pthread_mutex_unlock(&array_lock);
	*pHandle = array;
	return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(
	CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	if (!object_is(hMipmappedArray, OBJECT_MIPMAPPED))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pLevelArray || level >= hMipmappedArray->count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(&hMipmappedArray->levels[level], OBJECT_ARRAY) &&
		!object_add(&hMipmappedArray->levels[level], OBJECT_ARRAY))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pLevelArray = &hMipmappedArray->levels[level];
	return CUDA_SUCCESS;
}

CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	if (!object_is(hArray, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pPlaneArray || planeIdx >= hArray->plane_count)
		return CUDA_ERROR_INVALID_VALUE;
	*pPlaneArray = &hArray->planes[planeIdx];
	return CUDA_SUCCESS;
}

/* ---- the end ---- */

static void array_unlink(const struct CUarray_st *array)
{
	struct CUarray_st **at = &arrays;

	pthread_mutex_lock(&array_lock);
	while (*at && *at != array)
		at = &(*at)->next;
	if (*at)
		*at = array->next;
	pthread_mutex_unlock(&array_lock);
}

CUresult cuArrayDestroy(CUarray hArray)
{
	CUresult ret;

	/* A level goes with its mipmapped array, a plane with its planar one. */
	if (!object_is(hArray, OBJECT_ARRAY) || hArray->of || hArray->whole)
		return CUDA_ERROR_INVALID_HANDLE;
	ret = capture_unsafe();
	if (ret)
		return ret;
	queue_drain(hArray->context, 0);
	array_unlink(hArray);
	array_release_memory(hArray);
	array_delete(hArray);
	return CUDA_SUCCESS;
}

static void mipmapped_forget(struct CUmipmappedArray_st *array)
{
	object_remove(array);
	for (unsigned i = 0; i < array->count; i++)
		object_remove(&array->levels[i]);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	struct CUmipmappedArray_st **at = &mipmapped;
	CUresult ret;

	if (!object_is(hMipmappedArray, OBJECT_MIPMAPPED))
		return CUDA_ERROR_INVALID_HANDLE;
	ret = capture_unsafe();
	if (ret)
		return ret;
	mipmapped_forget(hMipmappedArray);
	queue_drain(hMipmappedArray->context, 0);
	pthread_mutex_lock(&array_lock);
	while (*at && *at != hMipmappedArray)
		at = &(*at)->next;
	if (*at)
		*at = hMipmappedArray->next;
	pthread_mutex_unlock(&array_lock);
	mipmapped_release_memory(hMipmappedArray);
	free(hMipmappedArray);
	return CUDA_SUCCESS;
}

void array_release_context(const struct CUctx_st *context)
{
	pthread_mutex_lock(&array_lock);
	for (struct CUarray_st **at = &arrays, *array; (array = *at);) {
		if (array->context != context) {
			at = &array->next;
			continue;
		}
		*at = array->next;
		if (array->sparse)
			array_map_release(&array->own);
		array_delete(array);
	}
	for (struct CUmipmappedArray_st **at = &mipmapped, *array; (array = *at);) {
		if (array->context != context) {
			at = &array->next;
			continue;
		}
		*at = array->next;
		mipmapped_forget(array);
		if (array->sparse.bytes)
			array_map_release(&array->sparse);
		free(array);
	}
	pthread_mutex_unlock(&array_lock);
}

/* ---- questions ---- */

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(hArray, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	*pArrayDescriptor = hArray->desc;
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!object_is(hArray, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = hArray->desc.Width,
		.Height = hArray->desc.Height,
		.Format = hArray->desc.Format,
		.NumChannels = hArray->desc.NumChannels};
	return CUDA_SUCCESS;
}
