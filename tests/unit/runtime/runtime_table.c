/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of registered addresses: what was added is found, removed is not, duplicates take
 * over, and lookups hold while another thread registers (run under the thread sanitizer).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/runtime/table.h"

#define KEYS 20000

/* Addresses of functions lie 16 bytes apart. */
static const void *key(size_t i)
{
	return (const void *)(0x7f0000001000u + i * 16);
}

static void *value(size_t i)
{
	return (void *)(i * 8 + 8);
}

static void added_is_found_and_nothing_else(void **state)
{
	struct table table = {0};

	(void)state;
	assert_null(table_find(&table, key(0)));
	for (size_t i = 0; i < KEYS; i += 2)
		assert_true(table_add(&table, key(i), value(i)));
	for (size_t i = 0; i < KEYS; i++)
		assert_ptr_equal(table_find(&table, key(i)), i % 2 ? NULL : value(i));
	assert_false(table_add(&table, NULL, value(1)));
	assert_null(table_find(&table, NULL));
	table_free(&table);
}

static void removed_is_gone_and_the_rest_stays(void **state)
{
	struct table table = {0};

	(void)state;
	for (size_t i = 0; i < KEYS; i++)
		assert_true(table_add(&table, key(i), value(i)));
	for (size_t i = 0; i < KEYS; i += 3)
		table_remove(&table, key(i), value(i));
	table_remove(&table, key(KEYS + 5), value(1)); /* never there */
	for (size_t i = 0; i < KEYS; i++)
		assert_ptr_equal(table_find(&table, key(i)), i % 3 ? value(i) : NULL);
	table_free(&table);
}

static void a_duplicate_takes_over(void **state)
{
	struct table table = {0};

	(void)state;
	assert_true(table_add(&table, key(1), value(1)));
	assert_true(table_add(&table, key(1), value(2)));
	assert_ptr_equal(table_find(&table, key(1)), value(1));
	table_remove(&table, key(1), value(1));
	assert_ptr_equal(table_find(&table, key(1)), value(2));
	table_remove(&table, key(1), value(2));
	assert_null(table_find(&table, key(1)));
	table_free(&table);
}

/* A library loaded and unloaded again and again: the space does not grow with the number of
 * loads. */
static void reloading_does_not_grow_the_space(void **state)
{
	struct table table = {0};
	size_t slots;

	(void)state;
	for (size_t round = 0; round < 1000; round++) {
		for (size_t i = 0; i < 50; i++)
			assert_true(table_add(&table, key(i), value(i)));
		for (size_t i = 0; i < 50; i++)
			table_remove(&table, key(i), value(i));
	}
	slots = atomic_load(&table.space)->mask + 1;
	assert_true(slots <= 1024);
	table_free(&table);
}

struct shared {
	struct table table;
	_Atomic size_t added;
	_Atomic bool done;
	_Atomic size_t wrong, looked;
};

static void *look(void *data)
{
	struct shared *shared = data;
	unsigned seed = 1;

	while (!atomic_load(&shared->done)) {
		size_t n = atomic_load(&shared->added), i;

		if (!n)
			continue;
		i = (size_t)rand_r(&seed) % n;
		/* Every seventh is removed at some time after it was added. */
		if (table_find(&shared->table, key(i)) != value(i) && i % 7)
			atomic_fetch_add(&shared->wrong, 1);
		atomic_fetch_add(&shared->looked, 1);
	}
	return NULL;
}

static void lookups_hold_while_another_thread_registers(void **state)
{
	struct shared shared = {0};
	pthread_t threads[2];

	(void)state;
	for (int t = 0; t < 2; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, look, &shared), 0);
	for (size_t i = 0; i < KEYS; i++) {
		assert_true(table_add(&shared.table, key(i), value(i)));
		atomic_store(&shared.added, i + 1);
		if (i >= 700 && (i - 700) % 7 == 0)
			table_remove(&shared.table, key(i - 700), value(i - 700));
	}
	while (atomic_load(&shared.looked) < 1000)
		;
	atomic_store(&shared.done, true);
	for (int t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(atomic_load(&shared.wrong), 0);
	table_free(&shared.table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(added_is_found_and_nothing_else),
		cmocka_unit_test(removed_is_gone_and_the_rest_stays),
		cmocka_unit_test(a_duplicate_takes_over),
		cmocka_unit_test(reloading_does_not_grow_the_space),
		cmocka_unit_test(lookups_hold_while_another_thread_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
