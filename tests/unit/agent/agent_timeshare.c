/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of GPU time: a bucket gives what its share says over any length of time, what
 * is overdrawn is paid back, and time that several sessions have at once is divided.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/front/ledger/timeshare.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* Who takes whatever there is, in pieces of up to `piece`, for ten seconds. */
static uint64_t taken(uint32_t share, uint64_t piece)
{
	struct timeshare_bucket bucket = {0};
	uint64_t now = 5 * SECOND, end = now + 10 * SECOND, sum = 0;

	timeshare_fill(&bucket, share, now);
	while (now < end) {
		if (bucket.tokens >= TIMESHARE_RESUME_NS) {
			timeshare_charge(&bucket, piece);
			sum += piece;
			now += piece;
		} else {
			uint64_t at = timeshare_resumes(&bucket, share);

			assert_true(at > now);
			now = at;
		}
		timeshare_fill(&bucket, share, now);
	}
	return sum;
}

static void share_is_given_and_no_more(void **state)
{
	static const uint32_t shares[] = {1, 10, 125, 250, 500, 900};
	static const uint64_t pieces[] = {MS / 10, 3 * MS, 40 * MS};

	(void)state;
	for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++)
		for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
			uint64_t due = 10 * SECOND / 1000 * shares[s], got;
			/* What was there at the start, and the piece that overdraws. */
			uint64_t more = TIMESHARE_BURST_NS / 1000 * shares[s] + pieces[p];

			got = taken(shares[s], pieces[p]);
			if (more < TIMESHARE_RESUME_NS + pieces[p])
				more = TIMESHARE_RESUME_NS + pieces[p];
			assert_in_range(got, due - due / 5, due + more);
		}
}

static void idle_time_is_not_saved_up(void **state)
{
	struct timeshare_bucket bucket = {0};

	(void)state;
	timeshare_fill(&bucket, 500, SECOND);
	timeshare_fill(&bucket, 500, 3600 * SECOND);
	assert_int_equal(bucket.tokens, TIMESHARE_BURST_NS / 2);
	timeshare_fill(&bucket, 500, UINT64_MAX / 2); /* no product overflows */
	assert_int_equal(bucket.tokens, TIMESHARE_BURST_NS / 2);
}

static void debt_ends(void **state)
{
	struct timeshare_bucket bucket = {0};

	(void)state;
	timeshare_fill(&bucket, 500, SECOND);
	for (int i = 0; i < 3; i++)
		timeshare_charge(&bucket, UINT64_MAX);
	assert_int_equal(bucket.tokens, -(int64_t)TIMESHARE_DEBT_NS);
	timeshare_fill(&bucket, 500, SECOND + 2 * TIMESHARE_DEBT_NS);
	assert_int_equal(bucket.tokens, 0);
}

static void time_is_divided_by_who_works(void **state)
{
	struct timeshare_gpu gpu = {0};

	(void)state;
	timeshare_turn(&gpu, SECOND);
	timeshare_turn(&gpu, 2 * SECOND);
	assert_int_equal(gpu.alone, SECOND);
	gpu.working = 1;
	timeshare_turn(&gpu, 3 * SECOND);
	assert_int_equal(gpu.alone, 2 * SECOND);
	gpu.working = 4;
	timeshare_turn(&gpu, 4 * SECOND);
	assert_int_equal(gpu.alone, 2 * SECOND + SECOND / 4);
}

/* Two that are busy all the time have half of it each, whoever tells first; one that tells less
 * leaves more to the other, and nobody who has it alone is made smaller. */
static void time_without_shares_is_not_counted_twice(void **state)
{
	struct timeshare_gpu gpu = {0};
	uint32_t a = 0, b = 0;

	(void)state;
	assert_int_equal(timeshare_divide(&gpu, &a, SECOND, SECOND), SECOND);
	assert_int_equal(timeshare_divide(&gpu, &b, SECOND, SECOND), SECOND / 2);
	assert_int_equal(timeshare_divide(&gpu, &a, SECOND, SECOND), SECOND / 2);
	assert_int_equal(timeshare_divide(&gpu, &b, SECOND / 4, SECOND), SECOND / 5);
	assert_int_equal(timeshare_divide(&gpu, &b, 0, SECOND), 0);
	assert_int_equal(timeshare_divide(&gpu, &a, 2 * SECOND, SECOND), 2 * SECOND);
	assert_int_equal(
		timeshare_divide(&gpu, &a, SECOND / 2, 0), SECOND / 2); /* no division by 0 */
	assert_int_equal(gpu.parts, TIMESHARE_ALL_NS);
}

/* What is told faster than time passes is counted as far as it can be true, and what is told
 * after it is counted again. */
static void what_was_told_at_once_ends_no_counting(void **state)
{
	uint64_t used = SECOND;

	(void)state;
	assert_int_equal(timeshare_grown(&used, 2 * SECOND + MS, SECOND), SECOND);
	assert_int_equal(timeshare_grown(&used, 3 * SECOND + MS, 2 * SECOND), SECOND);
	assert_int_equal(timeshare_grown(&used, 2 * SECOND, 2 * SECOND), 0);
	assert_int_equal(timeshare_grown(&used, 3 * SECOND + 2 * MS, 2 * SECOND), MS);
	assert_int_equal(timeshare_grown(&used, UINT64_MAX, SECOND), SECOND);
}

/* Turns of a hog of a lower class beside one that works all the time, and beside nobody: by how
 * often it is given something, and how much, in ten seconds. */
static uint64_t given(
	const struct priority_gpu *gpu, enum agent_priority priority, unsigned *turns)
{
	uint64_t given_at = 0, sum = 0;

	*turns = 0;
	for (uint64_t now = 20 * SECOND; now < 30 * SECOND; now += MS) {
		uint64_t n = priority_quantum(gpu, priority, given_at, now);

		if (!n)
			continue;
		if (n == UINT64_MAX)
			return n;
		given_at = now;
		sum += n;
		++*turns;
	}
	return sum;
}

static void a_higher_class_goes_first_and_nobody_stands_still(void **state)
{
	struct priority_gpu gpu = {0};
	unsigned turns;

	(void)state;
	assert_int_equal(given(&gpu, PRIORITY_HIGH, &turns), UINT64_MAX);
	given(&gpu, PRIORITY_LOW, &turns);
	assert_int_equal(turns, 10000); /* whenever it asks */
	gpu.working[PRIORITY_LOW] = 3;
	given(&gpu, PRIORITY_LOW, &turns);
	assert_int_equal(turns, 10000); /* its own class holds it up no more */
	gpu.working[PRIORITY_NORMAL] = 1;
	assert_int_equal(given(&gpu, PRIORITY_LOW, &turns), 20 * PRIORITY_TURN_NS);
	assert_int_equal(turns, 20);
	given(&gpu, PRIORITY_NORMAL, &turns);
	assert_int_equal(turns, 10000);
	gpu.working[PRIORITY_HIGH] = 1;
	given(&gpu, PRIORITY_NORMAL, &turns);
	assert_int_equal(turns, 20);
	assert_int_equal(given(&gpu, PRIORITY_HIGH, &turns), UINT64_MAX);
	/* What they have all together is far from making it three times slower. */
	assert_true(2 * PRIORITY_TURN_NS * SECOND / PRIORITY_EVERY_NS < SECOND / 100 * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_is_given_and_no_more),
		cmocka_unit_test(idle_time_is_not_saved_up),
		cmocka_unit_test(debt_ends),
		cmocka_unit_test(time_is_divided_by_who_works),
		cmocka_unit_test(time_without_shares_is_not_counted_twice),
		cmocka_unit_test(what_was_told_at_once_ends_no_counting),
		cmocka_unit_test(a_higher_class_goes_first_and_nobody_stands_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
