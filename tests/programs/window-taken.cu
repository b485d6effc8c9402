// SPDX-License-Identifier: Apache-2.0
/*
 * A program that has memory of its own, before CUDA comes, where a GPU's addresses usually are: as
 * Java's heap with ZGC does if it is large.  It stays the program's, and the GPU's memory is elsewhere.
 */
#include "check.h"

#include <cstdint>
#include <cstring>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static __global__ void add(int *at, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		at[i] += value;
}

static bool inside(const void *at, const char *own, size_t bytes)
{
	return (const char *)at >= own && (const char *)at < own + bytes;
}

int main()
{
	const size_t bytes = 1 << 30;
	const int n = 1 << 16;
	char *place = (char *)0x200000000000;
	char *own = (char *)mmap(place, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	cudaPointerAttributes attributes;
	int *managed, *device, *words = (int *)own;

	if (own != place)
		SKIP("the place is not free");
	for (int i = 0; i < n; i++)
		words[i] = i;
	CUDA(cudaPointerGetAttributes(&attributes, words));
	CHECK_EQ((int)attributes.type, (int)cudaMemoryTypeUnregistered);
	CUDA(cudaMalloc((void **)&device, n * sizeof(int)));
	CUDA(cudaMallocManaged((void **)&managed, n * sizeof(int)));
	CHECK(!inside(device, own, bytes) && !inside(managed, own, bytes));

	CUDA(cudaMemcpy(device, words, n * sizeof(int), cudaMemcpyDefault));
	add<<<n / 256, 256>>>(device, n, 5);
	LAUNCHED();
	CUDA(cudaMemcpy(words, device, n * sizeof(int), cudaMemcpyDefault));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, words[i], i + 5);

	memcpy(managed, words, n * sizeof(int));
	add<<<n / 256, 256>>>(managed, n, 2);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, managed[i], i + 7);
	CUDA(cudaFree(managed));
	CUDA(cudaFree(device));
	CHECK_EQ(words[n - 1], n + 4);
	printf("the program's memory at %p is its own\n", (void *)own);
	return 0;
}
