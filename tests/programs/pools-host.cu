// SPDX-License-Identifier: Apache-2.0
/* Pools of pinned memory: host and kernels use what they give out at one address, what is freed is another's only
 * behind what came before in the stream, pools and pointers say what they are, and calls that are wrong. */
#include "driver.h"

#include <thread>
#include <vector>

#define MIB (1ull << 20)

static cudaStream_t streams[2];

static CUmemoryPool pool_made(CUmemLocationType type, int id)
{
	ENTRY(cuMemPoolCreate);
	CUmemPoolProps props = {};
	CUmemoryPool pool;

	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = type;
	props.location.id = id;
	DRIVER(p_cuMemPoolCreate(&pool, &props));
	return pool;
}

static void access_given(CUmemoryPool pool)
{
	ENTRY(cuMemPoolSetAccess);
	ENTRY(cuMemPoolGetAccess);
	CUmemAccessDesc access = {};
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;

	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	DRIVER(p_cuMemPoolSetAccess(pool, &access, 1));
	DRIVER(p_cuMemPoolGetAccess(&flags, pool, &access.location));
	CHECK_EQ((int)flags, (int)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	access.location.id = 99;
	DRIVER_IS(CUDA_ERROR_INVALID_DEVICE, p_cuMemPoolSetAccess(pool, &access, 1));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolGetAccess(&flags, pool, &access.location));
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

static void attribute_set(CUmemoryPool pool, cudaMemPoolAttr which, unsigned long long value)
{
	CUDA(cudaMemPoolSetAttribute((cudaMemPool_t)pool, which, &value));
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

/* The host writes, a kernel adds, copies go both ways. */
static void is_used_by_both(CUmemoryPool pool, size_t n)
{
	int *p = taken(pool, n * sizeof(int), streams[0]), *device;
	std::vector<int> back(n);

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	CUDA(cudaStreamSynchronize(streams[0]));
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < n; i++)
			p[i] = (int)i + turn;
		add<<<16, 128, 0, streams[0]>>>(p, n, 1000);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(device, p, n * sizeof(int), cudaMemcpyDefault, streams[0]));
		add<<<16, 128, 0, streams[0]>>>(p, n, -500);
		LAUNCHED();
		CUDA(cudaStreamSynchronize(streams[0]));
		for (size_t i = 0; i < n; i++)
			CHECK_EQ_AT((long long)i, p[i], (int)i + turn + 500);
		CUDA(cudaMemcpy(back.data(), device, n * sizeof(int), cudaMemcpyDefault));
		for (size_t i = 0; i < n; i++)
			CHECK_EQ_AT((long long)i, back[i], (int)i + turn + 1000);
		CUDA(cudaMemcpyAsync(p, device, n * sizeof(int), cudaMemcpyDefault, streams[0]));
		CUDA(cudaStreamSynchronize(streams[0]));
		CHECK_EQ(p[n - 1], (int)n - 1 + turn + 1000);
		CUDA(cudaMemsetAsync(p, 0xff, n * sizeof(int), streams[0]));
		CUDA(cudaStreamSynchronize(streams[0]));
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

/* What is freed behind much work is not the next one's before that is done, whatever stream the
 * next one is of. */
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
	CUDA(cudaStreamSynchronize(streams[1]));
	CUDA(cudaStreamSynchronize(streams[0]));
	all_are(other, n, 2);
	all_are(same, n, 3);
	CUDA(cudaMemcpy(back.data(), device, n * sizeof(int), cudaMemcpyDefault));
	all_are(back.data(), n, 1);
	CUDA(cudaFreeAsync(other, streams[1]));
	CUDA(cudaFreeAsync(same, streams[0]));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaFree(device));
}

/* A stream may go while it has work behind which memory was freed. */
static void outlives_its_stream(CUmemoryPool pool)
{
	const size_t n = MIB;
	cudaStream_t stream;
	int *p, *q;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	p = taken(pool, n * sizeof(int), stream);
	CUDA(cudaLaunchHostFunc(stream, sleep_a_while, NULL));
	put<<<16, 128, 0, stream>>>(p, n, 4);
	LAUNCHED();
	CUDA(cudaFreeAsync(p, stream));
	CUDA(cudaStreamDestroy(stream));
	q = taken(pool, n * sizeof(int), streams[1]);
	put<<<16, 128, 0, streams[1]>>>(q, n, 5);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	all_are(q, n, 5);
	CUDA(cudaFreeAsync(q, streams[1]));
	CUDA(cudaDeviceSynchronize());
}

static void counts(void)
{
	CUmemoryPool pool = pool_made(CU_MEM_LOCATION_TYPE_HOST, 0);
	unsigned long long one = 1;
	int *a, *b;

	access_given(pool);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0ull);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrReleaseThreshold), 0ull);
	attribute_set(pool, cudaMemPoolAttrReleaseThreshold, ~0ull);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrReleaseThreshold), ~0ull);
	a = taken(pool, 3 * MIB, streams[0]);
	b = taken(pool, MIB, streams[0]);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 4 * MIB);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), 4 * MIB);
	CHECK(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 4 * MIB);
	CUDA(cudaFreeAsync(a, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), MIB);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), 4 * MIB);
	attribute_set(pool, cudaMemPoolAttrUsedMemHigh, 0);
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemHigh), MIB);
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemPoolSetAttribute((cudaMemPool_t)pool, cudaMemPoolAttrUsedMemHigh, &one));
	(void)cudaGetLastError();
	attribute_set(pool, cudaMemPoolAttrReservedMemHigh, 0);
	CHECK(attribute(pool, cudaMemPoolAttrReservedMemHigh) >= MIB);
	/* It is the pool's still, for anybody. */
	CUDA(cudaMemPoolTrimTo((cudaMemPool_t)pool, 0));
	a = taken(pool, 2 * MIB, streams[1]);
	CUDA(cudaStreamSynchronize(streams[1]));
	a[0] = b[0] = 7;
	CUDA(cudaFree(a)); /* not in any stream's order; NVIDIA's driver counts it for a while */
	CHECK(attribute(pool, cudaMemPoolAttrUsedMemCurrent) <= 3 * MIB);
	/* What it gave out lasts longer than the pool. */
	CUDA(cudaMemPoolDestroy((cudaMemPool_t)pool));
	CHECK_EQ(b[0], 7);
	add<<<1, 1, 0, streams[1]>>>(b, 1, 1);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(streams[1]));
	CHECK_EQ(b[0], 8);
	CUDA(cudaFreeAsync(b, streams[1]));
	CUDA(cudaDeviceSynchronize());
}

static int mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int lines = 0;

	CHECK(maps != NULL);
	for (int c; (c = fgetc(maps)) != EOF;)
		lines += c == '\n';
	fclose(maps);
	return lines;
}

/* The pool has a few MiB at a time, of half a GiB in all. */
static void gives_back(CUmemoryPool pool)
{
	int before = mappings();

	for (int i = 0; i < 120; i++) {
		int *p = taken(pool, 3 * MIB + i % 5 * MIB, streams[i % 2]);

		CUDA(cudaFreeAsync(p, streams[i % 2]));
		if (i % 4 == 3)
			CUDA(cudaStreamSynchronize(streams[i % 2]));
	}
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0ull);
	CHECK(mappings() < before + 60);
}

/* Nobody waits for the device, only for streams that go. */
static void leaves_nothing(CUmemoryPool pool)
{
	const int before = mappings();

	attribute_set(pool, cudaMemPoolAttrReleaseThreshold, ~0ull);
	for (int i = 0; i < 100; i++) {
		cudaStream_t stream;
		int *p;

		CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		p = taken(pool, MIB, stream);
		put<<<1, 1, 0, stream>>>(p, 1, i);
		LAUNCHED();
		CUDA(cudaFreeAsync(p, stream));
		CUDA(cudaStreamSynchronize(stream));
		p = taken(pool, 2 * MIB, stream);
		CUDA(cudaStreamSynchronize(stream));
		p[0] = i;
		CUDA(cudaFreeAsync(p, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaStreamDestroy(stream));
	}
	CHECK(mappings() < before + 60);
	attribute_set(pool, cudaMemPoolAttrReleaseThreshold, 0);
	CUDA(cudaDeviceSynchronize());
}

static void by_one_thread(CUmemoryPool pool, int number)
{
	cudaStream_t stream;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < 40; i++) {
		const size_t n = 1 + (size_t)(i * 7919 + number) % 70000;
		int *p = taken(pool, n * sizeof(int), stream);

		put<<<8, 64, 0, stream>>>(p, n, number * 1000 + i);
		LAUNCHED();
		if (i % 3) {
			CUDA(cudaStreamSynchronize(stream));
			all_are(p, n, number * 1000 + i);
		}
		CUDA(cudaFreeAsync(p, stream));
	}
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaStreamDestroy(stream));
}

static void by_threads(CUmemoryPool pool)
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 4; i++)
		threads.emplace_back(by_one_thread, pool, i);
	for (std::thread &thread : threads)
		thread.join();
}

static void pointers(CUmemoryPool pool)
{
	ENTRY(cuPointerGetAttribute);
	char *p = (char *)taken(pool, MIB, streams[0]);
	cudaPointerAttributes told;
	CUmemoryPool holding = NULL;

	CUDA(cudaStreamSynchronize(streams[0]));
	CUDA(cudaPointerGetAttributes(&told, p + 5));
	CHECK_EQ((int)told.type, (int)cudaMemoryTypeHost);
	CHECK(told.hostPointer == p + 5);
	DRIVER(p_cuPointerGetAttribute(
		&holding, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)p));
	CHECK(holding == pool);
	CUDA(cudaFreeAsync(p, streams[0]));
	CUDA_IS(cudaErrorInvalidValue, cudaFreeAsync(p, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
}

static void wrong(void)
{
	ENTRY(cuMemPoolCreate);
	CUmemPoolProps props = {};
	CUmemoryPool pool = NULL;
	void *p = &pool;

	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolCreate(&pool, &props));
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	props.location.id = 99;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolCreate(&pool, &props));
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemPoolCreate(&pool, &props));
	props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
	props.maxSize = 64 * MIB;
	DRIVER(p_cuMemPoolCreate(&pool, &props)); /* the id says nothing */
	CUDA_IS(cudaErrorMemoryAllocation,
		cudaMallocFromPoolAsync(&p, 1024 * MIB, (cudaMemPool_t)pool, streams[0]));
	CUDA(cudaMallocFromPoolAsync(&p, 0, (cudaMemPool_t)pool, streams[0]));
	CHECK(p == NULL);
	CUDA_IS(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, (cudaMemPool_t)pool));
	CUDA(cudaMemPoolDestroy((cudaMemPool_t)pool));
	(void)cudaGetLastError();
}

#if CUDART_VERSION >= 13000
static void by_location(void)
{
	cudaMemLocation host = {}, numa = {};
	cudaMemPool_t plain, again, current, own;
	void *p;

	host.type = cudaMemLocationTypeHost;
	numa.type = cudaMemLocationTypeHostNuma;
	CUDA(cudaMemGetDefaultMemPool(&plain, &host, cudaMemAllocationTypePinned));
	host.id = 5; /* says nothing */
	CUDA(cudaMemGetDefaultMemPool(&again, &host, cudaMemAllocationTypePinned));
	CHECK(plain == again);
	host.id = 0;
	CUDA(cudaMemGetMemPool(&current, &host, cudaMemAllocationTypePinned));
	CHECK(current == plain);
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolDestroy(plain));
	CUDA(cudaMallocFromPoolAsync(&p, MIB, plain, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
	memset(p, 1, MIB);
	CUDA(cudaFreeAsync(p, streams[0]));
	own = (cudaMemPool_t)pool_made(CU_MEM_LOCATION_TYPE_HOST, 0);
	CUDA(cudaMemSetMemPool(&host, cudaMemAllocationTypePinned, own));
	CUDA(cudaMemGetMemPool(&current, &host, cudaMemAllocationTypePinned));
	CHECK(current == own);
	CUDA_IS(cudaErrorInvalidValue, cudaMemSetMemPool(&numa, cudaMemAllocationTypePinned, own));
	CUDA(cudaMemPoolDestroy(own));
	CUDA(cudaMemGetMemPool(&current, &host, cudaMemAllocationTypePinned));
	CHECK(current == plain);
	CUDA(cudaMemGetDefaultMemPool(&again, &numa, cudaMemAllocationTypePinned));
	CHECK(again != plain);
	numa.id = 99;
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemGetDefaultMemPool(&again, &numa, cudaMemAllocationTypePinned));
	numa.type = cudaMemLocationTypeHostNumaCurrent;
	CUDA_IS(cudaErrorNotSupported,
		cudaMemGetDefaultMemPool(&again, &numa, cudaMemAllocationTypePinned));
	CUDA(cudaDeviceSynchronize());
	(void)cudaGetLastError();
}
#endif

/* Fills want the access that kernels want, where it is not given from the start. */
static void wants_access(CUmemoryPool pool)
{
	void *p = taken(pool, MIB, streams[0]);

	cudaError_t error = cudaMemsetAsync(p, 1, MIB, streams[0]);

	CHECK(error == cudaSuccess || error == cudaErrorInvalidValue);
	(void)cudaGetLastError();
	access_given(pool);
	CUDA(cudaMemsetAsync(p, 1, MIB, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
	CHECK_EQ(((char *)p)[MIB - 1], 1);
	CUDA(cudaFreeAsync(p, streams[0]));
	CUDA(cudaStreamSynchronize(streams[0]));
}

int main()
{
	CUmemoryPool pool, numa;

	CUDA(cudaFree(NULL));
#if CUDART_VERSION >= 13000
	if (!device_attribute(cudaDevAttrHostMemoryPoolsSupported))
		SKIP("no pools of pinned memory");
#endif
	if (!device_attribute(cudaDevAttrHostNumaMemoryPoolsSupported))
		SKIP("no pools of pinned memory of a node");
	for (cudaStream_t &stream : streams)
		CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	pool = pool_made(CU_MEM_LOCATION_TYPE_HOST, 0);
	numa = pool_made(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
	for (CUmemoryPool one : {pool, numa}) {
		wants_access(one);
		for (size_t n : {1, 100, 1024, 70000, 1 << 20})
			is_used_by_both(one, n);
		for (size_t n : {64, 5000, 1 << 19})
			comes_in_order(one, n);
	}
	outlives_its_stream(pool);
	leaves_nothing(pool);
	counts();
	gives_back(pool);
	by_threads(pool);
	attribute_set(pool, cudaMemPoolAttrReleaseThreshold, 64 * MIB);
	gives_back(pool);
	by_threads(pool);
	pointers(pool);
	wrong();
#if CUDART_VERSION >= 13000
	by_location();
#endif
	CUDA(cudaMemPoolDestroy((cudaMemPool_t)pool));
	CUDA(cudaMemPoolDestroy((cudaMemPool_t)numa));
	return 0;
}
