// SPDX-License-Identifier: Apache-2.0
/* Arrays of normalized formats: a texture reads their whole numbers as shares of the largest one,
 * of 8 and 16 bits, with and without a sign, in one, two and four channels. */
#include "check.h"

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
	CUDA(cudaFree(device));
	printf("normalized formats are right\n");
	return 0;
}
