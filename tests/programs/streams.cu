// SPDX-License-Identifier: Apache-2.0
/*
 * Several streams at once: chunks copied in, worked on and copied out on four streams, an event
 * that makes one stream wait for another, and what the default stream waits for. Streams are
 * aligned as addresses of memory are.
 */
#include "check.h"

enum { STREAMS = 4, CHUNKS = 16, CHUNK = 8192 };

__global__ void work(int *data, int n, int add)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = data[i] * 3 + add;
}

__global__ void copy(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = in[i];
}

static void overlapping_copies(cudaStream_t *streams)
{
	int *host, *device;

	CUDA(cudaMallocHost(&host, CHUNKS * CHUNK * sizeof(int)));
	CUDA(cudaMalloc(&device, CHUNKS * CHUNK * sizeof(int)));
	for (int i = 0; i < CHUNKS * CHUNK; i++)
		host[i] = i;
	for (int i = 0; i < CHUNKS; i++) {
		cudaStream_t stream = streams[i % STREAMS];
		int *h = host + i * CHUNK, *d = device + i * CHUNK;
		CUDA(cudaMemcpyAsync(d, h, CHUNK * sizeof(int), cudaMemcpyHostToDevice, stream));
		work<<<CHUNK / 256, 256, 0, stream>>>(d, CHUNK, i);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(h, d, CHUNK * sizeof(int), cudaMemcpyDeviceToHost, stream));
	}
	for (int i = 0; i < STREAMS; i++)
		CUDA(cudaStreamSynchronize(streams[i]));
	for (int i = 0; i < CHUNKS * CHUNK; i++)
		CHECK_EQ_AT(i, host[i], i * 3 + i / CHUNK);
	CUDA(cudaFreeHost(host));
	CUDA(cudaFree(device));
}

/* Each stream takes over from the one before it: x = 3x + i, in order or not at all. */
static void chain(cudaStream_t *streams)
{
	int *device, *host, want = 5;
	cudaEvent_t done[STREAMS];

	CUDA(cudaMalloc(&device, CHUNK * sizeof(int)));
	CUDA(cudaMallocHost(&host, CHUNK * sizeof(int)));
	for (int i = 0; i < CHUNK; i++)
		host[i] = 5;
	CUDA(cudaMemcpyAsync(
		device, host, CHUNK * sizeof(int), cudaMemcpyHostToDevice, streams[0]));
	for (int i = 0; i < STREAMS; i++) {
		CUDA(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
		if (i)
			CUDA(cudaStreamWaitEvent(streams[i], done[i - 1], 0));
		work<<<CHUNK / 256, 256, 0, streams[i]>>>(device, CHUNK, i);
		LAUNCHED();
		CUDA(cudaEventRecord(done[i], streams[i]));
		want = want * 3 + i;
	}
	CUDA(cudaMemcpyAsync(host, device, CHUNK * sizeof(int), cudaMemcpyDeviceToHost,
		streams[STREAMS - 1]));
	CUDA(cudaStreamSynchronize(streams[STREAMS - 1]));
	for (int i = 0; i < CHUNK; i++)
		CHECK_EQ_AT(i, host[i], want);
	for (int i = 0; i < STREAMS; i++) {
		CUDA(cudaEventQuery(done[i]));
		CUDA(cudaEventDestroy(done[i]));
	}
	CUDA(cudaFree(device));
	CUDA(cudaFreeHost(host));
}

/* The default stream waits for blocking streams, and they for it. */
static void default_stream()
{
	cudaStream_t before, after;
	int *a, *b, host[256];

	CUDA(cudaStreamCreate(&before));
	CUDA(cudaStreamCreate(&after));
	CUDA(cudaMalloc(&a, sizeof(host)));
	CUDA(cudaMalloc(&b, sizeof(host)));
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 256; i++)
			host[i] = i + round;
		CUDA(cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice));
		work<<<1, 256, 0, before>>>(a, 256, 1);
		copy<<<1, 256>>>(a, b, 256);
		work<<<1, 256, 0, after>>>(b, 256, 2);
		LAUNCHED();
		CUDA(cudaMemcpy(host, b, sizeof(host), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 256; i++)
			CHECK_EQ_AT(i, host[i], ((i + round) * 3 + 1) * 3 + 2);
	}
	CUDA(cudaStreamDestroy(before));
	CUDA(cudaStreamDestroy(after));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

static void properties()
{
	int least, greatest, priority;
	unsigned flags;
	unsigned long long id1, id2;
	cudaStream_t stream, other;

	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest <= least);
	CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
	CUDA(cudaStreamCreate(&other));
	CUDA(cudaStreamGetFlags(stream, &flags));
	CHECK_EQ(flags, (unsigned)cudaStreamNonBlocking);
	CUDA(cudaStreamGetFlags(other, &flags));
	CHECK_EQ(flags, (unsigned)cudaStreamDefault);
	CUDA(cudaStreamGetPriority(stream, &priority));
	CHECK_EQ(priority, greatest);
	CUDA(cudaStreamGetId(stream, &id1));
	CUDA(cudaStreamGetId(other, &id2));
	CHECK(id1 != id2);
	CUDA(cudaStreamQuery(stream));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(other));
}

/* Programs keep what they know of a stream in the bits that are zero (PyTorch's StreamId). */
static void aligned()
{
	enum { ROUNDS = 3, MANY = 100, ALIGNMENT = 16 };
	cudaStream_t streams[MANY];
	cudaEvent_t events[MANY];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < MANY; i++) {
			CUDA(cudaEventCreate(&events[i]));
			CUDA(cudaStreamCreate(&streams[i]));
			CHECK_EQ((unsigned)((uintptr_t)streams[i] % ALIGNMENT), 0u);
		}
		for (int i = 0; i < MANY; i++) {
			CUDA(cudaStreamDestroy(streams[i]));
			CUDA(cudaEventDestroy(events[i]));
		}
	}
}

int main()
{
	cudaStream_t streams[STREAMS];

	for (int i = 0; i < STREAMS; i++)
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	overlapping_copies(streams);
	for (int i = 0; i < 10; i++)
		chain(streams);
	for (int i = 0; i < STREAMS; i++)
		CUDA(cudaStreamDestroy(streams[i]));
	default_stream();
	properties();
	aligned();
	printf("streams keep their order\n");
	return 0;
}
