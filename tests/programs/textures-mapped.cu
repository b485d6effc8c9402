// SPDX-License-Identifier: Apache-2.0
/* Textures over pinned memory, linear and pitched: kernels fetch what the program wrote before the
 * launch, and what kernels before them wrote, with the flag Mapped and without it. */
#include "check.h"

enum { WIDTH = 32, HEIGHT = 16, PITCH = 512, N = PITCH / 4 * HEIGHT };

__global__ void fetch(int *out, cudaTextureObject_t linear, cudaTextureObject_t pitched)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * WIDTH + x] = tex1Dfetch<int>(linear, y * (PITCH / 4) + x) -
			     tex2D<int>(pitched, x + 0.5f, y + 0.5f);
	if (!x)
		out[y * WIDTH] = tex1Dfetch<int>(linear, y * (PITCH / 4));
}

__global__ void bump(int *data)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] += 1000;
}

static void check(cudaTextureObject_t linear, cudaTextureObject_t pitched,
	int *device, int base)
{
	static int got[WIDTH * HEIGHT];

	fetch<<<HEIGHT, WIDTH>>>(device, linear, pitched);
	LAUNCHED();
	CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		CHECK_EQ_AT(i, got[i], i % WIDTH ? 0 : base + i / WIDTH * (PITCH / 4));
}

static void over(unsigned flags)
{
	cudaTextureObject_t linear, pitched;
	cudaResourceDesc resource = {}, told;
	cudaTextureDesc texture = {};
	int *pinned, *device;

	CUDA(cudaHostAlloc(&pinned, N * sizeof(int), flags));
	CUDA(cudaMalloc(&device, WIDTH * HEIGHT * sizeof(int)));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = pinned;
	resource.res.linear.desc = cudaCreateChannelDesc<int>();
	resource.res.linear.sizeInBytes = N * sizeof(int);
	CUDA(cudaCreateTextureObject(&linear, &resource, &texture, NULL));
	CUDA(cudaGetTextureObjectResourceDesc(&told, linear));
	CHECK(told.res.linear.devPtr == pinned);
	resource.resType = cudaResourceTypePitch2D;
	resource.res.pitch2D.devPtr = pinned;
	resource.res.pitch2D.desc = cudaCreateChannelDesc<int>();
	resource.res.pitch2D.width = WIDTH;
	resource.res.pitch2D.height = HEIGHT;
	resource.res.pitch2D.pitchInBytes = PITCH;
	CUDA(cudaCreateTextureObject(&pitched, &resource, &texture, NULL));
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < N; i++)
			pinned[i] = turn * 7 + i;
		check(linear, pitched, device, turn * 7);
	}
	bump<<<N / 256, 256>>>(pinned);
	LAUNCHED();
	check(linear, pitched, device, 1014);
	CUDA(cudaDestroyTextureObject(linear));
	CUDA(cudaDestroyTextureObject(pitched));
	CUDA(cudaFree(device));
	CUDA(cudaFreeHost(pinned));
}

int main(void)
{
	over(cudaHostAllocDefault);
	over(cudaHostAllocMapped);
	return 0;
}
