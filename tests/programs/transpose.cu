// SPDX-License-Identifier: Apache-2.0
/* Transposes matrices in tiles of shared memory, of three types, in pitched memory, with edges
 * that are no multiple of a tile; the copy beside it and the plain form have the same numbers.
 */
#include "check.h"

#include <vector>

constexpr int TILE = 32, ROWS = 8;

template <typename T>
__global__ void transpose_plain(
	T *out, size_t out_pitch, const T *in, size_t in_pitch, int width, int height)
{
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

	for (int j = 0; j < TILE && x < width; j += ROWS)
		if (y + j < height) {
			const T *row = (const T *)((const char *)in + (y + j) * in_pitch);

			((T *)((char *)out + x * out_pitch))[y + j] = row[x];
		}
}

template <typename T>
__global__ void transpose_tiled(
	T *out, size_t out_pitch, const T *in, size_t in_pitch, int width, int height)
{
	__shared__ T tile[TILE][TILE + 1]; /* one more: no two rows in the same bank */
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

	for (int j = 0; j < TILE; j += ROWS)
		if (x < width && y + j < height)
			tile[threadIdx.y + j][threadIdx.x] =
				((const T *)((const char *)in + (y + j) * in_pitch))[x];
	__syncthreads();
	x = blockIdx.y * TILE + threadIdx.x;
	y = blockIdx.x * TILE + threadIdx.y;
	for (int j = 0; j < TILE; j += ROWS)
		if (x < height && y + j < width)
			((T *)((char *)out + (y + j) * out_pitch))[x] =
				tile[threadIdx.x][threadIdx.y + j];
}

template <typename T> T number(uint32_t bits)
{
	return (T)(bits % 251);
}
template <> float4 number<float4>(uint32_t bits)
{
	return make_float4(
		(float)(bits % 7), (float)(bits % 11), (float)(bits % 13), (float)(bits % 17));
}

template <typename T> void transposes(int width, int height)
{
	std::vector<T> from((size_t)width * height), to(from.size());
	dim3 grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE), block(TILE, ROWS);
	size_t in_pitch, out_pitch;
	uint32_t seed = 3;
	T *in, *out;

	for (T &value : from)
		value = number<T>(next_random(&seed));
	CUDA(cudaMallocPitch(&in, &in_pitch, width * sizeof(T), height));
	CUDA(cudaMallocPitch(&out, &out_pitch, height * sizeof(T), width));
	CHECK(in_pitch >= width * sizeof(T) && out_pitch >= height * sizeof(T));
	CUDA(cudaMemcpy2D(in, in_pitch, from.data(), width * sizeof(T), width * sizeof(T),
		height, cudaMemcpyHostToDevice));
	for (int form = 0; form < 2; form++) {
		CUDA(cudaMemset2D(out, out_pitch, 0xff, height * sizeof(T), width));
		if (form)
			transpose_tiled<T>
				<<<grid, block>>>(out, out_pitch, in, in_pitch, width, height);
		else
			transpose_plain<T>
				<<<grid, block>>>(out, out_pitch, in, in_pitch, width, height);
		LAUNCHED();
		CUDA(cudaMemcpy2D(to.data(), height * sizeof(T), out, out_pitch,
			height * sizeof(T), width, cudaMemcpyDeviceToHost));
		for (int x = 0; x < width; x++)
			for (int y = 0; y < height; y++)
				if (memcmp(&to[(size_t)x * height + y],
					    &from[(size_t)y * width + x], sizeof(T)))
					FAIL("form %d: %d, %d of %d by %d is another", form, x,
						y, width, height);
	}
	CUDA(cudaFree(in));
	CUDA(cudaFree(out));
}

int main()
{
	for (int size : {1, 31, 64, 257})
		transposes<float>(size, size);
	transposes<float>(1000, 3);
	transposes<double>(65, 130);
	transposes<unsigned char>(333, 77);
	transposes<float4>(40, 50);
	return 0;
}
