/* SPDX-License-Identifier: Apache-2.0
 *
 * gpu_spread: which agents, and how many GPUs of each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sidecar/agents/spread.h"

#define MOST 8

/* As "who:took who:took …". */
static void shared(enum spread_kind kind, uint32_t wanted, const uint32_t *gpus, unsigned count,
	const char *expected)
{
	struct spread_share shares[CHANNEL_AGENTS];
	unsigned n = spread_shares(kind, wanted, gpus, count, shares);
	char text[256] = "";

	for (unsigned i = 0; i < n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u:%u",
			i ? " " : "", shares[i].who, shares[i].took);
	assert_string_equal(text, expected);
}

static void test_if_needed(void **state)
{
	const uint32_t gpus[] = {1, 2, 4};

	(void)state;
	shared(SPREAD_IF_NEEDED, 1, gpus, 3, "0:1"); /* the freest that has so many */
	shared(SPREAD_IF_NEEDED, 2, gpus, 3, "1:2");
	shared(SPREAD_IF_NEEDED, 4, gpus, 3, "2:4");
	shared(SPREAD_IF_NEEDED, 5, gpus, 3, "0:1 1:2 2:2");
	shared(SPREAD_IF_NEEDED, 7, gpus, 3, "0:1 1:2 2:4");
	shared(SPREAD_IF_NEEDED, 8, gpus, 3, "");
	shared(SPREAD_IF_NEEDED, 1, gpus, 0, "");
}

static void test_always(void **state)
{
	const uint32_t gpus[] = {1, 0, 2, 4};

	(void)state;
	shared(SPREAD_ALWAYS, 1, gpus, 4, "0:1");
	shared(SPREAD_ALWAYS, 2, gpus, 4, "0:1 2:1");
	shared(SPREAD_ALWAYS, 4, gpus, 4, "0:1 2:2 3:1");
	shared(SPREAD_ALWAYS, 6, gpus, 4, "0:1 2:2 3:3");
	shared(SPREAD_ALWAYS, 7, gpus, 4, "0:1 2:2 3:4");
	shared(SPREAD_ALWAYS, 8, gpus, 4, "");
	shared(SPREAD_ALWAYS, 3, gpus + 3, 1, "0:3"); /* there is no other */
}

/* Whatever the agents have: all that is asked for, of none more than it has, of nobody twice,
 * and of as few agents as possible or as many. */
static void test_any(void **state)
{
	(void)state;
	srand(15);
	for (unsigned round = 0; round < 20000; round++) {
		uint32_t gpus[MOST], all = 0, wanted = 1 + (uint32_t)rand() % 16;
		enum spread_kind kind = round & 1 ? SPREAD_ALWAYS : SPREAD_IF_NEEDED;
		unsigned count = (unsigned)rand() % (MOST + 1), n, some = 0;
		struct spread_share shares[CHANNEL_AGENTS];
		bool one = false;

		for (unsigned i = 0; i < count; i++) {
			all += gpus[i] = (uint32_t)rand() % 5;
			some += gpus[i] > 0;
			one |= gpus[i] >= wanted;
		}
		n = spread_shares(kind, wanted, gpus, count, shares);
		assert_int_equal(n > 0, all >= wanted);
		if (!n)
			continue;
		if (kind == SPREAD_ALWAYS)
			assert_int_equal(n, some < wanted ? some : wanted);
		else
			assert_int_equal(n == 1, one);
		for (unsigned i = 0; i < n; i++) {
			assert_in_range(shares[i].took, 1, gpus[shares[i].who]);
			gpus[shares[i].who] = 0;
			wanted -= shares[i].took;
		}
		assert_int_equal(wanted, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_if_needed),
		cmocka_unit_test(test_always),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
