// SPDX-License-Identifier: Apache-2.0
/* Sparse arrays: made without memory, which is mapped tile by tile, elsewhere again, and shows
 * what was written there before. */
#include "sparse.h"

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
	ENTRY(cuMemRelease);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle pool;
	CUarrayMapInfo maps[2];
	size_t bytes;
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
	pool = pool_of(2 * bytes);
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
