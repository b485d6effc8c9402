// SPDX-License-Identifier: Apache-2.0
/* Pools of managed memory: host and kernels use what they give out in turns, what is freed is another's only behind
 * what came before in the stream, pools are found by place and kind, and calls that are wrong. */
#include "driver.h"

#include <vector>

#define MIB (1ull << 20)
/* As of CUDA 13. */
#define MANAGED ((CUmemAllocationType)2)

static cudaStream_t streams[2];

/* NULL: there are none here. */
static CUmemoryPool pool_made(int type, int id)
{
	ENTRY(cuMemPoolCreate);
	CUmemPoolProps props = {};
	CUmemoryPool pool = NULL;
	CUresult status;

	props.allocType = MANAGED;
	props.location.type = (CUmemLocationType)type;
	props.location.id = id;
	status = p_cuMemPoolCreate(&pool, &props);
	if (status == CUDA_ERROR_NOT_SUPPORTED)
		return NULL;
	DRIVER(status);
	return pool;
}

static int *taken(CUmemoryPool pool, size_t bytes, cudaStream_t stream)
{
	void *p = NULL;

	CUDA(cudaMallocFromPoolAsync(&p, bytes, (cudaMemPool_t)pool, stream));
	CHECK(p != NULL);
	return (int *)p;
}

static unsigned long long attribute(CUmemoryPool pool, cudaMemPoolAttr which)
{
	unsigned long long value = 0;

	CUDA(cudaMemPoolGetAttribute((cudaMemPool_t)pool, which, &value));
	return value;
}

__global__ void add(int *p, size_t n, int more)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += more;
}

__global__ void put(int *p, size_t n, int value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = value;
}

static void all_are(const int *p, size_t n, int value)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ_AT((long long)i, p[i], value);
}

static void is_used_by_both(CUmemoryPool pool, size_t n)
{
	int *p = taken(pool, n * sizeof(int), streams[0]), *device;
	std::vector<int> back(n);

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	/* The device writes first: of memory that the pool gave out before, an H200 loses what the
	 * host writes before the device has (driver 580). */
	put<<<16, 128, 0, streams[0]>>>(p, n, 0);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < n; i++)
			p[i] = (int)i + turn;
		add<<<16, 128, 0, streams[0]>>>(p, n, 1000);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(device, p, n * sizeof(int), cudaMemcpyDefault, streams[0]));
		add<<<16, 128, 0, streams[0]>>>(p, n, -500);
		LAUNCHED();
		CUDA(cudaDeviceSynchronize());
		for (size_t i = 0; i < n; i++)
			CHECK_EQ_AT((long long)i, p[i], (int)i + turn + 500);
		CUDA(cudaMemcpy(back.data(), device, n * sizeof(int), cudaMemcpyDefault));
		for (size_t i = 0; i < n; i++)
			CHECK_EQ_AT((long long)i, back[i], (int)i + turn + 1000);
		CUDA(cudaMemsetAsync(p, 0xff, n * sizeof(int), streams[0]));
		CUDA(cudaDeviceSynchronize());
		all_are(p, n, -1);
	}
	CUDA(cudaFreeAsync(p, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
	CUDA(cudaFree(device));
}

static void sleep_a_while(void *)
{
	usleep(150000);
}

static void comes_in_order(CUmemoryPool pool, size_t n)
{
	int *first, *same, *other, *device;
	std::vector<int> back(n);

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	first = taken(pool, n * sizeof(int), streams[0]);
	CUDA(cudaLaunchHostFunc(streams[0], sleep_a_while, NULL));
	put<<<16, 128, 0, streams[0]>>>(first, n, 1);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(device, first, n * sizeof(int), cudaMemcpyDefault, streams[0]));
	CUDA(cudaFreeAsync(first, streams[0]));
	other = taken(pool, n * sizeof(int), streams[1]);
	put<<<16, 128, 0, streams[1]>>>(other, n, 2);
	LAUNCHED();
	same = taken(pool, n * sizeof(int), streams[0]);
	put<<<16, 128, 0, streams[0]>>>(same, n, 3);
	LAUNCHED();
	CHECK(same != other);
	CUDA(cudaDeviceSynchronize());
	all_are(other, n, 2);
	all_are(same, n, 3);
	CUDA(cudaMemcpy(back.data(), device, n * sizeof(int), cudaMemcpyDefault));
	all_are(back.data(), n, 1);
	CUDA(cudaFreeAsync(other, streams[1]));
	CUDA(cudaFreeAsync(same, streams[0]));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(device));
}

/* The pool has 64 MiB at a time, of 2.5 GiB in all. */
static void gives_back(CUmemoryPool pool)
{
	for (size_t i = 0; i < 40; i++) {
		int *p = taken(pool, 64 * MIB, streams[i % 2]);

		put<<<1, 1, 0, streams[i % 2]>>>(p, 1, (int)i);
		LAUNCHED();
		CUDA(cudaFreeAsync(p, streams[i % 2]));
		if (i % 2)
			CUDA(cudaDeviceSynchronize());
	}
	CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) <= 1024 * MIB);
}

static void counts(CUmemoryPool pool)
{
	int *a = taken(pool, 3 * MIB, streams[0]), *b = taken(pool, MIB, streams[0]);
	ENTRY(cuPointerGetAttribute);
	CUmemoryPool holding = NULL;

	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 4 * MIB);
	CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 4 * MIB);
	DRIVER(p_cuPointerGetAttribute(
		&holding, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)a));
	CHECK(holding == pool);
	CUDA(cudaFreeAsync(a, streams[0]));
	CUDA_IS(cudaErrorInvalidValue, cudaFreeAsync(a, streams[0]));
	(void)cudaGetLastError();
	CUDA(cudaStreamSynchronize(streams[0]));
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), MIB);
	CUDA(cudaMemPoolTrimTo((cudaMemPool_t)pool, 0));
	b[0] = 9;
	CUDA(cudaFree(b)); /* NVIDIA's driver counts it for a while */
	CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) <= MIB);
}

static void wrong(void)
{
	ENTRY(cuMemPoolCreate);
	CUmemPoolProps props = {};
	CUmemoryPool pool = NULL;

	props.allocType = MANAGED;
	props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	props.maxSize = MIB;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolCreate(&pool, &props));
	props.maxSize = 0;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolCreate(&pool, &props));
	props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
	props.location.id = 99;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolCreate(&pool, &props));
}

#if CUDART_VERSION >= 13000
/* What a device allocates from by itself stays another pool. */
static void by_location(void)
{
	cudaMemLocation device = {}, none = {};
	cudaMemPool_t plain, of_device, of_none, own, current;
	cudaPointerAttributes told;
	void *p;

	device.type = cudaMemLocationTypeDevice;
	none.type = cudaMemLocationTypeNone;
	CUDA(cudaDeviceGetDefaultMemPool(&plain, 0));
	CUDA(cudaMemGetDefaultMemPool(&of_device, &device, cudaMemAllocationTypeManaged));
	CUDA(cudaMemGetDefaultMemPool(&of_none, &none, cudaMemAllocationTypeManaged));
	CHECK(of_device != plain && of_none != of_device);
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemGetDefaultMemPool(&current, &none, cudaMemAllocationTypePinned));
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolDestroy(of_none));
	own = (cudaMemPool_t)pool_made(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemSetMemPool(&device, cudaMemAllocationTypePinned, own));
	CUDA(cudaMemSetMemPool(&device, cudaMemAllocationTypeManaged, own));
	CUDA(cudaMemGetMemPool(&current, &device, cudaMemAllocationTypeManaged));
	CHECK(current == own);
	CUDA(cudaDeviceSetMemPool(0, of_device));
	CUDA(cudaMemGetMemPool(&current, &device, cudaMemAllocationTypeManaged));
	CHECK(current == of_device);
	CUDA(cudaDeviceGetMemPool(&current, 0));
	CHECK(current == plain);
	CUDA(cudaMallocAsync(&p, MIB, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
	CUDA(cudaPointerGetAttributes(&told, p));
	CHECK_EQ((int)told.type, (int)cudaMemoryTypeDevice);
	CUDA(cudaFreeAsync(p, streams[0]));
	CUDA(cudaMemPoolDestroy(own));
	(void)cudaGetLastError();
}
#endif

int main()
{
	CUmemoryPool pools[3];

	CUDA(cudaFree(NULL));
	pools[0] = pool_made(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	if (!pools[0])
		SKIP("no pools of managed memory");
	pools[1] = pool_made(CU_MEM_LOCATION_TYPE_INVALID, 0);
	pools[2] = pool_made(CU_MEM_LOCATION_TYPE_HOST, 0);
	for (cudaStream_t &stream : streams)
		CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (CUmemoryPool pool : pools) {
		for (size_t n : {1, 1024, 70000, 1 << 20})
			is_used_by_both(pool, n);
		for (size_t n : {64, 5000, 1 << 19})
			comes_in_order(pool, n);
		counts(pool);
	}
	gives_back(pools[0]);
	wrong();
#if CUDART_VERSION >= 13000
	by_location();
#endif
	for (CUmemoryPool pool : pools)
		CUDA(cudaMemPoolDestroy((cudaMemPool_t)pool));
	return 0;
}
