/* SPDX-License-Identifier: Apache-2.0
 *
 * Small things, timed: what a launch costs the app, how many a second go through, what a wait
 * costs, what copies move.  An ordinary CUDA program: run natively and through vcuda, the figures
 * are compared (bench/run.py).  Prints one JSON object; times in microseconds, medians.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t e = (call);                                                            \
		if (e != cudaSuccess) {                                                            \
			fprintf(stderr, "micro: %s: %s\n", #call, cudaGetErrorString(e));          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static double now(void)
{
	using namespace std::chrono;
	return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}

__global__ void empty(float *p, int a, int b)
{
	if (a == b)
		*p = 1;
}

/* One launch a sample, with room in every queue: what the caller waits. */
static double launch_cost(float *p)
{
	std::vector<double> v;
	for (int round = 0; round < 60; round++) {
		double t = now();
		for (int i = 0; i < 200; i++)
			empty<<<1, 32>>>(p, i, -1);
		v.push_back((now() - t) / 200);
		CHECK(cudaDeviceSynchronize());
	}
	return median(v);
}

static double launch_rate(float *p)
{
	const int n = 200000;
	CHECK(cudaDeviceSynchronize());
	double t = now();
	for (int i = 0; i < n; i++)
		empty<<<1, 32>>>(p, i, -1);
	CHECK(cudaDeviceSynchronize());
	return n / ((now() - t) * 1e-6);
}

static void CUDART_CB nothing(void *)
{
}

/* Kernels with a host function behind each, on one stream: a kernel waits for the function before
 * it. */
static double functions_cost(float *p, cudaStream_t stream)
{
	std::vector<double> v;
	for (int round = 0; round < 20; round++) {
		double t = now();
		for (int i = 0; i < 100; i++) {
			empty<<<1, 32, 0, stream>>>(p, i, -1);
			CHECK(cudaLaunchHostFunc(stream, nothing, NULL));
		}
		CHECK(cudaStreamSynchronize(stream));
		v.push_back((now() - t) / 100);
	}
	return median(v);
}

template <class F> static double timed(int n, F f)
{
	std::vector<double> v;
	for (int i = 0; i < n; i++) {
		double t = now();
		f();
		v.push_back(now() - t);
	}
	return median(v);
}

int main(int argc, char **argv)
{
	const size_t big = (argc > 1 ? (size_t)atoi(argv[1]) : 64) << 20;
	double start = now();
	float *p;
	CHECK(cudaMalloc(&p, 4096));
	double first = now() - start;
	empty<<<1, 32>>>(p, 0, 1);
	CHECK(cudaDeviceSynchronize());
	double ready = now() - start;

	char *device, *pageable = (char *)malloc(big), *pinned;
	CHECK(cudaMalloc(&device, big));
	CHECK(cudaMallocHost(&pinned, big));
	for (size_t i = 0; i < big; i++)
		pageable[i] = (char)(i * 2654435761u >> 13);
	memcpy(pinned, pageable, big);
	cudaStream_t stream;
	CHECK(cudaStreamCreate(&stream));
	cudaEvent_t event;
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));

	launch_cost(p);
	double cost = launch_cost(p);
	launch_rate(p);
	double rate = launch_rate(p);
	double sync = timed(2000, [&] {
		empty<<<1, 32>>>(p, 0, 1);
		CHECK(cudaDeviceSynchronize());
	});
	double stream_sync = timed(2000, [&] {
		empty<<<1, 32, 0, stream>>>(p, 0, 1);
		CHECK(cudaStreamSynchronize(stream));
	});
	float back;
	double item = timed(2000, [&] { CHECK(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost)); });
	double pinned_item = timed(2000, [&] {
		CHECK(cudaMemcpyAsync(pinned, p, 4, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
	});
	memcpy(pinned, pageable, 4);
	double record = timed(2000, [&] { CHECK(cudaEventRecord(event, stream)); });
	CHECK(cudaStreamSynchronize(stream));
	double function = functions_cost(p, stream);
	double churn = timed(500, [&] {
		void *q;
		CHECK(cudaMalloc(&q, 8 << 20));
		CHECK(cudaFree(q));
	});
	double small = timed(2000, [&] {
		CHECK(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, stream));
	});
	CHECK(cudaStreamSynchronize(stream));

	auto copy = [&](void *to, const void *from, cudaMemcpyKind kind) {
		timed(2, [&] {
			CHECK(cudaMemcpyAsync(to, from, big, kind, stream));
			CHECK(cudaStreamSynchronize(stream));
		});
		double us = timed(9, [&] {
			CHECK(cudaMemcpyAsync(to, from, big, kind, stream));
			CHECK(cudaStreamSynchronize(stream));
		});
		return big / (us * 1e-6) / 1e9;
	};
	double in_pageable = copy(device, pageable, cudaMemcpyHostToDevice);
	double in_pinned = copy(device, pinned, cudaMemcpyHostToDevice);
	memset(pinned, 0, big);
	double out_pinned = copy(pinned, device, cudaMemcpyDeviceToHost);
	if (memcmp(pinned, pageable, big)) {
		fprintf(stderr, "micro: the bytes that came back are not those that went\n");
		return 1;
	}
	memset(pageable, 0, big);
	double out_pageable = copy(pageable, device, cudaMemcpyDeviceToHost);
	if (memcmp(pinned, pageable, big)) {
		fprintf(stderr, "micro: the bytes that came back are not those that went\n");
		return 1;
	}
	printf("{\"first_call_us\": %.1f, \"first_kernel_us\": %.1f, \"launch_us\": %.3f, "
	       "\"launches_per_s\": %.0f, \"launch_sync_us\": %.2f, \"launch_stream_sync_us\": %.2f, "
	       "\"item_us\": %.2f, \"pinned_item_us\": %.2f, \"event_record_us\": %.3f, \"host_function_us\": %.2f, \"malloc_free_us\": %.2f, "
	       "\"small_copy_us\": %.3f, \"h2d_pageable_gbps\": %.3f, \"h2d_pinned_gbps\": %.3f, "
	       "\"d2h_pageable_gbps\": %.3f, \"d2h_pinned_gbps\": %.3f}\n",
		first, ready, cost, rate, sync, stream_sync, item, pinned_item, record, function, churn, small, in_pageable,
		in_pinned, out_pageable, out_pinned);
	return 0;
}
