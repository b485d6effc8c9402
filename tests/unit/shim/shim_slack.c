/* SPDX-License-Identifier: Apache-2.0
 *
 * By how much a GPU's records are moved: all alike, no more than the calls ask for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/libraries/cupti/slack.h"

#define KERNELS 100

/* Kernels of 7 us, launched 1 us one after the other: most wait for those before them. They are
 * told AHEAD later than they were. */
static int64_t moved(int64_t ahead, uint64_t done)
{
	struct slack slack = SLACK_NONE;

	for (uint64_t i = 0; i < KERNELS; i++) {
		uint64_t call = 1000000 + i * 1000, start = 1005000 + i * 7000;

		slack_note(&slack, start + (uint64_t)ahead, start + (uint64_t)ahead + 7000,
			call, done);
	}
	return slack_move(&slack);
}

static void right_times_stay(void **state)
{
	(void)state;
	assert_int_equal(moved(0, 1005000 + KERNELS * 7000), 0);
	assert_int_equal(moved(0, UINT64_MAX), 0);
}

/* The first one's call is the only one that tells how early they are. */
static void early_ones_are_moved_behind_their_calls(void **state)
{
	(void)state;
	assert_int_equal(moved(-300000, UINT64_MAX), 295000);
	assert_int_equal(moved(-300000, 1010000 + KERNELS * 7000), 295000);
}

static void late_ones_are_moved_before_they_were_done(void **state)
{
	(void)state;
	assert_int_equal(moved(300000, 1005000 + KERNELS * 7000), -300000);
	assert_int_equal(moved(300000, UINT64_MAX), 0);
}

static void where_no_number_does_the_wrong_is_shared(void **state)
{
	struct slack slack = SLACK_NONE;

	(void)state;
	slack_note(&slack, 1000, 2000, 1400, UINT64_MAX);
	slack_note(&slack, 3000, 4000, 2000, 4100);
	assert_int_equal(slack_move(&slack), 250);
}

static void what_no_clock_explains_is_left_out(void **state)
{
	struct slack slack = SLACK_NONE;

	(void)state;
	slack_note(&slack, 1000, 2000, 1000 + SLACK_MOST, UINT64_MAX);
	slack_note(&slack, 2 * SLACK_MOST, 3 * SLACK_MOST, 0, SLACK_MOST);
	assert_int_equal(slack_move(&slack), 0);
	/* Nothing is known of any. */
	slack = SLACK_NONE;
	slack_note(&slack, 1000, 2000, 0, UINT64_MAX);
	assert_int_equal(slack_move(&slack), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_times_stay),
		cmocka_unit_test(early_ones_are_moved_behind_their_calls),
		cmocka_unit_test(late_ones_are_moved_before_they_were_done),
		cmocka_unit_test(where_no_number_does_the_wrong_is_shared),
		cmocka_unit_test(what_no_clock_explains_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
