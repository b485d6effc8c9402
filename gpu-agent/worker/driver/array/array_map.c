/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of sparse arrays and of those whose mapping was deferred.  What is mapped lies inside
 * the tile pool that is named; the driver checks the place in the array.  A pool that was
 * mapped into an array counts as used until that is destroyed: nobody else knows its tiles.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "gpu-agent/worker/handle.h"

void array_tiles_unmap(struct worker *w, struct worker_array *array)
{
	for (uint32_t i = 0; i < array->pool_count; i++)
		vmm_unmapped(w, array->pools[i]);
	free(array->pools);
}

static CUresult map_hold(struct worker_array *array, struct vmm *m)
{
	struct vmm **pools;

	for (uint32_t i = 0; i < array->pool_count; i++)
		if (array->pools[i] == m)
			return CUDA_SUCCESS;
	pools = realloc(array->pools, (array->pool_count + 1) * sizeof(struct vmm *));
	if (!pools)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->pools = pools;
	array->pools[array->pool_count++] = m;
	m->mappings++;
	return CUDA_SUCCESS;
}

/* So many bytes of memory the entry takes; UINT64_MAX: more than there is. */
static uint64_t map_bytes(
	struct worker *w, const struct worker_array *array, const struct array_map *map)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS whole;
	uint64_t bytes = array_element(array->desc.format, array->desc.channels);
	const CUdevice device = w->devices[array->device].device;
	CUresult status;

	if (array->desc.flags & ARRAY_DEFERRED) {
		memset(&whole, 0, sizeof(whole));
		status = array->mipmap ? w->cuda.cuMipmappedArrayGetMemoryRequirements(
						 &whole, array->mipmap, device)
				       : w->cuda.cuArrayGetMemoryRequirements(
						 &whole, array->array, device);
		return status ? UINT64_MAX : whole.size;
	}
	if (map->tail)
		return map->tail_size;
	for (int i = 0; i < 3; i++) {
		/* Of blocks, texels are counted. */
		const uint64_t unit = i < 2 && array_blocks(array->desc.format) ? 4 : 1;

		if (__builtin_mul_overflow(bytes, map->extent[i] / unit, &bytes))
			return UINT64_MAX;
	}
	return bytes;
}

static CUresult map_entry(
	struct worker *w, struct request *r, const struct array_map *from, CUarrayMapInfo *to)
{
	struct worker_array *array = worker_handle(w, r, from->array, KIND_CUarray);
	struct vmm *m = NULL;
	uint64_t bytes;

	memset(to, 0, sizeof(*to));
	if (from->memory)
		m = worker_handle(w, r, from->memory, KIND_CUmemGenericAllocationHandle);
	if (worker_refused(r))
		return r->refused;
	if (array->part || !(array->desc.flags & (ARRAY_SPARSE | ARRAY_DEFERRED)) ||
		from->tail > 1)
		return CUDA_ERROR_INVALID_VALUE;
	to->resourceType =
		array->mipmap ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY;
	if (array->mipmap)
		to->resource.mipmap = array->mipmap;
	else
		to->resource.array = array->array;
	if (from->tail) {
		to->subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
		to->subresource.miptail.layer = from->layer;
		to->subresource.miptail.offset = from->tail_offset;
		to->subresource.miptail.size = from->tail_size;
	} else {
		to->subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
		to->subresource.sparseLevel.level = from->level;
		to->subresource.sparseLevel.layer = from->layer;
		memcpy(&to->subresource.sparseLevel.offsetX, from->at, sizeof(from->at));
		memcpy(&to->subresource.sparseLevel.extentWidth, from->extent,
			sizeof(from->extent));
	}
	to->deviceBitMask = 1u << w->devices[array->device].device;
	to->memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	to->memOperationType = m ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
	if (!m)
		return CUDA_SUCCESS;
	bytes = map_bytes(w, array, from);
	if (!m->tile_pool || m->device != array->device || from->offset > m->bytes ||
		bytes > m->bytes - from->offset)
		return CUDA_ERROR_INVALID_VALUE;
	to->memHandle.memHandle = m->memory;
	to->offset = from->offset;
	return map_hold(array, m);
}

CUresult serve_vcudaArrayMap(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayMap *req = (const void *)r->body;
	const struct array_map *list =
		worker_in(r, &req->list, (uint64_t)req->count * sizeof(*list));
	CUstream stream = worker_stream(w, r, req->stream);
	CUarrayMapInfo maps[ARRAY_MAPS];
	CUresult status = r->refused;

	if (status)
		return status;
	if (!req->count || req->count > ARRAY_MAPS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuMemMapArrayAsync || !w->cuda.cuArrayGetMemoryRequirements ||
		!w->cuda.cuMipmappedArrayGetMemoryRequirements)
		return worker_lacks(w, "cuMemMapArrayAsync");
	for (uint32_t i = 0; !status && i < req->count; i++)
		status = map_entry(w, r, &list[i], &maps[i]);
	return status ? status : w->cuda.cuMemMapArrayAsync(maps, req->count, stream);
}
