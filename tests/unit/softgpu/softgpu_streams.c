/* SPDX-License-Identifier: Apache-2.0
 *
 * Order: within a stream, between streams through events, the NULL stream's rules, host
 * functions, values in memory, many threads.  Gates that the test opens make every order a fact
 * and not a matter of luck.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* A place where a stream stands still until the test says so. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
};

static void gate_init(struct gate *gate)
{
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->changed, NULL);
	gate->open = false;
}

static void gate_wait(void *arg)
{
	struct gate *gate = arg;

	pthread_mutex_lock(&gate->lock);
	while (!gate->open)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

static void short_sleep(void)
{
	usleep(20000);
}

static void sleep_on_host(void *unused)
{
	(void)unused;
	short_sleep();
}

static void set_flag(void *arg)
{
	atomic_store((atomic_int *)arg, 1);
}

static void query_tells_whether_work_is_left(void **state)
{
	CUstream stream;
	CUevent event;
	struct gate gate;

	(void)state;
	gate_init(&gate);
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	ok(cuEventQuery(event)); /* never recorded: nothing to wait for */
	ok(cuStreamQuery(stream));
	ok(cuLaunchHostFunc(stream, gate_wait, &gate));
	ok(cuEventRecord(event, stream));
	is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gate_open(&gate);
	ok(cuEventSynchronize(event));
	ok(cuEventQuery(event));
	ok(cuStreamSynchronize(stream));
	ok(cuStreamQuery(stream));
	ok(cuEventDestroy(event));
	ok(cuStreamDestroy(stream));
	is(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
	is(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	is(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
}

static void an_event_holds_another_stream_back(void **state)
{
	CUstream first, second;
	CUdeviceptr value;
	struct gate gate;
	uint32_t got = 0, one = 1;
	uint32_t *pinned;
	CUevent event;

	(void)state;
	gate_init(&gate);
	ok(cuMemAlloc(&value, 4));
	ok(cuMemHostAlloc((void **)&pinned, 4, 0));
	*pinned = 0;
	ok(cuMemcpyHtoD(value, &one, 4));
	ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&event, 0));
	ok(cuLaunchHostFunc(first, gate_wait, &gate));
	ok(cuMemsetD32Async(value, 2, 1, first));
	ok(cuEventRecord(event, first));
	ok(cuStreamWaitEvent(second, event, 0));
	ok(cuMemcpyDtoHAsync(pinned, value, 4, second));
	short_sleep();
	is(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	assert_int_equal(*(volatile uint32_t *)pinned, 0);
	gate_open(&gate);
	ok(cuStreamSynchronize(second));
	assert_int_equal(*pinned, 2);
	ok(cuMemcpyDtoH(&got, value, 4));
	assert_int_equal(got, 2);
	ok(cuEventDestroy(event));
	ok(cuStreamDestroy(first));
	ok(cuStreamDestroy(second));
	ok(cuMemFreeHost(pinned));
	ok(cuMemFree(value));
}

/* The event names the place of its last record before the wait, not a later one. */
static void a_wait_means_the_record_before_it(void **state)
{
	struct gate one, two;
	CUstream first, second;
	CUevent event;

	(void)state;
	gate_init(&one);
	gate_init(&two);
	ok(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	ok(cuLaunchHostFunc(first, gate_wait, &one));
	ok(cuEventRecord(event, first));
	ok(cuStreamWaitEvent(second, event, 0));
	ok(cuLaunchHostFunc(first, gate_wait, &two));
	ok(cuEventRecord(event, first));
	gate_open(&one);
	ok(cuStreamSynchronize(second));
	is(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	gate_open(&two);
	ok(cuEventSynchronize(event));
	ok(cuEventDestroy(event));
	ok(cuStreamDestroy(first));
	ok(cuStreamDestroy(second));
}

static void the_null_stream_waits_and_is_waited_for(void **state)
{
	CUstream blocking, other, free_one;
	struct gate gate, second;
	atomic_int passed = 0;

	(void)state;
	gate_init(&gate);
	gate_init(&second);
	ok(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	ok(cuStreamCreate(&other, CU_STREAM_DEFAULT));
	ok(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
	/* blocking -> NULL -> other; free_one is no part of it. */
	ok(cuLaunchHostFunc(blocking, gate_wait, &gate));
	CUdeviceptr value;
	ok(cuMemAlloc(&value, 8));
	ok(cuMemsetD32Async(value, 1, 1, NULL));
	ok(cuMemsetD32Async(value + 4, 1, 1, other));
	ok(cuMemsetD32Async(value, 1, 1, free_one));
	ok(cuStreamSynchronize(free_one));
	short_sleep();
	is(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	is(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	is(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	gate_open(&gate);
	ok(cuStreamSynchronize(other));
	ok(cuStreamQuery(blocking));
	/* Synchronizing NULL waits for blocking streams. */
	ok(cuLaunchHostFunc(blocking, set_flag, &passed));
	ok(cuStreamSynchronize(NULL));
	assert_int_equal(passed, 1);
	ok(cuMemFree(value));
	ok(cuStreamDestroy(blocking));
	ok(cuStreamDestroy(other));
	ok(cuStreamDestroy(free_one));
}

static void a_destroyed_stream_finishes_its_work(void **state)
{
	atomic_int done = 0;
	struct gate gate;
	CUstream stream;

	(void)state;
	gate_init(&gate);
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuLaunchHostFunc(stream, gate_wait, &gate));
	ok(cuLaunchHostFunc(stream, set_flag, &done));
	ok(cuStreamDestroy(stream));
	assert_int_equal(done, 0);
	gate_open(&gate);
	ok(cuCtxSynchronize());
	assert_int_equal(done, 1);
}

static void events_measure_time(void **state)
{
	CUevent begin, end, untimed;
	CUstream stream;
	struct timespec before, after;
	double most; /* ms between the host's clock before and after */
	float ms = -1;

	(void)state;
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuEventCreate(&begin, 0));
	ok(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC));
	ok(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	is(cuEventElapsedTime(&ms, begin, end), CUDA_ERROR_INVALID_HANDLE);
	clock_gettime(CLOCK_MONOTONIC, &before);
	ok(cuEventRecord(begin, stream));
	ok(cuLaunchHostFunc(stream, sleep_on_host, NULL));
	ok(cuEventRecord(end, stream));
	ok(cuEventSynchronize(end));
	clock_gettime(CLOCK_MONOTONIC, &after);
	most = (double)(after.tv_sec - before.tv_sec) * 1e3 +
	       (double)(after.tv_nsec - before.tv_nsec) / 1e6;
	ok(cuEventElapsedTime(&ms, begin, end));
	assert_true(ms >= 20.0f && (double)ms <= most + 0.01);
	ok(cuEventElapsedTime(&ms, end, begin));
	assert_true(ms <= -20.0f);
	ok(cuEventRecord(untimed, stream));
	is(cuEventElapsedTime(&ms, begin, untimed), CUDA_ERROR_INVALID_HANDLE);
	ok(cuEventDestroy(begin));
	ok(cuEventDestroy(end));
	ok(cuEventDestroy(untimed));
	ok(cuStreamDestroy(stream));
}

static void callback(CUstream stream, CUresult status, void *data)
{
	void **expected = data;

	if (stream == expected[0] && status == CUDA_SUCCESS)
		expected[1] = stream;
}

static void callbacks_are_told_their_stream(void **state)
{
	void *data[2] = {NULL, NULL};
	CUstream stream;

	(void)state;
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	data[0] = stream;
	ok(cuStreamAddCallback(stream, callback, data, 0));
	ok(cuStreamSynchronize(stream));
	assert_ptr_equal(data[1], stream);
	ok(cuStreamDestroy(stream));
}

static void values_in_memory_order_streams(void **state)
{
	CUstream waits, writes;
	CUdeviceptr word;
	atomic_int done = 0;
	uint64_t got;

	(void)state;
	ok(cuMemAlloc(&word, 16));
	ok(cuMemsetD8(word, 0, 16));
	ok(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
	ok(cuStreamCreate(&writes, CU_STREAM_NON_BLOCKING));
	ok(cuStreamSynchronize(NULL));
	ok(cuStreamWaitValue32(waits, word, 5, CU_STREAM_WAIT_VALUE_GEQ));
	ok(cuStreamWaitValue64(waits, word + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_AND));
	ok(cuLaunchHostFunc(waits, set_flag, &done));
	ok(cuStreamWriteValue32(writes, word, 4, 0));
	ok(cuStreamSynchronize(writes));
	short_sleep();
	assert_int_equal(done, 0);
	ok(cuStreamWriteValue32(writes, word, 6, 0));
	ok(cuStreamSynchronize(writes));
	short_sleep();
	assert_int_equal(done, 0);
	ok(cuStreamWriteValue64(writes, word + 8, 3ull << 40, 0));
	ok(cuStreamSynchronize(waits));
	assert_int_equal(done, 1);
	ok(cuMemcpyDtoH(&got, word + 8, 8));
	assert_true(got == 3ull << 40);
	is(cuStreamWaitValue32(waits, word + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	is(cuStreamWriteValue32(waits, 16, 1, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(word));
	ok(cuStreamDestroy(waits));
	ok(cuStreamDestroy(writes));
}

/* Pageable memory may change as soon as the call has returned. */
static void pageable_memory_is_taken_at_the_call(void **state)
{
	CUstream stream;
	CUdeviceptr value;
	struct gate gate;
	uint32_t host = 7, got = 0;

	(void)state;
	gate_init(&gate);
	ok(cuMemAlloc(&value, 4));
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	ok(cuLaunchHostFunc(stream, gate_wait, &gate));
	ok(cuMemcpyHtoDAsync(value, &host, 4, stream));
	host = 8;
	gate_open(&gate);
	ok(cuStreamSynchronize(stream));
	ok(cuMemcpyDtoH(&got, value, 4));
	assert_int_equal(got, 7);
	ok(cuMemFree(value));
	ok(cuStreamDestroy(stream));
}

#define THREADS 8
#define ROUNDS 100

struct worker {
	CUcontext context;
	CUdeviceptr counter;
	unsigned wrong;
};

/* Each thread's own work, with streams and events of its own, comes out right. */
static void *worker_main(void *arg)
{
	struct worker *w = arg;
	CUstream a, b;
	CUevent event;
	CUdeviceptr p;

	if (cuCtxSetCurrent(w->context) || cuStreamCreate(&a, 0) ||
		cuStreamCreate(&b, CU_STREAM_NON_BLOCKING) || cuEventCreate(&event, 0)) {
		w->wrong = ROUNDS;
		return NULL;
	}
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t got[2] = {0};

		w->wrong += cuMemAllocAsync(&p, 8, a) != CUDA_SUCCESS;
		w->wrong += cuMemsetD32Async(p, i, 2, a) != CUDA_SUCCESS;
		w->wrong += cuEventRecord(event, a) != CUDA_SUCCESS;
		w->wrong += cuStreamWaitEvent(b, event, 0) != CUDA_SUCCESS;
		w->wrong += cuMemsetD32Async(p + 4, i + 1, 1, b) != CUDA_SUCCESS;
		w->wrong += cuMemcpyDtoHAsync(got, p, 8, b) != CUDA_SUCCESS;
		w->wrong += cuMemFreeAsync(p, b) != CUDA_SUCCESS;
		w->wrong += cuStreamSynchronize(b) != CUDA_SUCCESS;
		w->wrong += got[0] != i || got[1] != i + 1;
		w->wrong += cuMemsetD32Async(w->counter, i, 1, CU_STREAM_PER_THREAD) !=
			    CUDA_SUCCESS;
	}
	w->wrong += cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS;
	cuStreamDestroy(a);
	cuStreamDestroy(b);
	cuEventDestroy(event);
	return NULL;
}

static void many_threads_in_one_context(void **state)
{
	struct worker workers[THREADS] = {0};
	pthread_t threads[THREADS];
	CUcontext context;
	CUdeviceptr counters;

	(void)state;
	ok(cuCtxGetCurrent(&context));
	ok(cuMemAlloc(&counters, 4 * THREADS));
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].context = context;
		workers[i].counter = counters + 4 * i;
		assert_int_equal(
			pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		uint32_t got = 0;

		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].wrong, 0);
		ok(cuMemcpyDtoH(&got, counters + 4 * i, 4));
		assert_int_equal(got, ROUNDS - 1);
	}
	ok(cuMemFree(counters));
}

/* A chain through a thousand streams and back: nothing recurses, nothing is lost. */
static void a_long_chain_of_streams(void **state)
{
	enum { LENGTH = 1000 };
	static CUstream streams[LENGTH];
	struct gate gate;
	CUevent event;

	(void)state;
	gate_init(&gate);
	ok(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < LENGTH; i++) {
		ok(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		if (i)
			ok(cuStreamWaitEvent(streams[i], event, 0));
		else
			ok(cuLaunchHostFunc(streams[0], gate_wait, &gate));
		ok(cuEventRecord(event, streams[i]));
	}
	is(cuStreamQuery(streams[LENGTH - 1]), CUDA_ERROR_NOT_READY);
	gate_open(&gate);
	ok(cuStreamSynchronize(streams[LENGTH - 1]));
	for (int i = 0; i < LENGTH; i++)
		ok(cuStreamDestroy(streams[i]));
	ok(cuEventDestroy(event));
}

static void priorities_flags_and_attributes(void **state)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_SPIN};
	int least, greatest, priority;
	CUstream stream, other;
	CUcontext context, mine;
	unsigned flags;

	(void)state;
	ok(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_true(greatest < least);
	ok(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 10));
	ok(cuStreamGetPriority(stream, &priority));
	assert_int_equal(priority, greatest);
	ok(cuStreamGetFlags(stream, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	ok(cuStreamGetCtx_v2(stream, &context, NULL));
	ok(cuCtxGetCurrent(&mine));
	assert_ptr_equal(context, mine);
	ok(cuStreamSetAttribute(stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	ok(cuStreamCreate(&other, 0));
	ok(cuStreamCopyAttributes(other, stream));
	value.syncPolicy = 0;
	ok(cuStreamGetAttribute(other, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	assert_int_equal(value.syncPolicy, CU_SYNC_POLICY_SPIN);
	ok(cuStreamIsCapturing(stream, &capture));
	assert_int_equal(capture, CU_STREAM_CAPTURE_STATUS_NONE);
	is(cuStreamCreate(&other, 77), CUDA_ERROR_INVALID_VALUE);
	ok(cuStreamDestroy(stream));
	ok(cuStreamDestroy(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(query_tells_whether_work_is_left),
		cmocka_unit_test(an_event_holds_another_stream_back),
		cmocka_unit_test(a_wait_means_the_record_before_it),
		cmocka_unit_test(the_null_stream_waits_and_is_waited_for),
		cmocka_unit_test(a_destroyed_stream_finishes_its_work),
		cmocka_unit_test(events_measure_time),
		cmocka_unit_test(callbacks_are_told_their_stream),
		cmocka_unit_test(values_in_memory_order_streams),
		cmocka_unit_test(pageable_memory_is_taken_at_the_call),
		cmocka_unit_test(many_threads_in_one_context),
		cmocka_unit_test(a_long_chain_of_streams),
		cmocka_unit_test(priorities_flags_and_attributes),
	};

	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
