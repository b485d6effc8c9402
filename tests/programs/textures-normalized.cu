// SPDX-License-Identifier: Apache-2.0
/* Arrays of normalized formats: a texture reads their whole numbers as shares of the largest one,
 * of 8 and 16 bits, with and without a sign, in one, two and four channels; and of 10, 10, 10 and
 * 2 bits in one word. */
#include "driver.h"

#include <cmath>
#include <vector>

enum { WIDTH = 8 };

__global__ void fetch(cudaTextureObject_t texture, float4 *out)
{
	out[threadIdx.x] = tex2D<float4>(texture, threadIdx.x + 0.5f, 0.5f);
}

template <typename T, cudaChannelFormatKind KIND> static void reads(float4 *device, int channels)
{
	const float most = sizeof(T) == 1 ? ((T)-1 < 0 ? 127 : 255) : (T)-1 < 0 ? 32767 : 65535;
	const cudaChannelFormatDesc desc = cudaCreateChannelDesc<KIND>();
	const size_t bytes = WIDTH * channels * sizeof(T);
	std::vector<T> host(WIDTH * channels), back(WIDTH * channels);
	std::vector<float4> got(WIDTH);
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;
	cudaArray_t array;

	for (size_t i = 0; i < host.size(); i++)
		host[i] = (T)(i * (sizeof(T) == 1 ? 37 : 9973) + ((T)-1 < 0 ? (T)1 << (8 * sizeof(T) - 1) : 0));
	CUDA(cudaMallocArray(&array, &desc, WIDTH, 1));
	CUDA(cudaMemcpy2DToArray(
		array, 0, 0, host.data(), bytes, bytes, 1, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DFromArray(
		back.data(), bytes, array, 0, 0, bytes, 1, cudaMemcpyDeviceToHost));
	CHECK(host == back);
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	how.readMode = cudaReadModeElementType;
	CUDA_IS(cudaErrorInvalidNormSetting,
		cudaCreateTextureObject(&texture, &resource, &how, NULL));
	(void)cudaGetLastError();
	how.readMode = cudaReadModeNormalizedFloat;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	fetch<<<1, WIDTH>>>(texture, device);
	LAUNCHED();
	CUDA(cudaMemcpy(got.data(), device, WIDTH * sizeof(float4), cudaMemcpyDeviceToHost));
	for (int i = 0; i < WIDTH * channels; i++) {
		const float want = fmaxf((float)host[i] / most, -1);
		const float is = (&got[i / channels].x)[i % channels];

		if (fabsf(is - want) > 1e-6f)
			FAIL("%zu bytes, %d channels, number %d: %g, not %g", sizeof(T),
				channels, i, is, want);
	}
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFreeArray(array));
}

/* Red is the lowest. */
static void reads_words(cudaArray_t array, float4 *device)
{
	static const unsigned words[WIDTH] = {
		0, 0x3ff, 0x3ffu << 10, 0x3ffu << 20, 3u << 30, 0x12345678, 0x9abcdef0, ~0u};
	unsigned back[WIDTH];
	float4 got[WIDTH];
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;

	CUDA(cudaMemcpy2DToArray(array, 0, 0, words, sizeof(words), sizeof(words), 1,
		cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DFromArray(
		back, sizeof(back), array, 0, 0, sizeof(back), 1, cudaMemcpyDeviceToHost));
	CHECK(!memcmp(back, words, sizeof(back)));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	how.readMode = cudaReadModeNormalizedFloat;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	fetch<<<1, WIDTH>>>(texture, device);
	LAUNCHED();
	CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 4 * WIDTH; i++) {
		const unsigned part = words[i / 4] >> 10 * (i % 4) & (i % 4 < 3 ? 1023 : 3);
		const float want = (float)part / (i % 4 < 3 ? 1023 : 3);

		if (fabsf((&got[i / 4].x)[i % 4] - want) > 1e-6f)
			FAIL("word %x, channel %d: %g, not %g", words[i / 4], i % 4,
				(&got[i / 4].x)[i % 4], want);
	}
	CUDA(cudaDestroyTextureObject(texture));
}

static void packed(float4 *device)
{
	ENTRY(cuArray3DCreate);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUarray array;

	desc.Width = WIDTH;
	desc.Height = 1;
	desc.Format = CU_AD_FORMAT_UNORM_INT_101010_2;
	desc.NumChannels = 1;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArray3DCreate(&array, &desc));
	desc.NumChannels = 4;
	DRIVER(p_cuArray3DCreate(&array, &desc));
	reads_words((cudaArray_t)array, device);
	CUDA(cudaFreeArray((cudaArray_t)array));
#if CUDART_VERSION >= 13000
	const cudaChannelFormatDesc ten =
		cudaCreateChannelDesc<cudaChannelFormatKindUnsignedNormalized1010102>();
	cudaChannelFormatDesc told;
	cudaArray_t made;

	CUDA(cudaMallocArray(&made, &ten, WIDTH, 1));
	CUDA(cudaGetChannelDesc(&told, made));
	CHECK(told.x == 10 && told.y == 10 && told.z == 10 && told.w == 2 && told.f == ten.f);
	reads_words(made, device);
	CUDA(cudaFreeArray(made));
#endif
}

int main()
{
	float4 *device;

	CUDA(cudaMalloc(&device, WIDTH * sizeof(float4)));
	reads<unsigned char, cudaChannelFormatKindUnsignedNormalized8X1>(device, 1);
	reads<unsigned char, cudaChannelFormatKindUnsignedNormalized8X2>(device, 2);
	reads<unsigned char, cudaChannelFormatKindUnsignedNormalized8X4>(device, 4);
	reads<unsigned short, cudaChannelFormatKindUnsignedNormalized16X1>(device, 1);
	reads<unsigned short, cudaChannelFormatKindUnsignedNormalized16X2>(device, 2);
	reads<unsigned short, cudaChannelFormatKindUnsignedNormalized16X4>(device, 4);
	reads<signed char, cudaChannelFormatKindSignedNormalized8X1>(device, 1);
	reads<signed char, cudaChannelFormatKindSignedNormalized8X2>(device, 2);
	reads<signed char, cudaChannelFormatKindSignedNormalized8X4>(device, 4);
	reads<short, cudaChannelFormatKindSignedNormalized16X1>(device, 1);
	reads<short, cudaChannelFormatKindSignedNormalized16X2>(device, 2);
	reads<short, cudaChannelFormatKindSignedNormalized16X4>(device, 4);
	packed(device);
	CUDA(cudaFree(device));
	printf("normalized formats are right\n");
	return 0;
}
