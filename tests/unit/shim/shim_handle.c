/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles: kinds and generations are told apart, stale ones stay stale, and readers on other
 * threads never see a wrong object.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shim/engine/handle.h"

static void test_kinds_and_generations(void **state)
{
	int a, b;
	uint64_t first = handle_mint(KIND_CUstream, &a);
	uint64_t second;

	(void)state;
	assert_int_not_equal(first, 0);
	assert_true(first > 2); /* CUDA's special streams */
	assert_ptr_equal(handle_object(first, KIND_CUstream), &a);
	assert_null(handle_object(first, KIND_CUevent));
	assert_null(handle_object(first + 1, KIND_CUstream));
	assert_null(handle_object(first + (1ull << 32), KIND_CUstream));
	assert_true(handle_release(first));
	assert_false(handle_release(first));
	assert_null(handle_object(first, KIND_CUstream));
	handle_recycle();
	second = handle_mint(KIND_CUstream, &b);
	assert_int_not_equal(first, second);
	assert_null(handle_object(first, KIND_CUstream));
	assert_ptr_equal(handle_object(second, KIND_CUstream), &b);
	handle_release(second);
}

static void test_wild_numbers(void **state)
{
	(void)state;
	for (uint64_t bit = 0; bit < 64; bit++)
		for (unsigned kind = 0; kind < KIND_LAST; kind++)
			assert_null(handle_object(1ull << bit | (uint64_t)kind << 24, kind));
	assert_null(handle_object(UINT64_MAX, KIND_CUstream));
}

/* Until the thread that released it begins its next call: then what says so to the agent is in
 * the ring, before what any other thread sends. */
static void *mints(void *index)
{
	static int object;
	uint64_t handle = handle_mint(KIND_CUstream, &object);

	*(uint32_t *)index = handle_index(handle);
	handle_release(handle);
	handle_recycle();
	return NULL;
}

static uint32_t minted_by_another(void)
{
	pthread_t thread;
	uint32_t index;

	assert_int_equal(pthread_create(&thread, NULL, mints, &index), 0);
	pthread_join(thread, NULL);
	return index;
}

static void test_another_thread_waits_for_the_next_call(void **state)
{
	int object;
	uint64_t handles[64];
	uint32_t index;
	bool seen = false;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		handles[i] = handle_mint(KIND_CUstream, &object);
	index = handle_index(handles[63]);
	assert_true(handle_release(handles[63]));
	for (unsigned i = 0; i < 200; i++)
		assert_int_not_equal(minted_by_another(), index);
	handles[63] = handle_mint(KIND_CUevent, &object); /* by the same call */
	assert_int_not_equal(handle_index(handles[63]), index);
	handle_recycle();
	for (unsigned i = 0; i < 200 && !seen; i++)
		seen = minted_by_another() == index;
	assert_true(seen);
	for (unsigned i = 0; i < 64; i++)
		handle_release(handles[i]);
	handle_recycle();
}

static void test_retired_is_not_used_again(void **state)
{
	int object;
	uint64_t retired = handle_mint(KIND_CUfunction, &object);

	(void)state;
	assert_true(handle_retire(retired));
	assert_null(handle_object(retired, KIND_CUfunction));
	for (int i = 0; i < 1000; i++) {
		uint64_t handle = handle_mint(KIND_CUfunction, &object);

		assert_int_not_equal(handle_index(handle), handle_index(retired));
		assert_true(handle_release(handle));
		handle_recycle();
	}
}

static void test_full(void **state)
{
	int object;
	uint64_t last = 0;
	uint32_t count = 0;

	(void)state;
	for (uint64_t handle; (handle = handle_mint(KIND_CUevent, &object)); count++)
		last = handle;
	assert_true(count > HANDLE_INDEX_MAX - 100 && count <= HANDLE_INDEX_MAX);
	assert_true(handle_release(last));
	assert_int_equal(handle_mint(KIND_CUevent, &object), 0);
	handle_recycle();
	assert_int_not_equal(handle_mint(KIND_CUevent, &object), 0);
}

static _Atomic uint64_t shared;
static _Atomic int over;
static int objects[2];

static void *reader(void *wrong)
{
	while (!atomic_load(&over)) {
		uint64_t handle = atomic_load(&shared);
		void *object = handle_object(handle, KIND_CUstream);

		/* It may be gone by now, but it is never something else. */
		if (object && object != &objects[handle_generation(handle) & 1])
			atomic_fetch_add((_Atomic int *)wrong, 1);
	}
	return NULL;
}

static void test_readers_and_a_writer(void **state)
{
	static _Atomic int wrong;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, reader, (void *)&wrong), 0);
	for (int i = 0; i < 100000; i++) {
		/* The object is chosen after the generation is known. */
		uint64_t probe = handle_mint(KIND_CUstream, NULL);
		uint32_t generation = handle_generation(probe);

		handle_release(probe);
		handle_recycle();
		probe = handle_mint(KIND_CUstream, &objects[(generation + 1) & 1]);
		if (handle_generation(probe) == generation + 1)
			atomic_store(&shared, probe);
		handle_release(probe);
		handle_recycle();
	}
	atomic_store(&over, 1);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&wrong), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_and_generations),
		cmocka_unit_test(test_wild_numbers),
		cmocka_unit_test(test_another_thread_waits_for_the_next_call),
		cmocka_unit_test(test_retired_is_not_used_again),
		cmocka_unit_test(test_readers_and_a_writer),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
