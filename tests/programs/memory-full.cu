// SPDX-License-Identifier: Apache-2.0
/* A device that is full: memory in pieces until there is no more, every other one given back, and
 * what the gaps hold had in one piece; what a small piece took; and a pool that keeps what was freed until it is trimmed. */
#include "check.h"

#include <cstring>
#include <vector>

enum { PARTS = 32 };

__global__ void mark(char *data, size_t n, char value)
{
	data[0] = value;
	data[n - 1] = value;
}

static void check_marks(const char *data, size_t n, char value)
{
	char first = 0, last = 0;

	CUDA(cudaMemcpy(&first, data, 1, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&last, data + n - 1, 1, cudaMemcpyDeviceToHost));
	CHECK(first == value && last == value);
}

static void gaps(size_t part)
{
	std::vector<char *> pieces;
	size_t before, between, total, gap;
	char *piece, *whole;

	CUDA(cudaMemGetInfo(&before, &total));
	while (cudaMalloc((void **)&piece, part) == cudaSuccess) {
		mark<<<1, 1>>>(piece, part, (char)pieces.size());
		pieces.push_back(piece);
		CHECK(pieces.size() <= PARTS);
	}
	CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
	CUDA(cudaMemGetInfo(&between, &total));
	CHECK(between <= before - pieces.size() * part);
	for (size_t i = 0; i < pieces.size(); i++)
		check_marks(pieces[i], part, (char)i);

	/* No two of them lie side by side. */
	gap = 0;
	for (size_t i = 1; i < pieces.size(); i += 2) {
		CUDA(cudaFree(pieces[i]));
		gap += part;
	}
	CUDA(cudaMemGetInfo(&before, &total));
	CHECK(before >= between + gap);
	CUDA(cudaMalloc((void **)&whole, gap));
	mark<<<1, 1>>>(whole, gap, 77);
	check_marks(whole, gap, 77);
	for (size_t i = 0; i < pieces.size(); i += 2)
		check_marks(pieces[i], part, (char)i);
	CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc((void **)&piece, part * 2));
	(void)cudaGetLastError();
	CUDA(cudaFree(whole));
	for (size_t i = 0; i < pieces.size(); i += 2)
		CUDA(cudaFree(pieces[i]));
}

static unsigned long long attribute(cudaMemPool_t pool, cudaMemPoolAttr which)
{
	unsigned long long value = 0;

	CUDA(cudaMemPoolGetAttribute(pool, which, &value));
	return value;
}

static void kept(size_t part)
{
	unsigned long long keep = ~0ull, none = 0;
	cudaMemPool_t pool;
	size_t half = part * PARTS / 2, large = part * PARTS * 3 / 4;
	char *block, *other;

	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &none));
	CUDA(cudaMallocAsync((void **)&block, half, 0));
	mark<<<1, 1>>>(block, half, 5);
	check_marks(block, half, 5);
	CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= half);
	CUDA(cudaFreeAsync(block, 0));
	CUDA(cudaStreamSynchronize(0));
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0ull);
	CHECK(attribute(pool, cudaMemPoolAttrUsedMemHigh) >= half);
	CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= half);
	CHECK(attribute(pool, cudaMemPoolAttrReservedMemHigh) >= half);
	CUDA(cudaMemPoolTrimTo(pool, 0));
	CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0ull);
	CUDA(cudaMalloc((void **)&other, large));
	mark<<<1, 1>>>(other, large, 6);
	check_marks(other, large, 6);
	CUDA_IS(cudaErrorMemoryAllocation, cudaMallocAsync((void **)&block, half, 0));
	(void)cudaGetLastError();
	CUDA(cudaFree(other));
	CUDA(cudaMallocAsync((void **)&block, half, 0));
	CUDA(cudaFreeAsync(block, 0));
	/* Nothing is kept beyond a synchronisation. */
	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &none));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0ull);
}

/* What a small piece took is told as free when it is, and can be had. */
static void small(void)
{
	size_t before, during, after, total;
	cudaDeviceProp device;
	char *piece, *whole;

	CUDA(cudaMemGetInfo(&before, &total));
	CUDA(cudaMallocAsync((void **)&piece, 20, 0));
	CUDA(cudaMemGetInfo(&during, &total));
	CHECK(during < before);
	CUDA(cudaFreeAsync(piece, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemGetInfo(&after, &total));
	CHECK_EQ(after, before);
	/* A GPU keeps some of it for itself. */
	CUDA(cudaGetDeviceProperties(&device, 0));
	if (!strstr(device.name, "software"))
		return;
	CUDA(cudaMalloc((void **)&whole, after));
	CUDA(cudaFree(whole));
}

int main(void)
{
	size_t free, total, part;

	CUDA(cudaMemGetInfo(&free, &total));
	part = free / PARTS >> 21 << 21;
	if (part < (2 << 20))
		SKIP("too little memory");
	small();
	gaps(part);
	kept(part);
	return 0;
}
