/* SPDX-License-Identifier: Apache-2.0
 *
 * The bitmap allocator against a plain array of bytes that says who has which unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/engine/blocks.h"

static void test_empty_and_full(void **state)
{
	static struct blocks blocks;

	(void)state;
	blocks_init(&blocks, 100);
	assert_int_equal(blocks_alloc(&blocks, 0), BLOCKS_NONE);
	assert_int_equal(blocks_alloc(&blocks, 101), BLOCKS_NONE);
	assert_int_equal(blocks_alloc(&blocks, 100), 0);
	assert_int_equal(blocks_alloc(&blocks, 1), BLOCKS_NONE);
	blocks_free(&blocks, 63, 2);
	assert_int_equal(blocks_alloc(&blocks, 3), BLOCKS_NONE);
	assert_int_equal(blocks_alloc(&blocks, 2), 63);
}

static void test_beyond_the_count(void **state)
{
	static struct blocks blocks;

	(void)state;
	/* The bitmap has room for more: that is not to be given out. */
	blocks_init(&blocks, 70);
	assert_int_equal(blocks_alloc(&blocks, 64), 0);
	assert_int_equal(blocks_alloc(&blocks, 7), BLOCKS_NONE);
	assert_int_equal(blocks_alloc(&blocks, 6), 64);
}

#define UNITS 1000
#define HELD 64

static int fits(const unsigned char *used, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < UNITS; i++) {
		run = used[i] ? 0 : run + 1;
		if (run == n)
			return 1;
	}
	return 0;
}

static void test_against_a_plain_array(void **state)
{
	static struct blocks blocks;
	static unsigned char used[UNITS];
	struct {
		uint32_t first, n;
	} held[HELD] = {0};

	(void)state;
	srand(1);
	blocks_init(&blocks, UNITS);
	for (int i = 0; i < 200000; i++) {
		int slot = rand() % HELD;
		uint32_t n = 1 + (uint32_t)rand() % (rand() % 8 ? 20 : 150);
		uint32_t first;

		if (held[slot].n) {
			memset(used + held[slot].first, 0, held[slot].n);
			blocks_free(&blocks, held[slot].first, held[slot].n);
			held[slot].n = 0;
			continue;
		}
		first = blocks_alloc(&blocks, n);
		if (first == BLOCKS_NONE) {
			assert_false(fits(used, n));
			continue;
		}
		assert_true(first + n <= UNITS);
		for (uint32_t u = first; u < first + n; u++) {
			assert_int_equal(used[u], 0);
			used[u] = 1;
		}
		held[slot].first = first;
		held[slot].n = n;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_and_full),
		cmocka_unit_test(test_beyond_the_count),
		cmocka_unit_test(test_against_a_plain_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
