// SPDX-License-Identifier: Apache-2.0
/*
 * More behind a host function than anything on the way holds: copies of many sizes from and to
 * pageable and pinned memory, copies of other threads, and launches with large parameters. All of
 * it runs once the function has ended, and not before.
 */
#include "check.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

enum { THREADS = 8, LAUNCHES = 40000, STREAMS = 5 };

struct large {
	int numbers[500];
};

__global__ void add(large parameter, int *sum)
{
	*sum += parameter.numbers[0] + parameter.numbers[499];
}

static std::atomic<bool> ended;

static void CUDART_CB slow(void *milliseconds)
{
	std::this_thread::sleep_for(std::chrono::milliseconds((size_t)milliseconds));
	ended = true;
}

static void fill(unsigned char *bytes, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (unsigned char)(seed >> 24);
	}
}

static bool same(const unsigned char *a, const unsigned char *b, size_t n)
{
	return !memcmp(a, b, n);
}

struct buffers {
	unsigned char *sent, *got, *device;
	size_t n;
};

/* In pieces of PIECE bytes, of which each OUT-th goes towards the host. */
static bool copied(const buffers &b, cudaStream_t stream, size_t piece, unsigned out)
{
	size_t count = b.n / piece;

	ended = false;
	CUDA(cudaLaunchHostFunc(stream, slow, (void *)50));
	for (size_t i = 0; i < count; i++) {
		size_t at = i * piece;

		if (i % out == 0)
			CUDA(cudaMemcpyAsync(b.got + at, b.device + at, piece,
				cudaMemcpyDeviceToHost, stream));
		else
			CUDA(cudaMemcpyAsync(b.device + at, b.sent + at, piece,
				cudaMemcpyHostToDevice, stream));
	}
	CUDA(cudaStreamSynchronize(stream));
	return ended;
}

/* All towards the device, then all towards the host, in pieces. */
static bool there_and_back(const buffers &b, cudaStream_t stream, size_t piece)
{
	bool late;

	memset(b.got, 0, b.n);
	CUDA(cudaMemset(b.device, 0, b.n));
	CUDA(cudaDeviceSynchronize());
	late = copied(b, stream, piece, ~0u);
	/* Number 0 went towards the host. */
	CUDA(cudaMemcpyAsync(b.device, b.sent, piece, cudaMemcpyHostToDevice, stream));
	return copied(b, stream, piece, 1) && late &&
	       same(b.sent, b.got, b.n / piece * piece);
}

/* Every thread's copies on a stream of its own, one of which has the function before them. */
static bool threads_copy(size_t n)
{
	std::vector<std::thread> threads;
	std::atomic<int> right{0};

	for (unsigned t = 0; t < THREADS; t++)
		threads.emplace_back([&, t] {
			std::vector<unsigned char> sent(n), got(n);
			unsigned char *device;
			cudaStream_t stream;

			fill(sent.data(), n, t);
			CUDA(cudaMalloc(&device, n));
			CUDA(cudaStreamCreate(&stream));
			for (int round = 0; round < 4; round++) {
				CUDA(cudaMemcpyAsync(device, sent.data(), n,
					cudaMemcpyHostToDevice, stream));
				if (round % 2 == (int)(t % 2))
					CUDA(cudaLaunchHostFunc(stream, slow, (void *)20));
				CUDA(cudaMemcpyAsync(got.data(), device, n,
					cudaMemcpyDeviceToHost, stream));
				CUDA(cudaStreamSynchronize(stream));
				right += same(sent.data(), got.data(), n);
			}
			CUDA(cudaStreamDestroy(stream));
			CUDA(cudaFree(device));
		});
	for (std::thread &thread : threads)
		thread.join();
	return right == THREADS * 4;
}

static void CUDART_CB count(void *counted)
{
	++*(std::atomic<unsigned> *)counted;
}

/* One thread feeds all streams, each of which ends its turn with a function: copies of the next
 * streams come while it is outstanding. */
static bool streams_copy(size_t n)
{
	std::atomic<unsigned> counted{0};
	cudaStream_t streams[STREAMS];
	buffers b[STREAMS];
	bool right = true;

	for (unsigned i = 0; i < STREAMS; i++) {
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		CUDA(cudaMalloc(&b[i].device, n));
		CUDA(cudaMallocHost(&b[i].sent, n));
		CUDA(cudaMallocHost(&b[i].got, n));
		fill(b[i].sent, n, i);
	}
	for (unsigned turn = 0; turn < 3; turn++) {
		for (unsigned i = 0; i < STREAMS; i++) {
			CUDA(cudaMemcpyAsync(b[i].device, b[i].sent, n, cudaMemcpyHostToDevice,
				streams[i]));
			CUDA(cudaMemcpyAsync(b[i].got, b[i].device, n, cudaMemcpyDeviceToHost,
				streams[i]));
			CUDA(cudaLaunchHostFunc(streams[i], count, &counted));
		}
		CUDA(cudaDeviceSynchronize());
		for (unsigned i = 0; i < STREAMS; i++) {
			right = right && same(b[i].sent, b[i].got, n);
			memset(b[i].got, 0, n);
		}
	}
	for (unsigned i = 0; i < STREAMS; i++) {
		CUDA(cudaFreeHost(b[i].sent));
		CUDA(cudaFreeHost(b[i].got));
		CUDA(cudaFree(b[i].device));
		CUDA(cudaStreamDestroy(streams[i]));
	}
	return right && counted == 3 * STREAMS;
}

static bool launches_wait(cudaStream_t stream)
{
	large parameter = {};
	int *sum, got;

	parameter.numbers[0] = 2;
	parameter.numbers[499] = 1;
	ended = false;
	CUDA(cudaMalloc(&sum, sizeof(*sum)));
	add<<<1, 1>>>({}, sum); /* loads it, which would wait for the function */
	CUDA(cudaMemset(sum, 0, sizeof(*sum)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaLaunchHostFunc(stream, slow, (void *)300));
	for (int i = 0; i < LAUNCHES; i++)
		add<<<1, 1, 0, stream>>>(parameter, sum);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(sum));
	return ended && got == LAUNCHES * 3;
}

int main()
{
	const size_t n = 24 << 20, pieces[] = {40000, 1000000, n};
	buffers b = {.n = n};
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&b.device, n));
	for (bool pinned : {false, true}) {
		if (pinned) {
			CUDA(cudaMallocHost(&b.sent, n));
			CUDA(cudaMallocHost(&b.got, n));
		} else {
			b.sent = (unsigned char *)malloc(n);
			b.got = (unsigned char *)malloc(n);
		}
		fill(b.sent, n, pinned);
		for (size_t piece : pieces) {
			printf("%s memory, pieces of %zu bytes\n",
				pinned ? "pinned" : "pageable", piece);
			CHECK(there_and_back(b, stream, piece));
			CHECK(copied(b, stream, piece, 2));
		}
		if (pinned) {
			CUDA(cudaFreeHost(b.sent));
			CUDA(cudaFreeHost(b.got));
		} else {
			free(b.sent);
			free(b.got);
		}
	}
	CHECK(threads_copy(4 << 20));
	for (size_t each : {4u << 20, 40u << 20})
		CHECK(streams_copy(each));
	CHECK(launches_wait(stream));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(b.device));
	printf("everything waited for the host functions\n");
	return 0;
}
