// SPDX-License-Identifier: Apache-2.0
/* One-dimensional copies of every direction, length and alignment; pageable and pinned memory. */
#include "check.h"

#include <vector>

static unsigned char byte_at(size_t i, unsigned salt)
{
	return (unsigned char)(i * 7 + (i >> 8) + salt);
}

/* Host to device, device to device, device to host; nothing beyond the ends may change. */
static void there_and_back(size_t n, size_t shift, bool pinned)
{
	unsigned char *in, *out, *a, *b;
	size_t room = n + 2 * shift + 16;

	if (pinned) {
		CUDA(cudaMallocHost(&in, room));
		CUDA(cudaHostAlloc(&out, room, cudaHostAllocDefault));
	} else {
		in = (unsigned char *)malloc(room);
		out = (unsigned char *)malloc(room);
	}
	CUDA(cudaMalloc(&a, room));
	CUDA(cudaMalloc(&b, room));
	for (size_t i = 0; i < room; i++)
		in[i] = byte_at(i, (unsigned)n);
	memset(out, 0xee, room);
	CUDA(cudaMemset(b, 0xdd, room));

	CUDA(cudaMemcpy(a + shift, in + shift, n, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(b + 2 * shift, a + shift, n, cudaMemcpyDeviceToDevice));
	CUDA(cudaMemcpy(out, b, room, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < room; i++) {
		bool inside = i >= 2 * shift && i < 2 * shift + n;
		CHECK_EQ_AT((long long)i, out[i],
			inside ? byte_at(i - shift, (unsigned)n) : 0xdd);
	}

	/* The same with the direction told by the addresses. */
	memset(out, 0xee, room);
	CUDA(cudaMemcpy(out + shift, b + 2 * shift, n, cudaMemcpyDefault));
	for (size_t i = 0; i < room; i++) {
		bool inside = i >= shift && i < shift + n;
		CHECK_EQ_AT((long long)i, out[i], inside ? byte_at(i, (unsigned)n) : 0xee);
	}
	if (pinned) {
		CUDA(cudaFreeHost(in));
		CUDA(cudaFreeHost(out));
	} else {
		free(in);
		free(out);
	}
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* Pageable memory may be changed as soon as the call returns. */
static void pageable_is_captured(cudaStream_t stream)
{
	const int n = 50000;
	std::vector<int> source(n), got(n);
	int *device;

	CUDA(cudaMalloc(&device, 8 * n * sizeof(int)));
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < n; i++)
			source[i] = round * n + i;
		CUDA(cudaMemcpyAsync(device + round * n, source.data(), n * sizeof(int),
			cudaMemcpyHostToDevice, stream));
	}
	for (int round = 0; round < 8; round++) {
		CUDA(cudaMemcpyAsync(got.data(), device + round * n, n * sizeof(int),
			cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < n; i++)
			CHECK_EQ_AT(i, got[i], round * n + i);
	}
	CUDA(cudaFree(device));
}

/* Many small copies, none awaited, that all meet in one place. */
static void many_small(cudaStream_t stream)
{
	const int n = 2000;
	int *host, *device;

	CUDA(cudaMallocHost(&host, 2 * n * sizeof(int)));
	CUDA(cudaMalloc(&device, n * sizeof(int)));
	for (int i = 0; i < n; i++) {
		host[i] = i * i;
		CUDA(cudaMemcpyAsync(device + i, host + i, sizeof(int), cudaMemcpyHostToDevice,
			stream));
	}
	for (int i = 0; i < n; i += 2)
		CUDA(cudaMemcpyAsync(host + n + i, device + i, 2 * sizeof(int),
			cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[n + i], i * i);
	CUDA(cudaFreeHost(host));
	CUDA(cudaFree(device));
}

/* HEIGHT rows of WIDTH bytes, PITCH apart in the program and side by side on the device: what lies
 * between the rows stays. */
static void large_rows(size_t width, size_t pitch, size_t height)
{
	std::vector<unsigned char> in(width * height), out(pitch * height, 0xee);
	unsigned char *device;

	for (size_t i = 0; i < in.size(); i++)
		in[i] = byte_at(i, 5);
	CUDA(cudaMalloc(&device, in.size()));
	CUDA(cudaMemcpy(device, in.data(), in.size(), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2D(out.data(), pitch, device, width, width, height, cudaMemcpyDeviceToHost));
	for (size_t y = 0; y < height; y++) {
		CHECK(!memcmp(&out[y * pitch], &in[y * width], width));
		for (size_t x = width; x < pitch; x++)
			CHECK_EQ_AT(y, (int)out[y * pitch + x], 0xee);
	}
	CUDA(cudaFree(device));
}

int main()
{
	cudaStream_t stream;
	char text[] = "from host to host", copied[sizeof(text)];

	for (size_t n : {(size_t)1, (size_t)3, (size_t)4096, (size_t)65537, (size_t)5 << 20})
		for (size_t shift : {(size_t)0, (size_t)1, (size_t)13})
			for (bool pinned : {false, true})
				if (n < 1 << 20 || shift == 13)
					there_and_back(n, shift, pinned);
	there_and_back(((size_t)20 << 20) + 12345, 13, false); /* past the caches */
	large_rows(5000, 5003, 3000);

	CUDA(cudaStreamCreate(&stream));
	pageable_is_captured(stream);
	many_small(stream);
	CUDA(cudaStreamDestroy(stream));

	CUDA(cudaMemcpy(copied, text, sizeof(text), cudaMemcpyHostToHost));
	CHECK(!strcmp(copied, text));
	CUDA(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
	printf("copies are right\n");
	return 0;
}
