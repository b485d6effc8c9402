// SPDX-License-Identifier: Apache-2.0
/*
 * Virtual memory management: what PyTorch's expandable segments do (many handles side by side
 * in a reservation larger than the device, unmapped one by one, access set over a range), and
 * what else a handle can: another place, several places, outliving its release.
 */
#include "driver.h"

#include <vector>

enum { SEGMENTS = 12, THREADS = 256 };

__global__ void fill(unsigned *words, size_t n, unsigned seed)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x)
		words[i] = seed + (unsigned)i;
}

/* Counts what is not as fill left it. */
__global__ void differ(const unsigned *words, size_t n, unsigned seed, unsigned *wrong)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
		i += gridDim.x * blockDim.x)
		if (words[i] != seed + (unsigned)i)
			atomicAdd(wrong, 1);
}

/* ENTRY as a member. */
#define MEMBER(name) decltype(&name) p_##name = driver_entry<decltype(&name)>(#name)

struct driver {
	MEMBER(cuMemGetAllocationGranularity);
	MEMBER(cuMemAddressReserve);
	MEMBER(cuMemAddressFree);
	MEMBER(cuMemCreate);
	MEMBER(cuMemRelease);
	MEMBER(cuMemMap);
	MEMBER(cuMemUnmap);
	MEMBER(cuMemSetAccess);
	MEMBER(cuMemGetAccess);
	MEMBER(cuMemRetainAllocationHandle);
	MEMBER(cuMemGetAllocationPropertiesFromHandle);
	CUmemAllocationProp prop = {};
	CUmemAccessDesc access = {};
	size_t granule = 0, total = 0;
	unsigned *wrong = NULL;

	driver()
	{
		size_t left;

		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		access.location = prop.location;
		access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		DRIVER(p_cuMemGetAllocationGranularity(
			&granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
		CHECK(granule && granule % 65536 == 0);
		CUDA(cudaMemGetInfo(&left, &total));
		CUDA(cudaMalloc(&wrong, sizeof(*wrong)));
	}

	CUmemGenericAllocationHandle create(size_t bytes)
	{
		CUmemGenericAllocationHandle handle = 0;

		DRIVER(p_cuMemCreate(&handle, bytes, &prop, 0));
		CHECK(handle != 0);
		return handle;
	}

	void map(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle)
	{
		DRIVER(p_cuMemMap(at, bytes, 0, handle, 0));
		DRIVER(p_cuMemSetAccess(at, bytes, &access, 1));
	}

	void write(CUdeviceptr at, size_t bytes, unsigned seed)
	{
		fill<<<32, THREADS>>>((unsigned *)at, bytes / 4, seed);
		CUDA(cudaGetLastError());
	}

	void right(CUdeviceptr at, size_t bytes, unsigned seed)
	{
		unsigned count;

		CUDA(cudaMemset(wrong, 0, sizeof(*wrong)));
		differ<<<32, THREADS>>>((const unsigned *)at, bytes / 4, seed, wrong);
		CUDA(cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost));
		CHECK_EQ(count, 0u);
	}
};

/* c10's ExpandableSegment, with segments of N granules. */
static void expandable(driver &d, size_t n)
{
	size_t segment = n * d.granule;
	size_t span = (d.total + d.total / 8 + segment - 1) / segment * segment;
	std::vector<CUmemGenericAllocationHandle> handles(SEGMENTS);
	CUdeviceptr base = 0;

	DRIVER(d.p_cuMemAddressReserve(&base, span, 0, 0, 0));
	CHECK(base != 0 && span > d.total);
	for (auto &handle : handles)
		handle = d.create(segment);
	for (size_t i = 0; i < SEGMENTS; i++)
		DRIVER(d.p_cuMemMap(base + i * segment, segment, 0, handles[i], 0));
	/* Nobody has been let to it yet. */
	CUDA_IS(cudaErrorInvalidValue, cudaMemset((void *)base, 0, 4));
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy((void *)base, (void *)(base + segment), 4, cudaMemcpyDefault));
	(void)cudaGetLastError();
	DRIVER(d.p_cuMemSetAccess(base, SEGMENTS * segment, &d.access, 1));
	d.write(base, SEGMENTS * segment, 1000);
	d.right(base, SEGMENTS * segment, 1000);

	/* Every other one goes, the rest stays as it is. */
	CUDA(cudaDeviceSynchronize());
	for (size_t i = 0; i < SEGMENTS; i += 2) {
		DRIVER(d.p_cuMemUnmap(base + i * segment, segment));
		DRIVER(d.p_cuMemRelease(handles[i]));
	}
	for (size_t i = 1; i < SEGMENTS; i += 2)
		d.right(base + i * segment, segment, 1000 + (unsigned)(i * segment / 4));
	CHECK(d.p_cuMemSetAccess(base, SEGMENTS * segment, &d.access, 1) != CUDA_SUCCESS);
	/* What is not mapped between two mappings does not matter, but a part of one does. */
	DRIVER(d.p_cuMemSetAccess(base + segment, 3 * segment, &d.access, 1));
	CHECK(d.p_cuMemSetAccess(base + segment, segment - d.granule, &d.access, 1) ==
		CUDA_ERROR_INVALID_VALUE);
	/* Here a pointer's range is what is mapped, not what is reserved. */
	ENTRY(cuMemGetAddressRange);
	CUdeviceptr first = 0;
	size_t bytes = 0;
	DRIVER(p_cuMemGetAddressRange(&first, &bytes, base + segment + 4));
	CHECK_EQ(first, base + segment);
	CHECK_EQ(bytes, segment);
	CHECK(d.p_cuMemAddressFree(base, span) != CUDA_SUCCESS);

	/* And comes again, while the device is busy beside it. */
	for (size_t i = 0; i < SEGMENTS; i += 2) {
		d.write(base + (i + 1) * segment, segment, 7);
		handles[i] = d.create(segment);
		d.map(base + i * segment, segment, handles[i]);
		d.write(base + i * segment, segment, 5);
	}
	for (size_t i = 0; i < SEGMENTS; i++)
		d.right(base + i * segment, segment, i % 2 ? 7 : 5);
	CUDA(cudaDeviceSynchronize());
	for (size_t i = 0; i < SEGMENTS; i++) {
		DRIVER(d.p_cuMemUnmap(base + i * segment, segment));
		DRIVER(d.p_cuMemRelease(handles[i]));
	}
	DRIVER(d.p_cuMemAddressFree(base, span));
}

/* Memory keeps what it holds, wherever it is mapped. */
static void places(driver &d)
{
	size_t size = 4 * d.granule;
	CUmemGenericAllocationHandle handle = d.create(size), again = 0;
	CUmemAllocationProp prop = {};
	unsigned long long flags = 0;
	CUdeviceptr one = 0, two = 0;

	DRIVER(d.p_cuMemAddressReserve(&one, size, 0, 0, 0));
	DRIVER(d.p_cuMemAddressReserve(&two, 2 * size, 0, 0, 0));
	d.map(one, size, handle);
	d.write(one, size, 42);
	DRIVER(d.p_cuMemGetAccess(&flags, &d.access.location, one));
	CHECK_EQ(flags, (unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

	/* In two places at once. */
	d.map(two, size, handle);
	d.right(two, size, 42);
	d.write(two, size, 43);
	CUDA(cudaDeviceSynchronize());
	d.right(one, size, 43);

	/* In another place, later. */
	CUDA(cudaDeviceSynchronize());
	DRIVER(d.p_cuMemUnmap(one, size));
	DRIVER(d.p_cuMemUnmap(two, size));
	d.map(two + d.granule, size, handle);
	d.right(two + d.granule, size, 43);

	/* Released, it lives as long as it is mapped; named again, longer. */
	DRIVER(d.p_cuMemRelease(handle));
	d.right(two + d.granule, size, 43);
	DRIVER(d.p_cuMemRetainAllocationHandle(&again, (void *)(two + 2 * d.granule)));
	CUDA(cudaDeviceSynchronize());
	DRIVER(d.p_cuMemUnmap(two + d.granule, size));
	d.map(one, size, again);
	d.right(one, size, 43);
	DRIVER(d.p_cuMemGetAllocationPropertiesFromHandle(&prop, again));
	CHECK_EQ((int)prop.location.type, (int)CU_MEM_LOCATION_TYPE_DEVICE);
	CUDA(cudaDeviceSynchronize());

	/* Whole mappings, inside a reservation, once at an address. */
	CHECK(d.p_cuMemUnmap(one, d.granule) != CUDA_SUCCESS);
	CHECK(d.p_cuMemMap(one + d.granule, d.granule, 0, again, 0) != CUDA_SUCCESS);
	CHECK(d.p_cuMemMap(two, d.granule, d.granule, again, 0) != CUDA_SUCCESS);
	CHECK(d.p_cuMemMap(two + 1, d.granule, 0, again, 0) != CUDA_SUCCESS);
	DRIVER(d.p_cuMemUnmap(one, size));
	DRIVER(d.p_cuMemRelease(again));
	DRIVER(d.p_cuMemAddressFree(one, size));
	DRIVER(d.p_cuMemAddressFree(two, 2 * size));
}

/* Out of memory is told by the one who makes it, and all comes back. */
static void too_much(driver &d)
{
	size_t large = d.total / 4 / d.granule * d.granule;
	std::vector<CUmemGenericAllocationHandle> handles;
	CUmemGenericAllocationHandle handle = 0;
	CUresult status;

	DRIVER_IS(CUDA_ERROR_OUT_OF_MEMORY,
		d.p_cuMemCreate(
			&handle, d.total / d.granule * d.granule + d.granule, &d.prop, 0));
	for (int round = 0; round < 2; round++) {
		while (!(status = d.p_cuMemCreate(&handle, large, &d.prop, 0)))
			handles.push_back(handle);
		CHECK_EQ((int)status, (int)CUDA_ERROR_OUT_OF_MEMORY);
		CHECK(!handles.empty() && handles.size() <= 4);
		for (auto h : handles)
			DRIVER(d.p_cuMemRelease(h));
		handles.clear();
	}
}

/* Addresses alone: as much as no device has, as aligned as asked, not readable, and unmapping
 * where nothing is mapped is no mistake. */
static void addresses_alone(const driver &d)
{
	const size_t much = (size_t)1 << 40, aligned = (size_t)64 << 20;
	unsigned long long flags = 7;
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at, other;

	DRIVER(d.p_cuMemAddressReserve(&at, much, 0, 0, 0));
	CHECK(d.p_cuMemGetAccess(&flags, &d.access.location, at) == CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(flags, 0ull);
	DRIVER(d.p_cuMemUnmap(at + d.granule, d.granule));
	DRIVER(d.p_cuMemAddressReserve(&other, aligned, aligned, 0, 0));
	CHECK_EQ(other % aligned, (CUdeviceptr)0);
	/* A place that is taken is a wish that is not granted. */
	DRIVER(d.p_cuMemAddressFree(other, aligned));
	DRIVER(d.p_cuMemAddressReserve(&other, d.granule, 0, at, 0));
	CHECK(other < at || other >= at + much);
	DRIVER(d.p_cuMemCreate(&memory, d.granule, &d.prop, 0));
	DRIVER(d.p_cuMemMap(other, d.granule, 0, memory, 0));
	DRIVER(d.p_cuMemSetAccess(other, d.granule, &d.access, 1));
	DRIVER(d.p_cuMemGetAccess(&flags, &d.access.location, other));
	CHECK_EQ(flags, (unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	DRIVER(d.p_cuMemUnmap(other, d.granule));
	DRIVER(d.p_cuMemAddressFree(other, d.granule));
	/* What is not mapped between two mappings, and behind them, goes with them. */
	DRIVER(d.p_cuMemMap(at + d.granule, d.granule, 0, memory, 0));
	DRIVER(d.p_cuMemMap(at + 4 * d.granule, d.granule, 0, memory, 0));
	CHECK(d.p_cuMemUnmap(at, d.granule + 4096) == CUDA_ERROR_INVALID_VALUE);
	CHECK(d.p_cuMemUnmap(at + d.granule + 1, 8 * d.granule) == CUDA_ERROR_INVALID_VALUE);
	DRIVER(d.p_cuMemUnmap(at, 7 * d.granule));
	CHECK(d.p_cuMemGetAccess(&flags, &d.access.location, at + d.granule) ==
		CUDA_ERROR_INVALID_VALUE);
	DRIVER(d.p_cuMemMap(at + 4 * d.granule, d.granule, 0, memory, 0));
	DRIVER(d.p_cuMemUnmap(at + 4 * d.granule, d.granule));
	DRIVER(d.p_cuMemRelease(memory));
	DRIVER(d.p_cuMemAddressFree(at, much));
}

/* What cannot be is told apart from what is not served. */
static void wrong(const driver &d)
{
	CUmemAllocationProp prop = d.prop;
	CUmemAccessDesc access = d.access;
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at;

	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	prop.location.id = -1;
	CHECK(d.p_cuMemCreate(&memory, d.granule, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CHECK(d.p_cuMemCreate(&memory, d.granule, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
	DRIVER(d.p_cuMemAddressReserve(&at, d.granule, 0, 0, 0));
	DRIVER(d.p_cuMemCreate(&memory, d.granule, &d.prop, 0));
	DRIVER(d.p_cuMemMap(at, d.granule, 0, memory, 0));
	access.location.id = 99;
	CHECK(d.p_cuMemSetAccess(at, d.granule, &access, 1) == CUDA_ERROR_INVALID_VALUE);
	access = d.access;
	access.flags = (CUmemAccess_flags)4;
	CHECK(d.p_cuMemSetAccess(at, d.granule, &access, 1) == CUDA_ERROR_INVALID_VALUE);
	DRIVER(d.p_cuMemUnmap(at, d.granule));
	DRIVER(d.p_cuMemRelease(memory));
	DRIVER(d.p_cuMemAddressFree(at, d.granule));
}

int main()
{
	CUDA(cudaFree(0));
	driver d;

	expandable(d, 1);
	expandable(d, 10);
	places(d);
	too_much(d);
	addresses_alone(d);
	wrong(d);
	expandable(d, 1);
	CUDA(cudaFree(d.wrong));
	CUDA(cudaDeviceSynchronize());
	puts("mapped, moved and given back");
	return 0;
}
