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
#include "gpu-agent/front/timeshare.h"

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
			timeshare_take(&bucket, piece);
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
		timeshare_take(&bucket, UINT64_MAX);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_is_given_and_no_more),
		cmocka_unit_test(idle_time_is_not_saved_up),
		cmocka_unit_test(debt_ends),
		cmocka_unit_test(time_is_divided_by_who_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
