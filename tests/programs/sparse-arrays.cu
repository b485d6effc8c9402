// SPDX-License-Identifier: Apache-2.0
/* Sparse arrays: made without memory, which is mapped tile by tile, elsewhere again, and shows
 * what was written there before. */
#include "driver.h"

enum { WIDTH = 1024, HEIGHT = 1024 };

__global__ void corner(cudaTextureObject_t t, int x, int y, float *out)
{
	*out = tex2D<float>(t, x, y);
}

/* Fills, or (OUT) reads, one tile at (x, y). */
static void tile_copy(CUarray array, float *host, int x, int y, int width, int height, bool out)
{
	ENTRY(cuMemcpy2D);
	CUDA_MEMCPY2D copy = {};

	if (out) {
		copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		copy.srcArray = array;
		copy.srcXInBytes = x * sizeof(float);
		copy.srcY = y;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST;
		copy.dstHost = host;
		copy.dstPitch = width * sizeof(float);
	} else {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST;
		copy.srcHost = host;
		copy.srcPitch = width * sizeof(float);
		copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		copy.dstArray = array;
		copy.dstXInBytes = x * sizeof(float);
		copy.dstY = y;
	}
	copy.WidthInBytes = width * sizeof(float);
	copy.Height = height;
	DRIVER(p_cuMemcpy2D(&copy));
}

static CUarrayMapInfo map_of(CUarray array, const CUDA_ARRAY_SPARSE_PROPERTIES &tile, int x,
	int y, CUmemGenericAllocationHandle memory, size_t offset)
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

static float read_corner(CUarray array, int x, int y)
{
	struct cudaResourceDesc resource = {};
	struct cudaTextureDesc how = {};
	cudaTextureObject_t texture;
	float *out, got;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = (cudaArray_t)array;
	how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	CUDA(cudaMalloc(&out, sizeof(*out)));
	corner<<<1, 1>>>(texture, x, y, out);
	LAUNCHED();
	CUDA(cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFree(out));
	return got;
}

int main()
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuArrayDestroy);
	ENTRY(cuArrayGetSparseProperties);
	ENTRY(cuMemMapArrayAsync);
	ENTRY(cuMemCreate);
	ENTRY(cuMemRelease);
	ENTRY(cuMemGetAllocationGranularity);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle pool;
	CUmemAllocationProp prop = {};
	CUarrayMapInfo maps[2];
	size_t granularity, bytes;
	CUarray array, plain;
	float *host, *got;
	int w, h;

	if (!device_attribute(cudaDevAttrSparseCudaArraySupported))
		SKIP("this device has no sparse arrays");
	CUDA(cudaFree(NULL));
	desc.Width = WIDTH;
	desc.Height = HEIGHT;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 1;
	DRIVER(p_cuArray3DCreate(&plain, &desc));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArrayGetSparseProperties(&tile, plain));
	DRIVER(p_cuArrayDestroy(plain));
	desc.Flags = CUDA_ARRAY3D_SPARSE;
	DRIVER(p_cuArray3DCreate(&array, &desc));
	DRIVER(p_cuArrayGetSparseProperties(&tile, array));
	w = tile.tileExtent.width;
	h = tile.tileExtent.height;
	CHECK_EQ(tile.tileExtent.depth, 1u);
	CHECK(w > 0 && h > 0 && WIDTH % w == 0 && HEIGHT % h == 0 && h < HEIGHT);
	bytes = (size_t)w * h * sizeof(float);

	/* Two tiles, side by side in the pool, in opposite corners of the array. */
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	DRIVER(p_cuMemGetAllocationGranularity(
		&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	DRIVER(p_cuMemCreate(
		&pool, (2 * bytes + granularity - 1) / granularity * granularity, &prop, 0));
	maps[0] = map_of(array, tile, 0, 0, pool, 0);
	maps[1] = map_of(array, tile, WIDTH - w, HEIGHT - h, pool, bytes);
	DRIVER(p_cuMemMapArrayAsync(maps, 2, NULL));
	CUDA(cudaDeviceSynchronize());
	host = (float *)malloc(bytes);
	got = (float *)malloc(bytes);
	for (int i = 0; i < w * h; i++)
		host[i] = (float)i;
	tile_copy(array, host, 0, 0, w, h, false);
	for (int i = 0; i < w * h; i++)
		host[i] = (float)-i;
	tile_copy(array, host, WIDTH - w, HEIGHT - h, w, h, false);
	tile_copy(array, got, 0, 0, w, h, true);
	for (int i = 0; i < w * h; i++)
		CHECK_EQ_AT(i, got[i], (float)i);
	CHECK_EQ(read_corner(array, 1, 0), 1.0f);
	CHECK_EQ(read_corner(array, WIDTH - w + 2, HEIGHT - h), -2.0f);

	/* The second tile's memory in the first one's place. */
	maps[0] = map_of(array, tile, WIDTH - w, HEIGHT - h, 0, 0);
	maps[1] = map_of(array, tile, 0, 0, pool, bytes);
	DRIVER(p_cuMemMapArrayAsync(maps, 2, NULL));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(read_corner(array, 3, 0), -3.0f);
	tile_copy(array, got, 0, 0, w, h, true);
	for (int i = 0; i < w * h; i++)
		CHECK_EQ_AT(i, got[i], (float)-i);

	DRIVER(p_cuMemRelease(pool));
	DRIVER(p_cuArrayDestroy(array));
	free(host);
	free(got);
	return 0;
}
