// SPDX-License-Identifier: Apache-2.0
/* The Mandelbrot set by blocks that take the next tile from a counter until there are none, as
 * pixels in mapped memory of the host; every pixel has as many turns as on the host. */
#include "check.h"

#include <vector>

constexpr int SIDE = 16, WIDTH = 160, HEIGHT = 96, MOST = 200;
constexpr int TILES_X = WIDTH / SIDE, TILES = TILES_X * (HEIGHT / SIDE);
__device__ unsigned next_tile;

struct view {
	float left, top, step;
};

__host__ __device__ inline float product(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fmul_rn(a, b);
#else
	volatile float c = a * b;
	return c;
#endif
}

__host__ __device__ inline float total(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fadd_rn(a, b);
#else
	volatile float c = a + b;
	return c;
#endif
}

__host__ __device__ inline int turns(int px, int py, const view &v)
{
	float cx = total(v.left, product((float)px, v.step));
	float cy = total(v.top, product((float)py, v.step));
	float x = 0, y = 0;
	int n = 0;

	while (n < MOST) {
		float xx = product(x, x), yy = product(y, y);

		if (total(xx, yy) > 4.0f)
			break;
		y = total(product(2.0f, product(x, y)), cy);
		x = total(total(xx, -yy), cx);
		n++;
	}
	return n;
}

__host__ __device__ inline uchar4 color(int n)
{
	return n == MOST ? make_uchar4(0, 0, 0, 255)
			 : make_uchar4((unsigned char)(n * 5), (unsigned char)(n * 3),
				   (unsigned char)n, 255);
}

__global__ void draw(uchar4 *pixels, view v)
{
	__shared__ unsigned tile;

	for (;;) {
		if (!threadIdx.x && !threadIdx.y)
			tile = atomicAdd(&next_tile, 1);
		__syncthreads();
		unsigned mine = tile;
		__syncthreads();
		if (mine >= TILES)
			return;
		int x = mine % TILES_X * SIDE + threadIdx.x,
		    y = mine / TILES_X * SIDE + threadIdx.y;
		pixels[y * WIDTH + x] = color(turns(x, y, v));
	}
}

int main()
{
	const view views[] = {{-2.2f, -1.2f, 0.02f}, {-0.75f, 0.1f, 0.0005f}};
	uchar4 *pixels, *there;
	int blocks, threads;

	if (!device_attribute(cudaDevAttrCanMapHostMemory))
		SKIP("the device does not map host memory");
	CUDA(cudaHostAlloc(&pixels, WIDTH * HEIGHT * sizeof(*pixels), cudaHostAllocMapped));
	CUDA(cudaHostGetDevicePointer(&there, pixels, 0));
	CUDA(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, draw));
	CHECK(blocks > 0 && threads >= SIDE * SIDE);
	const int grid = blocks < TILES ? blocks : TILES;
	for (const view &v : views) {
		const unsigned none = 0;
		unsigned taken;

		memset(pixels, 0x55, WIDTH * HEIGHT * sizeof(*pixels));
		CUDA(cudaMemcpyToSymbol(next_tile, &none, sizeof(none)));
		draw<<<grid, dim3(SIDE, SIDE)>>>(there, v);
		LAUNCHED();
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaMemcpyFromSymbol(&taken, next_tile, sizeof(taken)));
		CHECK(taken > TILES);
		for (int y = 0; y < HEIGHT; y++)
			for (int x = 0; x < WIDTH; x++) {
				uchar4 want = color(turns(x, y, v));

				if (memcmp(&pixels[y * WIDTH + x], &want, sizeof(want)))
					FAIL("the pixel at %d, %d is another", x, y);
			}
	}
	CUDA(cudaFreeHost(pixels));
	return 0;
}
