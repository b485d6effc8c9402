// SPDX-License-Identifier: Apache-2.0
/* Sparse arrays of every shape: rows that are no power of two, three dimensions, layers,
 * blocks, and levels of which the smallest are mapped together; what has no memory reads 0, and
 * keeps nothing. And arrays whose memory is mapped later as a whole. */
#include "sparse.h"

__global__ void texel_2d(cudaTextureObject_t t, int x, int y, int, float *out)
{
	*out = tex2D<float>(t, x, y);
}
__global__ void texel_3d(cudaTextureObject_t t, int x, int y, int z, float *out)
{
	*out = tex3D<float>(t, x, y, z);
}
__global__ void texel_layer(cudaTextureObject_t t, int x, int y, int layer, float *out)
{
	*out = tex2DLayered<float>(t, x, y, layer);
}
/* Of coordinates between 0 and 1: of a level 2^LEVEL times smaller. */
__global__ void texel_level(cudaTextureObject_t t, int size, int at, int level, float *out)
{
	*out = tex2DLod<float>(t, (at + 0.5f) / size, (at + 0.5f) / size, level);
}

typedef void (*reader)(cudaTextureObject_t, int, int, int, float *);

static float *result;

static cudaTextureObject_t texture_of(
	CUarray array, CUmipmappedArray levels, bool normalized = false, bool blocks = false)
{
	struct cudaResourceDesc resource = {};
	struct cudaTextureDesc how = {};
	cudaTextureObject_t texture;

	resource.resType = array ? cudaResourceTypeArray : cudaResourceTypeMipmappedArray;
	if (array)
		resource.res.array.array = (cudaArray_t)array;
	else
		resource.res.mipmap.mipmap = (cudaMipmappedArray_t)levels;
	how.readMode = blocks ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
	how.normalizedCoords = normalized;
	how.maxMipmapLevelClamp = 100;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	return texture;
}

static float answer()
{
	float got;

	LAUNCHED();
	CUDA(cudaMemcpy(&got, result, sizeof(got), cudaMemcpyDeviceToHost));
	return got;
}

static float texel(reader read, CUarray array, int x, int y, int z, bool blocks = false)
{
	cudaTextureObject_t texture = texture_of(array, NULL, false, blocks);
	float got;

	read<<<1, 1>>>(texture, x, y, z, result);
	got = answer();
	CUDA(cudaDestroyTextureObject(texture));
	return got;
}

/* One element from the host. */
static void put(CUarray array, int x, int y, int z, float value)
{
	ENTRY(cuMemcpy3D);
	CUDA_MEMCPY3D copy = {};

	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = &value;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.dstXInBytes = x * sizeof(float);
	copy.dstY = y;
	copy.dstZ = z;
	copy.WidthInBytes = sizeof(float);
	copy.Height = copy.Depth = 1;
	DRIVER(p_cuMemcpy3D(&copy));
}

/* A box across tiles, in and out again. */
static void box_again(CUarray array, int x, int y, int z, int width, int height, int depth)
{
	ENTRY(cuMemcpy3D);
	const size_t count = (size_t)width * height * depth;
	float *in = (float *)malloc(count * sizeof(float));
	float *out = (float *)calloc(count, sizeof(float));
	CUDA_MEMCPY3D copy = {};

	for (size_t i = 0; i < count; i++)
		in[i] = (float)(i % 8191 + 1);
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = in;
	copy.srcPitch = copy.dstPitch = copy.WidthInBytes = width * sizeof(float);
	copy.srcHeight = copy.dstHeight = copy.Height = height;
	copy.Depth = depth;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = copy.srcArray = array;
	copy.dstXInBytes = x * sizeof(float);
	copy.dstY = y;
	copy.dstZ = z;
	DRIVER(p_cuMemcpy3D(&copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcXInBytes = copy.dstXInBytes;
	copy.srcY = y;
	copy.srcZ = z;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = out;
	copy.dstXInBytes = copy.dstY = copy.dstZ = 0;
	DRIVER(p_cuMemcpy3D(&copy));
	for (size_t i = 0; i < count; i++)
		if (in[i] != out[i])
			FAIL("element %zu of a box: %g, not %g", i, out[i], in[i]);
	free(in);
	free(out);
}

static CUDA_ARRAY_SPARSE_PROPERTIES properties(CUarray array)
{
	ENTRY(cuArrayGetSparseProperties);
	CUDA_ARRAY_SPARSE_PROPERTIES tile;

	DRIVER(p_cuArrayGetSparseProperties(&tile, array));
	return tile;
}

static size_t bytes_of(const CUDA_ARRAY_SPARSE_PROPERTIES &tile)
{
	return (size_t)tile.tileExtent.width * tile.tileExtent.height * tile.tileExtent.depth *
	       sizeof(float);
}

static CUresult try_make(
	CUarray *array, size_t width, size_t height, size_t depth, unsigned flags)
{
	ENTRY(cuArray3DCreate);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};

	desc.Width = width;
	desc.Height = height;
	desc.Depth = depth;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 1;
	desc.Flags = CUDA_ARRAY3D_SPARSE | flags;
	return p_cuArray3DCreate(array, &desc);
}

static CUarray make(size_t width, size_t height, size_t depth, unsigned flags)
{
	CUarray array;
	const CUresult status = try_make(&array, width, height, depth, flags);

	if (status)
		FAIL("cuArray3DCreate of %zu x %zu x %zu, flags %#x, gave %d", width, height, depth,
			flags, (int)status);
	return array;
}

static void apply(CUarrayMapInfo map)
{
	ENTRY(cuMemMapArrayAsync);

	DRIVER(p_cuMemMapArrayAsync(&map, 1, NULL));
	CUDA(cudaDeviceSynchronize());
}

static void end(CUarray array, CUmemGenericAllocationHandle pool)
{
	ENTRY(cuArrayDestroy);
	ENTRY(cuMemRelease);

	DRIVER(p_cuMemRelease(pool));
	DRIVER(p_cuArrayDestroy(array));
}

/* Rows that are no power of two, and none of a tile's width; what has no memory reads 0. */
static void odd_rows()
{
	CUarray array = make(1000, 3000, 0, 0);
	const CUDA_ARRAY_SPARSE_PROPERTIES tile = properties(array);
	const int h = tile.tileExtent.height;
	CUmemGenericAllocationHandle pool = pool_of(bytes_of(tile));

	if (tile.flags & CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL) {
		end(array, pool);
		array = make(2 * tile.tileExtent.width - 24, 3000, 0, 0);
		pool = pool_of(bytes_of(tile));
	}
	apply(map_of(array, tile, 0, h, pool, 0));
	put(array, 3, h, 0, 5);
	CHECK_EQ(texel(texel_2d, array, 3, h, 0), 5.0f);
	CHECK_EQ(texel(texel_2d, array, 3, h + 1, 0), 0.0f);
	CHECK_EQ(texel(texel_2d, array, 3, 0, 0), 0.0f);
	end(array, pool);
}

/* Tiles of each corner of a box of 2 x 2 x 2. */
static void three_dimensions()
{
	CUarray array = make(512, 512, 512, 0);
	CUDA_ARRAY_SPARSE_PROPERTIES tile = properties(array);
	const int w = tile.tileExtent.width, h = tile.tileExtent.height,
		  d = tile.tileExtent.depth;
	CUmemGenericAllocationHandle pool = pool_of(8 * bytes_of(tile));
	CUarrayMapInfo map = map_of(array, tile, w, h, pool, 0);

	CHECK(d > 1 && 3 * w <= 512 && 3 * h <= 512 && 3 * d <= 512);
	map.subresource.sparseLevel.offsetZ = d;
	map.subresource.sparseLevel.extentWidth = 2 * w;
	map.subresource.sparseLevel.extentHeight = 2 * h;
	map.subresource.sparseLevel.extentDepth = 2 * d;
	apply(map);
	for (int k = 0; k < 8; k++)
		put(array, w + (k & 1) * w, h + (k >> 1 & 1) * h, d + (k >> 2) * d, k + 1);
	for (int k = 0; k < 8; k++)
		CHECK_EQ_AT(k,
			texel(texel_3d, array, w + (k & 1) * w, h + (k >> 1 & 1) * h,
				d + (k >> 2) * d),
			(float)(k + 1));
	CHECK_EQ(texel(texel_3d, array, 0, 0, 0), 0.0f);
	box_again(array, 2 * w - 7, 2 * h - 3, 2 * d - 2, 20, 6, 4);
	/* Depth is of tiles too. */
	map.subresource.sparseLevel.extentDepth = 1;
	{
		ENTRY(cuMemMapArrayAsync);
		DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemMapArrayAsync(&map, 1, NULL));
	}
	end(array, pool);
}

static void layers()
{
	CUarray array = make(2048, 2048, 3, CUDA_ARRAY3D_LAYERED);
	const CUDA_ARRAY_SPARSE_PROPERTIES tile = properties(array);
	CUmemGenericAllocationHandle pool = pool_of(2 * bytes_of(tile));
	CUarrayMapInfo map = map_of(array, tile, tile.tileExtent.width, 0, pool, 0);
	const int x = tile.tileExtent.width;

	CHECK_EQ(tile.tileExtent.depth, 1u);
	map.subresource.sparseLevel.layer = 2;
	apply(map);
	put(array, x, 1, 2, 8);
	map.subresource.sparseLevel.layer = 0;
	map.offset = bytes_of(tile);
	apply(map);
	put(array, x, 1, 0, 9);
	CHECK_EQ(texel(texel_layer, array, x, 1, 2), 8.0f);
	CHECK_EQ(texel(texel_layer, array, x, 1, 1), 0.0f);
	CHECK_EQ(texel(texel_layer, array, x, 1, 0), 9.0f);
	end(array, pool);
}

/* An H200's driver has none of them: cubemaps, what surfaces write, and one dimension. */
static void refused()
{
	CUarray array;

	CHECK_EQ(try_make(&array, 2048, 2048, 6, CUDA_ARRAY3D_CUBEMAP), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(try_make(&array, 2048, 2048, 12, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(try_make(&array, 4096, 4096, 0, CUDA_ARRAY3D_SURFACE_LDST), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(try_make(&array, 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

/* What does not span a tile is mapped as a tail. */
static void small()
{
	CUarray array = make(8, 8, 0, 0);
	const CUDA_ARRAY_SPARSE_PROPERTIES tile = properties(array);
	CUmemGenericAllocationHandle pool;
	CUarrayMapInfo map;

	CHECK(tile.flags & CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL);
	CHECK_EQ(tile.miptailFirstLevel, 0u);
	CHECK(tile.miptailSize >= 256);
	pool = pool_of(tile.miptailSize);
	map = map_of(array, tile, 0, 0, pool, 0);
	map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	memset(&map.subresource, 0, sizeof(map.subresource));
	map.subresource.miptail.size = tile.miptailSize;
	apply(map);
	put(array, 7, 7, 0, 3);
	CHECK_EQ(texel(texel_2d, array, 7, 7, 0), 3.0f);
	end(array, pool);
}

/* Levels with a tile each, and the tail, which holds the rest. */
static void levels()
{
	ENTRY(cuMipmappedArrayCreate);
	ENTRY(cuMipmappedArrayDestroy);
	ENTRY(cuMipmappedArrayGetLevel);
	ENTRY(cuMipmappedArrayGetSparseProperties);
	ENTRY(cuArrayGetSparseProperties);
	ENTRY(cuMemRelease);
	enum { SIDE = 4096, COUNT = 13 };
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle pool;
	CUmipmappedArray whole;
	CUarrayMapInfo map = {};
	CUarray level;
	cudaTextureObject_t texture;

	desc.Width = desc.Height = SIDE;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 1;
	desc.Flags = CUDA_ARRAY3D_SPARSE;
	DRIVER(p_cuMipmappedArrayCreate(&whole, &desc, COUNT));
	DRIVER(p_cuMipmappedArrayGetSparseProperties(&tile, whole));
	CHECK(tile.miptailFirstLevel > 0 && tile.miptailFirstLevel < COUNT);
	CHECK(tile.miptailSize > 0);
	DRIVER(p_cuMipmappedArrayGetLevel(&level, whole, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArrayGetSparseProperties(&tile, level));
	pool = pool_of(bytes_of(tile) * tile.miptailFirstLevel + tile.miptailSize);
	for (unsigned k = 0; k < tile.miptailFirstLevel; k++) {
		map = map_of(NULL, tile, 0, 0, pool, k * bytes_of(tile));
		map.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
		map.resource.mipmap = whole;
		map.subresource.sparseLevel.level = k;
		apply(map);
	}
	map.offset = bytes_of(tile) * tile.miptailFirstLevel;
	map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	memset(&map.subresource, 0, sizeof(map.subresource));
	map.subresource.miptail.size = tile.miptailSize;
	apply(map);
	for (unsigned k = 0; k < COUNT; k++) {
		DRIVER(p_cuMipmappedArrayGetLevel(&level, whole, k));
		put(level, 0, 0, 0, k + 1);
	}
	texture = texture_of(NULL, whole, true);
	for (int k = 0; k < COUNT; k++) {
		texel_level<<<1, 1>>>(texture, SIDE >> k, 0, k, result);
		CHECK_EQ_AT(k, answer(), (float)(k + 1));
	}
	texel_level<<<1, 1>>>(texture, SIDE, SIDE - 1, 0, result);
	CHECK_EQ(answer(), 0.0f);
	CUDA(cudaDestroyTextureObject(texture));
	DRIVER(p_cuMemRelease(pool));
	DRIVER(p_cuMipmappedArrayDestroy(whole));
}

/* Tiles of blocks are counted in texels. */
static void blocks()
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuMemcpy3D);
	/* BC1: all of the first colour, which is white. */
	static const unsigned char white[8] = {0xff, 0xff, 0, 0, 0, 0, 0, 0};
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle pool;
	CUDA_MEMCPY3D copy = {};
	CUarray array;

	desc.Width = desc.Height = 8192;
	desc.Format = CU_AD_FORMAT_BC1_UNORM;
	desc.NumChannels = 4;
	desc.Flags = CUDA_ARRAY3D_SPARSE;
	DRIVER(p_cuArray3DCreate(&array, &desc));
	tile = properties(array);
	CHECK(tile.tileExtent.width % 4 == 0 && tile.tileExtent.height % 4 == 0);
	pool = pool_of((size_t)tile.tileExtent.width * tile.tileExtent.height / 2);
	apply(map_of(array, tile, tile.tileExtent.width, 0, pool, 0));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = white;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.dstXInBytes = tile.tileExtent.width / 4 * sizeof(white);
	copy.WidthInBytes = sizeof(white);
	copy.Height = copy.Depth = 1;
	DRIVER(p_cuMemcpy3D(&copy));
	CHECK_EQ(texel(texel_2d, array, tile.tileExtent.width + 3, 3, 0, true), 1.0f);
	CHECK_EQ(texel(texel_2d, array, 0, 0, 0, true), 0.0f);
	end(array, pool);
}

/* Its memory comes at once, later. */
static void deferred()
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuArrayGetMemoryRequirements);
	ENTRY(cuArrayGetSparseProperties);
	CUDA_ARRAY_MEMORY_REQUIREMENTS wants;
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUmemGenericAllocationHandle pool;
	CUarrayMapInfo map = {};
	CUarray array;
	CUresult status;

	desc.Width = 1000;
	desc.Height = 2000;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 1;
	desc.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
	status = p_cuArray3DCreate(&array, &desc);
	if (status == CUDA_ERROR_NOT_SUPPORTED ||
		!device_attribute(cudaDevAttrDeferredMappingCudaArraySupported))
		return;
	DRIVER(status);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArrayGetSparseProperties(&tile, array));
	DRIVER(p_cuArrayGetMemoryRequirements(&wants, array, 0));
	CHECK(wants.size >= 1000 * 2000 * sizeof(float));
	pool = pool_of(wants.size);
	map.resourceType = CU_RESOURCE_TYPE_ARRAY;
	map.resource.array = array;
	map.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	map.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	map.memHandle.memHandle = pool;
	map.deviceBitMask = 1;
	apply(map);
	box_again(array, 0, 0, 0, 1000, 2000, 1);
	CHECK_EQ(texel(texel_2d, array, 5, 0, 0), 6.0f);
	end(array, pool);
}

int main()
{
	if (!device_attribute(cudaDevAttrSparseCudaArraySupported))
		SKIP("this device has no sparse arrays");
	CUDA(cudaMalloc(&result, sizeof(*result)));
	odd_rows();
	three_dimensions();
	layers();
	refused();
	small();
	levels();
	blocks();
	deferred();
	CUDA(cudaFree(result));
	return 0;
}
