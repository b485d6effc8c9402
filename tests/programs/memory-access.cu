// SPDX-License-Identifier: Apache-2.0
/*
 * Mappings that may only be read (cuMemSetAccess): kernels and copies read them, what writes fails,
 * and other mappings of the same memory may be written. Each failing write is in a process of its
 * own: a kernel's is an illegal address.
 */
#include "driver.h"

__global__ void add(unsigned *to, const unsigned *from)
{
	to[threadIdx.x] = from[threadIdx.x] + 1;
}

__global__ void add_atomically(unsigned *to)
{
	atomicAdd(to, 1);
}

static CUdeviceptr readable, writable; /* the same memory */
static size_t granule;

static CUmemAccess_flags access_of(CUdeviceptr at)
{
	ENTRY(cuMemGetAccess);
	CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	unsigned long long flags = 99;

	DRIVER(p_cuMemGetAccess(&flags, &device, at));
	return (CUmemAccess_flags)flags;
}

static void let(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags)
{
	ENTRY(cuMemSetAccess);
	CUmemAccessDesc access = {};

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = flags;
	DRIVER(p_cuMemSetAccess(at, bytes, &access, 1));
	CHECK_EQ((int)access_of(at + bytes - 1), (int)flags);
}

static void map()
{
	ENTRY(cuMemGetAllocationGranularity);
	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemCreate);
	ENTRY(cuMemMap);
	CUmemGenericAllocationHandle memory;
	CUmemAllocationProp prop = {};

	CUDA(cudaFree(NULL));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DRIVER(p_cuMemGetAllocationGranularity(
		&granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	DRIVER(p_cuMemCreate(&memory, granule, &prop, 0));
	DRIVER(p_cuMemAddressReserve(&readable, 2 * granule, 0, 0, 0));
	writable = readable + granule;
	DRIVER(p_cuMemMap(readable, granule, 0, memory, 0));
	DRIVER(p_cuMemMap(writable, granule, 0, memory, 0));
	let(readable, granule, CU_MEM_ACCESS_FLAGS_PROT_READ);
	let(writable, granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static void fill(CUdeviceptr at, unsigned value)
{
	ENTRY(cuMemsetD32);

	DRIVER(p_cuMemsetD32(at, value, 32));
}

static unsigned word(CUdeviceptr at)
{
	unsigned value = 0;

	CUDA(cudaMemcpy(&value, (void *)at, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

/* Who reads may read, and what was writable is again. */
static void reading()
{
	ENTRY(cuPointerGetAttribute);
	unsigned access = 99;

	fill(writable, 7);
	CHECK_EQ(word(readable), 7u);
	add<<<1, 32>>>((unsigned *)writable, (unsigned *)readable);
	CHECK_EQ(word(readable), 8u);
	CUDA(cudaMemcpy((void *)(writable + 4096), (void *)readable, 4096,
		cudaMemcpyDeviceToDevice));
	CHECK_EQ(word(writable + 4096), 8u);
	DRIVER(p_cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, readable));
	CHECK_EQ(access, (unsigned)CU_MEM_ACCESS_FLAGS_PROT_READ);
	CUDA(cudaDeviceSynchronize());
	let(readable, granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	fill(readable, 20);
	add<<<1, 32>>>((unsigned *)readable, (unsigned *)readable);
	CHECK_EQ(word(writable), 21u);
	CUDA(cudaDeviceSynchronize());
	let(readable, 2 * granule, CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK_EQ((int)access_of(writable), (int)CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK_EQ(word(writable), 21u);
	let(writable, granule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	fill(writable, 3);
	CHECK_EQ(word(readable), 3u);
	CUDA(cudaDeviceSynchronize());
}

/* The first error that a call tells, or the end of the work. */
static cudaError_t end_of(cudaError_t call)
{
	cudaError_t end = cudaDeviceSynchronize();

	return call ? call : end;
}

static int writing(const char *how)
{
	static unsigned words[1024];
	void *to;

	map();
	to = (void *)readable;
	if (!strcmp(how, "kernel")) {
		add<<<1, 32>>>((unsigned *)readable, (unsigned *)writable);
		CUDA_IS(cudaErrorIllegalAddress, end_of(cudaGetLastError()));
		CUDA_IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	} else if (!strcmp(how, "atomic")) {
		add_atomically<<<1, 1>>>((unsigned *)readable);
		CUDA_IS(cudaErrorIllegalAddress, end_of(cudaGetLastError()));
	} else if (!strcmp(how, "fill")) {
		CHECK(end_of(cudaMemset(to, 0, 4096)) != cudaSuccess);
	} else if (!strcmp(how, "copy in")) {
		CHECK(end_of(cudaMemcpy(to, words, sizeof(words), cudaMemcpyHostToDevice)) !=
			cudaSuccess);
	} else {
		CHECK(end_of(cudaMemcpy(to, (void *)(writable + 8192), 4096,
			      cudaMemcpyDeviceToDevice)) != cudaSuccess);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"kernel", "atomic", "fill", "copy in", "copy"};

	if (argc > 1)
		return writing(argv[1]);
	for (int i = 0; i < 5; i++)
		CHECK_EQ_AT(i, wait_exit(start_self(ways[i])), 0);
	map();
	reading();
	return 0;
}
