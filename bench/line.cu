/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of each size between a program and its GPU, and what a wait costs.  An ordinary CUDA
 * program: bench/line.py runs it natively and through vcuda, with raw TCP beside.
 *
 *     line MOST                       4 KiB … MOST bytes; one JSON object: GB/s and µs, medians
 *     line MOST DIRECTION MEMORY S    only copies of MOST bytes for S seconds: h2d or d2h,
 *                                     pageable or pinned; prints GB/s
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t e = (call);                                                            \
		if (e != cudaSuccess) {                                                            \
			fprintf(stderr, "line: %s: %s\n", #call, cudaGetErrorString(e));           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static double now(void)
{
	using namespace std::chrono;
	return duration<double>(steady_clock::now().time_since_epoch()).count();
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

/* The sizes of a curve: 4 KiB, 16 KiB … 64 MiB, 512 MiB, 1 GiB; as in rawtcp.c. */
static size_t size_behind(size_t size)
{
	return size < 64u << 20 ? size * 4 : size == 64u << 20 ? size * 8 : size * 2;
}

struct buffers {
	char *device, *pageable, *pinned;
	cudaStream_t stream;
};

static uint64_t pattern(size_t i, uint64_t salt)
{
	return (i + salt) * 0x9e3779b97f4a7c15ull;
}

static void fill(char *bytes, size_t n, uint64_t salt)
{
	for (size_t i = 0; i < n / 8; i++)
		((uint64_t *)bytes)[i] = pattern(i, salt);
}

/* Each word of what is small, each 509th of the rest. */
static void check(const char *bytes, size_t n, uint64_t salt)
{
	size_t step = n <= 1 << 20 ? 1 : 509;

	for (size_t i = 0; i < n / 8; i += step)
		if (((const uint64_t *)bytes)[i] != pattern(i, salt)) {
			fprintf(stderr, "line: word %zu of %zu bytes is not what was copied\n", i, n);
			exit(1);
		}
}

static double copy_once(const struct buffers *b, size_t n, bool in, bool pinned)
{
	char *host = pinned ? b->pinned : b->pageable;
	double start = now();

	CHECK(cudaMemcpyAsync(in ? b->device : host, in ? host : b->device, n,
		in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, b->stream));
	CHECK(cudaStreamSynchronize(b->stream));
	return now() - start;
}

static double rate(const struct buffers *b, size_t n, bool in, bool pinned, double seconds)
{
	std::vector<double> took;
	double begin;

	copy_once(b, n, in, pinned);
	begin = now();
	while (took.size() < 3 || (now() - begin < seconds && took.size() < 5000))
		took.push_back(copy_once(b, n, in, pinned));
	return n / median(took) / 1e9;
}

static void curve(const struct buffers *b, size_t most)
{
	std::string rows[4];
	static const char *const names[] = {"h2d_pageable", "d2h_pinned", "h2d_pinned", "d2h_pageable"};
	uint64_t salt = 0;

	for (size_t size = 4096; size <= most; size = size_behind(size))
		for (int i = 0; i < 4; i++) {
			bool in = i % 2 == 0, pinned = i == 1 || i == 2;
			char text[64];

			/* Out comes what went in before, into the other memory. */
			if (in)
				fill(pinned ? b->pinned : b->pageable, size, ++salt);
			else
				memset(pinned ? b->pinned : b->pageable, 0, size);
			snprintf(text, sizeof(text), "%s\"%zu\": %.3f", rows[i].empty() ? "" : ", ", size,
				rate(b, size, in, pinned, 0.06));
			rows[i] += text;
			if (!in)
				check(pinned ? b->pinned : b->pageable, size, salt);
		}
	for (int i = 0; i < 4; i++)
		printf("\"%s\": {%s}, ", names[i], rows[i].c_str());
}

template <class F> static double timed(F f)
{
	std::vector<double> took;

	for (int i = 0; i < 3000; i++) {
		double start = now();

		f();
		took.push_back(now() - start);
	}
	return median(took) * 1e6;
}

static void waits(const struct buffers *b)
{
	float *p = (float *)b->device, back;

	double launch = timed([&] {
		empty<<<1, 32, 0, b->stream>>>(p, 0, 1);
		CHECK(cudaStreamSynchronize(b->stream));
	});
	double item = timed([&] { CHECK(cudaMemcpy(&back, p, 4, cudaMemcpyDeviceToHost)); });
	double pinned_item = timed([&] {
		CHECK(cudaMemcpyAsync(b->pinned, p, 4, cudaMemcpyDeviceToHost, b->stream));
		CHECK(cudaStreamSynchronize(b->stream));
	});
	printf("\"launch_sync_us\": %.2f, \"item_us\": %.2f, \"pinned_item_us\": %.2f", launch, item,
		pinned_item);
}

int main(int argc, char **argv)
{
	size_t most = argc > 1 ? strtoull(argv[1], NULL, 10) : 64u << 20;
	struct buffers b;

	b.pageable = (char *)malloc(most);
	CHECK(cudaMalloc(&b.device, most));
	CHECK(cudaMallocHost(&b.pinned, most));
	CHECK(cudaStreamCreate(&b.stream));
	fill(b.pageable, most, 0);
	fill(b.pinned, most, 0);
	if (argc > 4) {
		printf("%.3f\n", rate(&b, most, argv[2][0] == 'h', argv[3][1] == 'i', atof(argv[4])));
		return 0;
	}
	printf("{");
	curve(&b, most);
	waits(&b);
	printf("}\n");
	return 0;
}
