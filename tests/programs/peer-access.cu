// SPDX-License-Identifier: Apache-2.0
/* A kernel of one GPU reads and writes the memory of another one: what was there when access was
 * enabled and what came after it, plain memory, a pool's memory and memory that was mapped by
 * hand; and the errors of enabling and disabling. */
#include "check.h"
#include "driver.h"

static const int N = 4096;

__global__ void add(int *to, const int *from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] += from[i];
}

__global__ void count_up(int *values, int first)
{
	values[blockIdx.x * blockDim.x + threadIdx.x] =
		first + blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void raise_all(int *value)
{
	atomicAdd(value, 1);
}

static void number(int device, int *values, int first)
{
	CUDA(cudaSetDevice(device));
	count_up<<<N / 256, 256>>>(values, first);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
}

static int *numbers(int device, int first)
{
	int *values;

	CUDA(cudaSetDevice(device));
	CUDA(cudaMalloc(&values, N * sizeof(*values)));
	number(device, values, first);
	return values;
}

/* BY adds what it reads of THERE, and writes it back. */
static void read_and_write(int by, int *there, int first)
{
	static int got[N];
	int *here = numbers(by, 1);

	add<<<N / 256, 256>>>(here, there, N);
	add<<<N / 256, 256>>>(there, here, N);
	LAUNCHED();
	CUDA(cudaMemcpy(got, here, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], first + 1 + 2 * i);
	CUDA(cudaMemcpy(got, there, sizeof(got), cudaMemcpyDefault));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], 2 * first + 1 + 3 * i);
	CUDA(cudaFree(here));
}

static void present_and_future(int owner, int by)
{
	int *before = numbers(owner, 100), *large, *after, got = 0;

	CUDA(cudaSetDevice(by));
	CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(owner));
	CUDA_IS(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(owner, 1));
	cudaGetLastError();
	CUDA(cudaDeviceEnablePeerAccess(owner, 0));
	CUDA_IS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(owner, 0));
	cudaGetLastError();
	read_and_write(by, before, 100);
	after = numbers(owner, 200);
	read_and_write(by, after, 200);
	CUDA(cudaSetDevice(owner));
	CUDA(cudaMalloc(&large, 64 << 20));
	number(owner, large + (60 << 18), 300);
	read_and_write(by, large + (60 << 18), 300);
	CUDA(cudaSetDevice(by));
	raise_all<<<8, 128>>>(before);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&got, before, sizeof(got), cudaMemcpyDefault));
	CHECK_EQ(got, 2 * 100 + 1 + 8 * 128);
	/* Freed by its own device while the other one has it. */
	CUDA(cudaSetDevice(owner));
	CUDA(cudaFree(large));
	CUDA(cudaFree(before));
	CUDA(cudaFree(after));
}

/* Access to a pool is its own: it is given and asked for by device. */
static void pools(int owner, int by)
{
	cudaMemLocation there = {cudaMemLocationTypeDevice, by};
	cudaMemAccessDesc desc = {there, cudaMemAccessFlagsProtReadWrite};
	cudaMemAccessFlags flags;
	cudaMemPool_t pool;
	int *values;

	CUDA(cudaSetDevice(owner));
	CUDA(cudaDeviceGetDefaultMemPool(&pool, owner));
	CUDA(cudaMemPoolGetAccess(&flags, pool, &there));
	CHECK_EQ(flags, cudaMemAccessFlagsProtNone);
	CUDA(cudaMemPoolSetAccess(pool, &desc, 1));
	CUDA(cudaMemPoolGetAccess(&flags, pool, &there));
	CHECK_EQ(flags, cudaMemAccessFlagsProtReadWrite);
	CUDA(cudaMallocAsync((void **)&values, N * sizeof(*values), 0));
	number(owner, values, 500);
	read_and_write(by, values, 500);
	CUDA(cudaSetDevice(owner));
	CUDA(cudaFreeAsync(values, 0));
	CUDA(cudaDeviceSynchronize());
	desc.flags = cudaMemAccessFlagsProtNone;
	CUDA(cudaMemPoolSetAccess(pool, &desc, 1));
	CUDA(cudaMemPoolGetAccess(&flags, pool, &there));
	CHECK_EQ(flags, cudaMemAccessFlagsProtNone);
	desc.location.id = owner;
	CHECK(cudaMemPoolSetAccess(pool, &desc, 1) != cudaSuccess);
	cudaGetLastError();
}

static void mapped(int owner, int by)
{
	ENTRY(cuMemAddressFree);
	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemCreate);
	ENTRY(cuMemGetAccess);
	ENTRY(cuMemGetAllocationGranularity);
	ENTRY(cuMemMap);
	ENTRY(cuMemRelease);
	ENTRY(cuMemSetAccess);
	ENTRY(cuMemUnmap);
	CUmemAllocationProp prop = {};
	CUmemAccessDesc desc[2] = {};
	CUmemGenericAllocationHandle memory;
	unsigned long long flags;
	CUdeviceptr at;
	size_t granule;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = owner;
	for (int i = 0; i < 2; i++) {
		desc[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		desc[i].location.id = i ? by : owner;
		desc[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	}
	CUDA(cudaSetDevice(owner));
	DRIVER(p_cuMemGetAllocationGranularity(
		&granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	DRIVER(p_cuMemCreate(&memory, granule, &prop, 0));
	DRIVER(p_cuMemAddressReserve(&at, 2 * granule, 0, 0, 0));
	DRIVER(p_cuMemMap(at, granule, 0, memory, 0));
	DRIVER(p_cuMemSetAccess(at, granule, desc, 2));
	for (int i = 0; i < 2; i++) {
		DRIVER(p_cuMemGetAccess(&flags, &desc[i].location, at));
		CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	}
	number(owner, (int *)at, 600);
	read_and_write(by, (int *)at, 600);
	desc[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	DRIVER(p_cuMemSetAccess(at, granule, &desc[1], 1));
	DRIVER(p_cuMemGetAccess(&flags, &desc[1].location, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	/* Its own device has it still. */
	number(owner, (int *)at, 700);
	DRIVER(p_cuMemUnmap(at, granule));
	DRIVER(p_cuMemRelease(memory));
	DRIVER(p_cuMemAddressFree(at, 2 * granule));
}

/* Memory of OWNER's mapped where BY reserved addresses, as a rank maps what it imported: first only
 * BY has it, then both. */
static void mapped_elsewhere(int owner, int by)
{
	ENTRY(cuMemAddressFree);
	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemCreate);
	ENTRY(cuMemGetAccess);
	ENTRY(cuMemGetAllocationGranularity);
	ENTRY(cuMemMap);
	ENTRY(cuMemRelease);
	ENTRY(cuMemSetAccess);
	ENTRY(cuMemUnmap);
	CUmemAllocationProp prop = {};
	CUmemAccessDesc desc = {};
	CUmemGenericAllocationHandle memory;
	unsigned long long flags;
	CUdeviceptr at;
	size_t granule;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = owner;
	desc.location.id = by;
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CUDA(cudaSetDevice(by));
	DRIVER(p_cuMemGetAllocationGranularity(
		&granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	DRIVER(p_cuMemCreate(&memory, granule, &prop, 0));
	DRIVER(p_cuMemAddressReserve(&at, granule, 0, 0, 0));
	DRIVER(p_cuMemMap(at, granule, 0, memory, 0));
	DRIVER(p_cuMemSetAccess(at, granule, &desc, 1));
	DRIVER(p_cuMemGetAccess(&flags, &desc.location, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	number(by, (int *)at, 900);
	read_and_write(by, (int *)at, 900);
	desc.location.id = owner;
	DRIVER(p_cuMemGetAccess(&flags, &desc.location, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	DRIVER(p_cuMemSetAccess(at, granule, &desc, 1));
	number(owner, (int *)at, 1000);
	read_and_write(owner, (int *)at, 1000);
	CUDA(cudaDeviceSynchronize());
	DRIVER(p_cuMemUnmap(at, granule));
	DRIVER(p_cuMemRelease(memory));
	DRIVER(p_cuMemAddressFree(at, granule));
}

/* What a reset takes away can be had again. */
static void disabled_and_reset(int owner, int by)
{
	int *values;

	CUDA(cudaSetDevice(by));
	CUDA(cudaDeviceDisablePeerAccess(owner));
	CUDA_IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(owner));
	cudaGetLastError();
	CUDA(cudaDeviceEnablePeerAccess(owner, 0));
	CUDA(cudaDeviceReset());
	CUDA(cudaSetDevice(by));
	CUDA(cudaDeviceEnablePeerAccess(owner, 0));
	values = numbers(owner, 800);
	read_and_write(by, values, 800);
	CUDA(cudaDeviceDisablePeerAccess(owner));
}

/* Access goes with the context that it is to. */
static void destroyed(int owner, int by)
{
	ENTRY(cuCtxDestroy);
	ENTRY(cuCtxDisablePeerAccess);
	ENTRY(cuCtxEnablePeerAccess);
	ENTRY(cuCtxSetCurrent);
	int *values = numbers(owner, 1100);
	CUcontext peer;

#if CUDA_VERSION >= 13000
	ENTRY(cuCtxCreate);
	DRIVER(p_cuCtxCreate(&peer, NULL, 0, owner));
#else /* cuda.h has the version before the last one under the plain name */
	auto p_cuCtxCreate = driver_entry<decltype(&cuCtxCreate)>("cuCtxCreate", 3020);
	DRIVER(p_cuCtxCreate(&peer, 0, owner));
#endif
	DRIVER(p_cuCtxSetCurrent(NULL));
	CUDA(cudaSetDevice(by));
	DRIVER(p_cuCtxEnablePeerAccess(peer, 0));
	DRIVER(p_cuCtxDestroy(peer));
	DRIVER_IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, p_cuCtxDisablePeerAccess(peer));
	CUDA_IS(cudaErrorInvalidValue, cudaMemset(values, 1, N * sizeof(int)));
	cudaGetLastError();
	CUDA(cudaDeviceEnablePeerAccess(owner, 0));
	CUDA(cudaMemset(values, 1, N * sizeof(int)));
	CUDA(cudaDeviceDisablePeerAccess(owner));
	CUDA(cudaFree(values));
}

int main()
{
	int count, can = 0, native = 0;

	CUDA(cudaGetDeviceCount(&count));
	if (count > 1)
		CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		SKIP("no two GPUs that reach each other's memory");
	CUDA(cudaDeviceGetP2PAttribute(&native, cudaDevP2PAttrNativeAtomicSupported, 1, 0));
	CHECK(native == 0 || native == 1);
	/* These before any access is enabled: they do without, or with none that lasts. */
	pools(0, 1);
	mapped(0, 1);
	mapped_elsewhere(0, 1);
	destroyed(0, 1);
	present_and_future(0, 1);
	disabled_and_reset(0, 1);
	present_and_future(1, 0);
	return 0;
}
