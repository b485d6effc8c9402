// SPDX-License-Identifier: Apache-2.0
/* Sparse arrays and the memory that is mapped into them. */
#ifndef VCUDA_TESTS_PROGRAMS_SPARSE_H
#define VCUDA_TESTS_PROGRAMS_SPARSE_H

#include "driver.h"

/* One tile at (x, y) of an array. */
static inline CUarrayMapInfo map_of(CUarray array, const CUDA_ARRAY_SPARSE_PROPERTIES &tile,
	int x, int y, CUmemGenericAllocationHandle memory, size_t offset)
{
	CUarrayMapInfo map = {};

	map.resourceType = CU_RESOURCE_TYPE_ARRAY;
	map.resource.array = array;
	map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	map.subresource.sparseLevel.offsetX = x;
	map.subresource.sparseLevel.offsetY = y;
	map.subresource.sparseLevel.extentWidth = tile.tileExtent.width;
	map.subresource.sparseLevel.extentHeight = tile.tileExtent.height;
	map.subresource.sparseLevel.extentDepth = 1;
	map.memOperationType = memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
	map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	map.memHandle.memHandle = memory;
	map.offset = offset;
	map.deviceBitMask = 1;
	return map;
}

/* Of the first device, BYTES or more. */
static inline CUmemGenericAllocationHandle pool_of(size_t bytes)
{
	ENTRY(cuMemCreate);
	ENTRY(cuMemGetAllocationGranularity);
	CUmemGenericAllocationHandle pool;
	CUmemAllocationProp prop = {};
	size_t granularity;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	DRIVER(p_cuMemGetAllocationGranularity(
		&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	DRIVER(p_cuMemCreate(
		&pool, (bytes + granularity - 1) / granularity * granularity, &prop, 0));
	return pool;
}

#endif
