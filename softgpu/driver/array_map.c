/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse arrays of two dimensions, whose rows are a power of two of bytes: a tile is as many
 * whole rows as fill a granule of memory, and a range of addresses that it is mapped to.  What
 * is not mapped faults, where a GPU reads zeroes.
 */
#include "softgpu/driver/array.h"

static size_t sparse_bytes(const struct CUarray_st *array)
{
	return (array->row * array->rows + GRANULE - 1) / GRANULE * GRANULE;
}

bool sparse_shape(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	const size_t row = desc->Width * array_element(desc->Format, desc->NumChannels);

	return desc->Height && !desc->Depth && row && row <= GRANULE && !(row & (row - 1)) &&
	       !(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
}

CUresult sparse_reserve(struct CUarray_st *array)
{
	CUdeviceptr address;
	CUresult ret = cuMemAddressReserve(&address, sparse_bytes(array), 0, 0, 0);

	if (!ret)
		array->address = address;
	return ret;
}

void sparse_release(const struct CUarray_st *array)
{
	const size_t bytes = sparse_bytes(array);

	/* Tiles that are not mapped are refused, which changes nothing. */
	for (size_t at = 0; at < bytes; at += GRANULE)
		cuMemUnmap(array->address + at, GRANULE);
	cuMemAddressFree(array->address, bytes);
}

CUresult cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	if (!sparseProperties || !object_is(array, OBJECT_ARRAY) ||
		!(array->desc.Flags & CUDA_ARRAY3D_SPARSE))
		return CUDA_ERROR_INVALID_VALUE;
	*sparseProperties =
		(CUDA_ARRAY_SPARSE_PROPERTIES){.tileExtent = {(unsigned)array->desc.Width,
						       (unsigned)(GRANULE / array->row), 1}};
	return CUDA_SUCCESS;
}

/* No array here is one whose mapping is deferred. */
CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	(void)memoryRequirements, (void)array, (void)device;
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
	CUdevice device)
{
	(void)memoryRequirements, (void)mipmap, (void)device;
	return CUDA_ERROR_INVALID_VALUE;
}

/* The bytes that an entry names, from *AT on. */
static CUresult map_place(const CUarrayMapInfo *info, uint64_t *at, size_t *bytes)
{
	const struct CUarray_st *array = info->resource.array;
	const size_t level = info->subresource.sparseLevel.level;
	const size_t y = info->subresource.sparseLevel.offsetY;
	const size_t height = info->subresource.sparseLevel.extentHeight;
	size_t tile;

	if (info->resourceType != CU_RESOURCE_TYPE_ARRAY || !object_is(array, OBJECT_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!(array->desc.Flags & CUDA_ARRAY3D_SPARSE) || info->flags || level ||
		info->subresourceType != CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL ||
		info->subresource.sparseLevel.layer || info->subresource.sparseLevel.offsetX ||
		info->subresource.sparseLevel.offsetZ ||
		info->subresource.sparseLevel.extentDepth != 1 ||
		info->subresource.sparseLevel.extentWidth != array->desc.Width)
		return CUDA_ERROR_INVALID_VALUE;
	tile = GRANULE / array->row;
	if (y % tile || height % tile || !height ||
		y + height > (array->rows + tile - 1) / tile * tile)
		return CUDA_ERROR_INVALID_VALUE;
	*at = array->address + y * array->row;
	*bytes = height * array->row;
	return CUDA_SUCCESS;
}

/* What was there before goes. */
static CUresult map_one(const CUarrayMapInfo *info)
{
	CUmemAccessDesc access = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	uint64_t at;
	size_t bytes;
	CUresult ret = map_place(info, &at, &bytes);

	if (ret)
		return ret;
	access.location.id = info->resource.array->context->device->ordinal;
	if (info->deviceBitMask != 1u << access.location.id)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t done = 0; done < bytes; done += GRANULE)
		cuMemUnmap(at + done, GRANULE);
	if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
		return CUDA_SUCCESS;
	for (size_t done = 0; !ret && done < bytes; done += GRANULE)
		ret = cuMemMap(
			at + done, GRANULE, info->offset + done, info->memHandle.memHandle, 0);
	return ret ? ret : cuMemSetAccess(at, bytes, &access, 1);
}

/* At once, behind all that the context was given. */
CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	(void)hStream;
	if (ret)
		return ret;
	if (!mapInfoList || !count)
		return CUDA_ERROR_INVALID_VALUE;
	queue_drain(context, 0);
	for (unsigned i = 0; !ret && i < count; i++)
		ret = map_one(&mapInfoList[i]);
	return ret;
}
