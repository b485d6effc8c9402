/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies from the first device to the last one, and waits of their streams for one another's
 * events.  An ordinary CUDA program: tests/gpu/agents.sh runs it natively, where both may be one
 * device, and with two agents.
 *
 *     agents MIB     one JSON object: GB/s of MIB copies and of a kernel that reads MIB of the other
 *                    device's memory (0: it cannot), µs of a small copy and of an event wait
 *                    (medians), and how many words were wrong
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t got = (call);                                                          \
		if (got != cudaSuccess) {                                                          \
			fprintf(stderr, "agents: %s: %s\n", #call, cudaGetErrorString(got));         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { ROUNDS = 7, HOPS = 50, SALTS = 3 };

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

__device__ static uint32_t pattern(uint32_t i, uint32_t salt)
{
	return (i ^ salt) * 2654435761u + salt;
}

__global__ void fill(uint32_t *data, uint32_t n, uint32_t salt)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = pattern(i, salt);
}

__global__ void compare(const uint32_t *data, uint32_t n, uint32_t salt, uint32_t *wrong)
{
	for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		if (data[i] != pattern(i, salt))
			atomicAdd(wrong, 1u);
}

struct end {
	int device;
	uint32_t *data, *wrong;
	cudaStream_t stream;
	cudaEvent_t event;
};

static end end_on(int device, uint32_t n)
{
	end e = {.device = device};

	CHECK(cudaSetDevice(device));
	CHECK(cudaMalloc(&e.data, (size_t)n * 4));
	CHECK(cudaMalloc(&e.wrong, 4));
	CHECK(cudaMemset(e.wrong, 0, 4));
	CHECK(cudaStreamCreateWithFlags(&e.stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&e.event, cudaEventDisableTiming));
	CHECK(cudaDeviceSynchronize());
	return e;
}

/* Seconds of a copy of BYTES. */
static double copy(const end &from, const end &to, size_t bytes)
{
	double began;

	CHECK(cudaSetDevice(from.device));
	CHECK(cudaStreamSynchronize(from.stream));
	began = now();
	CHECK(cudaMemcpyPeerAsync(to.data, to.device, from.data, from.device, bytes, from.stream));
	CHECK(cudaStreamSynchronize(from.stream));
	return now() - began;
}

/* Seconds that a stream's wait for the other one's event takes, of a chain of them. */
static double wait(const end &a, const end &b)
{
	double began = now();

	for (int i = 0; i < HOPS; i++) {
		const end &before = i & 1 ? b : a, &after = i & 1 ? a : b;

		CHECK(cudaSetDevice(before.device));
		CHECK(cudaEventRecord(before.event, before.stream));
		CHECK(cudaSetDevice(after.device));
		CHECK(cudaStreamWaitEvent(after.stream, before.event, 0));
	}
	CHECK(cudaSetDevice(a.device));
	CHECK(cudaStreamSynchronize(a.stream));
	return (now() - began) / HOPS;
}

/* Seconds of a kernel on TO that reads all of FROM's memory. */
static double read_peer(const end &from, const end &to, uint32_t n, uint32_t salt)
{
	double began;

	CHECK(cudaSetDevice(to.device));
	CHECK(cudaStreamSynchronize(to.stream));
	began = now();
	compare<<<1024, 256, 0, to.stream>>>(from.data, n, salt, to.wrong);
	CHECK(cudaGetLastError());
	CHECK(cudaStreamSynchronize(to.stream));
	return now() - began;
}

/* Whether kernels on TO reach FROM's memory from now on. */
static int reaches(const end &from, const end &to)
{
	int can = 0;

	if (from.device == to.device)
		return 0;
	CHECK(cudaDeviceCanAccessPeer(&can, to.device, from.device));
	CHECK(cudaSetDevice(to.device));
	if (can)
		CHECK(cudaDeviceEnablePeerAccess(from.device, 0));
	return can;
}

/* Counts words that are not what was copied, each round other ones. */
static void copy_and_compare(const end &from, const end &to, uint32_t n)
{
	for (uint32_t salt = 1; salt <= SALTS; salt++) {
		CHECK(cudaSetDevice(from.device));
		fill<<<64, 256, 0, from.stream>>>(from.data, n, salt);
		CHECK(cudaGetLastError());
		(void)copy(from, to, (size_t)n * 4);
		CHECK(cudaSetDevice(to.device));
		compare<<<64, 256, 0, to.stream>>>(to.data, n, salt, to.wrong);
		CHECK(cudaGetLastError());
		CHECK(cudaStreamSynchronize(to.stream));
	}
}

int main(int argc, char **argv)
{
	long mib = argc > 1 ? atol(argv[1]) : 256;
	std::vector<double> large, small, waits, kernels;
	uint32_t wrong;
	int devices, peers;

	if (mib < 1 || mib > 4096) {
		fprintf(stderr, "agents: '%s' is not a number of MiB from 1 to 4096\n", argv[1]);
		return 2;
	}
	CHECK(cudaGetDeviceCount(&devices));
	const uint32_t n = (uint32_t)(mib << 18);
	const end from = end_on(0, n), to = end_on(devices - 1, n);

	copy_and_compare(from, to, n);
	peers = reaches(from, to);
	for (int i = 0; i < ROUNDS; i++) {
		large.push_back(copy(from, to, (size_t)n * 4));
		small.push_back(copy(from, to, 4096));
		waits.push_back(wait(from, to));
		if (peers)
			kernels.push_back(read_peer(from, to, n, SALTS));
	}
	CHECK(cudaMemcpy(&wrong, to.wrong, 4, cudaMemcpyDeviceToHost));
	printf("{\"devices\": %d, \"gbps\": %.3f, \"kernel_gbps\": %.3f, \"small_us\": %.1f, "
		"\"wait_us\": %.1f, \"wrong\": %u}\n",
		devices, (double)n * 4 / median(large) / 1e9,
		peers ? (double)n * 4 / median(kernels) / 1e9 : 0, median(small) * 1e6,
		median(waits) * 1e6, wrong);
	return wrong != 0;
}
