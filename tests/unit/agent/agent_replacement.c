/* SPDX-License-Identifier: Apache-2.0
 *
 * When a worker that a session took is replaced: not while its session begins, but at once
 * where nobody else is ready, and after a bounded time whoever else comes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu-agent/front/replacement.h"

#define NOW 1000000000ull

static void nothing_to_wait_for(void **state)
{
	struct replacement r = {0};

	(void)state;
	assert_false(replacement_waits(&r, 0, 0, NOW));
	assert_false(replacement_waits(&r, 2, 0, NOW));
	assert_int_equal(r.due, 0);
}

static void a_session_begins_undisturbed(void **state)
{
	struct replacement r = {0};

	(void)state;
	replacement_begin(&r, NOW);
	assert_true(replacement_waits(&r, 1, 0, NOW));
	assert_true(replacement_waits(&r, 1, 0, NOW + REPLACEMENT_NS - 1));
	assert_false(replacement_waits(&r, 1, 0, NOW + REPLACEMENT_NS));
	/* The next session has its own moment. */
	assert_false(replacement_waits(&r, 1, 0, NOW + REPLACEMENT_NS));
	replacement_begin(&r, NOW + 2 * REPLACEMENT_NS);
	assert_true(replacement_waits(&r, 1, 0, NOW + 2 * REPLACEMENT_NS));
}

static void nobody_waits_for_it(void **state)
{
	struct replacement r = {0};

	(void)state;
	replacement_begin(&r, NOW);
	assert_false(replacement_waits(&r, 0, 0, NOW)); /* who comes would */
	replacement_begin(&r, NOW);
	assert_false(replacement_waits(&r, 1, 1, NOW)); /* who is there does */
}

static void those_who_keep_coming_do_not_put_it_off(void **state)
{
	struct replacement r = {0};

	(void)state;
	for (uint64_t t = 0; t < REPLACEMENT_NS; t += REPLACEMENT_NS / 10)
		replacement_begin(&r, NOW + t);
	assert_false(replacement_waits(&r, 3, 0, NOW + REPLACEMENT_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_wait_for),
		cmocka_unit_test(a_session_begins_undisturbed),
		cmocka_unit_test(nobody_waits_for_it),
		cmocka_unit_test(those_who_keep_coming_do_not_put_it_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
