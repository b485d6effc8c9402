/* SPDX-License-Identifier: Apache-2.0
 *
 * Registration is lazy and cheap, a launch finds its kernel at once, a thread finds its
 * context: seen from below, on a driver that only counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/unit/runtime/runtime_driver.h"

#define ok(call) assert_int_equal((call), cudaSuccess)
#define is(call, error) assert_int_equal((call), error)

/* What nvcc's code calls; crt/host_runtime.h declares them for C++ only. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int limit, void *tid, void *bid, void *block, void *grid, int *size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
	size_t shared, cudaStream_t stream);

struct wrapper {
	int magic, version;
	const void *data;
	void *more;
};

static const dim3 one = {1, 1, 1};
enum { MANY = 1600000 };
static char stubs[MANY][16]; /* what the kernels' addresses would be */

static void **registered(struct wrapper *wrapper, size_t first, size_t count, const char *name)
{
	void **handle;

	*wrapper = (struct wrapper){.magic = 0x466243b1, .version = 1, .data = wrapper};
	handle = __cudaRegisterFatBinary(wrapper);
	assert_non_null(handle);
	for (size_t i = first; i < first + count; i++)
		__cudaRegisterFunction(
			handle, stubs[i], stubs[i], name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	return handle;
}

static cudaError_t launch(size_t i)
{
	return cudaLaunchKernel(stubs[i], one, one, NULL, 0, NULL);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* So many that the test would not end if each kernel looked at those before it. */
static void registering_calls_no_driver(void **state)
{
	struct wrapper wrapper;
	double begin = now();
	void **handle = registered(&wrapper, 0, MANY, "kernel");

	(void)state;
	print_message("%d kernels registered in %.1f ms\n", MANY, (now() - begin) * 1e3);
	assert_int_equal(driver_counts.other, 0);
	assert_int_equal(driver_counts.loads, 0);
	assert_int_equal(driver_counts.retains, 0);
	__cudaUnregisterFatBinary(handle);
	assert_int_equal(driver_counts.unloads, 0); /* never loaded */
}

static void first_use_loads_once(void **state)
{
	struct wrapper wrapper;
	void **handle = registered(&wrapper, 10, 3, "kernel");
	int loads = driver_counts.loads, kernels = driver_counts.kernels;
	int unloads = driver_counts.unloads;

	(void)state;
	for (int i = 0; i < 5; i++)
		ok(launch(10));
	assert_int_equal(driver_counts.loads, loads + 1);
	assert_int_equal(driver_counts.kernels, kernels + 1);
	ok(launch(12));
	assert_int_equal(driver_counts.loads, loads + 1);
	assert_int_equal(driver_counts.kernels, kernels + 2);
	is(launch(13), cudaErrorInvalidResourceHandle);

	__cudaUnregisterFatBinary(handle);
	assert_int_equal(driver_counts.unloads, unloads + 1);
	is(launch(10), cudaErrorInvalidResourceHandle);
}

static void failures_come_out_of_the_launch(void **state)
{
	struct wrapper wrapper, other;
	void **handle = registered(&wrapper, 20, 1, "kernel");
	void **missing = registered(&other, 21, 1, "missing");
	cudaKernel_t kernel = NULL;

	(void)state;
	driver_load_status = CUDA_ERROR_NO_BINARY_FOR_GPU;
	is(launch(20), cudaErrorNoKernelImageForDevice);
	ok(__cudaGetKernel(&kernel, stubs[20])); /* nothing is loaded for that */
	is(__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL),
		cudaErrorNoKernelImageForDevice);
	driver_load_status = CUDA_SUCCESS;
	ok(launch(20)); /* a failure is not kept */
	is(launch(21), cudaErrorInvalidDeviceFunction);
	ok(__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL));
	is(__cudaGetKernel(&kernel, stubs[22]), cudaErrorInvalidDeviceFunction);
	is(__cudaLaunchKernel(NULL, one, one, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
	__cudaUnregisterFatBinary(handle);
	__cudaUnregisterFatBinary(missing);
}

static void a_kernel_of_two_libraries_outlives_one(void **state)
{
	struct wrapper a, b;
	void **first = registered(&a, 30, 1, "one");
	void **second = registered(&b, 30, 1, "two");

	(void)state;
	ok(launch(30));
	assert_string_equal(driver_counts.name, "one");
	__cudaUnregisterFatBinary(first);
	ok(launch(30));
	assert_string_equal(driver_counts.name, "two");
	__cudaUnregisterFatBinary(second);
	is(launch(30), cudaErrorInvalidResourceHandle);
}

static void configurations_nest(void **state)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;

	(void)state;
	for (unsigned i = 1; i <= 4; i++)
		assert_int_equal(__cudaPushCallConfiguration((dim3){i, 1, 1}, (dim3){1, i, 1},
					 i * 10, (cudaStream_t)(uintptr_t)i),
			0);
	for (unsigned i = 4; i >= 1; i--) {
		ok(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
		assert_int_equal(grid.x, i);
		assert_int_equal(block.y, i);
		assert_int_equal(shared, i * 10);
		assert_ptr_equal(stream, (void *)(uintptr_t)i);
	}
	is(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
		cudaErrorMissingConfiguration);
}

struct job {
	size_t first;
	int failures;
};

static void *launches(void *data)
{
	struct job *job = data;

	for (size_t i = 0; i < 20000; i++)
		job->failures += launch(job->first + i % 100) != cudaSuccess;
	return NULL;
}

static void threads_launch_while_one_registers(void **state)
{
	struct wrapper shared, mine[20];
	void **handle = registered(&shared, 1000, 100, "kernel"), **others[20];
	struct job jobs[4];
	pthread_t threads[4];
	int loads = driver_counts.loads;

	(void)state;
	for (int t = 0; t < 4; t++) {
		jobs[t] = (struct job){.first = 1000};
		assert_int_equal(pthread_create(&threads[t], NULL, launches, &jobs[t]), 0);
	}
	for (size_t i = 0; i < 20; i++)
		others[i] = registered(&mine[i], 2000 + i * 1000, 1000, "kernel");
	for (int i = 0; i < 20; i++)
		__cudaUnregisterFatBinary(others[i]);
	for (int t = 0; t < 4; t++) {
		pthread_join(threads[t], NULL);
		assert_int_equal(jobs[t].failures, 0);
	}
	assert_int_equal(driver_counts.loads, loads + 1);
	__cudaUnregisterFatBinary(handle);
}

/* A thread without a context would reset nothing. */
static void *reset(void *data)
{
	*(cudaError_t *)data = cudaFree(NULL) ?: cudaDeviceReset();
	return NULL;
}

static void a_thread_follows_resets_and_the_driver_api(void **state)
{
	struct wrapper wrapper;
	void **handle = registered(&wrapper, 40, 1, "kernel");
	CUcontext before, own = (CUcontext)0x1199;
	cudaError_t error;
	pthread_t thread;
	int device;

	(void)state;
	ok(cudaSetDevice(0));
	ok(launch(40));
	before = driver_counts.context;

	/* Another thread resets the device: the next launch finds the new context. */
	assert_int_equal(pthread_create(&thread, NULL, reset, &error), 0);
	pthread_join(thread, NULL);
	ok(error);
	ok(launch(40));
	assert_ptr_not_equal(driver_counts.context, before);

	/* A context that the program made current by the driver API is used, and is its device.
	 */
	assert_int_equal(cuCtxSetCurrent(own), 0);
	ok(launch(40));
	assert_ptr_equal(driver_counts.context, own);
	ok(cudaGetDevice(&device));
	assert_int_equal(device, 1);
	ok(cudaSetDevice(0));
	ok(launch(40));
	assert_ptr_not_equal(driver_counts.context, own);
	ok(cudaGetDevice(&device));
	assert_int_equal(device, 0);
	__cudaUnregisterFatBinary(handle);
}

/* A launch costs the driver one lookup a context, not one a launch. */
static void a_kernel_is_looked_up_once_a_context(void **state)
{
	struct wrapper wrapper;
	void **handle = registered(&wrapper, 60, 1, "kernel");
	int functions = driver_counts.functions;

	(void)state;
	for (int i = 0; i < 6; i++) {
		ok(cudaSetDevice(i % 2));
		ok(launch(60));
	}
	assert_int_equal(driver_counts.functions, functions + 2);

	/* The driver says that it does not know the function any more. */
	driver_counts.stale = driver_counts.launched;
	ok(launch(60));
	assert_int_equal(driver_counts.functions, functions + 3);
	ok(launch(60));
	assert_int_equal(driver_counts.functions, functions + 3);
	__cudaUnregisterFatBinary(handle);
}

static int calls_but_launches(void)
{
	return driver_counts.loads + driver_counts.unloads + driver_counts.kernels +
	       driver_counts.functions + driver_counts.retains + driver_counts.binds +
	       driver_counts.other;
}

/* A launch of a kernel that was launched before is one call of the driver, and no other. */
static void a_launch_is_one_call_of_the_driver(void **state)
{
	enum { KERNELS = 100, LAUNCHES = 10000 };
	struct wrapper wrapper;
	void **handle = registered(&wrapper, 50000, 50000, "kernel");
	int launches, others;
	double begin;

	(void)state;
	for (size_t i = 0; i < KERNELS; i++)
		ok(launch(50000 + i * 37));
	launches = driver_counts.launches;
	others = calls_but_launches();
	begin = now();
	for (size_t i = 0; i < LAUNCHES; i++)
		ok(launch(50000 + i % KERNELS * 37));
	print_message("cudaLaunchKernel takes %.1f ns on a driver that only counts\n",
		(now() - begin) / LAUNCHES * 1e9);
	assert_int_equal(driver_counts.launches, launches + LAUNCHES);
	assert_int_equal(calls_but_launches(), others);
	__cudaUnregisterFatBinary(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registering_calls_no_driver),
		cmocka_unit_test(first_use_loads_once),
		cmocka_unit_test(failures_come_out_of_the_launch),
		cmocka_unit_test(a_kernel_of_two_libraries_outlives_one),
		cmocka_unit_test(configurations_nest),
		cmocka_unit_test(threads_launch_while_one_registers),
		cmocka_unit_test(a_thread_follows_resets_and_the_driver_api),
		cmocka_unit_test(a_kernel_is_looked_up_once_a_context),
		cmocka_unit_test(a_launch_is_one_call_of_the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
