// SPDX-License-Identifier: Apache-2.0
/* Bodies that attract one another, step by step: tiles of positions in dynamic shared memory,
 * rsqrtf, two buffers that change places, settings in constant memory; against the same sums on
 * the host, and the momentum of all stays. */
#include "check.h"

#include <math.h>
#include <vector>

struct settings {
	float step, softening, damping;
};
__constant__ settings now;

__device__ float3 attracted(float3 sum, float4 by, float4 me)
{
	float3 r = make_float3(by.x - me.x, by.y - me.y, by.z - me.z);
	float d = rsqrtf(r.x * r.x + r.y * r.y + r.z * r.z + now.softening);
	float s = by.w * d * d * d;

	return make_float3(sum.x + r.x * s, sum.y + r.y * s, sum.z + r.z * s);
}

__global__ void bodies(
	float4 *__restrict__ to, const float4 *__restrict__ from, float4 *speed, int n)
{
	extern __shared__ float4 tile[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float4 me = from[i < n ? i : n - 1];
	float3 sum = make_float3(0, 0, 0);

	for (int first = 0; first < n; first += blockDim.x) {
		int k = first + threadIdx.x;

		tile[threadIdx.x] = k < n ? from[k] : make_float4(0, 0, 0, 0);
		__syncthreads();
#pragma unroll 8
		for (int j = 0; j < blockDim.x; j++)
			sum = attracted(sum, tile[j], me);
		__syncthreads();
	}
	if (i >= n)
		return;
	float4 v = speed[i];
	v.x = (v.x + sum.x * now.step) * now.damping;
	v.y = (v.y + sum.y * now.step) * now.damping;
	v.z = (v.z + sum.z * now.step) * now.damping;
	speed[i] = v;
	to[i] = make_float4(
		me.x + v.x * now.step, me.y + v.y * now.step, me.z + v.z * now.step, me.w);
}

static void on_host(std::vector<double> &at, std::vector<double> &speed,
	const std::vector<float4> &mass, const settings &s)
{
	size_t n = mass.size();
	std::vector<double> before = at;

	for (size_t i = 0; i < n; i++) {
		double sum[3] = {};

		for (size_t j = 0; j < n; j++) {
			double r[3], square = s.softening;

			for (int c = 0; c < 3; c++) {
				r[c] = before[3 * j + c] - before[3 * i + c];
				square += r[c] * r[c];
			}
			for (int c = 0; c < 3; c++)
				sum[c] += r[c] * mass[j].w / (square * sqrt(square));
		}
		for (int c = 0; c < 3; c++) {
			speed[3 * i + c] = (speed[3 * i + c] + sum[c] * s.step) * s.damping;
			at[3 * i + c] += speed[3 * i + c] * s.step;
		}
	}
}

int main()
{
	const settings s = {0.01f, 0.01f, 1.0f};
	const int n = 700, steps = 5, threads = 128;
	std::vector<float4> start(n), speeds(n, make_float4(0, 0, 0, 0));
	std::vector<double> at(3 * n), speed(3 * n, 0.0);
	float4 *place[2], *velocity;
	double momentum[3] = {};
	uint32_t seed = 5;
	settings told;

	for (int i = 0; i < n; i++) {
		float *p = &start[i].x;

		for (int c = 0; c < 3; c++)
			at[3 * i + c] = p[c] = (float)(next_random(&seed) % 2001) / 1000 - 1;
		p[3] = 1.0f / n;
	}
	for (float4 *&p : place)
		CUDA(cudaMalloc(&p, n * sizeof(float4)));
	CUDA(cudaMalloc(&velocity, n * sizeof(float4)));
	CUDA(cudaMemcpyToSymbol(now, &s, sizeof(s)));
	CUDA(cudaMemcpyFromSymbol(&told, now, sizeof(told)));
	CHECK_EQ(memcmp(&told, &s, sizeof(s)), 0);
	CUDA(cudaMemcpy(place[0], start.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
	CUDA(cudaMemset(velocity, 0, n * sizeof(float4)));
	for (int k = 0; k < steps; k++) {
		bodies<<<(n + threads - 1) / threads, threads, threads * sizeof(float4)>>>(
			place[1 - k % 2], place[k % 2], velocity, n);
		LAUNCHED();
		on_host(at, speed, start, s);
	}
	CUDA(cudaMemcpy(
		start.data(), place[steps % 2], n * sizeof(float4), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(speeds.data(), velocity, n * sizeof(float4), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		for (int c = 0; c < 3; c++) {
			double got = (&start[i].x)[c];

			if (fabs(got - at[3 * i + c]) > 1e-4)
				FAIL("body %d is at %g, not %g", i, got, at[3 * i + c]);
			momentum[c] += (&speeds[i].x)[c] / n;
		}
	for (double m : momentum)
		CHECK(fabs(m) < 1e-5);
	return 0;
}
