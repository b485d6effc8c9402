// SPDX-License-Identifier: Apache-2.0
/* A copy from the host that CUDA calls synchronous is done when it returns, for another device,
 * too: whatever that device does next, a copy in each form or a kernel that reaches the memory,
 * finds what was copied, though the first device was busy when the copy was asked for.
 * cudaMemcpyPeer is in order with what both devices have to do, and do later, whichever is
 * current. So are copies between
 * two devices in the default stream, and between the host and a device in a stream of another
 * one's. */
#include "driver.h"

static const int N = 4096, BUSY = 2000000;

__global__ void busy(unsigned *out, int turns)
{
	unsigned x = 1;

	for (int i = 0; i < turns; i++)
		x = x * 1664525 + i;
	*out = x;
}

__global__ void read(int *to, const int *from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] = from[i];
}

static struct {
	int *values;
	cudaStream_t stream;
	unsigned *junk;
} here[3];

static void way_peer(cudaStream_t stream)
{
	CUDA(cudaMemcpyPeerAsync(
		here[1].values, 1, here[0].values, 0, N * sizeof(int), stream));
}

static void way_default(cudaStream_t stream)
{
	CUDA(cudaMemcpyAsync(here[1].values, here[0].values, N * sizeof(int),
		cudaMemcpyDefault, stream));
}

static void way_rows(cudaStream_t stream)
{
	CUDA(cudaMemcpy2DAsync(here[1].values, N, here[0].values, N, N, sizeof(int),
		cudaMemcpyDefault, stream));
}

static void way_kernel(cudaStream_t stream)
{
	int can;

	CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		return way_peer(stream);
	CUDA(cudaDeviceEnablePeerAccess(0, 0));
	read<<<N / 256, 256, 0, stream>>>(here[1].values, here[0].values);
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaDeviceDisablePeerAccess(0));
}

static void check(const int *source, int *got, void (*way)(cudaStream_t), cudaStream_t stream)
{
	CUDA(cudaSetDevice(0));
	busy<<<1, 1>>>(here[0].junk, BUSY);
	CUDA(cudaMemcpy(here[0].values, source, N * sizeof(int), cudaMemcpyHostToDevice));
	copied();
	CUDA(cudaSetDevice(1));
	way(stream);
	CUDA(cudaMemcpyAsync(
		got, here[1].values, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], source[i]);
	CUDA(cudaSetDevice(0));
	CUDA(cudaDeviceSynchronize());
}

/* The first device's copies are before those of a stream that is gone. */
static void check_gone(const int *source, int *got)
{
	cudaStream_t stream;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	busy<<<1, 1>>>(here[0].junk, BUSY);
	CUDA(cudaMemcpy(here[0].values, source, N * sizeof(int), cudaMemcpyHostToDevice));
	copied();
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemcpy(here[1].values, source, sizeof(int), cudaMemcpyHostToDevice));
	copied();
	CUDA(cudaStreamDestroy(stream));
	way_peer(here[1].stream);
	CUDA(cudaMemcpyAsync(got, here[1].values, N * sizeof(int), cudaMemcpyDeviceToHost,
		here[1].stream));
	CUDA(cudaStreamSynchronize(here[1].stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], source[i]);
}

__global__ void busy_set(int *out, int value, int turns)
{
	unsigned x = 1;

	for (int i = 0; i < turns; i++)
		x = x * 1664525 + i;
	*out = x == 7 ? 0 : value;
}

static int first_of(const int *values, int device)
{
	int got;

	CUDA(cudaSetDevice(device));
	CUDA(cudaMemcpy(&got, values, sizeof(got), cudaMemcpyDeviceToHost));
	return got;
}

/* A stream copies between the host and another device's memory, which may be current, in order
 * with what else it has to do. */
static void check_other_stream(int *host, int current)
{
	cudaStream_t stream = here[1].stream;

	CUDA(cudaSetDevice(1));
	busy_set<<<1, 1, 0, stream>>>(here[1].values, 30 + current, BUSY);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpyAsync(
		host, here[0].values, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaMemcpyPeerAsync(here[0].values, 0, here[1].values, 1, sizeof(int), stream));
	CUDA(cudaMemcpyAsync(
		host + 1, here[0].values, sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(host[1], 30 + current);
	host[2] = 40 + current;
	CUDA(cudaMemcpyAsync(
		here[0].values, host + 2, sizeof(int), cudaMemcpyHostToDevice, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(first_of(here[0].values, 0), 40 + current);
}

__global__ void busy_read(int *out, const int *from, int turns)
{
	unsigned x = 1;

	for (int i = 0; i < turns; i++)
		x = x * 1664525 + i;
	*out = x == 7 ? 0 : *from;
}

/* A copy between two devices in the default stream, Async or not, waits for both. */
static void check_default_stream()
{
	int old = 50, fresh = 51, *read = here[1].values + 1;

	CUDA(cudaSetDevice(1));
	CUDA(cudaMemcpy(here[1].values, &old, sizeof(old), cudaMemcpyHostToDevice));
	CUDA(cudaSetDevice(0));
	CUDA(cudaMemcpy(here[0].values, &fresh, sizeof(fresh), cudaMemcpyHostToDevice));
	CUDA(cudaSetDevice(1));
	busy_read<<<1, 1>>>(read, here[1].values, BUSY);
	CUDA(cudaSetDevice(0));
	CUDA(cudaMemcpyAsync(here[1].values, here[0].values, sizeof(int), cudaMemcpyDefault,
		cudaStreamLegacy));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(first_of(read, 1), 50);
	CHECK_EQ(first_of(here[1].values, 1), 51);
}

static void check_serialized(int from, int to, int current)
{
	int *const source = here[from].values, *const out = here[to].values;

	/* What the source has to do before, and what the destination does later. */
	CUDA(cudaSetDevice(from));
	busy_set<<<1, 1>>>(source, 10 + current, BUSY);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpyPeer(out, to, source, from, sizeof(int)));
	CHECK_EQ(first_of(out, to), 10 + current);
	/* What the destination has to do before, and what the source does later. */
	CUDA(cudaSetDevice(to));
	busy_set<<<1, 1>>>(out, 20, BUSY);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpyPeer(out, to, source, from, sizeof(int)));
	CUDA(cudaSetDevice(from));
	CUDA(cudaMemset(source, 1, sizeof(int)));
	CHECK_EQ(first_of(source, from), 0x01010101);
	CHECK_EQ(first_of(out, to), 10 + current);
}

int main()
{
	void (*const ways[])(cudaStream_t) = {way_peer, way_default, way_rows, way_kernel};
	int devices, *pinned, *got, *pageable = (int *)malloc(N * sizeof(int)), next = 0;

	CUDA(cudaGetDeviceCount(&devices));
	if (devices < 2)
		SKIP("one device only");
	if (devices > 3)
		devices = 3;
	for (int device = 0; device < devices; device++) {
		CUDA(cudaSetDevice(device));
		CUDA(cudaMalloc(&here[device].values, N * sizeof(int)));
		CUDA(cudaMalloc(&here[device].junk, sizeof(unsigned)));
		CUDA(cudaStreamCreateWithFlags(&here[device].stream, cudaStreamNonBlocking));
		busy<<<1, 1>>>(here[device].junk, 1);
		busy_set<<<1, 1>>>(here[device].values, 1, 1);
		read<<<N / 256, 256>>>(here[device].values, here[device].values);
		CUDA(cudaDeviceSynchronize());
	}
	CUDA(cudaMallocHost(&pinned, N * sizeof(int)));
	CUDA(cudaMallocHost(&got, N * sizeof(int)));
	for (auto way : ways) {
		int *const sources[] = {pageable, pinned};

		for (int *source : sources) {
			cudaStream_t const streams[] = {here[1].stream, cudaStreamLegacy};

			for (cudaStream_t stream : streams) {
				for (int i = 0; i < N; i++)
					source[i] = ++next;
				check(source, got, way, stream);
			}
		}
	}
	for (int i = 0; i < N; i++)
		pageable[i] = ++next;
	check_gone(pageable, got);
	for (int current = 0; current < 2; current++) {
		check_other_stream(pageable, current);
		check_other_stream(pinned, current);
	}
	check_default_stream();
	for (int from = 0; from < devices; from++)
		for (int to = 0; to < devices; to++)
			for (int current = 0; from != to && current < devices; current++)
				check_serialized(from, to, current);
	return 0;
}
