// SPDX-License-Identifier: Apache-2.0
/* A two-dimensional array of floats: copies into it and out of it, a texture and a surface over it. */
#include "check.h"
#include "surface.h"

#include <vector>

enum { W = 33, H = 17 };

__global__ void read_texture(cudaTextureObject_t texture, const float2 *at, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex2D<float>(texture, at[i].x, at[i].y);
}

__global__ void negate(cudaSurfaceObject_t surface)
{
	int x = threadIdx.x, y = threadIdx.y;

	surface_put(surface, -surface_get(surface, 4 * x, y), 4 * x, y);
}

static float cell(int x, int y)
{
	return (float)(x + 100 * y);
}

static std::vector<float> fetch(cudaTextureObject_t texture, const std::vector<float2> &at)
{
	std::vector<float> out(at.size());
	float2 *places;
	float *values;

	CUDA(cudaMalloc(&places, at.size() * sizeof(float2)));
	CUDA(cudaMalloc(&values, at.size() * sizeof(float)));
	CUDA(cudaMemcpy(places, at.data(), at.size() * sizeof(float2), cudaMemcpyHostToDevice));
	read_texture<<<(unsigned)(at.size() + 127) / 128, 128>>>(
		texture, places, values, (int)at.size());
	LAUNCHED();
	CUDA(cudaMemcpy(
		out.data(), values, at.size() * sizeof(float), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(places));
	CUDA(cudaFree(values));
	return out;
}

static cudaTextureObject_t texture_of(
	cudaArray_t array, cudaTextureFilterMode filter, cudaTextureAddressMode address)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	cudaTextureObject_t texture = 0;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	desc.addressMode[0] = desc.addressMode[1] = address;
	desc.filterMode = filter;
	desc.borderColor[0] = 7.5f;
	CUDA(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
	return texture;
}

/* Without a filter each texel is itself; outside there is the edge, or the border. */
static void points(cudaArray_t array)
{
	cudaTextureObject_t clamp = texture_of(array, cudaFilterModePoint, cudaAddressModeClamp);
	cudaTextureObject_t border =
		texture_of(array, cudaFilterModePoint, cudaAddressModeBorder);
	std::vector<float2> at;
	std::vector<float> got;

	for (int y = -2; y < H + 2; y++)
		for (int x = -2; x < W + 2; x++)
			at.push_back({x + 0.25f, y + 0.75f});
	got = fetch(clamp, at);
	for (size_t i = 0; i < at.size(); i++) {
		int x = (int)floorf(at[i].x), y = (int)floorf(at[i].y);
		CHECK_EQ_AT((long long)i, got[i],
			cell(x < 0 ? 0 : x >= W ? W - 1 : x, y < 0 ? 0 : y >= H ? H - 1 : y));
	}
	got = fetch(border, at);
	for (size_t i = 0; i < at.size(); i++) {
		int x = (int)floorf(at[i].x), y = (int)floorf(at[i].y);
		CHECK_EQ_AT((long long)i, got[i],
			x < 0 || x >= W || y < 0 || y >= H ? 7.5f : cell(x, y));
	}
	CUDA(cudaDestroyTextureObject(clamp));
	CUDA(cudaDestroyTextureObject(border));
}

/* The filter's weights have eight bits behind the point, so quarters are exact. */
static void linear(cudaArray_t array)
{
	cudaTextureObject_t texture =
		texture_of(array, cudaFilterModeLinear, cudaAddressModeClamp);
	std::vector<float2> at;
	std::vector<float> got;

	for (int y = 1; y < 4 * (H - 1); y++)
		for (int x = 1; x < 4 * (W - 1); x++)
			at.push_back({x * 0.25f + 0.5f, y * 0.25f + 0.5f});
	got = fetch(texture, at);
	for (size_t i = 0; i < at.size(); i++)
		CHECK_EQ_AT((long long)i, got[i], at[i].x - 0.5f + 100 * (at[i].y - 0.5f));
	CUDA(cudaDestroyTextureObject(texture));
}

static void descriptions(cudaArray_t array)
{
	cudaTextureObject_t texture =
		texture_of(array, cudaFilterModeLinear, cudaAddressModeBorder);
	cudaChannelFormatDesc channels;
	cudaResourceDesc resource;
	cudaTextureDesc desc;
	cudaExtent extent;
	unsigned flags;

	CUDA(cudaArrayGetInfo(&channels, &extent, &flags, array));
	CHECK(channels.x == 32 && !channels.y && channels.f == cudaChannelFormatKindFloat);
	CHECK(extent.width == W && extent.height == H && extent.depth == 0);
	CHECK_EQ(flags, (unsigned)cudaArraySurfaceLoadStore);
	CUDA(cudaGetTextureObjectResourceDesc(&resource, texture));
	CHECK(resource.resType == cudaResourceTypeArray && resource.res.array.array == array);
	CUDA(cudaGetTextureObjectTextureDesc(&desc, texture));
	CHECK(desc.addressMode[1] == cudaAddressModeBorder && !desc.normalizedCoords);
	CUDA(cudaDestroyTextureObject(texture));
}

/* What only sparse, planar or later mapped arrays have. */
static void others(cudaArray_t array)
{
	cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
	cudaArrayMemoryRequirements needs;
	cudaArraySparseProperties sparse;
	cudaArray_t plane;
	size_t most = 0;

	CUDA_IS(cudaErrorInvalidValue, cudaArrayGetSparseProperties(&sparse, array));
	CUDA_IS(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(&needs, array, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaArrayGetPlane(&plane, array, 0));
	(void)cudaGetLastError();
	CUDA(cudaDeviceGetTexture1DLinearMaxWidth(&most, &floats, 0));
	CHECK(most >= (size_t)1 << 27);
}

int main()
{
	cudaChannelFormatDesc channels = cudaCreateChannelDesc<float>();
	std::vector<float> in(W * H), out(W * H, -1.0f);
	cudaArray_t array, other;
	cudaResourceDesc resource = {};
	cudaSurfaceObject_t surface;

	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			in[y * W + x] = cell(x, y);
	CUDA(cudaMallocArray(&array, &channels, W, H, cudaArraySurfaceLoadStore));
	CUDA(cudaMallocArray(&other, &channels, W, H));
	CUDA(cudaMemcpy2DToArray(array, 0, 0, in.data(), W * sizeof(float), W * sizeof(float), H,
		cudaMemcpyHostToDevice));
	points(array);
	linear(array);
	descriptions(array);
	others(array);

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CUDA(cudaCreateSurfaceObject(&surface, &resource));
	negate<<<1, dim3(W, H)>>>(surface);
	LAUNCHED();
	CUDA(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, W * sizeof(float), H));
	CUDA(cudaMemcpy2DFromArray(out.data(), W * sizeof(float), other, 0, 0, W * sizeof(float),
		H, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++)
		CHECK_EQ_AT(i, out[i], -in[i]);
	CUDA(cudaDestroySurfaceObject(surface));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(other));
	printf("arrays are right\n");
	return 0;
}
