// SPDX-License-Identifier: Apache-2.0
/* A wave in three dimensions by finite differences of eighth order: a slice with its halo in
 * shared memory, the depth in registers that move on, coefficients in constant memory; against
 * the host, where no contraction of products and sums makes a difference. */
#include "check.h"

#include <utility>
#include <vector>

constexpr int RADIUS = 4, BLOCK_X = 16, BLOCK_Y = 8;
__constant__ float weight[RADIUS + 1];

__global__ __launch_bounds__(BLOCK_X *BLOCK_Y) void wave(
	float *out, const float *in, int nx, int ny, int nz)
{
	__shared__ float slice[BLOCK_Y + 2 * RADIUS][BLOCK_X + 2 * RADIUS];
	int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y;
	int pitch = nx + 2 * RADIUS, plane = pitch * (ny + 2 * RADIUS);
	int tx = threadIdx.x + RADIUS, ty = threadIdx.y + RADIUS;
	bool inside = x < nx && y < ny;
	int at = (min(y, ny - 1) + RADIUS) * pitch + min(x, nx - 1) + RADIUS;
	float before[RADIUS], behind[RADIUS], now;

	for (int i = RADIUS - 1; i >= 0; i--, at += plane)
		before[i] = in[at];
	now = in[at];
	for (int i = 0; i < RADIUS; i++)
		behind[i] = in[at + (i + 1) * plane];
	for (int z = 0; z < nz; z++) {
		if (z) {
			for (int i = RADIUS - 1; i > 0; i--)
				before[i] = before[i - 1];
			before[0] = now;
			now = behind[0];
			for (int i = 0; i < RADIUS - 1; i++)
				behind[i] = behind[i + 1];
			at += plane;
			behind[RADIUS - 1] = in[at + RADIUS * plane];
		}
		__syncthreads();
		if (threadIdx.y < RADIUS) {
			slice[threadIdx.y][tx] = in[at - RADIUS * pitch];
			slice[threadIdx.y + BLOCK_Y + RADIUS][tx] =
				in[min(at + BLOCK_Y * pitch, (nz + 2 * RADIUS) * plane - 1)];
		}
		if (threadIdx.x < RADIUS) {
			slice[ty][threadIdx.x] = in[at - RADIUS];
			slice[ty][threadIdx.x + BLOCK_X + RADIUS] =
				in[min(at + BLOCK_X, (nz + 2 * RADIUS) * plane - 1)];
		}
		slice[ty][tx] = now;
		__syncthreads();
		float sum = __fmul_rn(weight[0], now);
		for (int i = 1; i <= RADIUS; i++) {
			float all = __fadd_rn(__fadd_rn(before[i - 1], behind[i - 1]),
				__fadd_rn(__fadd_rn(slice[ty - i][tx], slice[ty + i][tx]),
					__fadd_rn(slice[ty][tx - i], slice[ty][tx + i])));

			sum = __fadd_rn(sum, __fmul_rn(weight[i], all));
		}
		if (inside)
			out[at] = sum;
	}
}

static void on_host(float *out, const float *in, const float *w, int nx, int ny, int nz)
{
	int pitch = nx + 2 * RADIUS, plane = pitch * (ny + 2 * RADIUS);

	for (int z = 0; z < nz; z++)
		for (int y = 0; y < ny; y++)
			for (int x = 0; x < nx; x++) {
				int at = (z + RADIUS) * plane + (y + RADIUS) * pitch + x +
					 RADIUS;
				volatile float sum = w[0] * in[at]; /* rounded each time */

				for (int i = 1; i <= RADIUS; i++) {
					volatile float depth =
						in[at - i * plane] + in[at + i * plane];
					volatile float high =
						in[at - i * pitch] + in[at + i * pitch];
					volatile float wide = in[at - i] + in[at + i];
					volatile float flat = high + wide;
					volatile float all = depth + flat;
					volatile float part = w[i] * all;

					sum = sum + part;
				}
				out[at] = sum;
			}
}

int main()
{
	/* Whole blocks: the halo of a block lies in the field. */
	const int nx = 3 * BLOCK_X, ny = 4 * BLOCK_Y, nz = 10, steps = 3;
	const size_t n = (size_t)(nx + 2 * RADIUS) * (ny + 2 * RADIUS) * (nz + 2 * RADIUS);
	const float w[RADIUS + 1] = {0.4f, 0.1f, -0.02f, 0.005f, 0.015f};
	std::vector<float> field(n), other(n), got(n);
	cudaFuncAttributes attributes;
	float *in, *out;
	uint32_t seed = 9;

	for (float &value : field)
		value = (float)(next_random(&seed) % 1000) / 500 - 1;
	other = field;
	CUDA(cudaFuncGetAttributes(&attributes, wave));
	CHECK_EQ(attributes.sharedSizeBytes,
		(BLOCK_Y + 2 * RADIUS) * (BLOCK_X + 2 * RADIUS) * sizeof(float));
	CHECK(attributes.maxThreadsPerBlock >= BLOCK_X * BLOCK_Y);
	CUDA(cudaMemcpyToSymbol(weight, w, sizeof(w)));
	CUDA(cudaMalloc(&in, n * sizeof(float)));
	CUDA(cudaMalloc(&out, n * sizeof(float)));
	CUDA(cudaMemcpy(in, field.data(), n * sizeof(float), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(out, in, n * sizeof(float), cudaMemcpyDeviceToDevice));
	for (int k = 0; k < steps; k++) {
		wave<<<dim3(nx / BLOCK_X, ny / BLOCK_Y), dim3(BLOCK_X, BLOCK_Y)>>>(
			out, in, nx, ny, nz);
		LAUNCHED();
		std::swap(in, out);
		on_host(other.data(), field.data(), w, nx, ny, nz);
		std::swap(other, field);
	}
	CUDA(cudaMemcpy(got.data(), in, n * sizeof(float), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		CHECK_EQ_AT(i, got[i], field[i]);
	CUDA(cudaFree(in));
	CUDA(cudaFree(out));
	return 0;
}
