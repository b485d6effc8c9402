/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU's memory: accounting, addresses, copies of every shape against a plain
 * reference, fills, pools, pinned memory.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <sys/mman.h>
#include <unistd.h>

static void allocation_is_zeroed_and_accounted(void **state)
{
	size_t before, after, total;
	unsigned char bytes[64];
	CUdeviceptr p, base;
	size_t size;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	ok(cuMemAlloc(&p, 100000));
	ok(cuMemGetInfo(&after, &total));
	assert_true(before - after >= 100000);
	ok(cuMemGetAddressRange(&base, &size, p + 77));
	assert_true(base == p);
	assert_int_equal(size, 100000);
	ok(cuMemsetD8(p, 0x5a, 100000));
	ok(cuMemcpyDtoH(bytes, p + 99936, 64));
	for (int i = 0; i < 64; i++)
		assert_int_equal(bytes[i], 0x5a);
	ok(cuMemFree(p));
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	/* The same pages, read by the next owner. */
	ok(cuMemAlloc(&p, 100000));
	ok(cuMemcpyDtoH(bytes, p + 99936, 64));
	for (int i = 0; i < 64; i++)
		assert_int_equal(bytes[i], 0);
	ok(cuMemFree(p));
	is(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

static void beyond_the_total_is_out_of_memory(void **state)
{
	size_t total, left;
	CUdeviceptr p, q;

	(void)state;
	ok(cuMemGetInfo(&left, &total));
	is(cuMemAlloc(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	is(cuMemAlloc(&p, (size_t)-1), CUDA_ERROR_OUT_OF_MEMORY);
	ok(cuMemAlloc(&p, left / 2));
	is(cuMemAlloc(&q, left - left / 4), CUDA_ERROR_OUT_OF_MEMORY);
	ok(cuMemFree(p));
	ok(cuMemAlloc(&q, left - left / 4));
	ok(cuMemFree(q));
	is(cuMemAlloc(&q, 0), CUDA_ERROR_INVALID_VALUE);
}

static void bad_addresses_are_refused(void **state)
{
	char host[64];
	CUdeviceptr p;

	(void)state;
	ok(cuMemAlloc(&p, 4096));
	is(cuMemcpyHtoD(p + 4090, host, 7), CUDA_ERROR_INVALID_VALUE);
	is(cuMemcpyHtoD(0x1234, host, 7), CUDA_ERROR_INVALID_VALUE);
	is(cuMemcpyDtoH(host, p - 1, 7), CUDA_ERROR_INVALID_VALUE);
	is(cuMemcpyDtoH(NULL, p, 7), CUDA_ERROR_INVALID_VALUE);
	is(cuMemsetD32(p + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
	is(cuMemsetD8(p, 1, 4097), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemcpyHtoD(p, host, 0));
	ok(cuMemFree(p));
}

/* Pseudo-random bytes, the same in every run. */
static void scramble(unsigned char *to, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		to[i] = (unsigned char)(seed >> 24);
	}
}

#define SPACE 65536

struct shape {
	size_t width, height, depth;
	size_t sx, sy, sz, spitch, sheight;
	size_t dx, dy, dz, dpitch, dheight;
};

static void reference(unsigned char *dst, const unsigned char *src, const struct shape *s)
{
	for (size_t z = 0; z < s->depth; z++)
		for (size_t y = 0; y < s->height; y++)
			for (size_t x = 0; x < s->width; x++)
				dst[((s->dz + z) * s->dheight + s->dy + y) * s->dpitch + s->dx +
					x] =
					src[((s->sz + z) * s->sheight + s->sy + y) * s->spitch +
						s->sx + x];
}

/* Each shape in each direction, synchronous and not, against the loop above. */
static void copies_of_every_shape(void **state)
{
	static const struct shape shapes[] = {
		{100, 1, 1, 0, 0, 0, 100, 1, 0, 0, 0, 100, 1},
		{16, 7, 1, 3, 2, 0, 64, 16, 5, 1, 0, 48, 16},
		{33, 5, 4, 1, 2, 1, 40, 9, 0, 3, 2, 64, 8},
		{1, 9, 3, 63, 0, 0, 64, 9, 0, 0, 0, 1, 9},
		{64, 8, 8, 0, 0, 0, 64, 8, 0, 0, 0, 64, 8},
	};
	static const CUmemorytype types[] = {
		CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED};
	static unsigned char source[SPACE], target[SPACE], expected[SPACE], got[SPACE];
	CUdeviceptr ds, dd;

	(void)state;
	ok(cuMemAlloc(&ds, SPACE));
	ok(cuMemAlloc(&dd, SPACE));
	scramble(source, SPACE, 1);
	ok(cuMemcpyHtoD(ds, source, SPACE));
	for (size_t i = 0; i < 5 * 9 * 2; i++) {
		const struct shape *s = &shapes[i / 18];
		CUmemorytype st = types[i / 6 % 3], dt = types[i / 2 % 3];
		CUDA_MEMCPY3D copy = {.srcXInBytes = s->sx,
			.srcY = s->sy,
			.srcZ = s->sz,
			.srcMemoryType = st,
			.srcHost = source,
			.srcDevice = ds,
			.srcPitch = s->spitch,
			.srcHeight = s->sheight,
			.dstXInBytes = s->dx,
			.dstY = s->dy,
			.dstZ = s->dz,
			.dstMemoryType = dt,
			.dstHost = target,
			.dstDevice = dd,
			.dstPitch = s->dpitch,
			.dstHeight = s->dheight,
			.WidthInBytes = s->width,
			.Height = s->height,
			.Depth = s->depth};

		scramble(target, SPACE, (unsigned)i);
		memcpy(expected, target, SPACE);
		ok(cuMemcpyHtoD(dd, target, SPACE));
		reference(expected, source, s);
		if (i % 2) {
			ok(cuMemcpy3DAsync(&copy, NULL));
			ok(cuStreamSynchronize(NULL));
		} else {
			ok(cuMemcpy3D(&copy));
		}
		if (dt == CU_MEMORYTYPE_HOST)
			memcpy(got, target, SPACE);
		else
			ok(cuMemcpyDtoH(got, dd, SPACE));
		assert_memory_equal(got, expected, SPACE);
	}
	ok(cuMemFree(ds));
	ok(cuMemFree(dd));
}

static void copies_in_two_dimensions(void **state)
{
	static unsigned char source[4096], expected[4096], got[4096];
	struct shape s = {20, 10, 1, 4, 3, 0, 40, 30, 8, 2, 0, 64, 30};
	CUdeviceptr d;
	size_t pitch;
	CUDA_MEMCPY2D copy = {.srcXInBytes = s.sx,
		.srcY = s.sy,
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = source,
		.srcPitch = s.spitch,
		.dstXInBytes = s.dx,
		.dstY = s.dy,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = s.dpitch,
		.WidthInBytes = s.width,
		.Height = s.height};

	(void)state;
	ok(cuMemAllocPitch(&d, &pitch, 64, 64, 4));
	assert_true(pitch >= 64 && pitch % 32 == 0);
	ok(cuMemsetD8(d, 0, 4096));
	scramble(source, sizeof(source), 3);
	copy.dstDevice = d;
	ok(cuMemcpy2D(&copy));
	reference(expected, source, &s);
	ok(cuMemcpyDtoH(got, d, 4096));
	assert_memory_equal(got, expected, 4096);
	copy.srcPitch = 10; /* less than a row */
	is(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	copy.srcPitch = s.spitch;
	copy.Height = 100000; /* beyond the allocation */
	is(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(d));
}

static void fills(void **state)
{
	static uint32_t words[4096], expected[4096];
	CUdeviceptr d;

	(void)state;
	ok(cuMemAlloc(&d, sizeof(words)));
	ok(cuMemsetD32(d, 0x01020304, 4096));
	ok(cuMemsetD16(d + 4, 0xabcd, 3));
	ok(cuMemsetD2D32(d + 128, 64, 7, 3, 5));
	ok(cuMemsetD2D8(d + 1024, 64, 0xee, 5, 2));
	ok(cuMemsetD2D16Async(d + 2048, 32, 0x1234, 4, 2, NULL));
	for (int i = 0; i < 4096; i++)
		expected[i] = 0x01020304;
	for (int i = 0; i < 3; i++)
		((uint16_t *)expected)[2 + i] = 0xabcd;
	for (int y = 0; y < 5; y++)
		for (int x = 0; x < 3; x++)
			expected[32 + y * 16 + x] = 7;
	for (int y = 0; y < 2; y++) {
		memset((char *)expected + 1024 + 64 * y, 0xee, 5);
		for (int x = 0; x < 4; x++)
			((uint16_t *)expected)[1024 + y * 16 + x] = 0x1234;
	}
	ok(cuMemcpyDtoH(words, d, sizeof(words)));
	assert_memory_equal(words, expected, sizeof(words));
	ok(cuMemFree(d));
}

static void pools_and_stream_order(void **state)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemoryPool pool, now;
	uint64_t threshold = 1 << 20, used;
	uint32_t value = 0;
	CUdeviceptr p, q;
	CUstream stream;

	(void)state;
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuMemPoolCreate(&pool, &props));
	ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	threshold = 0;
	ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	assert_int_equal(threshold, 1 << 20);
	ok(cuMemAllocFromPoolAsync(&p, 10000, pool, stream));
	ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_true(used >= 10000);
	ok(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	assert_ptr_equal(now, pool);
	ok(cuMemsetD32Async(p, 42, 2500, stream));
	ok(cuMemcpyDtoHAsync(&value, p + 9996, 4, stream));
	ok(cuMemFreeAsync(p, stream));
	is(cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamSynchronize(stream));
	assert_int_equal(value, 42);
	ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, 0);
	ok(cuMemAllocAsync(&q, 100, stream));
	ok(cuMemPoolDestroy(pool));
	is(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(q));
	ok(cuStreamDestroy(stream));
}

static void pinned_and_registered(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned flags, type;
	int fd, *shared;
	CUdeviceptr d, device;
	char *pinned, *private;
	int value = 0;

	(void)state;
	ok(cuMemHostAlloc((void **)&pinned, 5000, CU_MEMHOSTALLOC_PORTABLE));
	memset(pinned, 3, 5000);
	ok(cuMemHostGetDevicePointer(&d, pinned + 10, 0));
	assert_true(d == (uintptr_t)pinned + 10);
	ok(cuMemHostGetFlags(&flags, pinned));
	assert_true(flags & CU_MEMHOSTALLOC_PORTABLE);
	ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)pinned));
	assert_int_equal(type, CU_MEMORYTYPE_HOST);
	ok(cuMemAlloc(&device, 5000));
	ok(cuMemcpyHtoDAsync(device, pinned, 5000, NULL));
	ok(cuMemcpyDtoHAsync(pinned, device, 4, NULL));
	ok(cuStreamSynchronize(NULL));
	ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 3));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	ok(cuMemFree(device));
	ok(cuMemFreeHost(pinned));
	is(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);

	/* Registered memory, shared or private, is the device's at its own address. */
	fd = memfd_create("test", 0);
	assert_true(fd >= 0 && ftruncate(fd, (off_t)page) == 0);
	shared = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(shared != MAP_FAILED);
	ok(cuMemHostRegister(shared, page, CU_MEMHOSTREGISTER_DEVICEMAP));
	is(cuMemHostRegister(shared, page, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	ok(cuMemHostGetDevicePointer(&d, shared + 4, 0));
	assert_true(d == (uintptr_t)(shared + 4));
	ok(cuMemsetD32(d, 99, 1));
	ok(cuStreamSynchronize(NULL));
	assert_int_equal(shared[4], 99);
	ok(cuMemHostUnregister(shared));
	is(cuMemHostUnregister(shared), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	is(cuMemcpyDtoH(&value, d, 4), CUDA_ERROR_INVALID_VALUE);
	munmap(shared, page);
	close(fd);

	private = malloc(3 * page);
	ok(cuMemHostRegister(private, 3 * page, 0));
	ok(cuMemHostGetDevicePointer(&d, private, 0));
	ok(cuMemsetD8(d + 3 * page - 1, 7, 1));
	is(cuMemsetD8(d + 3 * page, 7, 1), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamSynchronize(NULL));
	assert_int_equal(private[3 * page - 1], 7);
	ok(cuMemHostUnregister(private));
	free(private);
}

static void pointers_tell_what_they_are(void **state)
{
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_IS_MANAGED};
	CUcontext context, current;
	unsigned type;
	int ordinal, local;
	char managed;
	size_t size;
	void *values[] = {&type, &ordinal, &size, &context, &managed};
	CUdeviceptr p;

	(void)state;
	ok(cuCtxGetCurrent(&current));
	ok(cuMemAlloc(&p, 12345));
	ok(cuPointerGetAttributes(5, names, values, p + 100));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ordinal, 0);
	assert_int_equal(size, 12345);
	assert_ptr_equal(context, current);
	assert_int_equal(managed, 0);
	ok(cuMemFree(p));
	is(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p),
		CUDA_ERROR_INVALID_VALUE);
	/* The plural form succeeds for any address and says nothing about it. */
	ok(cuPointerGetAttributes(5, names, values, (uintptr_t)&local));
	assert_int_equal(type, 0);
	assert_ptr_equal(context, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(allocation_is_zeroed_and_accounted),
		cmocka_unit_test(beyond_the_total_is_out_of_memory),
		cmocka_unit_test(bad_addresses_are_refused),
		cmocka_unit_test(copies_of_every_shape),
		cmocka_unit_test(copies_in_two_dimensions),
		cmocka_unit_test(fills),
		cmocka_unit_test(pools_and_stream_order),
		cmocka_unit_test(pinned_and_registered),
		cmocka_unit_test(pointers_tell_what_they_are),
	};

	setenv("VCUDA_SOFTGPU_MEMORY", "256M", 1);
	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
