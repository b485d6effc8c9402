// SPDX-License-Identifier: Apache-2.0
/*
 * Surfaces of each kind of array, written by kernels and read by copies: of one dimension,
 * layered, of three dimensions, cubemaps and layered ones; what lies outside is clamped or
 * dropped as the kernel says; and textures of mipmapped arrays by level and by gradient.
 */
#include "check.h"

#include <vector>

#ifdef __clang__
int main()
{
	SKIP("clang's headers have no surface functions");
}
#else

enum { WIDTH = 8, HEIGHT = 4, CUBE = 4, LAYERS = 3, FACES = 6 };

__global__ void write_line(cudaSurfaceObject_t s)
{
	surf1Dwrite(10.0f * threadIdx.x, s, threadIdx.x * sizeof(float));
}

__global__ void write_layered_line(cudaSurfaceObject_t s)
{
	surf1DLayeredwrite(
		(short)(100 * blockIdx.x + threadIdx.x), s, threadIdx.x * 2, blockIdx.x);
}

__global__ void write_layered(cudaSurfaceObject_t s)
{
	surf2DLayeredwrite(make_int2(threadIdx.x + 100 * blockIdx.x, threadIdx.y), s,
		threadIdx.x * sizeof(int2), threadIdx.y, blockIdx.x);
}

__global__ void write_box(cudaSurfaceObject_t s)
{
	surf3Dwrite((unsigned char)(threadIdx.x + 8 * threadIdx.y + 32 * threadIdx.z), s,
		threadIdx.x, threadIdx.y, threadIdx.z);
}

__global__ void write_cube(cudaSurfaceObject_t s, bool layered)
{
	float value = 100.0f * blockIdx.x + threadIdx.x + 10 * threadIdx.y;
	int x = threadIdx.x * sizeof(float), y = threadIdx.y;

	if (layered)
		surfCubemapLayeredwrite(value, s, x, y, blockIdx.x);
	else
		surfCubemapwrite(value, s, x, y, blockIdx.x);
}

__global__ void outside(cudaSurfaceObject_t s, float *out)
{
	out[0] = surf2Dread<float>(s, -4, 0, cudaBoundaryModeClamp);
	out[1] = surf2Dread<float>(s, 400, 1, cudaBoundaryModeClamp);
	out[2] = surf2Dread<float>(s, -4, 0, cudaBoundaryModeZero);
	surf2Dwrite(777.0f, s, 400, 0, cudaBoundaryModeZero);
	surf2Dwrite(555.0f, s, 400, 0, cudaBoundaryModeClamp);
}

__global__ void by_level(cudaTextureObject_t box, cudaTextureObject_t plane, float *out)
{
	for (int level = 0; level < 3; level++)
		out[level] = tex3DLod<float>(box, 0.5f, 0.5f, 0.5f, level);
	for (int texels = 1, i = 3; texels <= 8; texels *= 2, i++)
		out[i] = tex2DGrad<float>(plane, 0.5f, 0.5f, make_float2(texels / 8.0f, 0),
			make_float2(0, texels / 8.0f));
}

template <typename T> static cudaArray_t array_of(cudaExtent shape, unsigned flags)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
	cudaArray_t array;

	CUDA(cudaMalloc3DArray(&array, &format, shape, flags | cudaArraySurfaceLoadStore));
	return array;
}

static cudaSurfaceObject_t surface_of(cudaArray_t array)
{
	cudaResourceDesc resource = {};
	cudaSurfaceObject_t surface;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CUDA(cudaCreateSurfaceObject(&surface, &resource));
	return surface;
}

/* Everything that the array holds; the array and its surface go. */
template <typename T>
static std::vector<T> take(cudaArray_t array, cudaSurfaceObject_t surface, cudaExtent shape)
{
	const size_t rows = shape.height ? shape.height : 1,
		     planes = shape.depth ? shape.depth : 1;
	std::vector<T> all(shape.width * rows * planes);
	cudaMemcpy3DParms copy = {};

	LAUNCHED();
	copy.srcArray = array;
	copy.dstPtr =
		make_cudaPitchedPtr(all.data(), shape.width * sizeof(T), shape.width, rows);
	copy.extent = make_cudaExtent(shape.width, rows, planes);
	copy.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&copy));
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaFreeArray(array));
	return all;
}

static void lines()
{
	const cudaExtent one = make_cudaExtent(WIDTH, 0, 0);
	const cudaExtent layers = make_cudaExtent(WIDTH, 0, LAYERS);
	cudaArray_t array = array_of<float>(one, 0);
	cudaSurfaceObject_t surface = surface_of(array);

	write_line<<<1, WIDTH>>>(surface);
	std::vector<float> line = take<float>(array, surface, one);
	for (int i = 0; i < WIDTH; i++)
		CHECK_EQ_AT(i, line[i], 10.0f * i);
	array = array_of<short>(layers, cudaArrayLayered);
	surface = surface_of(array);
	write_layered_line<<<LAYERS, WIDTH>>>(surface);
	std::vector<short> all = take<short>(array, surface, layers);
	for (int i = 0; i < WIDTH * LAYERS; i++)
		CHECK_EQ_AT(i, all[i], 100 * (i / WIDTH) + i % WIDTH);
}

static void planes()
{
	const cudaExtent layers = make_cudaExtent(WIDTH, HEIGHT, LAYERS);
	cudaArray_t array = array_of<int2>(layers, cudaArrayLayered);
	cudaSurfaceObject_t surface = surface_of(array);

	write_layered<<<LAYERS, dim3(WIDTH, HEIGHT)>>>(surface);
	std::vector<int2> all = take<int2>(array, surface, layers);
	for (int i = 0; i < WIDTH * HEIGHT * LAYERS; i++) {
		CHECK_EQ_AT(i, all[i].x, i % WIDTH + 100 * (i / (WIDTH * HEIGHT)));
		CHECK_EQ_AT(i, all[i].y, i / WIDTH % HEIGHT);
	}
	array = array_of<unsigned char>(layers, 0);
	surface = surface_of(array);
	write_box<<<1, dim3(WIDTH, HEIGHT, LAYERS)>>>(surface);
	std::vector<unsigned char> box = take<unsigned char>(array, surface, layers);
	for (int i = 0; i < WIDTH * HEIGHT * LAYERS; i++)
		CHECK_EQ_AT(i, box[i], i);
}

static void cubes(bool layered)
{
	const int faces = layered ? 2 * FACES : FACES;
	const cudaExtent shape = make_cudaExtent(CUBE, CUBE, faces);
	cudaArray_t array =
		array_of<float>(shape, cudaArrayCubemap | (layered ? cudaArrayLayered : 0));
	cudaSurfaceObject_t surface = surface_of(array);

	write_cube<<<faces, dim3(CUBE, CUBE)>>>(surface, layered);
	std::vector<float> all = take<float>(array, surface, shape);
	for (int i = 0; i < CUBE * CUBE * faces; i++)
		CHECK_EQ_AT(i, all[i],
			100.0f * (i / (CUBE * CUBE)) + i % CUBE + 10 * (i / CUBE % CUBE));
}

static void borders(float *out)
{
	const cudaExtent shape = make_cudaExtent(WIDTH, 2, 0);
	cudaArray_t array = array_of<float>(shape, 0);
	cudaSurfaceObject_t surface = surface_of(array);
	float values[2 * WIDTH], told[3];

	for (int i = 0; i < 2 * WIDTH; i++)
		values[i] = (float)i + 1;
	CUDA(cudaMemcpy2DToArray(array, 0, 0, values, sizeof(values) / 2, sizeof(values) / 2, 2,
		cudaMemcpyHostToDevice));
	outside<<<1, 1>>>(surface, out);
	CUDA(cudaMemcpy(told, out, sizeof(told), cudaMemcpyDeviceToHost));
	CHECK_EQ(told[0], 1.0f);
	CHECK_EQ(told[1], 16.0f);
	CHECK_EQ(told[2], 0.0f);
	std::vector<float> all = take<float>(array, surface, shape);
	for (int i = 0; i < 2 * WIDTH; i++)
		CHECK_EQ_AT(i, all[i], i == WIDTH - 1 ? 555.0f : values[i]);
}

/* Each level holds one value: ten times its number, and one. */
static cudaTextureObject_t mipmapped(
	cudaMipmappedArray_t *mipmap, size_t depth, unsigned levels)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;

	CUDA(cudaMallocMipmappedArray(mipmap, &format, make_cudaExtent(8, 8, depth), levels));
	for (unsigned level = 0; level < levels; level++) {
		const size_t edge = 8u >> level, planes = depth ? edge : 1;
		std::vector<float> all(edge * edge * planes, 10.0f * level + 1);
		cudaMemcpy3DParms copy = {};

		CUDA(cudaGetMipmappedArrayLevel(&copy.dstArray, *mipmap, level));
		copy.srcPtr = make_cudaPitchedPtr(all.data(), edge * sizeof(float), edge, edge);
		copy.extent = make_cudaExtent(edge, edge, planes);
		copy.kind = cudaMemcpyHostToDevice;
		CUDA(cudaMemcpy3D(&copy));
	}
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = *mipmap;
	how.normalizedCoords = 1;
	how.filterMode = cudaFilterModeLinear;
	how.mipmapFilterMode = depth ? cudaFilterModeLinear : cudaFilterModePoint;
	how.maxMipmapLevelClamp = (float)levels - 1;
	for (cudaTextureAddressMode &mode : how.addressMode)
		mode = cudaAddressModeClamp;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	return texture;
}

static void levels(float *out)
{
	cudaMipmappedArray_t box, plane;
	cudaTextureObject_t of_box = mipmapped(&box, 8, 3), of_plane = mipmapped(&plane, 0, 4);
	float told[7];

	by_level<<<1, 1>>>(of_box, of_plane, out);
	LAUNCHED();
	CUDA(cudaMemcpy(told, out, sizeof(told), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 7; i++)
		CHECK_EQ_AT(i, told[i], 10.0f * (i < 3 ? i : i - 3) + 1);
	CUDA(cudaDestroyTextureObject(of_box));
	CUDA(cudaDestroyTextureObject(of_plane));
	CUDA(cudaFreeMipmappedArray(box));
	CUDA(cudaFreeMipmappedArray(plane));
}

int main()
{
	float *out;

	CUDA(cudaMalloc(&out, 16 * sizeof(float)));
	lines();
	planes();
	cubes(false);
	cubes(true);
	borders(out);
	levels(out);
	CUDA(cudaFree(out));
	printf("surfaces are right\n");
	return 0;
}
#endif
