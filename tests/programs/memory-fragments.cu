// SPDX-License-Identifier: Apache-2.0
/* A device whose memory is used up in pieces of many sizes: whoever allocates until it fails,
 * gives some back and goes on finds what was given back, in pieces of any size, by every way of
 * allocating; what fails is that one call. */
#include "check.h"

#include <algorithm>
#include <thread>
#include <vector>

/* What is left of the device for these tests; the rest is held. */
static size_t room;
enum { ROOM_MOST = 192 << 20 };

struct piece {
	char *data;
	size_t bytes;
	char value;
};

__global__ void mark(char *data, size_t n, char value)
{
	data[0] = value;
	data[n - 1] = value;
}

static void check_marks(const piece &p)
{
	char first = 0, last = 0;

	CUDA(cudaMemcpy(&first, p.data, 1, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(&last, p.data + p.bytes - 1, 1, cudaMemcpyDeviceToHost));
	CHECK(first == p.value && last == p.value);
}

/* From 256 bytes to 8 MiB, small ones as often as large ones. */
static size_t any_size(uint32_t *state)
{
	uint32_t shift = 8 + next_random(state) % 15;

	return ((size_t)1 << shift) + next_random(state) % ((size_t)1 << shift);
}

static bool take(std::vector<piece> &pieces, size_t bytes)
{
	piece p = {NULL, bytes, (char)pieces.size()};
	cudaError_t status = cudaMalloc((void **)&p.data, bytes);

	if (status == cudaErrorMemoryAllocation) {
		CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
		return false;
	}
	CUDA(status);
	mark<<<1, 1>>>(p.data, p.bytes, p.value);
	LAUNCHED();
	pieces.push_back(p);
	return true;
}

static void give(std::vector<piece> &pieces, size_t at)
{
	CUDA(cudaFree(pieces[at].data));
	pieces[at] = pieces.back();
	pieces.pop_back();
}

static size_t sum(const std::vector<piece> &pieces)
{
	size_t bytes = 0;

	for (const piece &p : pieces)
		bytes += p.bytes;
	return bytes;
}

/* Fills, gives back a random half, fills again: the same amount must fit again, but for what
 * the last pieces do not use. */
static void rounds()
{
	std::vector<piece> pieces;
	uint32_t state = 7;
	char *whole;

	for (int round = 0; round < 4; round++) {
		int misses = 0;

		while (misses < 8)
			misses += !take(pieces, any_size(&state));
		CHECK(sum(pieces) >= room / 2 && sum(pieces) <= room);
		for (const piece &p : pieces)
			check_marks(p);
		for (size_t i = pieces.size() / 2; i > 0; i--)
			give(pieces, next_random(&state) % pieces.size());
	}
	while (!pieces.empty())
		give(pieces, 0);
	/* Nothing of all that stands in the way of one large piece. */
	CUDA(cudaMalloc((void **)&whole, room / 4 * 3));
	CUDA(cudaFree(whole));
}

/* A device without room says so to each way of allocating, and to none of the next calls. */
static void ways(size_t too_much)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaExtent extent = make_cudaExtent(1024, 1024, too_much >> 22);
	cudaExtent bytes = make_cudaExtent(1024, 1024, too_much >> 20);
	cudaPitchedPtr pitched;
	cudaArray_t array;
	cudaMemPool_t pool;
	size_t pitch;
	char *data;

	CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc((void **)&data, too_much));
	CUDA_IS(cudaErrorMemoryAllocation,
		cudaMallocPitch((void **)&data, &pitch, (size_t)1 << 20, too_much >> 20));
	CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc3D(&pitched, bytes));
	CUDA_IS(cudaErrorMemoryAllocation, cudaMalloc3DArray(&array, &format, extent));
	CUDA_IS(cudaErrorMemoryAllocation, cudaMallocAsync((void **)&data, too_much, 0));
	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA_IS(cudaErrorMemoryAllocation,
		cudaMallocFromPoolAsync((void **)&data, too_much, pool, 0));
	CUDA_IS(cudaErrorMemoryAllocation, cudaGetLastError());
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMalloc((void **)&data, room / 4));
	mark<<<1, 1>>>(data, room / 4, 9);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(data));
}

/* A pool that has all there is, and frees in stream order: what one stream frees the next
 * allocation of the same stream has, without a wait. */
static void stream_order()
{
	const size_t block = room / 5;
	char *blocks[3], *other;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	for (int times = 0; times < 20; times++) {
		for (char *&each : blocks) {
			CUDA(cudaMallocAsync((void **)&each, block, stream));
			mark<<<1, 1, 0, stream>>>(each, block, (char)times);
		}
		CUDA_IS(cudaErrorMemoryAllocation,
			cudaMallocAsync((void **)&other, 3 * block, stream));
		(void)cudaGetLastError();
		for (char *each : blocks)
			CUDA(cudaFreeAsync(each, stream));
	}
	CUDA(cudaStreamSynchronize(stream));
	/* The pool keeps nothing beyond that. */
	CUDA(cudaMalloc((void **)&other, 3 * block));
	CUDA(cudaFree(other));
	CUDA(cudaStreamDestroy(stream));
}

/* Several threads at once: each finds room again as others give theirs back. */
static void threads()
{
	std::vector<std::thread> all;

	for (uint32_t n = 1; n <= 4; n++)
		all.emplace_back([n] {
			std::vector<piece> pieces;
			uint32_t state = n;

			for (int round = 0; round < 60; round++)
				if (!take(pieces, any_size(&state)))
					while (pieces.size() > 1)
						give(pieces,
							next_random(&state) % pieces.size());
			for (const piece &p : pieces)
				check_marks(p);
			while (!pieces.empty())
				give(pieces, 0);
		});
	for (std::thread &each : all)
		each.join();
}

int main()
{
	size_t available, total, before;
	char *held = NULL, *first;

	/* The kernel's module takes its memory now. */
	CUDA(cudaMalloc((void **)&first, 1));
	mark<<<1, 1>>>(first, 1, 0);
	CUDA(cudaFree(first));
	CUDA(cudaMemGetInfo(&before, &total));
	if (before < ROOM_MOST / 8)
		SKIP("too little memory");
	if (before > ROOM_MOST + (2 << 20))
		CUDA(cudaMalloc((void **)&held, (before - ROOM_MOST) >> 21 << 21));
	CUDA(cudaMemGetInfo(&room, &total));
	rounds();
	CUDA(cudaMemGetInfo(&available, &total));
	CHECK(available >= room / 4 * 3 && available <= total);
	ways(available + room);
	stream_order();
	threads();
	rounds();
	CUDA(cudaFree(held));
	CUDA(cudaMemGetInfo(&available, &total));
	CHECK(available + room / 4 >= before);
	printf("memory in pieces passes\n");
	return 0;
}
