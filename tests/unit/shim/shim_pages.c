/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of pages of managed memory: its counts follow its states, and what a walk is given
 * at once grows while it goes on, for several walks at a time, and never leaves the page's
 * state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "shim/driver/memory/pages/pages.h"

static void counts_follow_states(void **state)
{
	struct pages pages;
	unsigned seed = 1;

	(void)state;
	assert_true(pages_init(&pages, 1000));
	assert_int_equal(pages.zero, 1000);
	for (int round = 0; round < 2000; round++) {
		size_t first = (size_t)rand_r(&seed) % 1000, present = 0, zero = 0;
		size_t n = 1 + (size_t)rand_r(&seed) % (1000 - first);

		pages_set(&pages, first, n, (enum page_state)(rand_r(&seed) % 5));
		for (size_t i = 0; i < 1000; i++) {
			present += page_present(pages.state[i]);
			zero += pages.state[i] == PAGE_ZERO;
		}
		assert_int_equal(pages.present, present);
		assert_int_equal(pages.zero, zero);
	}
	pages_fini(&pages);
}

static void a_walk_grows_and_a_jump_does_not(void **state)
{
	struct pages pages;

	(void)state;
	assert_true(pages_init(&pages, 1000));
	assert_int_equal(pages_ahead(&pages, 0, 16), 1);
	assert_int_equal(pages_ahead(&pages, 500, 16), 1);
	assert_int_equal(pages_ahead(&pages, 1, 16), 2);
	assert_int_equal(pages_ahead(&pages, 3, 16), 4);
	assert_int_equal(pages_ahead(&pages, 501, 16), 2);
	assert_int_equal(pages_ahead(&pages, 7, 16), 8);
	assert_int_equal(pages_ahead(&pages, 15, 16), 16);
	assert_int_equal(pages_ahead(&pages, 31, 16), 16);
	/* Others' pages and the end stop it. */
	pages_set(&pages, 50, 1, PAGE_DIRTY);
	assert_int_equal(pages_ahead(&pages, 47, 16), 3);
	for (unsigned i = 0; i < PAGES_WALKS; i++)
		pages_ahead(&pages, 700 + 10 * i, 16);
	assert_int_equal(pages_ahead(&pages, 999, 16), 1);
	pages_fini(&pages);
}

static void an_announced_walk_begins_large(void **state)
{
	struct pages pages;

	(void)state;
	assert_true(pages_init(&pages, 1000));
	pages_expect(&pages, 100, 50);
	assert_int_equal(pages_ahead(&pages, 100, 32), 32);
	assert_int_equal(pages_ahead(&pages, 132, 32), 18);
	assert_int_equal(pages_ahead(&pages, 150, 32), 1);
	pages_fini(&pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_follow_states),
		cmocka_unit_test(a_walk_grows_and_a_jump_does_not),
		cmocka_unit_test(an_announced_walk_begins_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
