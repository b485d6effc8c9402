/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of arrays that were made without: tiles of sparse ones, and those whose mapping was
 * deferred.  Mapping is a call, for the device knows what fits.  An array holds each tile pool
 * that was ever mapped into it until it is destroyed, as the worker does: so long the memory
 * counts against the lease.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/array/array.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER; /* the pools of arrays */
LOCK_RANK(map, map_lock, LOCK_ARRAY_MAP);

void array_unmap(struct array *array)
{
	for (uint32_t i = 0; i < array->pool_count; i++)
		vmm_let_go(array->pools[i]);
	free(array->pools);
}

static CUresult map_hold(struct array *array, CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *memory, **pools;
	CUmemAllocationProp prop;
	CUresult status = CUDA_SUCCESS;
	size_t bytes;
	uint32_t i;

	/* What the program has released is not its to map, though an array holds it. */
	if (!vmm_about(handle, &prop, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&map_lock);
	for (i = 0; i < array->pool_count; i++)
		if (vmm_handle(array->pools[i]) == handle)
			break;
	if (i == array->pool_count) {
		pools = realloc(array->pools, (i + 1) * sizeof(struct vmm_memory *));
		if (pools)
			array->pools = pools;
		status = pools ? vmm_hold(handle, array->context->device, &memory)
			       : CUDA_ERROR_OUT_OF_MEMORY;
		if (!status)
			array->pools[array->pool_count++] = memory;
	}
	pthread_mutex_unlock(&map_lock);
	return status;
}

static CUresult map_entry(const CUarrayMapInfo *from, struct array_map *to)
{
	const bool mipmapped = from->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	struct array *array;

	if ((!mipmapped && from->resourceType != CU_RESOURCE_TYPE_ARRAY) || from->flags ||
		from->reserved[0] || from->reserved[1])
		return CUDA_ERROR_INVALID_VALUE;
	*to = (struct array_map){.array = (uint64_t)(uintptr_t)from->resource.array};
	array = array_find(to->array, mipmapped);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!(array->desc.flags & (ARRAY_SPARSE | ARRAY_DEFERRED)) || array->parent ||
		from->deviceBitMask != 1u << array->context->device)
		return CUDA_ERROR_INVALID_VALUE;
	if (from->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		to->tail = 1;
		to->layer = from->subresource.miptail.layer;
		to->tail_offset = from->subresource.miptail.offset;
		to->tail_size = from->subresource.miptail.size;
	} else if (from->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL) {
		to->level = from->subresource.sparseLevel.level;
		to->layer = from->subresource.sparseLevel.layer;
		memcpy(to->at, &from->subresource.sparseLevel.offsetX, sizeof(to->at));
		memcpy(to->extent, &from->subresource.sparseLevel.extentWidth,
			sizeof(to->extent));
	} else if (!(array->desc.flags & ARRAY_DEFERRED)) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (from->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
		return from->memHandle.memHandle ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (from->memOperationType != CU_MEM_OPERATION_TYPE_MAP ||
		from->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
		return CUDA_ERROR_INVALID_VALUE;
	to->memory = from->memHandle.memHandle;
	to->offset = from->offset;
	return map_hold(array, to->memory);
}

static CUresult map_call(const struct array_map *list, uint32_t count, CUstream stream)
{
	struct wire_vcudaArrayMap *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaArrayMap, sizeof(*body));
	body->count = count;
	body->stream = shim_stream(&call, stream);
	shim_put(&call, &body->list, list, count * sizeof(*list));
	shim_wait(&call, 0);
	return shim_end(&call);
}

CUresult hand_cuMemMapArrayAsync(
	CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	struct array_map list[ARRAY_MAPS];
	CUresult status = mapInfoList && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	unsigned n;

	for (unsigned done = 0; !status && done < count; done += n) {
		n = count - done < ARRAY_MAPS ? count - done : ARRAY_MAPS;
		for (unsigned i = 0; !status && i < n; i++)
			status = map_entry(&mapInfoList[done + i], &list[i]);
		if (!status)
			status = map_call(list, n, hStream);
	}
	return status;
}
