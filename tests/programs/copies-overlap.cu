// SPDX-License-Identifier: Apache-2.0
/*
 * Copies to the same pinned memory, one behind the other on a stream: large and small ones, whole
 * and in part.  What is there in the end is what the last of them brought, byte by byte.
 */
#include "check.h"

#include <vector>

enum { N = 3 << 20, SOURCES = 4, ROUNDS = 100, COPIES = 12, STREAMS = 8, PART = 4096 };

static uint32_t state = 1;

static uint32_t below(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

__global__ void late(unsigned char *data, unsigned char value)
{
	long long begin = clock64();

	while (clock64() - begin < 20000000)
		;
	for (size_t i = threadIdx.x; i < PART; i += blockDim.x)
		data[i] = value;
}

/* Several streams have a part each of one allocation. What one of them copies there, it copies
 * back, though others that came later are done. */
static void back_from_there()
{
	unsigned char *pinned, *device[STREAMS], *back;
	std::vector<unsigned char> got(PART);
	cudaStream_t streams[STREAMS];

	CUDA(cudaMallocHost(&pinned, STREAMS * PART));
	CUDA(cudaMalloc(&back, PART));
	for (int i = 0; i < STREAMS; i++) {
		CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		CUDA(cudaMalloc(&device[i], PART));
	}
	for (int others = 1; others < STREAMS; others++) {
		memset(pinned, 0, STREAMS * PART);
		late<<<1, 32, 0, streams[0]>>>(device[0], (unsigned char)others);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(
			pinned, device[0], PART, cudaMemcpyDeviceToHost, streams[0]));
		for (int i = 1; i <= others; i++) {
			CUDA(cudaMemcpyAsync(pinned + i * PART, device[i], PART,
				cudaMemcpyDeviceToHost, streams[i]));
			CUDA(cudaStreamSynchronize(streams[i]));
		}
		CUDA(cudaMemcpyAsync(back, pinned, PART, cudaMemcpyHostToDevice, streams[0]));
		CUDA(cudaStreamSynchronize(streams[0]));
		CUDA(cudaMemcpy(got.data(), back, PART, cudaMemcpyDeviceToHost));
		for (int i = 0; i < PART; i++)
			CHECK_EQ_AT(i, (int)got[i], others);
	}
	for (int i = 0; i < STREAMS; i++) {
		CUDA(cudaFree(device[i]));
		CUDA(cudaStreamDestroy(streams[i]));
	}
	CUDA(cudaFree(back));
	CUDA(cudaFreeHost(pinned));
}

/* What another device has yet to copy there: this one has waited for itself alone. */
static void from_another_device()
{
	unsigned char *pinned, *there, *back;
	std::vector<unsigned char> got(PART);
	cudaStream_t copies, reads;
	cudaEvent_t copied;
	int count;

	CUDA(cudaGetDeviceCount(&count));
	if (count < 2)
		return;
	CUDA(cudaHostAlloc(&pinned, PART, cudaHostAllocPortable));
	CUDA(cudaMalloc(&back, PART));
	CUDA(cudaStreamCreateWithFlags(&reads, cudaStreamNonBlocking));
	CUDA(cudaSetDevice(1));
	CUDA(cudaMalloc(&there, PART));
	CUDA(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&copied));
	for (int round = 1; round < 4; round++) {
		memset(pinned, 0, PART);
		CUDA(cudaSetDevice(1));
		late<<<1, 32, 0, copies>>>(there, (unsigned char)round);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(pinned, there, PART, cudaMemcpyDeviceToHost, copies));
		CUDA(cudaEventRecord(copied, copies));
		CUDA(cudaSetDevice(0));
		CUDA(cudaMemset(back, 0, PART));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaStreamWaitEvent(reads, copied, 0));
		CUDA(cudaMemcpyAsync(back, pinned, PART, cudaMemcpyHostToDevice, reads));
		CUDA(cudaStreamSynchronize(reads));
		CUDA(cudaMemcpy(got.data(), back, PART, cudaMemcpyDeviceToHost));
		for (int i = 0; i < PART; i++)
			CHECK_EQ_AT(i, (int)got[i], round);
	}
	CUDA(cudaFree(back));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaStreamDestroy(reads));
	CUDA(cudaSetDevice(1));
	CUDA(cudaFree(there));
	CUDA(cudaStreamDestroy(copies));
	CUDA(cudaEventDestroy(copied));
	CUDA(cudaSetDevice(0));
}

int main()
{
	unsigned char *device[SOURCES], *pinned;
	std::vector<unsigned char> want(N);
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&pinned, N));
	for (int i = 0; i < SOURCES; i++) {
		std::vector<unsigned char> bytes(N);

		for (size_t k = 0; k < N; k++)
			bytes[k] = (unsigned char)(k * 7 + k / 997 + 61 * i);
		CUDA(cudaMalloc(&device[i], N));
		CUDA(cudaMemcpy(device[i], bytes.data(), N, cudaMemcpyHostToDevice));
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int c = 0; c < COPIES; c++) {
			unsigned which = below(SOURCES), kind = below(3);
			size_t n = kind == 0 ? 1 + below(4096) : kind == 1 ? 1 + below(N) : N;
			size_t at = below((uint32_t)(N - n + 1));

			CUDA(cudaMemcpyAsync(pinned + at, device[which] + at, n,
				cudaMemcpyDeviceToHost, stream));
			for (size_t k = at; k < at + n; k++)
				want[k] = (unsigned char)(k * 7 + k / 997 + 61 * which);
		}
		CUDA(cudaStreamSynchronize(stream));
		if (memcmp(pinned, want.data(), N))
			for (size_t k = 0; k < N; k++)
				CHECK_EQ_AT(k, (int)pinned[k], (int)want[k]);
	}
	for (unsigned char *p : device)
		CUDA(cudaFree(p));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaStreamDestroy(stream));
	back_from_there();
	from_another_device();
	printf("the last copy was the last\n");
	return 0;
}
