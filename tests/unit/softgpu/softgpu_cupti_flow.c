/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI on the software GPU: threads and streams, what is enabled when, the program's buffers,
 * and what is answered without records.
 */
#include <semaphore.h>

#include "tests/unit/softgpu/softgpu_cupti.h"

/* ---- threads and streams ---- */

#define THREADS 2
#define ROUNDS 50

struct user {
	pthread_t thread;
	CUstream stream;
	uint32_t stream_id;
	uint64_t first; /* of its ids; 0: it pushes none */
	CUdeviceptr memory;
};

static void *user_main(void *arg)
{
	struct user *user = arg;

	ok(cuCtxSetCurrent(gpu.context));
	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (user->first)
			push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, user->first + i);
		if (i % 2)
			launch_at(user->memory, user->stream, (int)i);
		else
			ok(cuMemsetD32Async(user->memory, (unsigned)i, 4, user->stream));
		if (user->first)
			pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, user->first + i);
	}
	return NULL;
}

/* The id of a call, which is to stand before its work; 0: none. */
static uint64_t id_before(size_t at, uint32_t call)
{
	for (size_t i = 0; i < at; i++)
		if (got.at[i].any.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
			got.at[i].external.correlationId == call)
			return got.at[i].external.externalId;
	return 0;
}

static void work_of_is_in_order(const struct user *user)
{
	uint64_t before = 0, n = 0;

	for (size_t i = 0; i < got.count; i++) {
		bool kernel = got.at[i].any.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
		uint64_t start, stop;
		uint32_t call, stream;

		if (!kernel && got.at[i].any.kind != CUPTI_ACTIVITY_KIND_MEMSET)
			continue;
		stream = kernel ? got.at[i].kernel.streamId : got.at[i].fill.streamId;
		if (stream != user->stream_id)
			continue;
		call = kernel ? got.at[i].kernel.correlationId : got.at[i].fill.correlationId;
		start = kernel ? got.at[i].kernel.start : got.at[i].fill.start;
		stop = kernel ? got.at[i].kernel.end : got.at[i].fill.end;
		is(kernel, n % 2);
		assert_true(id_before(i, call) == (user->first ? user->first + n : 0));
		/* The last one's end may be put 1 ns off. */
		assert_true(start + 1 >= before && stop > start);
		before = stop;
		n++;
	}
	is(n, ROUNDS);
}

static void each_thread_has_its_ids_and_each_stream_its_order(void **state)
{
	struct user users[THREADS + 1];

	(void)state;
	for (unsigned i = 0; i <= THREADS; i++) {
		users[i].first = i < THREADS ? 1000 * (i + 1) : 0;
		users[i].memory = gpu.other + 64 * i;
		ok(cuStreamCreate(&users[i].stream, CU_STREAM_NON_BLOCKING));
		is(cuptiGetStreamId(gpu.context, users[i].stream, &users[i].stream_id),
			CUPTI_SUCCESS);
		is(users[i].stream_id, users[0].stream_id + i);
	}
	for (unsigned i = 0; i <= THREADS; i++)
		is(pthread_create(&users[i].thread, NULL, user_main, &users[i]), 0);
	for (unsigned i = 0; i <= THREADS; i++)
		pthread_join(users[i].thread, NULL);
	sync_and_flush();
	is(count_of(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), THREADS * ROUNDS);
	is(got.count, (2 * THREADS + 1) * ROUNDS);
	for (unsigned i = 0; i <= THREADS; i++) {
		work_of_is_in_order(&users[i]);
		ok(cuStreamDestroy(users[i].stream));
	}
}

static void kernels_one_at_a_time_do_not_overlap(void **state)
{
	struct user users[2] = {0};
	size_t n = 0;

	(void)state;
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_ERROR_NOT_COMPATIBLE);
	is(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_SUCCESS);
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
		CUPTI_ERROR_NOT_COMPATIBLE);
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), CUPTI_ERROR_NOT_COMPATIBLE);
	for (unsigned i = 0; i < 2; i++) {
		users[i].memory = gpu.other + 64 * i;
		ok(cuStreamCreate(&users[i].stream, CU_STREAM_NON_BLOCKING));
		is(pthread_create(&users[i].thread, NULL, user_main, &users[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(users[i].thread, NULL);
		ok(cuStreamSynchronize(users[i].stream));
		ok(cuStreamDestroy(users[i].stream));
	}
	flush();
	is(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_SUCCESS);
	is(count_of(CUPTI_ACTIVITY_KIND_KERNEL), ROUNDS);
	for (uint64_t before = 0; n < ROUNDS; n++) {
		const CUpti_ActivityKernel10 *k =
			&record_of(CUPTI_ACTIVITY_KIND_KERNEL, n)->kernel;

		assert_true(k->start + 1 >= before);
		is(k->completed, 0);
		before = k->end;
	}
}

/* ---- what is enabled when ---- */

static void gate_wait(void *gate)
{
	sem_wait(gate);
}

/* What counts is when it was called, not when it ran. */
static void what_is_called_while_it_is_enabled_is_told(void **state)
{
	sem_t gate;

	(void)state;
	sem_init(&gate, 0, 0);
	kinds_set(cuptiActivityDisable);
	ok(cuLaunchHostFunc(gpu.stream, gate_wait, &gate));
	launch(gpu.stream, 1);
	kinds_set(cuptiActivityEnable);
	ok(cuMemsetD8Async(gpu.memory, 2, 16, gpu.stream));
	is(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
	ok(cuMemsetD8Async(gpu.memory, 3, 16, gpu.stream));
	launch(gpu.stream, 1);
	kinds_set(cuptiActivityDisable);
	launch(gpu.stream, 1);
	flush();
	is(got.count, 0); /* nothing has run */
	sem_post(&gate);
	sync_and_flush();
	is(got.count, 2);
	is(got.at[0].fill.value, 2);
	is(got.at[1].any.kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

static void ids_need_the_kind_of_the_calls(void **state)
{
	(void)state;
	push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 1);
	is(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_SUCCESS);
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
	launch(gpu.stream, 1);
	is(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME), CUPTI_SUCCESS);
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_SUCCESS);
	launch(gpu.stream, 1);
	pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 1);
	sync_and_flush();
	is(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 2);
	is(count_of(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), 1);
}

static void kinds_of_one_context(void **state)
{
	CUcontext other, none = (CUcontext)16;
	uint32_t id;

	(void)state;
	kinds_set(cuptiActivityDisable);
	is(cuptiActivityEnableContext(none, CUPTI_ACTIVITY_KIND_MEMSET),
		CUPTI_ERROR_INVALID_CONTEXT);
	is(cuptiActivityEnableContext(gpu.context, CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
	ok(cuMemsetD8(gpu.memory, 1, 16));
	launch(NULL, 1);
	ok(cuCtxSynchronize());
	ok(cuCtxCreate(&other, NULL, 0, 0));
	is(cuptiGetContextId(other, &id), CUPTI_SUCCESS);
	assert_int_not_equal(id, gpu.context_id);
	ok(cuMemsetD8(gpu.memory, 2, 16));
	ok(cuCtxSynchronize());
	is(cuptiActivityDisableContext(gpu.context, CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
	is(cuptiActivityEnableContext(other, CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
	ok(cuMemsetD8(gpu.memory, 3, 16));
	sync_and_flush();
	is(cuptiActivityDisableContext(other, CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
	ok(cuCtxDestroy(other));
	is(got.count, 2);
	is(got.at[0].fill.value, 1);
	is(got.at[0].fill.contextId, gpu.context_id);
	is(got.at[1].fill.value, 3);
	is(got.at[1].fill.contextId, id);
}

/* ---- buffers ---- */

static void fills(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ok(cuMemsetD8Async(gpu.memory, (unsigned char)i, 16, gpu.stream));
}

static void small_buffers_are_many(void **state)
{
	(void)state;
	got.buffer_size = 2 * sizeof(CUpti_ActivityMemset4) + 40;
	fills(11);
	sync_and_flush();
	is(got.count, 11);
	is(got.buffers, 6);
	got.buffer_size = 1 << 16;
	got.buffer_records = 3;
	fills(7);
	sync_and_flush();
	got.buffer_records = 0;
	is(got.count, 18);
	is(got.buffers, 9);
	for (unsigned i = 0; i < 11; i++)
		is(got.at[i].fill.value, i);
	flush();
	is(got.buffers, 9); /* nothing is there to be given out */
	is(dropped_count(), 0);
}

static void records_without_a_buffer_are_counted(void **state)
{
	(void)state;
	got.buffer_size = 0;
	fills(5);
	sync_and_flush();
	is(got.count, 0);
	is(dropped_count(), 5);
	is(dropped_count(), 0);
	got.buffer_size = sizeof(CUpti_ActivityMemset4) - 8; /* no record has room */
	fills(3);
	sync_and_flush();
	is(got.count, 0);
	is(dropped_count(), 3);
	got.buffer_size = 1 << 16;
	fills(2);
	sync_and_flush();
	is(got.count, 2);
	is(dropped_count(), 0);
}

/* At most WAIT_S for what another thread does. */
#define WAIT_S 60
static bool comes_true(bool (*what)(void))
{
	for (int i = 0; i < WAIT_S * 1000; i++) {
		if (what())
			return true;
		usleep(1000);
	}
	return false;
}

static bool a_buffer_came(void)
{
	bool came;

	pthread_mutex_lock(&got.lock);
	came = got.buffers != 0;
	pthread_mutex_unlock(&got.lock);
	return came;
}

static void many_records_come_without_being_asked_for(void **state)
{
	(void)state;
	fills(8000);
	ok(cuCtxSynchronize());
	assert_true(comes_true(a_buffer_came));
	flush();
	is(got.total, 8000);
	is(dropped_count(), 0);
	for (unsigned i = 0; i < 8000; i++)
		is(got.at[i].fill.value, (unsigned char)i);
}

static sem_t asked, go_on;

static void is_slow(void)
{
	sem_post(&asked);
	sem_wait(&go_on);
	got.within = NULL;
}

/* More than there is room for while the program does not take them. */
static void a_program_that_is_slow_loses_records_and_no_memory(void **state)
{
	const unsigned most = 512u * 65536 / sizeof(CUpti_ActivityMemset4);
	const unsigned count = most + most / 8;
	size_t dropped;

	(void)state;
	sem_init(&asked, 0, 0);
	sem_init(&go_on, 0, 0);
	got.within = is_slow;
	fills(8000);
	sem_wait(&asked);
	fills(count - 8000);
	ok(cuCtxSynchronize());
	sem_post(&go_on);
	flush();
	dropped = dropped_count();
	assert_true(dropped >= most / 8 - 8000 && dropped <= most / 8 + 8000);
	assert_true(got.total + dropped == count);
}

static unsigned within;

static void calls_cuda(void)
{
	CUdeviceptr memory;

	if (within++ > 4)
		return;
	if (!cuCtxSetCurrent(gpu.context)) { /* a thread of the profiler's has none */
		ok(cuMemAlloc(&memory, 4096));
		launch(gpu.stream, 1);
		ok(cuCtxSynchronize());
		ok(cuMemFree(memory));
	}
	flush();
}

static void the_programs_functions_may_call_cuda(void **state)
{
	(void)state;
	within = 0;
	got.within = calls_cuda;
	fills(3);
	sync_and_flush();
	got.within = NULL;
	assert_true(within >= 2);
	flush();
	is(count_of(CUPTI_ACTIVITY_KIND_MEMSET), 3);
	assert_true(count_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) >= 2);
}

/* ---- answers ---- */

static void kinds_are_answered_as_an_h200_answers(void **state)
{
	/* Of enabling each, alone. */
	static const unsigned char answers[56] = {14, 0, 0, 0, 0, 0, 38, 38, 0, 0, 0, 0, 0, 0,
		38, 38, 38, 0, 14, 0, 14, 38, 0, 38, 38, 13, 0, 21, 14, 38, 38, 38, 38, 0, 0, 0,
		0, 0, 0, 0, 0, 38, 38, 38, 38, 0, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0};

	(void)state;
	kinds_set(cuptiActivityDisable);
	for (int kind = 0; kind < 56; kind++) {
		int off = answers[kind] == 13 || answers[kind] == 21 ? answers[kind] : 0;

		is(cuptiActivityEnable(kind), answers[kind]);
		is(cuptiActivityDisable(kind), off);
	}
	is(cuptiActivityEnable(999), CUPTI_SUCCESS);
	is(cuptiActivityDisable(999), CUPTI_SUCCESS);
	is(cuptiActivityRegisterCallbacks(NULL, NULL), CUPTI_ERROR_INVALID_PARAMETER);
	is(cuptiActivityFlushAll(7), CUPTI_SUCCESS);
	is(cuptiActivityFlush(gpu.context, 0, 0), CUPTI_SUCCESS);
}

static void attributes_are_kept(void **state)
{
	uint64_t value = 0;
	size_t size = 64;

	(void)state;
	is(cuptiActivityGetAttribute(
		   CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &value),
		CUPTI_SUCCESS);
	is(size, 8);
	is(value, 250);
	value = 1 << 20;
	is(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
		CUPTI_SUCCESS);
	value = 0;
	is(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
		CUPTI_SUCCESS);
	is(value, 1 << 20);
	size = 3;
	is(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value),
		CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
	is(cuptiActivityGetAttribute(
		   CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, &size, &value),
		CUPTI_ERROR_NOT_SUPPORTED);
	is(cuptiActivitySetAttribute(99, &size, &value), CUPTI_ERROR_INVALID_PARAMETER);
}

static void numbers_and_names_are_answered(void **state)
{
	const char *name;
	uint32_t id, again;

	(void)state;
	is(cuptiGetVersion(&id), CUPTI_SUCCESS);
	is(id, 130001);
	is(cuptiGetResultString(CUPTI_ERROR_QUEUE_EMPTY, &name), CUPTI_SUCCESS);
	assert_string_equal(name, "CUPTI_ERROR_QUEUE_EMPTY");
	is(cuptiGetResultString(46, &name), CUPTI_SUCCESS);
	assert_string_equal(name, "CUPTI_ERROR_INVALID_CHIP_NAME");
	is(cuptiGetResultString(36, &name), CUPTI_ERROR_INVALID_PARAMETER);
	is(cuptiGetResultString(47, &name), CUPTI_ERROR_INVALID_PARAMETER);
	is(cuptiGetContextId(NULL, &id), CUPTI_SUCCESS);
	is(id, gpu.context_id);
	is(cuptiGetDeviceId(NULL, &id), CUPTI_SUCCESS);
	is(id, 0);
	is(cuptiGetContextId((CUcontext)16, &id), CUPTI_ERROR_INVALID_CONTEXT);
	is(cuptiGetStreamIdEx(gpu.context, NULL, 0, &id), CUPTI_SUCCESS);
	is(id, 7);
	is(cuptiGetStreamIdEx(gpu.context, CU_STREAM_LEGACY, 1, &id), CUPTI_SUCCESS);
	is(id, 7);
	is(cuptiGetStreamIdEx(gpu.context, NULL, 1, &id), CUPTI_SUCCESS);
	assert_true(id > 13);
	is(cuptiGetStreamIdEx(gpu.context, CU_STREAM_PER_THREAD, 0, &again), CUPTI_SUCCESS);
	is(again, id);
	is(cuptiGetStreamId(gpu.context, gpu.stream, &id), CUPTI_SUCCESS);
	is(id, 13);
	is(cuptiGetGraphId((CUgraph)16, &id), CUPTI_ERROR_INVALID_PARAMETER);
}

/* The last test: nothing is registered any more. */
static void after_the_end_there_is_nothing(void **state)
{
	(void)state;
	fills(2);
	ok(cuCtxSynchronize());
	is(cuptiFinalize(), CUPTI_SUCCESS);
	is(got.count, 2);
	fills(2);
	sync_and_flush();
	is(got.count, 2);
	is(cuptiFinalize(), CUPTI_SUCCESS);
	is(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed), CUPTI_SUCCESS);
	kinds_set(cuptiActivityEnable);
	fills(1);
	sync_and_flush();
	is(got.count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_thread_has_its_ids_and_each_stream_its_order),
		TEST(kernels_one_at_a_time_do_not_overlap),
		TEST(what_is_called_while_it_is_enabled_is_told),
		TEST(ids_need_the_kind_of_the_calls),
		TEST(kinds_of_one_context),
		TEST(small_buffers_are_many),
		TEST(records_without_a_buffer_are_counted),
		TEST(many_records_come_without_being_asked_for),
		TEST(a_program_that_is_slow_loses_records_and_no_memory),
		TEST(the_programs_functions_may_call_cuda),
		TEST(kinds_are_answered_as_an_h200_answers),
		TEST(attributes_are_kept),
		TEST(numbers_and_names_are_answered),
		TEST(after_the_end_there_is_nothing),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
