/* SPDX-License-Identifier: Apache-2.0
 *
 * The NULL stream beside non-blocking ones: in the order in which work was given, as on a GPU
 * that is quicker than its host, and nobody waits for long for what stands still.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static CUstream stream;
static CUdeviceptr value;
static uint32_t *pinned;

static int setup(void **state)
{
	return context_setup(state) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
	       cuMemAlloc(&value, 8) || cuMemHostAlloc((void **)&pinned, 4, 0);
}

/* Stands for a kernel that takes a while. */
static void work(void *unused)
{
	(void)unused;
	usleep(5000);
}

static void the_null_stream_begins_behind_what_came_before(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 20; i++) {
		ok(cuMemsetD32(value, i, 1));
		ok(cuCtxSynchronize());
		ok(cuLaunchHostFunc(stream, work, NULL));
		ok(cuMemcpyDtoHAsync(pinned, value, 4, stream));
		ok(cuMemsetD32(value, 0, 1));
		ok(cuCtxSynchronize());
		assert_int_equal(*pinned, i);
	}
}

static void a_copy_in_the_null_stream_reads_what_came_before(void **state)
{
	uint32_t got;

	(void)state;
	for (uint32_t i = 1; i <= 20; i++) {
		ok(cuLaunchHostFunc(stream, work, NULL));
		ok(cuMemsetD32Async(value, i, 1, stream));
		ok(cuMemcpyDtoH(&got, value, 4));
		assert_int_equal(got, i);
	}
}

static void other_streams_begin_behind_the_null_stream(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 20; i++) {
		ok(cuLaunchHostFunc(NULL, work, NULL));
		ok(cuMemsetD32Async(value, i, 1, NULL));
		ok(cuMemcpyDtoHAsync(pinned, value, 4, stream));
		ok(cuStreamSynchronize(stream));
		assert_int_equal(*pinned, i);
	}
}

static void a_value_that_the_null_stream_brings_is_no_deadlock(void **state)
{
	(void)state;
	ok(cuMemsetD8(value, 0, 8));
	ok(cuCtxSynchronize());
	ok(cuStreamWaitValue32(stream, value, 7, CU_STREAM_WAIT_VALUE_EQ));
	ok(cuMemsetD32Async(value + 4, 8, 1, stream));
	ok(cuMemsetD32(value, 7, 1));
	ok(cuStreamSynchronize(stream));
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Once for an operation, not for each that comes after it. */
static void what_stands_still_is_waited_for_once(void **state)
{
	double began, passed, all;
	uint32_t got;

	(void)state;
	pthread_mutex_lock(&gate);
	ok(cuLaunchHostFunc(stream, wait_at_gate, NULL));
	ok(cuMemsetD32Async(value + 4, 5, 1, stream));
	began = seconds();
	ok(cuMemcpyHtoD(value, &(uint32_t){3}, 4));
	ok(cuMemcpyDtoH(&got, value, 4));
	passed = seconds();
	assert_int_equal(got, 3);
	for (uint32_t i = 0; i < 100; i++) {
		ok(cuMemsetD32Async(value + 4, i, 1, stream));
		ok(cuMemcpyHtoD(value, &i, 4));
		ok(cuMemcpyDtoH(&got, value, 4));
		assert_int_equal(got, i);
	}
	all = seconds();
	is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	pthread_mutex_unlock(&gate);
	ok(cuStreamSynchronize(stream));
	/* 100 waits would take 100 times as long as the first. */
	assert_true(all - passed < 50 * (passed - began));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_null_stream_begins_behind_what_came_before),
		cmocka_unit_test(a_copy_in_the_null_stream_reads_what_came_before),
		cmocka_unit_test(other_streams_begin_behind_the_null_stream),
		cmocka_unit_test(a_value_that_the_null_stream_brings_is_no_deadlock),
		cmocka_unit_test(what_stands_still_is_waited_for_once),
	};

	return cmocka_run_group_tests(tests, setup, context_teardown);
}
