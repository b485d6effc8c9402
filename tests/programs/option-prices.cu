// SPDX-License-Identifier: Apache-2.0
/* Prices of options by Black and Scholes, in parts that are copied, computed and copied back in
 * streams beside one another, with callbacks, events that are measured and priorities; against
 * the same formula in double precision on the host. */
#include "check.h"

#include <atomic>
#include <math.h>

constexpr int STREAMS = 3, PARTS = 12, EACH = 4000, COUNT = PARTS * EACH;
constexpr float RATE = 0.02f, CHANGE = 0.3f;

__device__ float normal(float d)
{
	const float a[] = {
		0.31938153f, -0.356563782f, 1.781477937f, -1.821255978f, 1.330274429f};
	float k = 1.0f / (1.0f + 0.2316419f * fabsf(d)), sum = 0;

#pragma unroll
	for (int i = 4; i >= 0; i--)
		sum = (sum + a[i]) * k;
	sum *= 0.39894228f * __expf(-0.5f * d * d);
	return d > 0 ? 1.0f - sum : sum;
}

__global__ void prices(float *__restrict__ call, float *__restrict__ put,
	const float3 *__restrict__ option, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x) {
		float s = option[i].x, x = option[i].y, t = option[i].z, root = sqrtf(t);
		float d1 = __fdividef(
			__logf(s / x) + (RATE + 0.5f * CHANGE * CHANGE) * t, CHANGE * root);
		float d2 = d1 - CHANGE * root, now = x * __expf(-RATE * t);

		call[i] = s * normal(d1) - now * normal(d2);
		put[i] = now * (1.0f - normal(d2)) - s * (1.0f - normal(d1));
	}
}

static std::atomic<int> done;

static void CUDART_CB part_done(cudaStream_t, cudaError_t status, void *number)
{
	if (status == cudaSuccess && *(int *)number >= 0)
		done++;
}

static double normal_of(double d)
{
	return 0.5 * erfc(-d / sqrt(2.0));
}

int main()
{
	float3 *option, *option_there;
	float *call, *put, *call_there, *put_there, ms = -1;
	int numbers[PARTS], least, greatest;
	cudaStream_t stream[STREAMS], last;
	cudaEvent_t begin, end, each[STREAMS];
	uint32_t seed = 11;

	CUDA(cudaMallocHost(&option, COUNT * sizeof(*option)));
	CUDA(cudaMallocHost(&call, COUNT * sizeof(*call)));
	CUDA(cudaMallocHost(&put, COUNT * sizeof(*put)));
	CUDA(cudaMalloc(&option_there, COUNT * sizeof(*option)));
	CUDA(cudaMalloc(&call_there, COUNT * sizeof(*call)));
	CUDA(cudaMalloc(&put_there, COUNT * sizeof(*put)));
	for (int i = 0; i < COUNT; i++)
		option[i] = make_float3(5 + next_random(&seed) % 2500 / 100.0f,
			1 + next_random(&seed) % 9900 / 100.0f,
			0.25f + next_random(&seed) % 975 / 100.0f);
	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest <= least);
	for (int i = 0; i < STREAMS; i++) {
		CUDA(cudaStreamCreateWithPriority(
			&stream[i], cudaStreamNonBlocking, i ? least : greatest));
		CUDA(cudaEventCreateWithFlags(&each[i], cudaEventDisableTiming));
	}
	CUDA(cudaStreamCreate(&last));
	CUDA(cudaEventCreate(&begin));
	CUDA(cudaEventCreate(&end));
	CUDA(cudaEventRecord(begin, stream[0]));
	for (int p = 0; p < PARTS; p++) {
		cudaStream_t s = stream[p % STREAMS];
		size_t at = (size_t)p * EACH;

		numbers[p] = p;
		CUDA(cudaMemcpyAsync(option_there + at, option + at, EACH * sizeof(*option),
			cudaMemcpyHostToDevice, s));
		prices<<<8, 128, 0, s>>>(
			call_there + at, put_there + at, option_there + at, EACH);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(call + at, call_there + at, EACH * sizeof(*call),
			cudaMemcpyDeviceToHost, s));
		CUDA(cudaMemcpyAsync(put + at, put_there + at, EACH * sizeof(*put),
			cudaMemcpyDeviceToHost, s));
		CUDA(cudaStreamAddCallback(s, part_done, &numbers[p], 0));
	}
	for (int i = 0; i < STREAMS; i++) {
		CUDA(cudaEventRecord(each[i], stream[i]));
		CUDA(cudaStreamWaitEvent(last, each[i], 0));
	}
	CUDA(cudaEventRecord(end, last));
	CUDA(cudaEventSynchronize(end));
	CHECK_EQ(done.load(), PARTS);
	CUDA(cudaEventElapsedTime(&ms, begin, end));
	CHECK(ms >= 0);
	for (int i = 0; i < COUNT; i++) {
		double s = option[i].x, x = option[i].y, t = option[i].z;
		double d1 =
			(log(s / x) + (RATE + 0.5 * CHANGE * CHANGE) * t) / (CHANGE * sqrt(t));
		double d2 = d1 - CHANGE * sqrt(t), now = x * exp(-RATE * t);
		double want = s * normal_of(d1) - now * normal_of(d2);

		if (!(fabs(call[i] - want) < 2e-3))
			FAIL("option %d: the call is %g, not %g", i, call[i], want);
		/* A call and a put of the same option differ by what is certain. */
		if (!(fabs(call[i] - put[i] - (s - now)) < 2e-3))
			FAIL("option %d: call %g and put %g do not go together", i, call[i],
				put[i]);
	}
	for (cudaStream_t s : stream)
		CUDA(cudaStreamDestroy(s));
	return 0;
}
