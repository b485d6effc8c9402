/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, contexts, names of results, and which function a program of which CUDA version gets.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process of its own sees, before this one has begun. */
static CUuuid uuid_of(const char *identity, CUdevice device)
{
	int ends[2], status;
	CUuuid uuid = {0};
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		setenv("VCUDA_SOFTGPU_IDENTITY", identity, 1);
		_exit(cuInit(0) || cuDeviceGetUuid(&uuid, device) ||
			write(ends[1], &uuid, sizeof(uuid)) != sizeof(uuid));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], &uuid, sizeof(uuid)), sizeof(uuid));
	close(ends[0]);
	close(ends[1]);
	return uuid;
}

static void uuids_come_of_the_identity(void **state)
{
	static const char *const names[] = {"vcuda/agent/node-1", "vcuda/agent/node-2", ""};
	CUuuid seen[3][2], again;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		for (CUdevice d = 0; d < 2; d++)
			seen[i][d] = uuid_of(names[i], d);
	for (unsigned i = 0; i < 6; i++)
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(
				&seen[i / 2][i % 2], &seen[k / 2][k % 2], sizeof(CUuuid));
	for (unsigned i = 0; i < 3; i++) {
		again = uuid_of(names[i], 0);
		assert_memory_equal(&again, &seen[i][0], sizeof(again));
	}
}

static void nothing_works_before_init(void **state)
{
	CUcontext context;
	CUdeviceptr p;
	int count;

	(void)state;
	is(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	is(cuCtxCreate(&context, NULL, 0, 0), CUDA_ERROR_NOT_INITIALIZED);
	is(cuMemAlloc(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
	is(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	ok(cuInit(0));
	ok(cuInit(0));
	is(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
}

static void devices_describe_themselves(void **state)
{
	int count, value, version, can;
	char name[64], bus[32], tiny[4];
	CUuuid first, second;
	CUdevice device;
	size_t total;

	(void)state;
	ok(cuDriverGetVersion(&version));
	assert_int_equal(version, 13000);
	ok(cuDeviceGetCount(&count));
	assert_int_equal(count, 2);
	ok(cuDeviceGet(&device, 1));
	is(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
	is(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
	ok(cuDeviceGetName(name, sizeof(name), 0));
	assert_string_equal(name, "vcuda software GPU");
	ok(cuDeviceGetName(tiny, sizeof(tiny), 0));
	assert_string_equal(tiny, "vcu");
	ok(cuDeviceGetUuid(&first, 0));
	ok(cuDeviceGetUuid(&second, 1));
	assert_memory_not_equal(&first, &second, sizeof(first));
	ok(cuDeviceTotalMem(&total, 0));
	assert_int_equal(total, 64 << 20);
	ok(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
	ok(cuDeviceGetByPCIBusId(&device, bus));
	assert_int_equal(device, 1);
	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		ok(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0));
	is(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	assert_int_equal(value, 8);
	ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	assert_true(value >= 1);
	ok(cuDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	ok(cuDeviceCanAccessPeer(&can, 0, 0));
	assert_int_equal(can, 0);
}

static void contexts_stack(void **state)
{
	CUcontext a, b, now;
	CUdevice device;

	(void)state;
	ok(cuCtxCreate(&a, NULL, 0, 0));
	ok(cuCtxCreate(&b, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 1));
	ok(cuCtxGetDevice(&device));
	assert_int_equal(device, 1);
	ok(cuCtxPopCurrent(&now));
	assert_ptr_equal(now, b);
	ok(cuCtxGetCurrent(&now));
	assert_ptr_equal(now, a);
	ok(cuCtxPushCurrent(b));
	ok(cuCtxDestroy(b));
	ok(cuCtxGetCurrent(&now));
	assert_ptr_equal(now, a);
	is(cuCtxPushCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
	is(cuCtxDestroy(b), CUDA_ERROR_INVALID_CONTEXT);
	is(cuCtxCreate(&b, NULL, 3, 0), CUDA_ERROR_INVALID_VALUE);
	is(cuCtxCreate(&b, NULL, 0, 9), CUDA_ERROR_INVALID_DEVICE);
	ok(cuCtxDestroy(a));
	ok(cuCtxGetCurrent(&now));
	assert_ptr_equal(now, NULL);
	is(cuCtxDestroy((CUcontext)state), CUDA_ERROR_INVALID_CONTEXT);
}

static void a_context_takes_what_it_owns_along(void **state)
{
	size_t before, after, total;
	CUcontext context, other;
	CUdeviceptr p;
	CUstream stream;
	CUevent event;

	(void)state;
	ok(cuCtxCreate(&other, NULL, 0, 0));
	ok(cuMemGetInfo(&before, &total));
	ok(cuCtxCreate(&context, NULL, 0, 0));
	ok(cuMemAlloc(&p, 1 << 20));
	ok(cuStreamCreate(&stream, 0));
	ok(cuEventCreate(&event, 0));
	ok(cuMemsetD8Async(p, 1, 1 << 20, stream));
	ok(cuCtxDestroy(context));
	is(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
	is(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
	is(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
	ok(cuCtxDestroy(other));
}

/* What a new thread finds, and whether it can take the context. */
static void *new_thread(void *context)
{
	static CUresult result;
	CUdeviceptr p;

	result = cuMemAlloc(&p, 4) == CUDA_ERROR_INVALID_CONTEXT ? cuCtxSetCurrent(context)
								 : CUDA_ERROR_UNKNOWN;
	return &result;
}

static void primary_contexts_are_counted(void **state)
{
	CUcontext first, second, current;
	unsigned flags;
	pthread_t thread;
	void *result;
	int active;

	(void)state;
	ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	ok(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
	ok(cuDevicePrimaryCtxRetain(&first, 0));
	ok(cuDevicePrimaryCtxRetain(&second, 0));
	assert_ptr_equal(first, second);
	ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 1);
	assert_int_equal(flags, CU_CTX_SCHED_YIELD);
	is(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
	ok(cuCtxSetCurrent(first));
	/* A thread begins with no context and can take this one. */
	pthread_create(&thread, NULL, new_thread, first);
	pthread_join(thread, &result);
	assert_int_equal(*(CUresult *)result, CUDA_SUCCESS);
	ok(cuDevicePrimaryCtxRelease(0));
	ok(cuCtxSynchronize());
	ok(cuDevicePrimaryCtxRelease(0));
	is(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	is(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuDevicePrimaryCtxRetain(&second, 0));
	ok(cuCtxSetCurrent(second));
	ok(cuCtxSynchronize());
	ok(cuDevicePrimaryCtxReset(0));
	is(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ok(cuCtxSetCurrent(NULL));
	ok(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, NULL);
}

static void limits_and_configuration(void **state)
{
	CUfunc_cache cache;
	CUcontext context;
	unsigned version;
	unsigned long long id;
	size_t value;

	(void)state;
	ok(cuCtxCreate(&context, NULL, 0, 0));
	ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	ok(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	assert_int_equal(value, 4096);
	is(cuCtxGetLimit(&value, (CUlimit)99), CUDA_ERROR_INVALID_VALUE);
	is(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH),
		CUDA_ERROR_UNSUPPORTED_LIMIT);
	ok(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	ok(cuCtxGetCacheConfig(&cache));
	assert_int_equal(cache, CU_FUNC_CACHE_PREFER_L1);
	ok(cuCtxGetApiVersion(context, &version));
	assert_true(version > 0);
	ok(cuCtxGetId(context, &id));
	ok(cuCtxDestroy(context));
}

static void peers_copy(void **state)
{
	CUcontext a, b;
	CUdeviceptr pa, pb;
	uint32_t got = 0;

	(void)state;
	ok(cuCtxCreate(&a, NULL, 0, 0));
	ok(cuMemAlloc(&pa, 64));
	ok(cuMemsetD32(pa, 77, 16));
	ok(cuCtxCreate(&b, NULL, 0, 1));
	is(cuCtxDisablePeerAccess(a), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	ok(cuCtxEnablePeerAccess(a, 0));
	is(cuCtxEnablePeerAccess(a, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	ok(cuMemAlloc(&pb, 64));
	ok(cuMemcpyPeer(pb, b, pa, a, 64));
	ok(cuMemcpyDtoH(&got, pb + 60, 4));
	assert_int_equal(got, 77);
	ok(cuCtxDestroy(b));
	ok(cuCtxDestroy(a));
}

static void results_have_names(void **state)
{
	const char *text;

	(void)state;
	ok(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
	ok(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
	assert_string_equal(text, "invalid argument");
	is(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
}

static void versions_get_their_functions(void **state)
{
	CUdriverProcAddressQueryResult status;
	const void *table;
	CUuuid id = {{0}};
	void *pfn;

	(void)state;
	ok(cuGetProcAddress("cuMemAlloc", &pfn, 12000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
	assert_ptr_equal(pfn, (void *)cuMemAlloc_v2);
	ok(cuGetProcAddress("cuMemAlloc", &pfn, 2000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	ok(cuGetProcAddress("cuCtxCreate", &pfn, 12000, 0, &status));
	assert_ptr_not_equal(pfn, (void *)cuCtxCreate_v4);
	ok(cuGetProcAddress("cuCtxCreate", &pfn, 13000, 0, &status));
	assert_ptr_equal(pfn, (void *)cuCtxCreate_v4);
	ok(cuGetProcAddress("cuStreamQuery", &pfn, 13000, 0, &status));
	assert_ptr_equal(pfn, (void *)cuStreamQuery);
	ok(cuGetProcAddress("cuStreamQuery", &pfn, 13000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
	assert_true(pfn && pfn != (void *)cuStreamQuery);
	ok(cuGetProcAddress("cuNoSuchCall", &pfn, 13000, 0, &status));
	assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	ok(cuGetProcAddress("malloc", &pfn, 13000, 0, &status));
	assert_null(pfn);
	is(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
	assert_null(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uuids_come_of_the_identity),
		cmocka_unit_test(nothing_works_before_init),
		cmocka_unit_test(devices_describe_themselves),
		cmocka_unit_test(contexts_stack),
		cmocka_unit_test(a_context_takes_what_it_owns_along),
		cmocka_unit_test(primary_contexts_are_counted),
		cmocka_unit_test(limits_and_configuration),
		cmocka_unit_test(peers_copy),
		cmocka_unit_test(results_have_names),
		cmocka_unit_test(versions_get_their_functions),
	};

	setenv("VCUDA_SOFTGPU_DEVICES", "2", 1);
	setenv("VCUDA_SOFTGPU_MEMORY", "64MiB", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
